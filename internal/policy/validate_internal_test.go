// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func compileText(t *testing.T, name, text string) *Compiled {
	t.Helper()
	c, problems := Compile(Source{Namespace: "team", Name: name, Text: text}, Limits{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

func TestCountProblem_AcceptsOnlyAgreement(t *testing.T) {
	t.Parallel()
	const lost, none = "not all policies of the text could be read; report this text", "the text holds no policy; delete the object, or write permit or forbid"
	tests := map[[3]int]string{
		{2, 2, 2}: "", {1, 2, 2}: lost, {2, 1, 2}: lost, {2, 2, 1}: lost, {0, 0, 0}: none, {0, 0, 1}: lost,
	}
	for counts, want := range tests {
		if got, ok := countProblem(counts[0], counts[1], counts[2]); got != want || ok != (want == "") {
			t.Errorf("%v: %q, %t; want %q", counts, got, ok, want)
		}
	}
}

// The validator is experimental: what it cannot judge is not healthy.
func TestCheck_TakesAPanicForAProblem(t *testing.T) {
	t.Parallel()
	c := compileText(t, "p", "permit (principal, action, resource);")
	got := (&validation{}).check(c.statements[0].tree())
	want := []string{"the validation panicked; report this with the text of the policy"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// entries counts what a map remembers.
func entries(m *sync.Map) int {
	count := 0
	m.Range(func(any, any) bool { count++; return true })
	return count
}

// An operator runs for months while policies change: what is known of those
// that are gone must go, too.
func TestSet_ForgetsWhatIsNoLongerInForce(t *testing.T) {
	t.Parallel()
	tool := Tool{Namespace: "team", Name: "pay", EffectKind: EffectCommand}
	set, err := NewSet(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	set = set.WithTools("team", []Tool{tool}).WithTools("other", []Tool{{Namespace: "other", Name: "x", EffectKind: EffectHTTP}})
	cluster, _ := Compile(Source{Name: "p", Text: "permit (principal, action, resource);"}, Limits{})
	set = set.With(cluster)
	for i := range 20 {
		set = set.With(compileText(t, "p", fmt.Sprintf("// %d\npermit (principal, action, resource);", i)))
		set = set.With(compileText(t, "q", fmt.Sprintf("// %d\npermit (principal, action, resource);", i)))
		set.Problems("team")
		set.Problems("other")
	}
	c := set.checks["team"]
	if v, m := entries(&c.verdicts), entries(c.memo); v != 3 || m != 3 {
		t.Errorf("%d verdicts and %d findings are kept of 3 policies", v, m)
	}
	set, err = set.Without(Key{Namespace: "team", Name: "p"}).WithNamespace("team")
	if err != nil {
		t.Fatal(err)
	}
	if v, m := entries(&c.verdicts), entries(c.memo); v != 1 || m != 1 {
		t.Errorf("%d verdicts and %d findings are kept of the cluster's policy", v, m)
	}
	set.Without(Key{Name: "p"})
	if v := entries(&set.checks["other"].verdicts); v != 0 {
		t.Errorf("%d verdicts are kept of nothing", v)
	}
}

func TestLocator_GivesUpOnEndlessTexts(t *testing.T) {
	t.Parallel()
	condition := strings.Repeat("context.has_human_approval && ", 400) + `context.invocation.fingerprint > 1`
	c := compileText(t, "p", "permit (principal, action, resource)\nwhen { "+condition+" };")
	checks := newChecks("team", []Tool{{Namespace: "team", Name: "pay", EffectKind: EffectCommand}}, nil)
	got := checks.problems(c.statements[0])
	if len(got) != 1 || got[0].Line != 2 || got[0].Column != 8 || got[0].Message != "unexpected type: expected Long but saw String" {
		t.Errorf("problems = %v, want one at the start of the condition", got)
	}
	l := &locator{statement: c.statements[0], validation: checks.validationFor(c.statements[0], checks.ordered[0])}
	l.document, l.policy = c.statements[0].document()
	if _, ok := l.probe("(", nil); ok {
		t.Error("a probe that does not parse counts")
	}
	l.probes = maxProbes
	if _, ok := l.probe("true", nil); ok {
		t.Error("a probe beyond the limit counts")
	}
	if pos, hint, ok := l.locate("no such message"); ok {
		t.Errorf("locate = %v, %q for a message that nothing causes", pos, hint)
	}
}

func TestActionTypes_UniteWhatToolsShare(t *testing.T) {
	t.Parallel()
	object := func(members map[string]any, required ...any) map[string]any {
		return map[string]any{"type": "object", "properties": members, "required": required}
	}
	text, number := map[string]any{"type": "string"}, map[string]any{"type": "integer"}
	list := func(item any) map[string]any { return map[string]any{"type": "array", "items": item} }
	tool := func(name string, mcp []Argument, arguments ...Argument) Tool {
		return Tool{
			Namespace: "team", Name: name, EffectKind: EffectMCP, CedarResource: "T", CedarAction: "run",
			Arguments: arguments, MCPArguments: mcp,
		}
	}
	one := tool("one", []Argument{{Name: "m", Kind: "string", Required: true}, {Name: "n", Kind: "integer", Required: true}},
		Argument{Name: "object", Kind: "object", Required: true, Schema: object(map[string]any{"a": text, "b": text, "c": number}, "a", "c")},
		Argument{Name: "list", Kind: "array", Required: true, Schema: list(text)},
		Argument{Name: "mixed", Kind: "array", Required: true, Schema: list(text)},
		Argument{Name: "address", Kind: "ip_address", Required: true},
		Argument{Name: "half", Kind: "ip_address", Required: true})
	two := tool("two", []Argument{{Name: "m", Kind: "string", Required: true}, {Name: "n", Kind: "string", Required: true}},
		Argument{Name: "object", Kind: "object", Required: true, Schema: object(map[string]any{"a": text, "b": text, "c": text, "d": number}, "a", "b")},
		Argument{Name: "list", Kind: "array", Schema: list(text)},
		Argument{Name: "mixed", Kind: "array", Required: true, Schema: list(number)},
		Argument{Name: "address", Kind: "ip_address", Required: true},
		Argument{Name: "half", Kind: "string", Required: true})
	c := newChecks("team", []Tool{one, two}, nil)
	if len(c.ordered) != 1 {
		t.Fatalf("%d actions, want one", len(c.ordered))
	}
	schemaText, err := Schema("team", []Tool{one, two}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"object: {\n\t\t\t\t\ta: String,\n\t\t\t\t\tb?: String,\n\t\t\t\t\td?: Long\n\t\t\t\t}",
		"list?: Set<String>", "mcp_arguments: {\n\t\t\t\t\tm: String\n\t\t\t\t}", "argument_addresses: {\n\t\t\t\taddress: ipaddr\n\t\t\t}",
	} {
		if !strings.Contains(strings.ReplaceAll(schemaText, "\t", ""), strings.ReplaceAll(want, "\t", "")) {
			t.Errorf("the schema lacks %q:\n%s", want, schemaText)
		}
	}
	if diff := cmp.Diff([]string{"mixed"}, c.ordered[0].conflicts); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
}
