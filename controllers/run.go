// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/proposal"
)

// run is what is known about a call that was dispatched.
type run struct {
	proposal.Run
	facts    *facts
	expected *batchv1.Job
	live     *batchv1.Job
	// parsed is the output as JSON text, where the manifest says how to read it.
	parsed string
}

// follow moves a call along that was dispatched. Whatever is done is done by
// live reads: a Job that the informer does not show yet must not be taken for
// one that was never created.
func (r *ProposalReconciler) follow(ctx context.Context, cached *v1alpha1.ToolProposal) (ctrl.Result, error) {
	if wait := r.glance(ctx, cached); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	p := &v1alpha1.ToolProposal{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cached), p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if p.Status.Phase.Terminal() || p.Status.Dispatch == nil || p.UID != cached.UID {
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	if r.authentic(p) != nil || r.Past.Undone(p) {
		return r.tampered(ctx, p)
	}
	state, err := r.observeRun(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	step := proposal.Follow(state.Run, r.Now())
	if step, err = r.holdRestored(ctx, p, step); err != nil {
		return r.auditUnavailable(ctx, p, err)
	}
	if step.CreateJob {
		return r.resume(ctx, state)
	}
	return r.applyStep(ctx, state, step)
}

// authentic checks that grant and result in the status are the operator's own.
func (r *ProposalReconciler) authentic(p *v1alpha1.ToolProposal) error {
	if err := proposal.VerifyGrant(r.Keys(), p); err != nil {
		return err
	}
	if p.Status.Result == nil {
		return nil
	}
	return proposal.VerifyStoredResult(r.Keys(), p)
}

// undone looks live at a call that has forgotten, by the informer, what it said
// before. The informer may only be behind.
func (r *ProposalReconciler) undone(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	p := &v1alpha1.ToolProposal{}
	if err := r.Live.Get(ctx, key, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.Past.Undone(p) {
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return r.tampered(ctx, p)
}

// tampered ends a call whose status somebody else wrote. Whether anything ran
// is only known where nothing was redeemed.
func (r *ProposalReconciler) tampered(ctx context.Context, p *v1alpha1.ToolProposal) (ctrl.Result, error) {
	next := p.DeepCopy()
	next.Status.Phase = v1alpha1.PhaseInvalid
	if p.Status.RedeemedBy != nil || r.Past.Redeemed(p.UID) {
		next.Status.Phase = v1alpha1.PhaseIndeterminate
	}
	next.Status.Reason = v1alpha1.ReasonStatusTampered
	next.Status.Message = "somebody else wrote a grant or a result into the status, or put it back to an earlier state; nothing is done on its account"
	setCompleted(next, r.Now())
	alarm := audit.IntegrityAlarm{Reason: next.Status.Reason, Objects: []string{"ToolProposal/" + p.Namespace + "/" + p.Name}}
	if err := r.record(ctx, next, entry{data: alarm}); err != nil {
		return r.auditUnavailable(ctx, p, err)
	}
	if err := r.writeStatus(ctx, p, next); err != nil {
		return ctrl.Result{}, err
	}
	if next.Status.Dispatch == nil {
		return ctrl.Result{}, r.releaseErased(ctx, next)
	}
	return ctrl.Result{}, r.releaseJob(ctx, next)
}

func (r *ProposalReconciler) applyStep(ctx context.Context, state *run, step proposal.Step) (ctrl.Result, error) {
	p := state.Proposal
	next := p.DeepCopy()
	if step.Phase != "" {
		next.Status.Phase, next.Status.Reason, next.Status.Message = step.Phase, step.Reason, step.Message
	}
	if err := r.recordStep(ctx, state, next); err != nil {
		return r.auditUnavailable(ctx, p, err)
	}
	// The end is written before the Job is stopped: from then on no runner is
	// given the call any more.
	if err := r.writeStatus(ctx, p, next); err != nil {
		return ctrl.Result{}, err
	}
	r.traceEnd(state.facts, next)
	if step.StopJob {
		if err := r.releaseJob(ctx, next); err != nil {
			return ctrl.Result{}, err
		}
	}
	if step.Phase.Terminal() {
		return r.retire(ctx, next)
	}
	return ctrl.Result{RequeueAfter: step.Recheck}, nil
}

// recordStep makes the records that precede the next status. From the
// redemption on the effect may happen: its record is made as soon as it is seen,
// and its index is stored with the end.
func (r *ProposalReconciler) recordStep(ctx context.Context, state *run, next *v1alpha1.ToolProposal) error {
	if !next.Status.Phase.Terminal() {
		if next.Status.RedeemedBy == nil {
			return nil
		}
		return r.record(ctx, next.DeepCopy(), redeemed(next))
	}
	setCompleted(next, r.Now())
	if next.Status.Result != nil {
		next.Status.Result.Parsed = state.parsed
	}
	return r.recordCompletion(ctx, next)
}

// resume creates the Job of a grant whose Job is missing.
func (r *ProposalReconciler) resume(ctx context.Context, state *run) (ctrl.Result, error) {
	if !state.asGranted() {
		// The contract or the operator's settings changed after the grant. The
		// grant is for the Job that was decided on and for no other.
		return r.applyStep(ctx, state, proposal.Step{
			Phase: v1alpha1.PhaseFailed, Reason: v1alpha1.ReasonNeverStarted,
			Message: "the Job that was granted can no longer be built; the call had no effect",
		})
	}
	return r.createJob(ctx, state.Proposal, state.facts, state.expected)
}

// asGranted says that the Job that would be built now is the granted one, of
// the contract that was decided on.
func (s *run) asGranted() bool {
	return s.expected != nil &&
		s.facts.ContractHash == s.Proposal.Spec.Prepared.Contract.Hash &&
		s.expected.Annotations[v1alpha1.AnnotationTemplateHash] == s.Proposal.Status.Dispatch.TemplateHash
}

func (r *ProposalReconciler) observeRun(ctx context.Context, p *v1alpha1.ToolProposal) (*run, error) {
	f, err := r.gather(ctx, r.Live, p)
	if err != nil {
		return nil, err
	}
	state := &run{Run: proposal.Run{Proposal: p}, facts: f}
	state.OtherEpoch = f.Seal != nil && f.Seal.Epoch != f.Epoch
	if f.contract != nil && f.SealErr == nil {
		state.Timeout = f.contract.Execution().Timeout
		if state.expected, err = r.expectedJob(p, f.Seal, f.contract, p.Status.Dispatch.JobNamespace); err != nil {
			return nil, err
		}
	}
	if err := r.observeJob(ctx, state); err != nil {
		return nil, err
	}
	state.Cancel, state.CancelMessage = r.cancelReason(f)
	if p.Status.Result != nil {
		state.readResult(p.Status.Result)
	}
	return state, nil
}

// readResult reads the output that was reported, and what the endpoint found
// wrong with one that is not stored.
func (s *run) readResult(result *v1alpha1.Result) {
	if c := s.facts.contract; c != nil && s.facts.ContractHash == s.Proposal.Spec.Prepared.Contract.Hash {
		s.parsed, s.SchemaProblem = readOutput(c, result)
	}
	if result.OutputProblem != "" {
		s.SchemaProblem = result.OutputProblem
	}
}

func (r *ProposalReconciler) observeJob(ctx context.Context, state *run) error {
	d := state.Proposal.Status.Dispatch
	live := &batchv1.Job{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: d.JobNamespace, Name: d.JobName}, live)
	if apierrors.IsNotFound(err) {
		state.PodsGone, err = r.redeemerGone(ctx, state.Proposal)
		return err
	}
	if err != nil {
		return fmt.Errorf("reading Job %s/%s: %w", d.JobNamespace, d.JobName, err)
	}
	if !ours(state, live) {
		state.Squatted = true
		return nil
	}
	state.JobExists, state.live = true, live
	state.JobFinishedAt = finishedAt(live)
	return r.observePods(ctx, state, live)
}

// ours compares with the grant where the expected Job cannot be built any more.
func ours(state *run, live *batchv1.Job) bool {
	if state.asGranted() {
		return job.Ours(state.expected, live)
	}
	return granted(state.Proposal, live)
}

func finishedAt(j *batchv1.Job) time.Time {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// observePods says whether no Pod of the Job can still run. The Job's own
// status is not asked: whoever can write it could claim anything.
func (r *ProposalReconciler) observePods(ctx context.Context, state *run, j *batchv1.Job) error {
	var pods corev1.PodList
	err := r.Live.List(ctx, &pods, client.InNamespace(j.Namespace), client.MatchingLabels{batchv1.ControllerUidLabel: string(j.UID)})
	if err != nil {
		return fmt.Errorf("listing the Pods of Job %s/%s: %w", j.Namespace, j.Name, err)
	}
	state.PodsGone = true
	for i := range pods.Items {
		state.PodsGone = state.PodsGone && ended(&pods.Items[i])
		state.NotIsolated = state.NotIsolated || notIsolated(&pods.Items[i])
	}
	return nil
}

// notIsolated says that the Pod's runner found its network open and ended.
func notIsolated(pod *corev1.Pod) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == job.ContainerName && s.State.Terminated != nil && s.State.Terminated.ExitCode == job.ExitNotIsolated {
			return true
		}
	}
	return false
}

// redeemerGone says whether the Pod that fetched the call can no longer run. A
// Job that was deleted goes before its Pod does.
func (r *ProposalReconciler) redeemerGone(ctx context.Context, p *v1alpha1.ToolProposal) (bool, error) {
	by := p.Status.RedeemedBy
	if by == nil {
		// No Pod has the call, and without a Job none will get it.
		return true, nil
	}
	pod := &corev1.Pod{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: p.Status.Dispatch.JobNamespace, Name: by.PodName}, pod)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Pod %s/%s: %w", p.Status.Dispatch.JobNamespace, by.PodName, err)
	}
	return pod.UID != by.PodUID || ended(pod), nil
}

