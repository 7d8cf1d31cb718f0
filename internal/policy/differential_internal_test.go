// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// generator writes random policies and calls over a few names, so that scopes
// hit and miss alike.
type generator struct{ *rand.Rand }

func pick[T any](g generator, list ...T) T { return list[g.IntN(len(list))] }

func (g generator) principal() string {
	return pick(g, "principal", "principal", "principal", "principal", "principal", `principal == k8s::User::"alice"`, "principal is k8s::ServiceAccount",
		`principal in k8s::Group::"admins"`, `principal is k8s::User in k8s::Group::"admins"`, `principal == User::"alice"`)
}

func (g generator) action() string {
	one := func() string {
		return pick(g, `Action::"tool_call::a"`, `Action::"tool_call::b"`, `Tool::Fetch::Action::"run"`, `Action::"none"`)
	}
	switch g.IntN(6) {
	case 0, 1:
		return "action"
	case 2:
		return "action in " + one()
	case 3:
		var list []string
		for range g.IntN(4) {
			list = append(list, one())
		}
		return "action in [" + strings.Join(list, ", ") + "]"
	default:
		return "action == " + one()
	}
}

func (g generator) resource() string {
	one := pick(g, `Tool::"a"`, `Tool::"b"`, `Tool::Fetch::"c"`, `Tool::Fetch::"d"`, `Other::"a"`)
	kind := pick(g, "Tool", "Tool::Fetch", "Other")
	return pick(g, "resource", "resource", "resource", "resource == "+one, "resource in "+one, "resource is "+kind, "resource is "+kind+" in "+one)
}

func (g generator) condition() string {
	return pick(g, "", "", ` when { context.has_human_approval }`, ` unless { context.has_human_approval }`,
		` when { resource.risk_tier == "high" }`, ` when { context.invocation.arguments.n > 3 }`,
		` when { context.invocation.arguments has n && context.invocation.arguments.n > 3 }`,
		` when { context.invocation.arguments has n && context.invocation.arguments.n + 9223372036854775807 > 0 }`,
		` unless { context.invocation.arguments.typo }`, ` when { context.session.team == "x" }`,
		` when { principal.namespace == "team" }`, ` when { context has session } unless { action in Action::"tool_call::a" }`)
}

func (g generator) policy() string {
	return fmt.Sprintf("%s (%s, %s, %s)%s;", pick(g, "permit", "permit", "forbid"), g.principal(), g.action(), g.resource(), g.condition())
}

