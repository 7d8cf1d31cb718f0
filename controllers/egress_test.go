// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// A call that moves along frees no policy, and there are many such changes.
func TestEgress_IsLookedAtWhenCallsEndOrGo(t *testing.T) {
	call := func(phase v1alpha1.Phase, ranIn string) *v1alpha1.ToolProposal {
		p := &v1alpha1.ToolProposal{ObjectMeta: metav1.ObjectMeta{Namespace: "agents"}, Status: v1alpha1.ToolProposalStatus{Phase: phase}}
		if ranIn != "" {
			p.Status.Dispatch = &v1alpha1.Dispatch{JobNamespace: ranIn}
		}
		return p
	}
	running := call(v1alpha1.PhaseRunning, "agents")
	passes := ends()
	for name, tc := range map[string]struct{ got, want bool }{
		"a call that is there":     {passes.Create(event.CreateEvent{Object: running}), false},
		"a call that moves along":  {passes.Update(event.UpdateEvent{ObjectOld: call("", ""), ObjectNew: running}), false},
		"a call that ends":         {passes.Update(event.UpdateEvent{ObjectOld: running, ObjectNew: call(v1alpha1.PhaseFailed, "agents")}), true},
		"a call that ended before": {passes.Update(event.UpdateEvent{ObjectOld: call(v1alpha1.PhaseFailed, ""), ObjectNew: call(v1alpha1.PhaseFailed, "")}), false},
		"a call that goes":         {passes.Delete(event.DeleteEvent{Object: running}), true},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %t, want %t", name, tc.got, tc.want)
		}
	}
	for name, tc := range map[string]struct {
		call *v1alpha1.ToolProposal
		want map[string]time.Duration
	}{
		"where it was made":          {call(v1alpha1.PhaseDenied, ""), map[string]time.Duration{"/agents": time.Minute}},
		"once, where it ran as well": {call(v1alpha1.PhaseFailed, "agents"), map[string]time.Duration{"/agents": time.Minute}},
		"and where it ran":           {call(v1alpha1.PhaseFailed, "jobs"), map[string]time.Duration{"/agents": time.Minute, "/jobs": time.Minute}},
	} {
		queue := &later{added: map[string]time.Duration{}}
		settled(namespacesOfCall).Update(t.Context(), event.UpdateEvent{ObjectOld: running, ObjectNew: tc.call}, queue)
		settled(namespacesOfCall).Delete(t.Context(), event.DeleteEvent{Object: tc.call}, queue)
		if diff := cmp.Diff(tc.want, queue.added); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}

func TestSooner_TakesNoTimeForNever(t *testing.T) {
	for _, tc := range []struct{ a, b, want time.Duration }{{0, 0, 0}, {0, 2, 2}, {2, 0, 2}, {1, 2, 1}, {2, 1, 1}} {
		if got := sooner(tc.a, tc.b); got != tc.want {
			t.Errorf("of %d and %d: got %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}
