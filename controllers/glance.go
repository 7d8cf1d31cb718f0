// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/proposal"
)

// glance looks at a call that was dispatched by the informers alone, and says
// for how long there is nothing to do for it as far as they know; zero where
// there may be. Most of what wakes a call, such as each change of its Job's
// status, changes nothing about it, and costs the API server nothing this way.
// A glance never leads to anything but waiting.
func (r *ProposalReconciler) glance(ctx context.Context, p *v1alpha1.ToolProposal) time.Duration {
	if p.Status.Result != nil || p.DeletionTimestamp != nil || r.authentic(p) != nil {
		return 0
	}
	f, err := r.gather(ctx, r.Client, p)
	if err != nil || !r.atWork(ctx, p, f) {
		return 0
	}
	state := proposal.Run{
		Proposal: p, JobExists: true, Timeout: f.contract.Execution().Timeout, OtherEpoch: f.Seal.Epoch != f.Epoch,
	}
	state.Cancel, state.CancelMessage = r.cancelReason(f)
	step := proposal.Follow(state, r.Now())
	if step.StopJob || step.CreateJob || moves(p, step) {
		return 0
	}
	if p.Status.RedeemedBy != nil && r.record(ctx, p.DeepCopy(), redeemed(p)) != nil {
		return 0
	}
	return step.Recheck
}

// atWork says that the informers know the call's Job as the one that its seal
// and contract make, and that it has not ended.
func (r *ProposalReconciler) atWork(ctx context.Context, p *v1alpha1.ToolProposal, f *facts) bool {
	if f.contract == nil || f.SealErr != nil {
		return false
	}
	j := &batchv1.Job{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: p.Status.Dispatch.JobNamespace, Name: p.Status.Dispatch.JobName}, j); err != nil {
		return false
	}
	if j.DeletionTimestamp != nil || !finishedAt(j).IsZero() {
		return false
	}
	expected, err := r.expectedJob(p, f.Seal, f.contract, j.Namespace)
	return err == nil && granted(p, j) && job.Ours(expected, j)
}

// moves says that a step changes what the call's status says.
func moves(p *v1alpha1.ToolProposal, step proposal.Step) bool {
	return step.Phase != "" && (step.Phase != p.Status.Phase || step.Reason != p.Status.Reason || step.Message != p.Status.Message)
}

// granted says that a Job is the one that the call's grant names.
func granted(p *v1alpha1.ToolProposal, j *batchv1.Job) bool {
	return j.Annotations[v1alpha1.AnnotationTemplateHash] == p.Status.Dispatch.TemplateHash &&
		j.Labels[v1alpha1.LabelProposalUID] == string(p.UID)
}