func (g generator) set(t *testing.T) *Set {
	t.Helper()
	var compiled []*Compiled
	for i := range 1 + g.IntN(8) {
		var texts []string
		for range 1 + g.IntN(4) {
			texts = append(texts, g.policy())
		}
		c, problems := Compile(Source{Namespace: pick(g, "", "team", "team", "other"), Name: fmt.Sprint("p", i), Text: strings.Join(texts, "\n")}, Limits{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		compiled = append(compiled, c)
	}
	set, err := NewSet(Limits{}, compiled...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func (g generator) call() Call {
	call := Call{
		Tool: pick(g,
			Tool{Name: "a"}, Tool{Name: "b"},
			Tool{Name: "c", CedarResource: "Tool::Fetch", CedarAction: "run"},
			Tool{Name: "d", CedarResource: "Tool::Fetch", CedarAction: "run"}),
		Principal: pick(g, Principal{Username: "alice", Groups: []string{"admins"}}, Principal{Username: "bob"},
			Principal{Username: "system:serviceaccount:team:agent", Groups: []string{"admins", "system:authenticated"}}),
		ArgsCanonicalJSON: pick(g, `{}`, `{"n":1}`, `{"n":7}`),
		Fingerprint:       "f",
		Effect:            EffectView{Kind: EffectHTTP},
		HasSession:        g.IntN(2) == 0,
		SessionContext:    pick(g, "", `{"team":"x"}`),
	}
	call.Tool.Namespace, call.Tool.EffectKind, call.Tool.RiskTier = "team", EffectHTTP, pick(g, "low", "high")
	call.Tool.Arguments = []Argument{{Name: "n", Kind: "integer"}}
	return call
}

// checkAgainstPlain compares, for one random set and call, what the index finds
// with what cedar-go says of all policies, for both evaluations.
func checkAgainstPlain(t *testing.T, seed uint64) (errors, reasons int) {
	t.Helper()
	g := generator{rand.New(rand.NewPCG(seed, 1))}
	set, call := g.set(t), g.call()
	r, err := newRequest(&call, newToolTypes(&call.Tool))
	if err != nil {
		t.Fatal(err)
	}
	all := &Compiled{}
	for _, p := range set.partsFor("team") {
		for _, c := range p.sources {
			all.statements = append(all.statements, c.statements...)
		}
	}
	relevant, _ := set.relevant("team", r)
	narrow, err := newRequest(&call, newToolTypes(&call.Tool))
	if err != nil {
		t.Fatal(err)
	}
	narrow.narrow(relevant)
	e := &evaluator{request: narrow, policies: relevant, fingerprint: call.Fingerprint}
	for _, approved := range []bool{false, true} {
		o := e.evaluate(approved)
		got := result{
			Allow:   len(o.permits) > 0,
			Reasons: sortedIDs(slices.Concat(o.permits, o.forbids), func(id string) string { return id }),
			Errors:  sortedIDs(o.errors, func(e EvaluationError) string { return e.Policy }),
		}
		want := plain(all, entitiesOf(r), r.evaluation(approved, call.Fingerprint))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seed %d, approved %t (-plain +indexed):\n%s", seed, approved, diff)
		}
		errors, reasons = errors+len(got.Errors), reasons+len(got.Reasons)
	}
	return errors, reasons
}

func TestIndex_FindsWhatPlainCedarFinds(t *testing.T) {
	t.Parallel()
	errors, reasons := 0, 0
	for seed := range uint64(5000) {
		e, r := checkAgainstPlain(t, seed)
		errors, reasons = errors+e, reasons+r
	}
	// Policies that never match would agree, too.
	if errors < 1000 || reasons < 5000 {
		t.Errorf("only %d errors and %d reasons came up", errors, reasons)
	}
}

func FuzzIndex_FindsWhatPlainCedarFinds(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { checkAgainstPlain(t, seed) })
}

// Whatever comes up, a decision is one of three answers with a reason, and
// errors never allow.
func TestDecide_AlwaysAnswers(t *testing.T) {
	t.Parallel()
	seen := map[Reason]int{}
	for seed := range uint64(3000) {
		g := generator{rand.New(rand.NewPCG(seed, 2))}
		set, call := g.set(t), g.call()
		d := set.Decide(call, Options{})
		seen[d.Reason]++
		switch {
		case d.Reason == "" || d.Message == "" || len(d.SetDigest) != 64:
			t.Fatalf("seed %d: %+v lacks reason, message or digest", seed, d)
		case d.Answer == Allow && (len(d.Errors) > 0 || len(d.Policies) == 0):
			t.Fatalf("seed %d: %+v", seed, d)
		case d.Answer != Allow && d.Answer != NeedsApproval && d.Answer != Deny:
			t.Fatalf("seed %d: %+v is no answer", seed, d)
		}
		again := set.Decide(call, Options{})
		if diff := cmp.Diff(d, again); diff != "" {
			t.Fatalf("seed %d: two decisions differ:\n%s", seed, diff)
		}
		if d.Answer == NeedsApproval {
			call.Approved, call.ApprovedFingerprint = true, call.Fingerprint
			if approved := set.Decide(call, Options{}); approved.Answer != Allow {
				t.Fatalf("seed %d: approved, but %+v", seed, approved)
			}
		}
	}
	for _, reason := range []Reason{ReasonPermitted, ReasonForbidden, ReasonNoPolicyPermits, ReasonPolicyUnhealthy, ReasonApprovalRequired} {
		if seen[reason] == 0 {
			t.Errorf("%s never came up: %v", reason, seen)
		}
	}
}
