// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"iter"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/assent-dev/assent/internal/policy"
)

func TestSelfTest_PassesWithTheEngineInUse(t *testing.T) {
	t.Parallel()
	if err := policy.SelfTest(nil); err != nil {
		t.Error(err)
	}
	if err := policy.SelfTest(cedar.Authorize); err != nil {
		t.Error(err)
	}
}

// some is a part of the policies.
type some struct {
	of   cedar.PolicyIterator
	keep func(n int, p *cedar.Policy) bool
}

func (s some) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		n := 0
		for id, p := range s.of.All() {
			if s.keep(n, p) && !yield(id, p) {
				return
			}
			n++
		}
	}
}

// flawed are engines with the mistakes that matter.
func flawed() map[string]policy.Engine {
	after := func(change func(*cedar.Decision, *cedar.Diagnostic)) policy.Engine {
		return func(p cedar.PolicyIterator, e types.EntityGetter, r cedar.Request) (cedar.Decision, cedar.Diagnostic) {
			decision, diagnostic := cedar.Authorize(p, e, r)
			change(&decision, &diagnostic)
			return decision, diagnostic
		}
	}
	only := func(keep func(int, *cedar.Policy) bool) policy.Engine {
		return func(p cedar.PolicyIterator, e types.EntityGetter, r cedar.Request) (cedar.Decision, cedar.Diagnostic) {
			return cedar.Authorize(some{p, keep}, e, r)
		}
	}
	return map[string]policy.Engine{
		"permits everything":   after(func(d *cedar.Decision, _ *cedar.Diagnostic) { *d = cedar.Allow }),
		"denies everything":    after(func(d *cedar.Decision, _ *cedar.Diagnostic) { *d = cedar.Deny }),
		"drops the errors":     after(func(_ *cedar.Decision, d *cedar.Diagnostic) { d.Errors = nil }),
		"names no policies":    after(func(_ *cedar.Decision, d *cedar.Diagnostic) { d.Reasons = nil }),
		"ignores every forbid": only(func(_ int, p *cedar.Policy) bool { return p.Effect() == types.Permit }),
		"reads only the first": only(func(n int, _ *cedar.Policy) bool { return n == 0 }),
		"takes every condition to hold": func(p cedar.PolicyIterator, _ types.EntityGetter, _ cedar.Request) (cedar.Decision, cedar.Diagnostic) {
			var d cedar.Diagnostic
			for id := range p.All() {
				d.Reasons = append(d.Reasons, cedar.DiagnosticReason{PolicyID: id})
			}
			return len(d.Reasons) > 0, d
		},
		"panics": func(cedar.PolicyIterator, types.EntityGetter, cedar.Request) (cedar.Decision, cedar.Diagnostic) {
			panic("broken")
		},
		"loses the approval": func(p cedar.PolicyIterator, e types.EntityGetter, r cedar.Request) (cedar.Decision, cedar.Diagnostic) {
			context := r.Context.Map()
			context["has_human_approval"] = types.False
			r.Context = types.NewRecord(context)
			return cedar.Authorize(p, e, r)
		},
	}
}

func TestSelfTest_FindsABrokenEngine(t *testing.T) {
	t.Parallel()
	for name, engine := range flawed() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := policy.SelfTest(engine)
			if err == nil || !strings.HasPrefix(err.Error(), "self-test of the policy engine, ") {
				t.Errorf("got %v, want a flaw", err)
			}
		})
	}
}

func TestStore_WithABrokenEngine_DeniesEverything(t *testing.T) {
	t.Parallel()
	for name, engine := range flawed() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &policy.Store{Engine: engine}
			if got := store.Decide(small(), policy.Options{}); got.Reason != policy.ReasonPolicySelfTestFailed {
				t.Errorf("before policies were loaded: %+v, want PolicySelfTestFailed", got)
			}
			store.Replace(setOf(t, permitAll))
			got := store.Decide(small(), policy.Options{})
			if got.Answer != policy.Deny || got.Reason != policy.ReasonPolicySelfTestFailed {
				t.Errorf("decision = %+v, want Deny PolicySelfTestFailed", got)
			}
			if err := store.SelfTest(); err == nil || err.Error() != got.Message {
				t.Errorf("the store says %v, the decision %q", err, got.Message)
			}
		})
	}
}

// The engine that was put to the test is the one that answers.
func TestStore_AnswersWithItsEngine(t *testing.T) {
	t.Parallel()
	asked := 0
	store := &policy.Store{Engine: func(p cedar.PolicyIterator, e types.EntityGetter, r cedar.Request) (cedar.Decision, cedar.Diagnostic) {
		asked++
		return cedar.Authorize(p, e, r)
	}}
	store.Replace(setOf(t, permitAll))
	if err := store.SelfTest(); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*policy.Set) *policy.Set{
		func(s *policy.Set) *policy.Set { return s },
		func(s *policy.Set) *policy.Set { return s.WithTools("team", []policy.Tool{payTool()}) },
		func(s *policy.Set) *policy.Set { return s.Without(policy.Key{Namespace: "team", Name: "none"}) },
	} {
		store.Update(change)
		before := asked
		if got := store.Decide(small(), policy.Options{}); got.Answer != policy.Allow || asked == before {
			t.Errorf("decision = %+v, want Allow by the store's engine", got)
		}
	}
}
