// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartext_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/policy/cedartext"
)

func TestParse_SaysWhereAndWhat(t *testing.T) {
	t.Parallel()
	const variables = "use principal, action, resource, context, a text in double quotes, or Type::\"id\""
	tests := map[string]struct{ text, want string }{
		"an unknown effect":               {"allow (principal, action, resource);", `line 1, column 1: expected permit or forbid, but found "allow"`},
		"a missing comma":                 {"permit (principal action, resource);", `line 1, column 19: expected "," after the principal, but found "action"`},
		"parts in the wrong order":        {"permit (action, principal, resource);", `line 1, column 9: expected "principal" in the scope, but found "action"`},
		"a missing semicolon":             {"permit (principal, action, resource)", `line 1, column 37: expected ";" at the end of the policy, but the text ends`},
		"a missing brace":                 {"permit (principal, action, resource) when true;", `line 1, column 43: expected "{" after when or unless, but found "true"`},
		"an open condition":               {"permit (principal, action, resource) when { true", `line 1, column 49: expected "}" after the condition, but the text ends`},
		"an empty condition":              {wrap(""), `line 1, column 46: expected an expression, but found "}"`},
		"a type in place of an entity":    {"permit (principal == User, action, resource);", `line 1, column 26: expected "::" after User, as in User::"id", but found ","`},
		"an entity without ID":            {"permit (principal == User::, action, resource);", `line 1, column 28: expected the ID of an entity in double quotes, but found ","`},
		"a reserved word as type":         {"permit (principal is if, action, resource);", `line 1, column 22: expected a type name, but found "if"`},
		"a reserved word inside a type":   {"permit (principal is A::in, action, resource);", `line 1, column 25: expected a type name, but found "in"`},
		"an action with a type":           {"permit (principal, action is A, resource);", `line 1, column 27: expected "," after the action, but found "is"`},
		"a list of actions without comma": {`permit (principal, action in [A::"a" A::"b"], resource);`, `line 1, column 38: expected "]" after the list of actions, but found "A"`},
		"a list in place of a principal":  {`permit (principal in [A::"a"], action, resource);`, `line 1, column 22: expected a type name such as Tool, but found "["`},
		"an annotation without name":      {`@("x") permit (principal, action, resource);`, `line 1, column 2: expected a name after @, but found "("`},
		"an annotation without text":      {`@id(x) permit (principal, action, resource);`, `line 1, column 5: expected a text in double quotes, but found "x"`},
		"an open annotation":              {`@id("x" permit (principal, action, resource);`, `line 1, column 9: expected ")" after the annotation's text, but found "permit"`},
		"an unknown variable":             {wrap("user.name == 1"), `line 1, column 45: "user" is not known here; ` + variables},
		"a type without ID":               {wrap("principal == A::B"), `line 1, column 63: expected the ID of an entity in double quotes, but found "}"`},
		"a type name that breaks off":     {wrap("principal == A::1"), `line 1, column 61: expected a type name, or the ID of an entity in double quotes, but found "1"`},
		"if without then":                 {wrap("if true else false"), `line 1, column 53: expected "then" after the condition of if, but found "else"`},
		"if without else":                 {wrap("if true then false"), `line 1, column 64: expected "else" after the first branch of if, but found "}"`},
		"has without a name":              {wrap("context has 1"), `line 1, column 57: expected an attribute name after has, but found "1"`},
		"has with a broken path":          {wrap("context has a.1"), `line 1, column 59: expected an attribute name, but found "1"`},
		"like without a pattern":          {wrap("context.a like b"), `line 1, column 60: expected a pattern in double quotes after like, but found "b"`},
		"a point without a name":          {wrap("context. == 1"), `line 1, column 54: expected an attribute or a method after the point, but found "=="`},
		"an index that is no text":        {wrap("context[1]"), `line 1, column 53: expected an attribute name in double quotes, but found "1"`},
		"an open index":                   {wrap(`context["a"`), `line 1, column 57: expected "]" after the attribute name, but found "}"`},
		"an open parenthesis":             {wrap("(true"), `line 1, column 51: expected ")" after the expression in parentheses, but found "}"`},
		"an open set":                     {wrap("[1, 2"), `line 1, column 51: expected "]" or "," here, but found "}"`},
		"a set without comma":             {wrap("[1 2]"), `line 1, column 48: expected "]" or "," here, but found "2"`},
		"an open call":                    {wrap("context.a.contains(1"), `line 1, column 66: expected ")" or "," here, but found "}"`},
		"a record without a name":         {wrap("{1: 2} == context"), `line 1, column 46: expected an attribute name, but found "1"`},
		"a record with a reserved name":   {wrap("{if: 2} == context"), `line 1, column 46: expected an attribute name, but found "if"`},
		"a record without colon":          {wrap("{a 2} == context"), `line 1, column 48: expected ":" after the attribute name, but found "2"`},
		"a record without comma":          {wrap("{a: 2 b: 3} == context"), `line 1, column 51: expected "}" or "," here, but found "b"`},
		"an operator without right side":  {wrap("1 <"), `line 1, column 49: expected an expression, but found "}"`},
		"a sign without operand":          {wrap("!"), `line 1, column 47: expected an expression, but found "}"`},
		"a second policy that breaks":     {wrap("true") + "\nforbid (principal, action, resource) unless { };", `line 2, column 47: expected an expression, but found "}"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document, err := cedartext.Parse(tc.text)
			if document != nil || err == nil || err.Error() != tc.want {
				t.Errorf("Parse = %v, %v\nwant %s", document, err, tc.want)
			}
		})
	}
}

// shape writes an expression as its operators and leaves, to compare.
func shape(d *cedartext.Document, e *cedartext.Expr) string {
	if len(e.Kids) == 0 {
		return e.Op + "‹" + d.Source(e) + "›"
	}
	out := e.Op + "‹"
	for i, kid := range e.Kids {
		if i > 0 {
			out += " "
		}
		out += shape(d, kid)
	}
	return out + "›"
}

func TestParse_KeepsPartsOfExpressions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"precedence":            {"1 + 2 * 3 == 7 && true || false", "||‹&&‹==‹+‹‹1› *‹‹2› ‹3››› ‹7›› ‹true›› ‹false››"},
		"a chain is one node":   {"true && false && true", "&&‹‹true› ‹false› ‹true››"},
		"subtraction":           {"1 - 2 - 3 < 4", "<‹-‹-‹‹1› ‹2›› ‹3›› ‹4››"},
		"signs":                 {"!-1", "!‹‹1››"},
		"if":                    {"if true then false else true", "if‹‹true› ‹false› ‹true››"},
		"has with a path":       {"context has a.b", "has‹‹context››"},
		"has with a text":       {`context has "a b"`, "has‹‹context››"},
		"like":                  {`context.a like "x*"`, "like‹.‹‹context›››"},
		"is":                    {"principal is A::B", "is‹‹principal››"},
		"is in":                 {`principal is A in B::"c"`, `is‹‹principal› ‹B::"c"››`},
		"access both ways":      {`context.a["b c"]`, "." + "‹.‹‹context›››"},
		"a method":              {"context.a.contains(1)", "call‹.‹‹context›› ‹1››"},
		"a method without text": {"context.a.isEmpty()", "call‹.‹‹context›››"},
		"a function":            {`ip("10.0.0.0/8")`, `call‹‹"10.0.0.0/8"››`},
		"a set":                 {"[1, 2,]", "[]‹‹1› ‹2››"},
		"an empty set":          {"[]", "[]‹[]›"},
		"a record":              {`{a: 1, "b c": [2],}`, "{}‹‹1› []‹‹2›››"},
		"in":                    {`action in [A::"a"]`, `in‹‹action› []‹‹A::"a"›››`},
		"comparisons":           {"1 >= 2", ">=‹‹1› ‹2››"},
		"parentheses":           {"(1 != 2)", "()‹!=‹‹1› ‹2›››"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := cedartext.Parse(wrap(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := shape(d, d.Policies[0].Conditions[0].Body); got != tc.want {
				t.Errorf("shape = %s\nwant    %s", got, tc.want)
			}
		})
	}
}

func TestParse_KeepsPlacesOfPolicies(t *testing.T) {
	t.Parallel()
	d, err := cedartext.Parse("@id(\"a\") @plain\npermit (principal is A in B::\"b\",\n action in [A::\"x\", A::\"y\",],\n resource == R::\"r\",)\nwhen { true } unless { false };\n" +
		"forbid (principal in A::\"b\", action == A::\"x\", resource is R);")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range d.Policies {
		got = append(got, fmt.Sprint(p.Pos.Line, d.Pos(p.Principal).Line, d.Pos(p.Action).Line, d.Pos(p.Resource).Line, len(p.Conditions)))
	}
	if diff := cmp.Diff([]string{"1 2 3 4 2", "6 6 6 6 0"}, got); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	if got, want := d.Source(d.Policies[0].Principal), `principal is A in B::"b"`; got != want {
		t.Errorf("principal = %s, want %s", got, want)
	}
	if c := d.Policies[0].Conditions; c[0].Unless || !c[1].Unless || d.Pos(c[1].Body).Column != 24 {
		t.Errorf("conditions = %+v", c)
	}
}

func TestConjuncts_ListsWhatMustHold(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []string
	}{
		"one":                   {"context.a", []string{"context.a"}},
		"a chain":               {"context.a && context.b", []string{"context.a", "context.b"}},
		"through parentheses":   {"((context.a && (context.b && context.c)))", []string{"context.a", "context.b", "context.c"}},
		"an alternative is one": {"(context.a || context.b) && context.c", []string{"(context.a || context.b)", "context.c"}},
		"a negation is one":     {"!(context.a && context.b)", []string{"!(context.a && context.b)"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := cedartext.Parse(wrap(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range d.Policies[0].Conditions[0].Body.Conjuncts() {
				got = append(got, d.Source(e))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Conjuncts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSuspect_FindsLiteralsThatCedarRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"the largest number":       {"9223372036854775807", ""},
		"one more":                 {"1 < 9223372036854775808", "line 1, column 5: the number does not fit into 64 bits; use a smaller one"},
		"the smallest number":      {"-9223372036854775808", ""},
		"one less":                 {"-9223372036854775809", "line 1, column 2: the number does not fit into 64 bits; use a smaller one"},
		"a number beyond all":      {"99999999999999999999", "line 1, column 1: the number does not fit into 64 bits; use a smaller one"},
		"an escape":                {`"\u{1F600}" "\u{1_0}"`, ""},
		"a surrogate":              {`"\u{d800}"`, `line 1, column 1: the text holds an escape that is no Unicode character; correct the digits in \u{}`},
		"an escape beyond Unicode": {`"\u{110000}"`, `line 1, column 1: the text holds an escape that is no Unicode character; correct the digits in \u{}`},
		"an escape without digits": {`"\u{}"`, `line 1, column 1: the text holds an escape that is no Unicode character; correct the digits in \u{}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err, found := cedartext.Suspect(cedartext.Scan(tc.text))
			got := ""
			if found {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("Suspect = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFindName_FindsTypesAndEntities(t *testing.T) {
	t.Parallel()
	d, err := cedartext.Parse(wrap("true") + "\n" +
		`permit (principal, action == A::Action::"x", resource is A::B) when { principal in C::"é" };`)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		path, id string
		want     string
	}{
		"a type":                         {"A::B", "", "2 58"},
		"an entity":                      {"A::Action", "x", "2 30"},
		"an entity in a condition":       {"C", "é", "2 84"},
		"another entity of the type":     {"C", "f", "false"},
		"a type that is not there":       {"B::A", "", "false"},
		"a type of the policy before":    {"permit", "", "2 1"},
		"more words than the policy has": {"a::b::c::d::e::f::g::h::i::j::k::l::m::n::o::p::q::r::s", "", "false"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pos, ok := d.FindName(&d.Policies[1], tc.path, tc.id)
			got := "false"
			if ok {
				got = fmt.Sprint(pos.Line, pos.Column)
			}
			if got != tc.want {
				t.Errorf("FindName = %s, want %s", got, tc.want)
			}
		})
	}
}
