// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/observe"
)

func TestPast_KnowsWhatIsNeverUndone(t *testing.T) {
	call := func(phase v1alpha1.Phase, pod, nonce string) *v1alpha1.ToolProposal {
		p := &v1alpha1.ToolProposal{ObjectMeta: metav1.ObjectMeta{UID: "p"}}
		p.Status.Phase = phase
		if pod != "" {
			p.Status.RedeemedBy = &v1alpha1.Redemption{PodUID: types.UID(pod), NonceDigest: nonce}
		}
		return p
	}
	for name, tc := range map[string]struct {
		before, now *v1alpha1.ToolProposal
		undone      bool
	}{
		"nothing happened":              {call("Dispatching", "", ""), call("Pending", "", ""), false},
		"redeemed and still so":         {call("Running", "a", "n"), call("Running", "a", "n"), false},
		"redeemed and ended":            {call("Running", "a", "n"), call("Succeeded", "a", "n"), false},
		"ended and still so":            {call("Succeeded", "a", "n"), call("Succeeded", "a", "n"), false},
		"ended without a redemption":    {call("Denied", "", ""), call("Denied", "", ""), false},
		"redeemed, and then not":        {call("Running", "a", "n"), call("Dispatching", "", ""), true},
		"redeemed, and then by another": {call("Running", "a", "n"), call("Running", "b", "n"), true},
		"redeemed with another nonce":   {call("Running", "a", "n"), call("Running", "a", "m"), true},
		"ended, and then running":       {call("Succeeded", "a", "n"), call("Running", "a", "n"), true},
		"ended, and then never begun":   {call("Failed", "", ""), call("", "", ""), true},
		"ended with its runner erased":  {call("Succeeded", "a", "n"), call("Succeeded", "", ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			past := &observe.Past{}
			past.OnUpdate(nil, tc.before)
			if got := past.Undone(tc.now); got != tc.undone {
				t.Errorf("got %t, want %t", got, tc.undone)
			}
			if got, want := past.Redeemed("p"), tc.before.Status.RedeemedBy != nil; got != want {
				t.Errorf("redeemed: got %t, want %t", got, want)
			}
			// What was put back must not become what is remembered.
			past.OnAdd(tc.now, false)
			if got := past.Undone(tc.now); got != tc.undone {
				t.Errorf("once it was seen: got %t, want %t", got, tc.undone)
			}
			past.OnDelete(cache.DeletedFinalStateUnknown{Obj: tc.now})
			if past.Undone(tc.now) || past.Redeemed("p") {
				t.Error("a call that is gone is remembered")
			}
		})
	}
}

func TestPast_OfNobody_KnowsNothing(t *testing.T) {
	var past *observe.Past
	p := &v1alpha1.ToolProposal{Status: v1alpha1.ToolProposalStatus{Phase: v1alpha1.PhaseSucceeded}}
	past.Note(p)
	past.Forget(p.UID)
	if past.Undone(p) || past.Redeemed(p.UID) {
		t.Error("it does")
	}
}
