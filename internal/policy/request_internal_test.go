// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"
	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/snapshot"
)

func TestPrincipalEntity_MapsOnlyTheExactFormOfServiceAccounts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		username string
		want     string
		attrs    string
	}{
		"a user":                        {"alice", `k8s::User::"alice"`, `{"name":"alice"}`},
		"a ServiceAccount":              {"system:serviceaccount:team:agent", `k8s::ServiceAccount::"system:serviceaccount:team:agent"`, `{"name":"agent", "namespace":"team"}`},
		"no name":                       {"system:serviceaccount:team:", `k8s::User::"system:serviceaccount:team:"`, `{"name":"system:serviceaccount:team:"}`},
		"no namespace":                  {"system:serviceaccount::agent", `k8s::User::"system:serviceaccount::agent"`, `{"name":"system:serviceaccount::agent"}`},
		"no name and no colon":          {"system:serviceaccount:team", `k8s::User::"system:serviceaccount:team"`, `{"name":"system:serviceaccount:team"}`},
		"one part too many":             {"system:serviceaccount:a:b:c", `k8s::User::"system:serviceaccount:a:b:c"`, `{"name":"system:serviceaccount:a:b:c"}`},
		"a name that only begins alike": {"system:serviceaccounts", `k8s::User::"system:serviceaccounts"`, `{"name":"system:serviceaccounts"}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := principalEntity(Principal{Username: tc.username, Groups: []string{"g"}})
			attributes := principalAttributes(got.UID)
			if got.UID.String() != tc.want || attributes.String() != tc.attrs {
				t.Errorf("entity = %s %s, want %s %s", got.UID, attributes, tc.want, tc.attrs)
			}
			if !got.Parents.Contains(types.NewEntityUID("k8s::Group", "g")) || got.Parents.Len() != 1 {
				t.Errorf("parents = %v", got.Parents)
			}
		})
	}
}

func TestNewRequest_RefusesCallsThatContradictTheContract(t *testing.T) {
	t.Parallel()
	base := func() Call {
		return Call{
			Tool: Tool{Namespace: "team", Name: "pay", EffectKind: EffectCommand, Arguments: []Argument{
				{Name: "a", Kind: "string", Required: true}, {Name: "ip", Kind: "ip_address"},
			}},
			ArgsCanonicalJSON: `{"a":"x"}`,
			Effect:            EffectView{Kind: EffectCommand},
		}
	}
	mcp := func(arguments string) func(*Call) {
		return func(c *Call) {
			c.Tool.EffectKind, c.Tool.MCPArguments = EffectMCP, []Argument{{Name: "n", Kind: "integer", Required: true}}
			c.Effect = EffectView{Kind: EffectMCP, MCPArgumentsJSON: arguments}
		}
	}
	tests := map[string]struct {
		change func(*Call)
		want   string
	}{
		"arguments that are no JSON":          {func(c *Call) { c.ArgsCanonicalJSON = `{` }, "tool team/pay: refused at stage decode: Syntax at /0: not a JSON text; send exactly one JSON value as RFC 8259 defines it"},
		"arguments that are no object":        {func(c *Call) { c.ArgsCanonicalJSON = `[]` }, "tool team/pay: the text is not a JSON object"},
		"an argument that is not declared":    {func(c *Call) { c.ArgsCanonicalJSON = `{"a":"x","b":1}` }, "tool team/pay: the call has an argument that the contract does not declare; prepare the call again"},
		"an argument that is missing":         {func(c *Call) { c.ArgsCanonicalJSON = `{}` }, "tool team/pay, argument a: the call lacks an argument that the contract always sets; prepare the call again"},
		"an argument that is null":            {func(c *Call) { c.ArgsCanonicalJSON = `{"a":null}` }, "tool team/pay, argument a: the call lacks an argument that the contract always sets; prepare the call again"},
		"an argument of another type":         {func(c *Call) { c.ArgsCanonicalJSON = `{"a":1}` }, "tool team/pay, argument a: a value does not have the type that the contract declares; prepare the call again"},
		"an address that Cedar cannot read":   {func(c *Call) { c.ArgsCanonicalJSON = `{"a":"x","ip":"::ffff:10.0.0.1"}` }, "tool team/pay, argument ip: an address cannot be read by Cedar; write it in its plain form"},
		"arguments declared twice":            {func(c *Call) { c.Tool.Arguments = append(c.Tool.Arguments, c.Tool.Arguments[0]) }, "tool team/pay: two arguments have the same name; name each argument once"},
		"an effect of another kind":           {func(c *Call) { c.Effect.Kind = EffectHTTP }, "tool team/pay: the effect is not of the kind that the contract declares; prepare the call again"},
		"an effect of an unknown kind":        {func(c *Call) { c.Effect.Kind, c.Tool.EffectKind = "wasm", "wasm" }, "tool team/pay: the effect is not of the kind that the contract declares; prepare the call again"},
		"a word that is no text":              {func(c *Call) { c.Effect.Argv = []string{"\xff"} }, "tool team/pay: a word of the effect is not UTF-8, which no JSON text can hold"},
		"mapped arguments that are no JSON":   {mcp("{"), "tool team/pay: refused at stage snapshot: Syntax at /0: not a JSON text; send exactly one JSON value as RFC 8259 defines it"},
		"mapped arguments that are no object": {mcp("[]"), "tool team/pay: the text is not a JSON object"},
		"a mapped argument of another type":   {mcp(`{"n":"x"}`), "tool team/pay: a value does not have the type that the contract declares; prepare the call again"},
		"a mapped argument that is missing":   {mcp(`{}`), "tool team/pay: the call lacks an argument that the contract always sets; prepare the call again"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := base()
			tc.change(&call)
			_, err := newRequest(&call, newToolTypes(&call.Tool))
			want := &refusal{ReasonNotRepresentable, tc.want}
			if diff := cmp.Diff(want, asRefusal(err), cmp.AllowUnexported(refusal{})); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			if err.Error() != tc.want {
				t.Errorf("Error() = %q", err)
			}
		})
	}
}

func TestSessionRecord_IsNeverEmptyForLackOfUnderstanding(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want, err string }{
		"nothing":                      {"", `{}`, ""},
		"an empty object":              {`{}`, `{}`, ""},
		"texts, numbers, truth values": {`{"a":"x","b":1,"c":true,"d":["y"],"e":{"f":0.5},"g":null}`, `{"a":"x", "b":1, "c":true, "d":["y"], "e":{"f":decimal("0.5")}}`, ""},
		"something else than JSON":     {`{a}`, "", "refused at stage decode: Syntax at /0: not a JSON text; send exactly one JSON value as RFC 8259 defines it"},
		"a name given twice":           {`{"a":1,"a":2}`, "", "refused at stage decode: DuplicateKey at /1: a member name occurs twice in one object; name each member once"},
		"an array":                     {`[]`, "", "the text is not a JSON object"},
		"null":                         {`null`, "", "the text is not a JSON object"},
		"a number that Cedar lacks":    {`{"a":0.00001}`, "", string(errFraction)},
		"null in an array":             {`{"a":[null]}`, "", string(errNull)},
		"more than 16 KiB":             {`{"a":"` + strings.Repeat("x", 16<<10-7) + `"}`, "", "the text is too long"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := sessionRecord(tc.text)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if message != tc.err || (tc.err == "" && got.String() != tc.want) {
				t.Errorf("sessionRecord = %s, %q; want %s, %q", got, message, tc.want, tc.err)
			}
		})
	}
	if _, err := sessionRecord(`{"a":"` + strings.Repeat("x", 16<<10-8) + `"}`); err != nil {
		t.Errorf("exactly 16 KiB: %v", err)
	}
}

// cedar-go's own check of requests and entities: what is built here is what the
// schema promises.
func TestRequest_ConformsToTheSchema(t *testing.T) {
	t.Parallel()
	items := map[string]any{"type": "array", "items": map[string]any{"type": "number"}}
	call := Call{
		Tool: Tool{Namespace: "team", Name: "pay", EffectKind: EffectMCP, Arguments: []Argument{
			{Name: "s", Kind: "string", Required: true},
			{Name: "i", Kind: "integer"},
			{Name: "p", Kind: "port"},
			{Name: "n", Kind: "number"},
			{Name: "b", Kind: "boolean"},
			{Name: "ip", Kind: "ip_address"},
			{Name: "net", Kind: "cidr"},
			{Name: "l", Kind: "array", Schema: items},
			{Name: "o", Kind: "object", Schema: map[string]any{"type": "object", "properties": map[string]any{"l": items}}},
		}},
		Principal:         Principal{Username: "system:serviceaccount:a:b", Groups: []string{"g"}},
		ArgsCanonicalJSON: `{"b":true,"i":1,"ip":"10.0.0.1","l":[1.5],"n":2,"net":"10.0.0.0/8","o":{"l":[1]},"p":80,"s":"x"}`,
		HasSession:        true, SessionContext: `{"tenant":"x"}`,
		Effect: EffectView{Kind: EffectMCP, MCPArgumentsJSON: `{"c":{"a":[{"x":1},{"x":2,"y":"z"}],"n":null,"r":1.5},"l":[1]}`},
	}
	call.Tool.MCPArguments = []Argument{{Name: "l", Kind: "array", Schema: items}}
	call.Tool.MCPConstants = []Constant{{Name: "c", JSON: `{"a":[{"x":1},{"x":2,"y":"z"}],"n":null,"r":1.5}`}}
	c := newChecks("team", []Tool{call.Tool}, nil)
	v := validate.New(newSchema([]SessionAttribute{{Name: "tenant", Type: AttributeString}}, c.ordered, &otherNames{}))
	r, err := newRequest(&call, c.tool(&call.Tool))
	if err != nil {
		t.Fatal(err)
	}
	for _, approved := range []bool{false, true} {
		if err := v.Request(r.evaluation(approved, "f")); err != nil {
			t.Error(err)
		}
	}
	if err := v.Entities(entitiesOf(r)); err != nil {
		t.Error(err)
	}
}

// The words of a command are written by code of our own; it must agree with the
// general way on every text.
func TestStringsJSON_IsCanonical(t *testing.T) {
	t.Parallel()
	all := make([]byte, 128)
	for i := range all {
		all[i] = byte(i)
	}
	for _, list := range [][]string{nil, {""}, {"a", "b"}, {string(all)}, {"\u007f\u0080\u2028\u2029é日\U0001F600", "</script>"}} {
		tree := make([]any, 0, len(list))
		for _, one := range list {
			tree = append(tree, one)
		}
		want, err := snapshot.New(tree)
		if err != nil {
			t.Fatal(err)
		}
		if got := stringsJSON(list); checkWords(list) != nil || string(got) != want.Canonical() {
			t.Errorf("stringsJSON(%q) = %q; want %q", list, got, want.Canonical())
		}
	}
}
