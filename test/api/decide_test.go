// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
)

func TestReceipt_NeverCountsForAProposalCreatedAnew(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	create := func() *v1alpha1.ToolProposal {
		p := f.newProposal("change", `{"target":"web"}`)
		p.Name, p.GenerateName, p.Spec.CallID = "again", "", "same"
		if err := f.as(agent).Create(f.ctx, p); err != nil {
			t.Fatal(err)
		}
		return f.step(p)
	}
	first := create()
	r := f.decide(first, v1alpha1.ReceiptApproved, approver)
	// It would go with the call that it is about, if somebody did not keep it.
	if err := server.admin.Get(f.ctx, client.ObjectKeyFromObject(r), r); err != nil {
		t.Fatal(err)
	}
	r.Finalizers = []string{"example.com/keep"}
	f.mustUpdate(r)
	if err := server.admin.Delete(f.ctx, first); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it ends as Cancelled, then the finalizer goes
		if _, err := f.proposals.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(first)}); err != nil {
			t.Fatal(err)
		}
	}
	second := create()
	if second.UID == first.UID || second.Spec.Prepared.Fingerprint != first.Spec.Prepared.Fingerprint {
		t.Fatalf("want the same call in another object, got UIDs %s and %s", first.UID, second.UID)
	}
	f.wantOutcome(f.step(second), "AwaitingApproval/AwaitingApproval")
	f.wantVerdict(r, "Valid=False/UIDMismatch ")
	// It takes no place either: the same person decides on the new one.
	f.decide(second, v1alpha1.ReceiptApproved, approver)
	f.wantOutcome(f.step(second), "Dispatching/Granted")

	if err := server.admin.Get(f.ctx, client.ObjectKeyFromObject(r), r); err != nil {
		t.Fatal(err)
	}
	r.Finalizers = nil
	f.mustUpdate(r)
}

func TestDeletedProposal_IsNeverGranted(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	p := f.waiting()
	f.decide(p, v1alpha1.ReceiptApproved, approver)
	held := f.reload(p)
	held.Finalizers = append(held.Finalizers, "example.com/keep")
	if err := server.admin.Update(f.ctx, held); err != nil {
		t.Fatal(err)
	}
	if err := server.admin.Delete(f.ctx, held); err != nil {
		t.Fatal(err)
	}
	p = f.step(p)
	f.wantOutcome(p, "Cancelled/Deleted")
	f.wantOutcome(f.step(p), "Cancelled/Deleted")
	if n := len(f.jobs()); n != 0 {
		t.Errorf("a deleted proposal has %d Jobs", n)
	}
	held = f.reload(p)
	held.Finalizers = nil
	if err := server.admin.Update(f.ctx, held); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// Metamorphic: whatever the labels and annotations of everything say, the same
// calls end the same.
func TestLabels_ChangeNoDecision(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.tool("change", func(m *v1alpha1.ToolManifest) { m.Spec.HumanApproval = true })
	f.policy("rules", permitAll+` forbid (principal, action, resource) when { context.invocation.arguments.target == "db" };`)
	misleading := map[string]string{
		v1alpha1.LabelProposalUID: "x", v1alpha1.LabelTool: "restart", v1alpha1.LabelRun: "true", "approved": "true",
		"assent.dev/approved": "true", "assent.dev/fingerprint": zeros[:63], "control-plane": "true",
	}
	for _, tc := range []struct{ tool, arguments, want string }{
		{"restart", `{"target":"web"}`, "Dispatching/Granted"},
		{"restart", `{"target":"db"}`, "Denied/Forbidden"},
		{"change", `{"target":"web"}`, "AwaitingApproval/AwaitingApproval"},
	} {
		p := f.newProposal(tc.tool, tc.arguments)
		p.Labels, p.Annotations = misleading, misleading
		if err := f.as(agent).Create(f.ctx, p); err != nil {
			t.Fatal(err)
		}
		if got := outcome(f.step(p)); got != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.tool, tc.arguments, got, tc.want)
		}
	}
}

func TestGrant_IsMadeOnceHoweverManyDecide(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	const rounds, deciders = 10, 4
	for range rounds {
		p := f.waiting()
		f.decide(p, v1alpha1.ReceiptApproved, approver)
		var wait sync.WaitGroup
		errs := make(chan error, deciders)
		for range deciders {
			wait.Go(func() {
				r := &controllers.ProposalReconciler{Config: f.shared}
				_, err := r.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)})
				errs <- err
			})
		}
		wait.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				t.Errorf("a decider: %v", err)
			}
		}
		p = f.reload(p)
		f.wantOutcome(p, "Dispatching/Granted")
	}
	owners := map[string]int{}
	for _, j := range f.jobs() {
		owners[string(j.OwnerReferences[0].UID)]++
	}
	if len(owners) != rounds || len(f.jobs()) != rounds {
		t.Errorf("%d calls got %d Jobs: %v", rounds, len(f.jobs()), owners)
	}
}

func TestReceiptLifetime_IsBoundedByManifestAndCluster(t *testing.T) {
	f := newFixture(t)
	for i, tc := range []struct{ manifest, want float64 }{{60, 60}, {24 * 3600, 15 * 60}} {
		name := fmt.Sprintf("tool-%d", i)
		f.tool(name, func(m *v1alpha1.ToolManifest) {
			m.Spec.HumanApproval = true
			m.Spec.Approval = &v1alpha1.ApprovalRules{ReceiptLifetime: &metav1.Duration{Duration: time.Duration(tc.manifest) * time.Second}}
		})
		if i == 0 {
			f.policy("allow", permitAll)
		} else {
			f.reloadPolicies()
		}
		p := f.step(f.propose(name, `{"target":"web"}`))
		r := f.decide(p, v1alpha1.ReceiptApproved, approver)
		got := r.Spec.ExpiresAt.Sub(r.CreationTimestamp.Time).Seconds()
		if got < tc.want-2 || got > tc.want+2 {
			t.Errorf("manifest says %v s: the receipt counts for %v s, want %v", tc.manifest, got, tc.want)
		}
	}
}
