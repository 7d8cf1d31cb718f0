// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const canary = "canary-7f3a"

// canaryCall has a value in it that must not get into any message.
func canaryCall() Call {
	return Call{
		Tool: Tool{Namespace: "team", Name: "pay", EffectKind: EffectCommand, Arguments: []Argument{
			{Name: "to", Kind: "string", Required: true},
			{Name: "amount", Kind: "integer", Required: true},
			{Name: "deep", Kind: "object"},
		}},
		Principal:         Principal{Username: "alice"},
		ArgsCanonicalJSON: `{"amount":7777777777777,"deep":{"` + canary + `":"` + canary + `"},"to":"` + canary + `"}`,
		Fingerprint:       "f",
		Effect:            EffectView{Kind: EffectCommand, Argv: []string{canary}},
	}
}

// evaluatorFor compiles a text and skips its validation.
func evaluatorFor(t *testing.T, call *Call, text string) *evaluator {
	t.Helper()
	c, problems := Compile(Source{Namespace: "team", Name: "p", Text: text}, Limits{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r, err := newRequest(call, newToolTypes(&call.Tool))
	if err != nil {
		t.Fatal(err)
	}
	return &evaluator{request: r, policies: c.statements, fingerprint: call.Fingerprint}
}

// These are the ways in which cedar-go drops a forbid and lets the permit
// decide. Validation sees most of them first; this is the net below it.
func TestEvaluator_DeniesOnErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ expression, message string }{
		"a missing attribute":          {`context.invocation.arguments.typo > 1`, "the attribute `typo` is missing; test it with \"has\" first"},
		"a missing entity attribute":   {`principal.typo == 1`, "the attribute `typo` is missing; test it with \"has\" first"},
		"a wrong type":                 {`context.invocation.arguments.to > 1`, "type error: expected comparable value, got string"},
		"in on a text":                 {`context.invocation.arguments.to in ["prod"]`, "type error: expected (entity of type `any_entity_type`), got string"},
		"an overflow":                  {`context.invocation.arguments.amount * 7777777777777 > 1`, "integer overflow"},
		"a bad address":                {`ip(context.invocation.arguments.to).isLoopback()`, "error parsing ip value"},
		"a bad decimal":                {`decimal(context.invocation.arguments.to) == decimal("1.0")`, "error parsing decimal value"},
		"a bad time":                   {`datetime(context.invocation.arguments.to) == datetime("2026-01-01")`, "error parsing datetime value"},
		"a bad duration":               {`duration(context.invocation.arguments.to) == duration("1h")`, "error parsing duration value"},
		"an absent entity":             {`k8s::User::"nobody".name == "x"`, "an entity does not exist"},
		"an absent tag":                {`principal.getTag(context.invocation.arguments.to) == "x"`, "an entity does not have the tag"},
		"a condition that is no truth": {`context.invocation.arguments.to`, "type error: expected bool, got string"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := canaryCall()
			e := evaluatorFor(t, &call, "permit (principal, action, resource);\nforbid (principal, action, resource) when { "+tc.expression+" };")
			got := e.answer(&call)
			want := "the condition could not be evaluated (policy at line 2, column 1): " + tc.message
			if got.Answer != Deny || got.Reason != ReasonPolicyError {
				t.Fatalf("decision = %+v, want Deny PolicyError", got)
			}
			if diff := cmp.Diff([]EvaluationError{{Policy: "team/p#1", Message: want}}, got.Errors); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			quoted(t, got)
		})
	}
}

// quoted fails if a decision quotes an argument.
func quoted(t *testing.T, d Decision) {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{canary, "7777777777777"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the decision quotes an argument: %s", text)
		}
	}
}

func TestWithoutValues_DropsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	if got := withoutValues("something about " + canary); got != "the evaluation failed" {
		t.Errorf("withoutValues = %q", got)
	}
}

