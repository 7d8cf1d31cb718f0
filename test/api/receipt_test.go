// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
)

// approvalTool is a tool whose calls people must approve.
func (f *fixture) approvalTool(rules ...v1alpha1.ApprovalRequirement) {
	f.t.Helper()
	f.tool("change", func(m *v1alpha1.ToolManifest) {
		m.Spec.HumanApproval = true
		m.Spec.Approval = &v1alpha1.ApprovalRules{Requirements: rules}
	})
	f.policy("allow", permitAll)
}

// waiting is a call that waits for approval.
func (f *fixture) waiting() *v1alpha1.ToolProposal {
	f.t.Helper()
	p := f.step(f.propose("change", `{"target":"web"}`))
	if got, want := outcome(p), "AwaitingApproval/AwaitingApproval"; got != want {
		f.t.Fatalf("got %s, want %s: %s", got, want, jsonOf(f.t, p.Status))
	}
	return p
}

// decide creates a receipt as somebody.
func (f *fixture) decide(p *v1alpha1.ToolProposal, d v1alpha1.ReceiptDecision, by string, groups ...string) *v1alpha1.ApprovalReceipt {
	f.t.Helper()
	r := newReceipt(p)
	r.Spec.Decision = d
	if err := f.as(by, groups...).Create(f.ctx, r); err != nil {
		f.t.Fatalf("deciding as %s: %v", by, err)
	}
	return r
}

// verdict is what the operator wrote on a receipt: Valid, then Consumed.
func (f *fixture) verdict(r *v1alpha1.ApprovalReceipt) string {
	f.t.Helper()
	now := &v1alpha1.ApprovalReceipt{}
	if err := server.admin.Get(f.ctx, client.ObjectKeyFromObject(r), now); err != nil {
		f.t.Fatal(err)
	}
	text := ""
	for _, kind := range []string{v1alpha1.ConditionValid, v1alpha1.ConditionConsumed} {
		if c := meta.FindStatusCondition(now.Status.Conditions, kind); c != nil {
			text += kind + "=" + string(c.Status) + "/" + c.Reason + " "
		}
	}
	return text
}

func (f *fixture) wantOutcome(p *v1alpha1.ToolProposal, want string) {
	f.t.Helper()
	if got := outcome(p); got != want {
		f.t.Fatalf("got %s, want %s: %s", got, want, jsonOf(f.t, p.Status))
	}
}

func (f *fixture) wantVerdict(r *v1alpha1.ApprovalReceipt, want string) {
	f.t.Helper()
	if got := f.verdict(r); got != want {
		f.t.Errorf("the receipt of %s says %q, want %q", r.Spec.Approver.Username, got, want)
	}
}

// Nobody could ever approve a call that needs more people than can decide on it.
func TestRequirements_DemandNoMorePeopleThanReceiptsCount(t *testing.T) {
	f := newFixture(t)
	demanding := func(counts ...int32) error {
		m := f.manifest("demanding", `{version: "1", command: {image: IMAGE, argv: [tool]}}`)
		m.Spec.Approval = &v1alpha1.ApprovalRules{}
		for i, n := range counts {
			m.Spec.Approval.Requirements = append(m.Spec.Approval.Requirements, v1alpha1.ApprovalRequirement{Group: fmt.Sprintf("g%d", i), Count: n})
		}
		return server.admin.Create(f.ctx, m, client.DryRunAll)
	}
	if err := demanding(8, 8); err != nil {
		t.Errorf("16 people: %v", err)
	}
	if err := demanding(8, 8, 1); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "more than 16 in all") {
		t.Errorf("17 people: %v", err)
	}
}

