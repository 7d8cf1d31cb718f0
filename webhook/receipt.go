// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
	"github.com/assent-dev/assent/internal/tracing"
)

const kindReceipt = "ApprovalReceipt"

// receipts stamps and seals decisions of people.
type receipts struct{ *Config }

// seal stamps who decided, checks that they may, and seals the receipt.
// Everything is checked here, before the seal: what Assent has not found to be
// a decision on a waiting call it does not sign.
func (h *receipts) seal(ctx context.Context, req *request, r *v1alpha1.ApprovalReceipt) ([]byte, error) {
	began := h.Now()
	r.Spec.Approver, r.Spec.Seal = proposal.IdentityOf(req.UserInfo), ""
	p, err := h.proposalOf(ctx, req.Namespace, r)
	if err != nil {
		return nil, err
	}
	err = h.decide(ctx, req.Namespace, p, r)
	if h.Tracer != nil {
		h.trace(req, tracing.Receipt, proposal.TraceID(h.Keys(), p), p, began, err)
	}
	if err != nil {
		return nil, err
	}
	return stamped(&r.Spec)
}

// decide seals a decision on a call that exists, if it may be made.
func (h *receipts) decide(ctx context.Context, namespace string, p *v1alpha1.ToolProposal, r *v1alpha1.ApprovalReceipt) error {
	rules, lifetime, err := h.rulesOf(ctx, p)
	if err != nil {
		return err
	}
	if err := h.checkApprover(ctx, p, rules, r); err != nil {
		return err
	}
	if err := h.checkOthers(ctx, p, r); err != nil {
		return err
	}
	stamp, err := h.stamp(namespace)
	if err != nil {
		return err
	}
	// The object keeps whole seconds only, and the seal must say the same.
	expires := metav1.NewTime(stamp.Now.Add(lifetime).UTC().Truncate(time.Second))
	r.Spec.ExpiresAt = &expires
	return proposal.SealReceipt(h.Keys(), r, stamp)
}

// proposalOf reads the proposal and checks that the receipt is about it. The
// read is live: an approver often answers within a second.
func (h *receipts) proposalOf(ctx context.Context, namespace string, r *v1alpha1.ApprovalReceipt) (*v1alpha1.ToolProposal, error) {
	name := displayName(r)
	p := &v1alpha1.ToolProposal{}
	err := read(ctx, h.Live, client.ObjectKey{Namespace: namespace, Name: r.Spec.ProposalRef.Name}, p)
	if apierrors.IsNotFound(err) {
		return nil, invalid(kindReceipt, name, refusal{
			Field: "spec.proposalRef.name", Reason: v1alpha1.ReasonProposalNotFound,
			Message: fmt.Sprintf("there is no ToolProposal %s in namespace %s", r.Spec.ProposalRef.Name, namespace),
		})
	}
	if err != nil {
		return nil, fmt.Errorf("reading ToolProposal %s: %w", r.Spec.ProposalRef.Name, err)
	}
	if r.Spec.ProposalRef.UID != p.UID {
		return nil, invalid(kindReceipt, name, refusal{
			Field: "spec.proposalRef.uid", Reason: v1alpha1.ReasonUIDMismatch,
			Message: "the receipt is for an earlier proposal of the same name: look at the present one and decide on it",
		})
	}
	if p.Spec.Prepared == nil || r.Spec.Fingerprint != p.Spec.Prepared.Fingerprint {
		return nil, invalid(kindReceipt, name, refusal{
			Field: "spec.fingerprint", Reason: v1alpha1.ReasonFingerprintMismatch,
			Message: "the receipt is for another call: compare it with spec.prepared.fingerprint of the proposal",
		})
	}
	if _, err := proposal.VerifySeal(h.Keys(), p); err != nil {
		return nil, invalid(kindReceipt, name, refusal{
			Field: "spec.proposalRef", Reason: v1alpha1.ReasonUnsealed,
			Message: "the proposal did not pass admission as it stands: there is nothing to decide on",
		})
	}
	if !waits(p, r.Spec.Decision) {
		return nil, invalid(kindReceipt, name, refusal{
			Field: "spec.proposalRef", Reason: v1alpha1.ReasonNotAwaitingApproval,
			Message: fmt.Sprintf("the proposal does not wait for a decision, its phase is %q", p.Status.Phase),
		})
	}
	return p, nil
}

