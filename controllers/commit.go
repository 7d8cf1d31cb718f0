// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
)

// This file is the commit point: the one place where a call is granted, and
// the only one of the project that creates Jobs. The order of its steps is its
// whole meaning:
//
//  1. read everything live and decide again: what the informers say is never
//     enough to let something happen. The proposal itself is not read again: its
//     resourceVersion stands in step 3 for its being the latest;
//  2. make the record durable;
//  3. write the grant, with UID and resourceVersion, so that one writer wins;
//  4. create the Job under a name that only this grant leads to.
//
// A crash after 2 leaves a record of a grant that was not made, after 3 a
// grant whose Job is still missing, which the next pass creates.

// commit grants a call, unless live facts say otherwise. The proposal may come
// from an informer: whatever is written on its account is written under its UID
// and resourceVersion, so that one which changed meanwhile ends in a conflict.
func (r *ProposalReconciler) commit(ctx context.Context, looked *facts) (ctrl.Result, error) {
	p := looked.Proposal
	if r.appended.any(p.UID) {
		// This process came here before with the same call. Its informer may not
		// show yet what became of that; a second record of it would confuse.
		latest, result, err := r.reread(ctx, client.ObjectKeyFromObject(p))
		if latest == nil {
			return result, err
		}
		p, looked = latest, r.open(latest)
	}
	k, err := r.know(ctx, looked)
	if err != nil || k.behind {
		return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, err
	}
	if k.restoredErr != nil {
		// What tells is kept beside the log, and is written like it.
		return r.auditUnavailable(ctx, p, k.restoredErr)
	}
	plan := proposal.Decide(k.facts.Observed, r.Now())
	if !plan.Dispatch {
		return r.applyPlan(ctx, k.facts, plan)
	}
	return r.grant(ctx, k, plan)
}

