// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
)

// writeVerdicts tells approvers on their receipts whether they count, and why
// not. While a call waits for more people, those who approved see that theirs
// does; the receipts of a grant are told so when they are consumed.
func (c *Config) writeVerdicts(ctx context.Context, verdicts []proposal.Verdict) error {
	for _, v := range verdicts {
		next := v.Receipt.DeepCopy()
		status := metav1.ConditionFalse
		if v.Counts {
			status = metav1.ConditionTrue
		}
		setReceiptCondition(next, v1alpha1.ConditionValid, status, v.Reason, v.Message)
		if err := c.writeReceipt(ctx, v.Receipt, next); err != nil {
			return err
		}
	}
	return nil
}

// settleReceipts tells the receipts of a call that was granted or has ended
// what became of them: those that the grant names are consumed, also where a
// crash came between; approvals that came too late hear that the call did not
// wait for them. A grant that is not ours consumes nothing.
func (c *Config) settleReceipts(ctx context.Context, p *v1alpha1.ToolProposal) error {
	granted := map[types.UID]bool{}
	if d := p.Status.Dispatch; d != nil {
		if !c.isOurGrant(p) {
			return nil
		}
		for _, r := range d.Receipts {
			granted[r.UID] = true
		}
	}
	receipts, err := observe.Receipts(ctx, c.Client, p)
	if err != nil {
		return err
	}
	for i := range receipts {
		r := &receipts[i]
		switch {
		case r.Spec.ProposalRef.UID != p.UID:
		case granted[r.UID]:
			err = c.consumeReceipts(ctx, []*v1alpha1.ApprovalReceipt{r})
		case r.Spec.Decision == v1alpha1.ReceiptApproved && mayStillCount(r):
			next := r.DeepCopy()
			setReceiptCondition(next, v1alpha1.ConditionValid, metav1.ConditionFalse, v1alpha1.ReasonNotAwaitingApproval, "the call does not wait for this approval any more")
			setReceiptCondition(next, v1alpha1.ConditionConsumed, metav1.ConditionFalse, v1alpha1.ReasonNotConsumed, "no grant rests on the receipt")
			err = c.writeReceipt(ctx, r, next)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) isOurGrant(p *v1alpha1.ToolProposal) bool {
	return proposal.VerifyGrant(c.Keys(), p) == nil
}

// mayStillCount says that nothing has been said against the receipt yet.
func mayStillCount(r *v1alpha1.ApprovalReceipt) bool {
	return !meta.IsStatusConditionFalse(r.Status.Conditions, v1alpha1.ConditionValid)
}

// consumeReceipts marks the receipts that a grant rested on. The grant itself
// names them: this is how people see it.
func (c *Config) consumeReceipts(ctx context.Context, receipts []*v1alpha1.ApprovalReceipt) error {
	for _, r := range receipts {
		next := r.DeepCopy()
		setReceiptCondition(next, v1alpha1.ConditionValid, metav1.ConditionTrue, v1alpha1.ReasonCounted, "the receipt counted")
		setReceiptCondition(next, v1alpha1.ConditionConsumed, metav1.ConditionTrue, v1alpha1.ReasonConsumed, "a grant rests on the receipt")
		if err := c.writeReceipt(ctx, r, next); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) writeReceipt(ctx context.Context, old, next *v1alpha1.ApprovalReceipt) error {
	if apiequality.Semantic.DeepEqual(old.Status, next.Status) {
		return nil
	}
	if err := c.Client.Status().Update(ctx, next); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of receipt %s/%s: %w", next.Namespace, next.Name, err)
	}
	return nil
}

func setReceiptCondition(r *v1alpha1.ApprovalReceipt, kind string, status metav1.ConditionStatus, reason, message string) {
	r.Status.ObservedGeneration = r.Generation
	meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: r.Generation,
	})
}