// waits says whether a decision can still matter: an approval while the call
// waits, a denial until the call has ended.
func waits(p *v1alpha1.ToolProposal, d v1alpha1.ReceiptDecision) bool {
	switch p.Status.Phase {
	case v1alpha1.PhaseAwaitingApproval:
		return true
	case "", v1alpha1.PhasePending, v1alpha1.PhaseDispatching, v1alpha1.PhaseRunning:
		return d == v1alpha1.ReceiptDenied
	default:
		return false
	}
}

// rulesOf are the approval rules of the call's tool and the lifetime of a receipt.
func (h *receipts) rulesOf(ctx context.Context, p *v1alpha1.ToolProposal) (proposal.ApprovalRules, time.Duration, error) {
	c, err := (&proposals{h.Config}).contractOf(ctx, p.Namespace, p.Name, p.Spec.Tool)
	if err != nil {
		return proposal.ApprovalRules{}, 0, err
	}
	rules := proposal.RulesOf(c)
	rules.SamePerson = h.SamePerson
	return rules, min(lifetimeOf(c), h.MaxReceiptLifetime), nil
}

func lifetimeOf(c *contract.Contract) time.Duration { return c.Approval().ReceiptLifetime }

func (h *receipts) checkApprover(ctx context.Context, p *v1alpha1.ToolProposal, rules proposal.ApprovalRules, r *v1alpha1.ApprovalReceipt) error {
	authorized, err := observe.MayApprove(ctx, h.Reviews, p.Namespace, p.Spec.Tool, r.Spec.Approver)
	if err != nil {
		return err
	}
	reason, message := proposal.CheckApprover(p, rules, r.Spec.Approver, r.Spec.Decision, authorized)
	if reason == "" {
		return nil
	}
	return forbidden(kindReceipt, displayName(r), refusal{Field: "spec.approver", Reason: reason, Message: message})
}

// checkOthers looks at the receipts that the proposal has already. Those that do
// not count any more, or are for an earlier proposal of the same name, take no
// place and speak for nobody.
func (h *receipts) checkOthers(ctx context.Context, p *v1alpha1.ToolProposal, r *v1alpha1.ApprovalReceipt) error {
	existing, err := observe.Receipts(ctx, h.Live, p)
	if err != nil {
		return err
	}
	sealed := 0
	for i := range existing {
		other := &existing[i]
		if !proposal.BindsReceipt(h.Keys(), p, other) || h.spent(other) {
			continue
		}
		sealed++
		if h.repeats(other, r) {
			return forbidden(kindReceipt, displayName(r), refusal{
				Field: "spec.approver", Reason: v1alpha1.ReasonDuplicateApprover,
				Message: "receipt " + other.Name + " of the same person says the same and has not expired",
			})
		}
	}
	if sealed < proposal.MaxReceipts {
		return nil
	}
	return forbidden(kindReceipt, displayName(r), refusal{
		Field: "spec.proposalRef", Reason: v1alpha1.ReasonTooManyReceipts,
		Message: fmt.Sprintf("the proposal has %d receipts already", proposal.MaxReceipts),
	})
}

// spent says that a receipt has expired, or that the operator found that it does
// not count. Whoever could forge that gains a receipt that the controller judges.
func (h *receipts) spent(r *v1alpha1.ApprovalReceipt) bool {
	return !h.Now().Before(r.Spec.ExpiresAt.Time) || meta.IsStatusConditionFalse(r.Status.Conditions, v1alpha1.ConditionValid)
}

func (h *receipts) repeats(old, next *v1alpha1.ApprovalReceipt) bool {
	rules := proposal.ApprovalRules{SamePerson: h.SamePerson}
	return old.Spec.Decision == next.Spec.Decision &&
		rules.IsSamePerson(old.Spec.Approver, next.Spec.Approver)
}

// check refuses what another mutating webhook changed after the seal.
func (h *receipts) check(_ context.Context, _ *request, r *v1alpha1.ApprovalReceipt) ([]byte, error) {
	_, err := proposal.VerifyReceiptSeal(h.Keys(), r)
	if errors.Is(err, proposal.ErrUnsealed) {
		return nil, invalid(kindReceipt, displayName(r), refusal{
			Field: "spec.seal", Reason: v1alpha1.ReasonUnsealed,
			Message: fmt.Sprintf("%v: look for another mutating webhook or policy for approvalreceipts", err),
		})
	}
	return nil, err
}