func TestRequirements_HoldOnlyWithDifferentPeople(t *testing.T) {
	f := newFixture(t)
	f.approvalTool(v1alpha1.ApprovalRequirement{Group: "sre", Count: 1}, v1alpha1.ApprovalRequirement{Group: "owners", Count: 1})
	p := f.waiting()

	both := f.decide(p, v1alpha1.ReceiptApproved, approver, "sre", "owners")
	p = f.step(p)
	f.wantOutcome(p, "AwaitingApproval/AwaitingApproval")
	f.wantVerdict(both, "Valid=True/Counted ")
	if got, want := p.Status.Approvals.Summary, "1/2"; got != want {
		t.Errorf("approvals %s, want %s", got, want)
	}
	again := newReceipt(p)
	if got, want := refusalOf(f.as(approver, "owners").Create(f.ctx, again)), "403 spec.approver:DuplicateApprover"; got != want {
		t.Errorf("the same person again: got %s, want %s", got, want)
	}
	outsider := newReceipt(p)
	if got, want := refusalOf(f.as(other, "interns").Create(f.ctx, outsider)), "403 spec.approver:NotInRequiredGroup"; got != want {
		t.Errorf("somebody of no such group: got %s, want %s", got, want)
	}
	// Only sre is free for the second person, so the first must take owners.
	second := f.decide(p, v1alpha1.ReceiptApproved, other, "sre")
	p = f.step(p)
	f.wantOutcome(p, "Dispatching/Granted")
	if n := len(p.Status.Dispatch.Receipts); n != 2 {
		t.Errorf("the grant rests on %d receipts, want 2", n)
	}
	f.wantVerdict(both, "Valid=True/Counted Consumed=True/Consumed ")
	f.wantVerdict(second, "Valid=True/Counted Consumed=True/Consumed ")
}

func TestApprover_WhoLostTheRightBeforeTheGrant_DoesNotCount(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	f.grantRole("temporary", "carol")
	f.allow("carol", "approvalreceipts")
	p := f.waiting()
	r := f.decide(p, v1alpha1.ReceiptApproved, "carol")
	if err := server.admin.Delete(f.ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "temporary"}}); err != nil {
		t.Fatal(err)
	}
	f.until("the right is gone", func() bool {
		may, err := observe.MayApprove(f.ctx, server.admin, f.namespace, "change", r.Spec.Approver)
		return err == nil && !may
	})
	p = f.step(p)
	f.wantOutcome(p, "AwaitingApproval/AwaitingApproval")
	f.wantVerdict(r, "Valid=False/ApproverNoLongerAuthorized ")
	// It burned nothing: somebody else's receipt counts.
	f.decide(p, v1alpha1.ReceiptApproved, approver)
	f.wantOutcome(f.step(p), "Dispatching/Granted")
}

// grantRole gives somebody the verb approve under a binding of this name.
func (f *fixture) grantRole(name, username string) {
	f.t.Helper()
	f.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"assent.dev"}, Resources: []string{"toolmanifests"}, Verbs: []string{"approve"}}},
	})
	f.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: username, APIGroup: rbacv1.GroupName}},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: name, APIGroup: rbacv1.GroupName},
	})
	who := &v1alpha1.Identity{Username: username, Groups: []string{"system:authenticated"}}
	f.until("the right is there", func() bool {
		may, err := observe.MayApprove(f.ctx, server.admin, f.namespace, "change", who)
		return err == nil && may
	})
}

// until asks again until the answer is yes: kube-apiserver notices changes of
// RBAC with a delay. It fails after a number of questions, not after a time.
func (f *fixture) until(what string, ask func() bool) {
	f.t.Helper()
	for range 2000 {
		if ask() {
			return
		}
	}
	f.t.Fatalf("kube-apiserver did not notice: %s", what)
}

