// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
)

// maxMessage is what the CRD accepts of status.message.
const maxMessage = 4096

// setPlan writes a plan into the status. It touches nothing but the status.
func setPlan(p *v1alpha1.ToolProposal, plan proposal.Plan, now time.Time) {
	s := &p.Status
	s.Phase, s.Reason, s.Message = plan.Phase, plan.Reason, cut(plan.Message, maxMessage)
	s.ObservedGeneration = p.Generation
	setDecision(p, plan, now)
	if plan.Approval != nil {
		s.Approvals = &v1alpha1.Approvals{
			Summary:   fmt.Sprintf("%d/%d", plan.Approval.Granted, plan.Approval.Needed),
			Approvers: plan.Approval.Approvers(),
		}
		setApproved(p, plan)
	}
	switch plan.Reason {
	case v1alpha1.ReasonEnforcementDrift, v1alpha1.ReasonRestoreDetected,
		v1alpha1.ReasonExecutionNamespaceNotAgreed, v1alpha1.ReasonRuntimeClassNotFound, v1alpha1.ReasonServiceAccountNotFound:
		setCondition(p, v1alpha1.ConditionDispatched, metav1.ConditionFalse, plan.Reason, plan.Message)
	}
	if !plan.ExpiresAt.IsZero() {
		s.ExpiresAt = &metav1.Time{Time: plan.ExpiresAt}
	}
	if plan.Phase.Terminal() {
		setCompleted(p, now)
	}
}

func setDecision(p *v1alpha1.ToolProposal, plan proposal.Plan, now time.Time) {
	if plan.Decision == nil {
		if plan.Phase == v1alpha1.PhaseInvalid || plan.Phase == v1alpha1.PhaseDenied {
			setCondition(p, v1alpha1.ConditionDecided, metav1.ConditionFalse, plan.Reason, plan.Message)
		}
		return
	}
	d := *plan.Decision
	if d.Reason == policy.ReasonPolicySetNotLoaded {
		setCondition(p, v1alpha1.ConditionDecided, metav1.ConditionFalse, string(d.Reason), plan.Message)
		return
	}
	next := &v1alpha1.Decision{
		Answer: string(d.Answer), Reason: string(d.Reason), Policies: d.Policies[:min(len(d.Policies), maxPolicies)],
		NearMisses: nearMisses(d), Errors: evaluationErrors(d), PolicySetDigest: d.SetDigest,
		Time: metav1.Time{Time: now},
	}
	// An answer that did not change keeps its time, so that asking again
	// writes nothing.
	if old := p.Status.Decision; old != nil {
		next.Time = old.Time
		if !apiequality.Semantic.DeepEqual(old, next) {
			next.Time = metav1.Time{Time: now}
		}
	}
	p.Status.Decision = next
	setCondition(p, v1alpha1.ConditionDecided, metav1.ConditionTrue, conditionReason(d.Reason), shorten(string(d.Answer)+": "+d.Message))
}

// maxExplained bounds what the status says of each kind of explanation.
const maxExplained = 32

// maxPolicies bounds the policies that the status names of those that
// determined an answer. The audit record has all of them.
const maxPolicies = 256

func nearMisses(d policy.Decision) []string {
	var out []string
	for _, m := range d.NearMisses[:min(len(d.NearMisses), maxExplained)] {
		out = append(out, fmt.Sprintf("%s line %d, column %d: not %s", m.Policy, m.Line, m.Column, m.Condition))
	}
	return out
}

func evaluationErrors(d policy.Decision) []string {
	var out []string
	for _, e := range d.Errors[:min(len(d.Errors), maxExplained)] {
		out = append(out, fmt.Sprintf("%s: %s", e.Policy, e.Message))
	}
	return out
}

// conditionReason is a decision's reason in the form that conditions demand,
// which the one spelling of RFC-0016 does not have.
func conditionReason(r policy.Reason) string {
	if r == policy.ReasonPolicyMutatedArguments {
		return "PolicyMutatedArguments"
	}
	return string(r)
}

func setApproved(p *v1alpha1.ToolProposal, plan proposal.Plan) {
	switch {
	case plan.Approval.Denied != nil:
		setCondition(p, v1alpha1.ConditionApproved, metav1.ConditionFalse, v1alpha1.ReasonDeniedByApprover, plan.Message)
	case plan.Phase == v1alpha1.PhaseExpired:
		setCondition(p, v1alpha1.ConditionApproved, metav1.ConditionFalse, v1alpha1.ReasonApprovalTimeout, plan.Message)
	case plan.Approval.Satisfied:
		setCondition(p, v1alpha1.ConditionApproved, metav1.ConditionTrue, v1alpha1.ReasonApproved, "enough receipts count")
	default:
		setCondition(p, v1alpha1.ConditionApproved, metav1.ConditionUnknown, v1alpha1.ReasonAwaitingApproval, plan.Message)
	}
}

func setCompleted(p *v1alpha1.ToolProposal, now time.Time) {
	p.Status.CompletionTime = &metav1.Time{Time: now}
	setCondition(p, v1alpha1.ConditionCompleted, metav1.ConditionTrue, p.Status.Reason, p.Status.Message)
}

func setCondition(p *v1alpha1.ToolProposal, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: p.Generation,
	})
}

// writeStatus stores the new status if it differs. It is a PUT with UID and
// resourceVersion: two writers, or an object created anew under the same name,
// end in a conflict, never in a mixture.
func (c *Config) writeStatus(ctx context.Context, old, next *v1alpha1.ToolProposal) error {
	if apiequality.Semantic.DeepEqual(old.Status, next.Status) {
		return nil
	}
	if err := c.Client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("writing the status of %s/%s: %w", next.Namespace, next.Name, err)
	}
	c.appended.forget(next)
	c.Metrics.transition(old, next, c.Now())
	c.Events.Transition(old, next)
	return nil
}

// auditRetry is how long a call waits before a record is tried again.
const auditRetry = time.Second

// auditUnavailable says that a record could not be made durable. The call
// waits; nothing is lost and nothing new runs. A call that was granted keeps
// its grant: what waits then is the record of its end.
func (c *Config) auditUnavailable(ctx context.Context, p *v1alpha1.ToolProposal, cause error) (ctrl.Result, error) {
	ctrl.LoggerFrom(ctx).Error(cause, "the audit log did not take a record; the call waits")
	next := p.DeepCopy()
	if next.Status.Phase == "" {
		next.Status.Phase = v1alpha1.PhasePending
	}
	next.Status.Reason = v1alpha1.ReasonAuditUnavailable
	next.Status.Message = "a record that must come first could not be made durable; the call waits"
	if next.Status.Dispatch == nil {
		setCondition(next, v1alpha1.ConditionDispatched, metav1.ConditionFalse, v1alpha1.ReasonAuditUnavailable, next.Status.Message)
	}
	if err := c.writeStatus(ctx, p, next); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: auditRetry}, nil
}
