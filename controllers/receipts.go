// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/proposal"
)

// writeVerdicts tells approvers on their receipts whether they count. A
// receipt that counts is told so when it is consumed, which spares a write.
func (c *Config) writeVerdicts(ctx context.Context, verdicts []proposal.Verdict) error {
	for _, v := range verdicts {
		if v.Counts {
			continue
		}
		next := v.Receipt.DeepCopy()
		setReceiptCondition(next, v1alpha1.ConditionValid, metav1.ConditionFalse, v.Reason, v.Message)
		if err := c.writeReceipt(ctx, v.Receipt, next); err != nil {
			return err
		}
	}
	return nil
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
	if err := c.Client.Status().Update(ctx, next); err != nil {
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