func TestEvaluator_DeniesOnPanic(t *testing.T) {
	t.Parallel()
	call := canaryCall()
	e := evaluatorFor(t, &call, "permit (principal, action, resource);")
	e.policies = append(e.policies, &statement{id: "team/nil#0"}) // cedar-go panics on it
	got := e.answer(&call)
	want := Decision{
		Answer: Deny, Reason: ReasonPolicyPanic, Policies: []string{"team/nil#0"},
		Message: "policy team/nil#0: the evaluation panicked; report this with the text of the policy",
		Errors:  []EvaluationError{{Policy: "team/nil#0", Message: "the evaluation panicked; report this with the text of the policy"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}

func TestDecide_DeniesWhenAnythingElsePanics(t *testing.T) {
	t.Parallel()
	set, err := NewSet(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	call := canaryCall()
	got := set.Decide(call, Options{Observers: []func(any){func(any) { panic(canary) }}})
	if got.Answer != Deny || got.Reason != ReasonPolicyPanic {
		t.Errorf("decision = %+v, want Deny PolicyPanic", got)
	}
	quoted(t, got)
}

func TestEvaluator_StopsWhenTimeIsOver(t *testing.T) {
	t.Parallel()
	call := canaryCall()
	for after := range 3 {
		e := evaluatorFor(t, &call, strings.Repeat("permit (principal, action, resource);\n", 3))
		asked := 0
		e.expired = func() bool { asked++; return asked > after }
		got := e.answer(&call)
		want := fmt.Sprintf("team/p#%d", after)
		if got.Reason != ReasonPolicyTimeout || len(got.Policies) != 1 || got.Policies[0] != want {
			t.Errorf("after %d policies: %+v, want PolicyTimeout before %s", after, got, want)
		}
		if asked != after+1 {
			t.Errorf("after %d policies: asked %d times", after, asked)
		}
	}
}

func TestDecide_ExplainsNothingWhenTimeIsOver(t *testing.T) {
	t.Parallel()
	call := canaryCall()
	e := evaluatorFor(t, &call, "permit (principal, action, resource) when { principal in k8s::Group::\"x\" };")
	call.Approved = true
	asked := 0
	e.expired = func() bool { asked++; return asked > 1 }
	got := e.answer(&call)
	if got.Reason != ReasonNoPolicyPermits || got.NearMisses != nil {
		t.Errorf("decision = %+v, want NoPolicyPermits without near misses", got)
	}
}

func TestDecide_NeverQuotesArguments(t *testing.T) {
	t.Parallel()
	texts := []string{
		"permit (principal, action, resource);",
		`permit (principal, action, resource) when { context.invocation.arguments.to == "x" };`,
		`forbid (principal, action, resource);`,
		`permit (principal, action, resource) when { context.invocation.arguments.typo == "x" };`,
		`permit (principal, action, resource) when { context.invocation.arguments.amount * 7 * 7777777777777 > 1 };`,
		`permit`,
	}
	for _, text := range texts {
		c, _ := Compile(Source{Namespace: "team", Name: "p", Text: text}, Limits{})
		set, err := NewSet(Limits{}, c)
		if err != nil {
			t.Fatal(err)
		}
		call := canaryCall()
		quoted(t, set.Decide(call, Options{}))
		for _, args := range []string{
			`{"` + canary + `":1}`, `{"amount":"` + canary + `","to":"x"}`, `{"amount":1}`, `not json ` + canary, `["` + canary + `"]`,
			`{"amount":0.5,"deep":{"` + canary + `":[null]},"to":"x"}`,
		} {
			call.ArgsCanonicalJSON = args
			quoted(t, set.Decide(call, Options{}))
		}
		call = canaryCall()
		call.HasSession, call.SessionContext = true, `{"`+canary+`":[null],"a":0.123456}`
		quoted(t, set.Decide(call, Options{}))
		call.SessionContext = canary
		quoted(t, set.Decide(call, Options{}))
	}
}

func TestEvaluator_StopsWhenCedarWantsNoMore(t *testing.T) {
	t.Parallel()
	call := canaryCall()
	e := evaluatorFor(t, &call, strings.Repeat("permit (principal, action, resource);\n", 3))
	count := 0
	for range e.All() {
		count++
		break
	}
	if count != 1 || e.current.id != "team/p#0" {
		t.Errorf("%d policies, the last %s", count, e.current.id)
	}
}
