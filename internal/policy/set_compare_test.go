// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/assent-dev/assent/internal/policy"
)

// What is in force is built anew whenever an object is touched. Only what may
// change an answer is worth asking all waiting calls about.
func TestSet_AnswersAsBeforeUntilAPolicyOrAToolChanges(t *testing.T) {
	t.Parallel()
	set := mustSet(t, policy.Limits{}, compiled(t, "team", "a", permitAll), compiled(t, "", "c", permitAll)).
		WithTools("team", []policy.Tool{payTool(), fetchTool()})
	replaced := func(namespace string, of ...*policy.Compiled) *policy.Set {
		next, err := set.WithNamespace(namespace, of...)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	changed := payTool()
	changed.RiskTier = "low"
	for name, tc := range map[string]struct {
		next                   *policy.Set
		team, other, ofCluster bool
	}{
		"nothing changed":            {set, true, true, true},
		"the same objects again":     {replaced("team", compiled(t, "team", "a", permitAll)), true, true, true},
		"the same tools again":       {set.WithTools("team", []policy.Tool{fetchTool(), payTool()}), true, true, true},
		"another text":               {replaced("team", compiled(t, "team", "a", permitAll+permitAll)), false, true, true},
		"another object":             {set.With(compiled(t, "team", "b", permitAll)), false, true, true},
		"an object less":             {replaced("team"), false, true, true},
		"another namespace":          {set.With(compiled(t, "other", "b", permitAll)), true, false, true},
		"another cluster policy":     {set.With(compiled(t, "", "d", permitAll)), true, true, false},
		"a tool that changed":        {set.WithTools("team", []policy.Tool{fetchTool(), changed}), false, true, true},
		"a tool less":                {set.WithTools("team", []policy.Tool{fetchTool()}), false, true, true},
		"no tools":                   {set.WithTools("team", nil), false, true, true},
		"tools in another namespace": {set.WithTools("other", []policy.Tool{payTool()}), true, false, true},
	} {
		for namespace, want := range map[string]bool{"team": tc.team, "other": tc.other, "": tc.ofCluster} {
			if got := tc.next.AnswersAs(set, namespace); got != want {
				t.Errorf("%s: in namespace %q it answers as before: %v, want %v", name, namespace, got, want)
			}
		}
	}
}

func TestSet_KnowsItsPoliciesAndObjects(t *testing.T) {
	t.Parallel()
	set := mustSet(t, policy.Limits{}, compiled(t, "team", "a", permitAll+permitAll), compiled(t, "team", "b", permitAll), compiled(t, "", "c", permitAll)).
		With(broken(t, "team", "torn", "forbid"))
	for id, want := range map[string]bool{
		"team/a#0": true, "team/a#1": true, "team/b#0": true, "/c#0": true, "team/torn": true,
		"team/a#2": false, "team/torn#0": false, "team/none#0": false, "other/a#0": false, "/a#0": false, "": false, "team/a#": false,
	} {
		if got := set.Knows(id); got != want {
			t.Errorf("Knows(%q) = %v, want %v", id, got, want)
		}
	}
}
