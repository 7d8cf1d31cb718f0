// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a call costs the API server is a promise. Each write is listed, so that
// one more is noticed; requests that change nothing are not writes.
func TestCall_WritesNoMoreThanItMust(t *testing.T) {
	t.Run("allowed by policy", func(t *testing.T) {
		w := newWorld(t, false)
		w.follow(w.propose(), false)
		got := w.writesOf(func() { w.follow(w.propose(), false) })
		want := []string{
			"update status ToolProposal", // the grant
			"create Job",
			"update status ToolProposal", // the redemption
			"update status ToolProposal", // the result
			"update status ToolProposal", // the end
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
	t.Run("approved by a person", func(t *testing.T) {
		w := newWorld(t, true)
		w.follow(w.propose(), false)
		w.approval = false
		got := w.writesOf(func() {
			p := w.propose()
			if err := w.operator(false).step(client.ObjectKeyFromObject(p)); err != nil {
				t.Fatal(err)
			}
			w.approve(p)
			w.follow(p, false)
		})
		want := []string{
			"update status ToolProposal", // it waits
			"update status ToolProposal", // the grant
			"update status ApprovalReceipt",
			"create Job",
			"update status ToolProposal", // the redemption
			"update status ToolProposal", // the result
			"update status ToolProposal", // the end
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

// writesOf are the operator's writes while something happens. The first call
// of a namespace also makes what later ones share.
func (w *world) writesOf(what func()) []string {
	w.t.Helper()
	w.faults.mu.Lock()
	before := len(w.faults.seen)
	w.faults.mu.Unlock()
	what()
	w.faults.mu.Lock()
	defer w.faults.mu.Unlock()
	var out []string
	for _, name := range w.faults.seen[before:] {
		if !strings.HasPrefix(name, "runner ") {
			out = append(out, name)
		}
	}
	return out
}
