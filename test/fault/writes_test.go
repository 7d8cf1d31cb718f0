// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
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

// The same promise by the API server's own count, with the controllers at work
// as in the operator: whatever they write of their own accord counts as well.
func TestCall_WritesNoMoreThanItMust_ByTheServersOwnCount(t *testing.T) {
	const n = 3
	for name, tc := range map[string]struct {
		approval bool
		want     map[string]int
	}{
		"allowed by policy": {false, map[string]int{
			"POST toolproposals":       n, // the test's own
			"PUT toolproposals/status": 4 * n,
			"POST jobs":                n,
			"POST events":              n,
		}},
		"approved by a person": {true, map[string]int{
			"POST toolproposals":          n, // the test's own
			"POST approvalreceipts":       n, // the test's own
			"PUT toolproposals/status":    5 * n,
			"PUT approvalreceipts/status": n,
			"POST jobs":                   n,
			"POST events":                 2 * n,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.approval)
			w.controllers(t)
			w.operator(false)
			before := persisted(t)
			w.throughController() // makes what later calls share
			writtenSince(t, before, tc.want["POST events"]/n)
			before = persisted(t)
			for range n {
				w.throughController()
			}
			got := writtenSince(t, before, tc.want["POST events"])
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("writes of %d calls (-want +got):\n%s", n, diff)
			}
		})
	}
}

// writtenSince are the writes that were added to earlier ones, once as many
// Events as given are among them: Events are written in the background.
func writtenSince(t *testing.T, before map[string]int, events int) map[string]int {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) { //nolint:forbidigo // the recorder works in real time
		got := persisted(t)
		for what, many := range before {
			if got[what] -= many; got[what] == 0 {
				delete(got, what)
			}
		}
		if got["POST events"] >= events || time.Since(begun) > patience {
			return got
		}
	}
}

// throughController follows one call to its end while the controllers run by
// themselves.
func (w *world) throughController() {
	w.t.Helper()
	approval := w.approval
	w.approval = false
	p := w.propose()
	w.approval = approval
	approved := false
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // controllers work in real time
		now := w.get(p)
		switch {
		case now.Status.Phase.Terminal():
			if got, want := string(now.Status.Phase), "Succeeded"; got != want {
				w.t.Fatalf("got %s/%s, want %s: %s", got, now.Status.Reason, want, now.Status.Message)
			}
			w.runners.Wait()
			return
		case now.Status.Phase == v1alpha1.PhaseAwaitingApproval && !approved:
			w.approve(p)
			approved = true
		}
		w.kubelet()
	}
	w.t.Fatalf("%s did not end", p.Name)
}

// persisted are the writes to what calls are made of that the API server has
// accepted. What a kubelet would write is not the operator's.
func persisted(t *testing.T) map[string]int {
	t.Helper()
	out := map[string]int{}
	for name, many := range served(t) {
		verb, resource, _ := strings.Cut(name, " ")
		resource, _, _ = strings.Cut(resource, "/")
		switch resource {
		case "toolproposals", "approvalreceipts", "toolmanifests", "toolpolicies", "agentsessions", "jobs", "networkpolicies", "events":
			if verb == "POST" || verb == "PUT" || verb == "PATCH" || verb == "APPLY" || verb == "DELETE" {
				out[name] = many
			}
		}
	}
	return out
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