func TestForgedReceipt_SaysWhyAndBurnsNoGenuineOne(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	p := f.waiting()
	genuine := newReceipt(p)
	if err := f.as(approver).Create(f.ctx, genuine, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	f.withoutAdmission()
	forged := map[string]*v1alpha1.ApprovalReceipt{}
	for name, edit := range map[string]func(*v1alpha1.ApprovalReceipt){
		"Unsealed":            func(*v1alpha1.ApprovalReceipt) {},
		"UIDMismatch":         func(r *v1alpha1.ApprovalReceipt) { r.Spec.ProposalRef.UID = "00000000-0000-0000-0000-000000000000" },
		"FingerprintMismatch": func(r *v1alpha1.ApprovalReceipt) { r.Spec.Fingerprint = p.Spec.Prepared.ProposalHash },
	} {
		r := newReceipt(p)
		r.Spec.Approver = &v1alpha1.Identity{Username: approver}
		r.Spec.ExpiresAt = new(metav1.NewTime(f.clock.Now().Add(time.Hour)))
		edit(r)
		f.create(r)
		forged[name] = r
	}
	// More of them than may ever count.
	for range proposal.MaxReceipts {
		r := newReceipt(p)
		r.Spec.Approver = &v1alpha1.Identity{Username: approver}
		f.create(r)
	}
	p = f.step(p)
	f.wantOutcome(p, "AwaitingApproval/AwaitingApproval")
	for reason, r := range forged {
		f.wantVerdict(r, "Valid=False/"+reason+" ")
	}
	if n := len(f.jobs()); n != 0 {
		t.Fatalf("forged receipts made %d Jobs", n)
	}
	// The dry run's answer is what admission sealed a moment ago: it counts
	// although it was stored last, after the webhooks were gone.
	genuine.ObjectMeta = metav1.ObjectMeta{GenerateName: "receipt-", Namespace: f.namespace}
	f.create(genuine)
	f.wantOutcome(f.step(p), "Dispatching/Granted")
}

func TestReceipt_IsUsedOnce_AlsoWhenTheStatusIsPutBack(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	p := f.waiting()
	before := p.Status.DeepCopy()
	r := f.decide(p, v1alpha1.ReceiptApproved, approver)
	p = f.step(p)
	f.wantOutcome(p, "Dispatching/Granted")

	p.Status = *before
	if err := server.admin.Status().Update(f.ctx, p); err != nil {
		t.Fatal(err)
	}
	p = f.step(p)
	f.wantOutcome(p, "AwaitingApproval/AwaitingApproval")
	f.wantVerdict(r, "Valid=False/AlreadyConsumed Consumed=True/Consumed ")
}

func TestReceipt_ThatComesTooLate_HearsSo(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	p := f.waiting()
	first := f.decide(p, v1alpha1.ReceiptApproved, approver)
	surplus := f.decide(p, v1alpha1.ReceiptApproved, other)
	p = f.step(p)
	f.wantOutcome(p, "Dispatching/Granted")
	f.step(p)
	// Both were stored in the same second: either may have come first.
	if p.Status.Dispatch.Receipts[0].UID == surplus.UID {
		first, surplus = surplus, first
	}
	f.wantVerdict(first, "Valid=True/Counted Consumed=True/Consumed ")
	f.wantVerdict(surplus, "Valid=False/NotAwaitingApproval Consumed=False/NotConsumed ")
	if got, want := refusalOf(f.as(other).Create(f.ctx, newReceipt(p))), "422 spec.proposalRef:NotAwaitingApproval"; got != want {
		t.Errorf("after the grant: got %s, want %s", got, want)
	}
}

func TestConsumption_ThatACrashLeftOut_IsMadeUpFor(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	p := f.waiting()
	r := f.decide(p, v1alpha1.ReceiptApproved, approver)
	p = f.step(p)
	f.wantOutcome(p, "Dispatching/Granted")
	if err := server.admin.Get(f.ctx, client.ObjectKeyFromObject(r), r); err != nil {
		t.Fatal(err)
	}
	r.Status = v1alpha1.ApprovalReceiptStatus{}
	if err := server.admin.Status().Update(f.ctx, r); err != nil {
		t.Fatal(err)
	}
	f.step(p)
	f.wantVerdict(r, "Valid=True/Counted Consumed=True/Consumed ")
}

func TestDenial_EndsAWaitingCallAndCancelsAGrantedOne(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	p := f.waiting()
	no := f.decide(p, v1alpha1.ReceiptDenied, other)
	p = f.step(p)
	f.wantOutcome(p, "Denied/DeniedByApprover")
	f.wantVerdict(no, "Valid=True/Counted ")

	p = f.waiting()
	f.decide(p, v1alpha1.ReceiptApproved, approver)
	p = f.step(p)
	f.wantOutcome(p, "Dispatching/Granted")
	// Whoever approved may change their mind.
	f.decide(p, v1alpha1.ReceiptDenied, approver)
	f.wantOutcome(f.step(p), "Cancelled/DeniedByApprover")
}

func TestDenial_IsHeardWhileNothingIsGranted(t *testing.T) {
	f := newFixture(t)
	f.tool("change")
	f.policy("allow", permitAll)
	f.shared.Drift = func() string { return "the webhook is gone" }
	p := f.step(f.propose("change", `{"target":"web"}`))
	f.wantOutcome(p, "Pending/EnforcementDrift")
	if got, want := refusalOf(f.as(approver).Create(f.ctx, newReceipt(p))), "422 spec.proposalRef:NotAwaitingApproval"; got != want {
		t.Errorf("an approval that nobody asked for: got %s, want %s", got, want)
	}
	no := f.decide(p, v1alpha1.ReceiptDenied, approver)
	f.shared.Drift = func() string { return "" }
	f.wantOutcome(f.step(p), "Denied/DeniedByApprover")
	f.wantVerdict(no, "Valid=True/Counted ")
	if n := len(f.jobs()); n != 0 {
		t.Errorf("a call that was denied made %d Jobs", n)
	}
}

func TestReceipt_ExpiresAndTheCallWaitsOn(t *testing.T) {
	f := newFixture(t)
	f.approvalTool(v1alpha1.ApprovalRequirement{Group: "sre", Count: 2})
	p := f.waiting()
	r := f.decide(p, v1alpha1.ReceiptApproved, approver, "sre")
	f.clock.advance(16 * time.Minute)
	f.decide(p, v1alpha1.ReceiptApproved, other, "sre")
	p = f.step(p)
	f.wantOutcome(p, "AwaitingApproval/AwaitingApproval")
	f.wantVerdict(r, "Valid=False/ReceiptExpired ")
	// Both had expired. A clock that goes back makes neither count again.
	f.clock.advance(-10 * time.Minute)
	f.wantOutcome(f.step(p), "AwaitingApproval/AwaitingApproval")
	f.wantVerdict(r, "Valid=False/ReceiptExpired ")
	f.clock.advance(time.Hour)
	f.wantOutcome(f.step(p), "Expired/ApprovalTimeout")
}

func TestReceipts_AreAtMostSixteen(t *testing.T) {
	f := newFixture(t)
	f.approvalTool(v1alpha1.ApprovalRequirement{Group: "sre", Count: 8}, v1alpha1.ApprovalRequirement{Group: "owners", Count: 8})
	p := f.waiting()
	for i := range proposal.MaxReceipts + 1 {
		name := string(rune('a'+i)) + "-person"
		f.allow(name, "approvalreceipts")
		f.mayApprove(name)
		r := newReceipt(p)
		want := "accepted"
		if i == proposal.MaxReceipts {
			want = "403 spec.proposalRef:TooManyReceipts"
		}
		var got string
		f.until("the right is there", func() bool {
			got = refusalOf(f.as(name, "sre").Create(f.ctx, r.DeepCopy()))
			return got == want || got != "403" && got != "403 spec.approver:ApproverNotAuthorized"
		})
		if got != want {
			t.Fatalf("receipt %d: got %s, want %s", i, got, want)
		}
	}
	// Those that do not count any more keep nobody from deciding, nor the people
	// who made them.
	f.clock.advance(16 * time.Minute)
	f.wantOutcome(f.step(p), "AwaitingApproval/AwaitingApproval")
	for _, name := range []string{string(rune('a'+proposal.MaxReceipts)) + "-person", "a-person"} {
		if got, want := refusalOf(f.as(name, "sre").Create(f.ctx, newReceipt(p))), "accepted"; got != want {
			t.Errorf("after the others expired, %s: got %s, want %s", name, got, want)
		}
	}
}

// advance steps the clock.
func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}
