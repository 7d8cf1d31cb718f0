// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/policy"
)

const permitAll = `@permit_all permit (principal, action, resource);`

// source makes a ToolPolicy p of namespace team.
func source(text string) policy.Source {
	return policy.Source{Namespace: "team", Name: "p", Text: text}
}

// lines gives problems as text.
func lines(problems []policy.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, string(p.Severity)+" "+p.String())
	}
	return out
}

func TestCompile_RefusesWithPlaceAndAdvice(t *testing.T) {
	t.Parallel()
	when := func(expression string) string {
		return "permit (principal, action, resource) when { " + expression + " };"
	}
	tests := map[string]struct {
		text string
		want string
	}{
		"what the grammar forbids":   {"permit (principal action, resource);", `line 1, column 19: expected "," after the principal, but found "action"`},
		"a template":                 {"permit (principal in ?principal, action, resource);", "line 1, column 22: policy templates (?principal, ?resource) are not supported; name the entity"},
		"an unknown function":        {when("\nfoo(1)"), "line 2, column 1: `foo` is not a function"},
		"an unknown method":          {when("context.foo(1)"), "line 1, column 53: `foo` is not a method"},
		"a function used as method":  {when(`context.ip("x")`), "line 1, column 53: `ip` is a function, not a method"},
		"too many arguments":         {when("context.a.contains(1, 2)"), "line 1, column 55: contains expects one argument"},
		"an annotation given twice":  {"@id(\"a\")\n@id(\"b\") " + permitAll, "line 2, column 2: duplicate annotation: @id"},
		"a record key given twice":   {when("{a: 1, a: 2} == context"), "line 1, column 52: duplicate key: a"},
		"a number beyond 64 bits":    {when("1 < 9223372036854775808"), "line 1, column 49: the number does not fit into 64 bits; use a smaller one"},
		"an escape that is none":     {when(`"a" == "\q"`), "line 1, column 52: invalid char escape"},
		"an escaped surrogate":       {when(`"\u{d800}" == ""`), `line 1, column 45: the text holds an escape that is no Unicode character; correct the digits in \u{}`},
		"a text without a policy":    {"// nothing\n", "line 1, column 1: the text holds no policy; delete the object, or write permit or forbid"},
		"an empty text":              {"", "line 1, column 1: the text holds no policy; delete the object, or write permit or forbid"},
		"a bad policy behind a good": {permitAll + "\n forbid", `line 2, column 8: expected "(" after permit or forbid, but the text ends`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, problems := policy.Compile(source(tc.text), policy.Limits{})
			if diff := cmp.Diff([]string{"Error team/p " + tc.want}, lines(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if !c.Broken() || c.Len() != 0 {
				t.Errorf("Broken() = %t, Len() = %d; want a broken text without policies", c.Broken(), c.Len())
			}
		})
	}
}

func TestCompile_ReadsEveryPolicyOfAText(t *testing.T) {
	t.Parallel()
	c, problems := policy.Compile(source(permitAll+"\n@id(\"no shells\")\nforbid (principal, action, resource);"), policy.Limits{})
	if len(problems) > 0 || c.Broken() || c.Len() != 2 {
		t.Fatalf("Compile = %d policies, %v; want 2", c.Len(), problems)
	}
	set, err := policy.NewSet(policy.Limits{}, c)
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Info{ID: "team/p#1", Name: "no shells", Source: policy.Key{Namespace: "team", Name: "p"}, Forbids: true, Line: 2, Column: 1}
	if got, ok := set.Describe("team/p#1"); !ok || got != want {
		t.Errorf("Describe = %+v, %t; want %+v", got, ok, want)
	}
	for _, id := range []string{"team/p#2", "team/q#0", "other/p#0", "p", ""} {
		if got, ok := set.Describe(id); ok {
			t.Errorf("Describe(%q) = %+v; want nothing", id, got)
		}
	}
}

func TestCompile_RefusesNamesThatBlurIDs(t *testing.T) {
	t.Parallel()
	const want = "the name must not be empty, and neither name nor namespace may contain / or #"
	for _, key := range []policy.Key{{Namespace: "team"}, {Namespace: "team", Name: "a#0"}, {Namespace: "a/b", Name: "c"}, {Name: "a/b"}} {
		_, problems := policy.Compile(policy.Source{Namespace: key.Namespace, Name: key.Name, Text: permitAll}, policy.Limits{})
		if len(problems) != 1 || problems[0].Message != want {
			t.Errorf("%+v: problems = %v", key, problems)
		}
	}
}

func TestCompile_RefusesSessionAttributesWithoutMeaning(t *testing.T) {
	t.Parallel()
	s := source(permitAll)
	s.SessionAttributes = []policy.SessionAttribute{
		{Name: "a", Type: policy.AttributeString},
		{Name: "a", Type: policy.AttributeLong},
		{Name: "", Type: policy.AttributeStrings},
		{Name: "b", Type: "Float"},
	}
	_, problems := policy.Compile(s, policy.Limits{})
	want := []string{
		`Error team/p: session attribute "a" has no name, or is declared twice`,
		`Error team/p: session attribute "" has no name, or is declared twice`,
		`Error team/p: session attribute "b" has an unknown type; use String, Long, Boolean or Set<String>`,
	}
	if diff := cmp.Diff(want, lines(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestCompile_HonoursConfiguredLimits(t *testing.T) {
	t.Parallel()
	long := permitAll + strings.Repeat(" ", 100)
	if _, problems := policy.Compile(source(long), policy.Limits{TextBytes: len(long)}); len(problems) > 0 {
		t.Errorf("at the limit: %v", problems)
	}
	if _, problems := policy.Compile(source(long), policy.Limits{TextBytes: len(long) - 1}); len(problems) != 1 {
		t.Errorf("beyond the limit: %v", problems)
	}
	deep := "permit (principal, action, resource) when { ((true)) };"
	if _, problems := policy.Compile(source(deep), policy.Limits{Nesting: 3}); len(problems) > 0 {
		t.Errorf("at the limit: %v", problems)
	}
	if _, problems := policy.Compile(source(deep), policy.Limits{Nesting: 2}); len(problems) != 1 {
		t.Errorf("beyond the limit: %v", problems)
	}
}

func TestCompile_EndsOnBombs(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"a mebibyte of brackets":   strings.Repeat("[", 1<<20),
		"32 KiB of brackets":       strings.Repeat("[", 32<<10),
		"33 KiB of policies":       strings.Repeat(permitAll+"\n", 33<<10/len(permitAll)+1),
		"a path of thousands":      "permit (principal, action, resource) when { context has " + strings.Repeat("a.", 15<<10) + "a };",
		"thousands of signs":       "permit (principal, action, resource) when { " + strings.Repeat("!", 30<<10) + "true",
		"thousands of conditions":  "permit (principal, action, resource) when { " + strings.Repeat("if ", 10<<10) + "true",
		"an endless block comment": "/*" + strings.Repeat("[", 30<<10),
		"an endless string":        `"` + strings.Repeat("[", 30<<10),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, problems := policy.Compile(source(text), policy.Limits{}); len(problems) != 1 {
				t.Errorf("problems = %v, want one", problems)
			}
		})
	}
	// Accepted, and long: cedar-go must get through it.
	text := "permit (principal, action, resource) when { " + strings.Repeat("!", 30<<10) + "true };"
	if c, problems := policy.Compile(source(text), policy.Limits{}); len(problems) > 0 || c.Len() != 1 {
		t.Errorf("Compile = %d, %v", c.Len(), problems)
	}
}

func TestCompile_DigestCoversWhatDecides(t *testing.T) {
	t.Parallel()
	base := policy.Source{Namespace: "team", Name: "p", Text: permitAll, SessionAttributes: []policy.SessionAttribute{{Name: "a", Type: policy.AttributeString}}}
	changed := map[string]func(*policy.Source){
		"nothing":   func(*policy.Source) {},
		"namespace": func(s *policy.Source) { s.Namespace = "other" },
		"name":      func(s *policy.Source) { s.Name = "q" },
		"text":      func(s *policy.Source) { s.Text += " " },
		"attribute": func(s *policy.Source) { s.SessionAttributes = nil },
		"attribute name": func(s *policy.Source) {
			s.SessionAttributes = []policy.SessionAttribute{{Name: "b", Type: policy.AttributeString}}
		},
		"attribute type": func(s *policy.Source) {
			s.SessionAttributes = []policy.SessionAttribute{{Name: "a", Type: policy.AttributeLong}}
		},
		"attribute required": func(s *policy.Source) {
			s.SessionAttributes = []policy.SessionAttribute{{Name: "a", Type: policy.AttributeString, Required: true}}
		},
		"parts moved": func(s *policy.Source) { s.Namespace, s.Name = "tea", "mp" },
	}
	seen := map[string]string{}
	for name, change := range changed {
		s := base
		change(&s)
		c, _ := policy.Compile(s, policy.Limits{})
		if other, ok := seen[c.Digest()]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[c.Digest()] = name
	}
	one, _ := policy.Compile(base, policy.Limits{})
	two, _ := policy.Compile(base, policy.Limits{})
	if one.Digest() != two.Digest() {
		t.Error("the same object has two digests")
	}
}

func TestCompile_KeepsItsOwnCopy(t *testing.T) {
	t.Parallel()
	s := source(permitAll)
	s.SessionAttributes = []policy.SessionAttribute{{Name: "tenant", Type: policy.AttributeString, Required: true}}
	c, _ := policy.Compile(s, policy.Limits{})
	s.SessionAttributes[0].Required = false
	c.SessionAttributes()[0].Required = false
	set, err := policy.NewSet(policy.Limits{}, c)
	if err != nil {
		t.Fatal(err)
	}
	call := payCall(`{"amount":5,"to":"x"}`)
	call.HasSession = true
	if got := set.Decide(call, policy.Options{}); got.Reason != policy.ReasonContextInvalid {
		t.Errorf("decision = %+v, want ContextInvalid", got)
	}
}

func TestProblem_StringNamesWhatIsKnown(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		problem policy.Problem
		want    string
	}{
		"of a text":           {policy.Problem{Source: policy.Key{Namespace: "a", Name: "b"}, Message: "wrong"}, "a/b: wrong"},
		"of a cluster's text": {policy.Problem{Source: policy.Key{Name: "b"}, Line: 1, Column: 2, Message: "wrong"}, "/b line 1, column 2: wrong"},
		"of a policy":         {policy.Problem{Policy: "a/b#1", Namespace: "n", Line: 1, Column: 2, Message: "wrong"}, "a/b#1 line 1, column 2: wrong (tools of namespace n)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.problem.String(); got != tc.want {
				t.Errorf("String() = %q, want %q", got, tc.want)
			}
		})
	}
}