// ended says that no container of the Pod runs or will run any more.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// cancelReason says why a call that was dispatched should be stopped.
func (r *ProposalReconciler) cancelReason(f *facts) (reason, message string) {
	if f.Proposal.DeletionTimestamp != nil {
		return v1alpha1.ReasonDeleted, "the proposal was deleted"
	}
	if f.SessionProblem != "" {
		return v1alpha1.ReasonSessionInvalid, f.SessionProblem
	}
	if f.SealErr != nil || f.contract == nil {
		return "", ""
	}
	a := proposal.JudgeReceipts(f.Keys, f.Proposal, f.Rules, f.Epoch, f.Receipts, r.Now())
	if a.Denied != nil {
		return v1alpha1.ReasonDeniedByApprover, "denied by " + a.Denied.Spec.Approver.Username
	}
	return "", ""
}

// releaseJob stops the Job, if it is ours, and lets it go.
func (r *ProposalReconciler) releaseJob(ctx context.Context, p *v1alpha1.ToolProposal) error {
	d := p.Status.Dispatch
	if d == nil {
		return nil
	}
	live := &batchv1.Job{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: d.JobNamespace, Name: d.JobName}, live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !granted(p, live) {
		return nil
	}
	return r.dropJob(ctx, live)
}

// releaseErased lets go of the Job of a call whose grant somebody erased from
// the status. Its name follows from the seal.
func (r *ProposalReconciler) releaseErased(ctx context.Context, p *v1alpha1.ToolProposal) error {
	seal, err := proposal.VerifySeal(r.Keys(), p)
	if err != nil {
		return nil //nolint:nilerr // what was never sealed was never granted
	}
	namespace, err := r.executionNamespace(ctx, p.Namespace)
	if err != nil {
		return err
	}
	live := &batchv1.Job{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: job.Name(seal.SealID)}, live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if live.Labels[v1alpha1.LabelProposalUID] != string(p.UID) {
		return nil
	}
	return r.dropJob(ctx, live)
}

func (r *ProposalReconciler) dropJob(ctx context.Context, live *batchv1.Job) error {
	if controllerutil.RemoveFinalizer(live, v1alpha1.FinalizerOutcome) {
		if err := r.Client.Update(ctx, live); err != nil {
			return fmt.Errorf("releasing Job %s/%s: %w", live.Namespace, live.Name, err)
		}
	}
	err := r.Client.Delete(ctx, live, client.Preconditions{UID: &live.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(err)
}