// reread reads a proposal live. It returns none, and when to look again, where
// the proposal cannot be granted any more.
func (r *ProposalReconciler) reread(ctx context.Context, key client.ObjectKey) (*v1alpha1.ToolProposal, ctrl.Result, error) {
	p := &v1alpha1.ToolProposal{}
	if err := r.Live.Get(ctx, key, p); err != nil {
		return nil, ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if p.Status.Dispatch != nil || p.Status.Phase.Terminal() {
		// Granted or ended before; the informer will show it.
		return nil, ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	if r.Past.Undone(p) {
		result, err := r.tampered(ctx, p)
		return nil, result, err
	}
	return p, ctrl.Result{}, nil
}

// gatherLive gathers anew from the API server, and asks what is asked only once
// a call could be granted.
func (r *ProposalReconciler) gatherLive(ctx context.Context, looked *facts) (*facts, error) {
	f, err := r.gatherAgain(ctx, r.Live, looked)
	if err == nil && f.SealErr == nil {
		f.PrincipalProblem, err = observe.AccountProblem(ctx, r.Live, f.Proposal.Spec.Requester)
	}
	return f, err
}

// known is everything that a grant rests on, read live.
type known struct {
	*facts
	// behind says that policies exist that are not in force yet.
	behind      bool
	restoredErr error
	// namespace is where the Job will run, or why there is no such place.
	namespace    string
	namespaceErr error
}

// know reads all of it at the same time. The policies are asked afterwards.
func (r *ProposalReconciler) know(ctx context.Context, looked *facts) (*known, error) {
	k, p := &known{}, looked.Proposal
	var restored string
	err := observe.Together(
		func() (err error) { k.behind, err = r.Behind(ctx, p.Namespace); return err },
		func() (err error) { k.facts, err = r.gatherLive(ctx, looked); return err },
		func() error { k.namespace, k.namespaceErr = r.executionNamespace(ctx, p.Namespace); return nil },
		func() error {
			if r.Restored != nil {
				restored, k.restoredErr = r.Restored(ctx)
			}
			return nil
		},
	)
	if err != nil {
		return k, err
	}
	k.Restored = restored
	return k, r.findPlace(ctx, k)
}

// findPlace says whether the call's Pod would find what it needs. Most calls
// need nothing that would have to be asked for.
func (r *ProposalReconciler) findPlace(ctx context.Context, k *known) (err error) {
	obstacle, disagree := errors.AsType[*proposal.ObstacleError](k.namespaceErr)
	switch {
	case disagree:
		k.Obstacle, k.namespaceErr = obstacle, nil
	case k.namespaceErr == nil && k.contract != nil:
		k.Obstacle, err = observe.Obstacle(ctx, r.Live, k.namespace, k.contract.ExecutionSpec())
	}
	return err
}

func (r *ProposalReconciler) grant(ctx context.Context, k *known, plan proposal.Plan) (ctrl.Result, error) {
	decided := r.Now()
	if k.namespaceErr != nil {
		return ctrl.Result{}, k.namespaceErr
	}
	f := k.facts
	expected, err := r.expectedJob(f.Proposal, f.Seal, f.contract, k.namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	next := f.Proposal.DeepCopy()
	setPlan(next, plan, r.Now())
	setDispatch(next, expected, plan, r.Now(), r.Settings().StartTimeout)
	if err := proposal.SealGrant(f.Keys, next); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.recordGrant(ctx, next, f, &plan); err != nil {
		return r.auditUnavailable(ctx, f.Proposal, err)
	}
	if err := r.writeStatus(ctx, f.Proposal, next); err != nil {
		// A proposal that is gone needs no grant.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if plan.Approval != nil {
		if err := r.consumeReceipts(ctx, plan.Approval.Receipts); err != nil && !apierrors.IsConflict(err) {
			return ctrl.Result{}, err
		}
	}
	result, err := r.createJob(ctx, next, f, expected)
	r.traceGrant(f, next, decided, err)
	return result, err
}

// setDispatch writes the grant into the status.
func setDispatch(p *v1alpha1.ToolProposal, expected *batchv1.Job, plan proposal.Plan, now time.Time, start time.Duration) {
	d := &v1alpha1.Dispatch{
		JobNamespace: expected.Namespace,
		JobName:      expected.Name,
		TemplateHash: expected.Annotations[v1alpha1.AnnotationTemplateHash],
		// Whole seconds, as they are stored: the seal covers the stored text.
		Time:     metav1.NewTime(now.Truncate(time.Second)),
		Deadline: metav1.NewTime(now.Truncate(time.Second).Add(start)),
	}
	if plan.Approval != nil {
		for _, receipt := range plan.Approval.Receipts {
			d.Receipts = append(d.Receipts, v1alpha1.ConsumedReceipt{
				Name: receipt.Name, UID: receipt.UID, Approver: receipt.Spec.Approver.Username,
			})
		}
	}
	p.Status.Dispatch = d
	p.Status.Reason, p.Status.Message = v1alpha1.ReasonGranted, "the call was granted"
	setCondition(p, v1alpha1.ConditionDispatched, metav1.ConditionTrue, v1alpha1.ReasonGranted, "the call was granted")
}

// createJob creates the Job of a grant. One that exists already is ours from
// an earlier pass, or it is never adopted.
func (r *ProposalReconciler) createJob(ctx context.Context, p *v1alpha1.ToolProposal, f *facts, expected *batchv1.Job) (ctrl.Result, error) {
	if err := r.ensureNetwork(ctx, p, f, expected); err != nil {
		return ctrl.Result{}, err
	}
	err := r.Client.Create(ctx, expected.DeepCopy())
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, fmt.Errorf("creating Job %s/%s: %w", expected.Namespace, expected.Name, err)
	}
	// The informer shows the new status and the Job; until then only the
	// deadline is waited for.
	return ctrl.Result{RequeueAfter: p.Status.Dispatch.Deadline.Sub(r.Now())}, nil
}

// expectedJob builds the Job of a call from what was sealed and the contract.
func (c *Config) expectedJob(p *v1alpha1.ToolProposal, seal *attest.ProposalSeal, compiled *contract.Contract, namespace string) (*batchv1.Job, error) {
	in, err := c.jobInput(p, seal, compiled, namespace)
	if err != nil {
		return nil, err
	}
	return job.Build(in)
}

func (c *Config) jobInput(p *v1alpha1.ToolProposal, seal *attest.ProposalSeal, compiled *contract.Contract, namespace string) (job.Input, error) {
	effect, err := proposal.Effect(p.Spec.Prepared.Effect)
	if err != nil {
		return job.Input{}, fmt.Errorf("reading the effect of %s/%s: %w", p.Namespace, p.Name, err)
	}
	return c.Settings().Input(p, seal.SealID, effect, compiled.ExecutionSpec(), namespace)
}

// ExpectedJob builds the Job of a call again, for the execution endpoint to
// compare the live one with. The operator's keys and certificates may have
// changed since the grant, whose hash says whether those in the Job were meant.
func (c *Config) ExpectedJob(p *v1alpha1.ToolProposal, compiled *contract.Contract, live *batchv1.Job) (*batchv1.Job, error) {
	seal, err := proposal.VerifySeal(c.Keys(), p)
	if err != nil {
		return nil, err
	}
	in, err := c.jobInput(p, seal, compiled, live.Namespace)
	if err != nil {
		return nil, err
	}
	return job.Build(in.AsIn(live))
}

// executionNamespace is where the Jobs of a namespace's calls run.
func (c *Config) executionNamespace(ctx context.Context, namespace string) (string, error) {
	return observe.ExecutionNamespace(ctx, c.Live, namespace)
}

// ensureNetwork creates what isolates the Pod before the Pod can exist.
func (r *ProposalReconciler) ensureNetwork(ctx context.Context, p *v1alpha1.ToolProposal, f *facts, expected *batchv1.Job) error {
	in, err := r.jobInput(p, f.Seal, f.contract, expected.Namespace)
	if err != nil {
		return err
	}
	policies, err := job.NetworkPolicies(in)
	if err != nil {
		return fmt.Errorf("building the network policies of %s/%s: %w", p.Namespace, p.Name, err)
	}
	var all []func() error
	for _, policy := range policies {
		all = append(all, func() error {
			if err := r.ensurePolicy(ctx, policy); err != nil {
				return fmt.Errorf("isolating the Pod of %s/%s by NetworkPolicy %s: %w", p.Namespace, p.Name, policy.Name, err)
			}
			return nil
		})
	}
	return observe.Together(all...)
}

// ensurePolicy creates a NetworkPolicy, or puts one back that somebody
// changed. Calls share policies, so most find theirs as it must be. One that
// was marked as unused is used from here on: see EgressReconciler.
func (r *ProposalReconciler) ensurePolicy(ctx context.Context, want *networkingv1.NetworkPolicy) error {
	live := &networkingv1.NetworkPolicy{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return client.IgnoreAlreadyExists(r.Client.Create(ctx, want))
	}
	_, unused := live.Annotations[v1alpha1.AnnotationUnused]
	if err != nil || (!unused && apiequality.Semantic.DeepEqual(live.Spec, want.Spec)) {
		return err
	}
	delete(live.Annotations, v1alpha1.AnnotationUnused)
	live.Spec = want.Spec
	return r.Client.Update(ctx, live)
}
