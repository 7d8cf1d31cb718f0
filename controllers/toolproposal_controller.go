// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
)

// +kubebuilder:rbac:groups=assent.dev,resources=toolproposals,verbs=get;list;watch;update;delete
// +kubebuilder:rbac:groups=assent.dev,resources=toolproposals/status;approvalreceipts/status;toolmanifests/status;argumenttypes/status;toolscopes/status;toolpolicies/status;clustertoolpolicies/status;agentsessions/status,verbs=update
// +kubebuilder:rbac:groups=assent.dev,resources=approvalreceipts,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=assent.dev,resources=toolmanifests;argumenttypes;toolscopes;toolpolicies;clustertoolpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=assent.dev,resources=agentsessions,verbs=get;list;watch;update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get
// +kubebuilder:rbac:groups=node.k8s.io,resources=runtimeclasses,verbs=get
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;create;update
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups="",resources=events,verbs=create;update;patch

// workers is how many calls are moved along at the same time. They wait more
// than they compute: for live reads, which they share, and for the audit log,
// which writes what arrives meanwhile together.
const workers = 32

// ProposalReconciler moves calls from proposal to end.
type ProposalReconciler struct{ *Config }

// SetupWithManager registers the controller and what wakes it.
func (r *ProposalReconciler) SetupWithManager(mgr ctrl.Manager) error {
	fair := newFairness()
	b := ctrl.NewControllerManagedBy(mgr)
	if r.Wake != nil {
		b = b.WatchesRawSource(r.Wake.Source())
	}
	return b.
		For(&v1alpha1.ToolProposal{}, builder.WithPredicates(fair.observe())).
		Watches(&v1alpha1.ToolProposal{}, fair.letGo()).
		Watches(&v1alpha1.ApprovalReceipt{}, handler.EnqueueRequestsFromMapFunc(proposalOfReceipt)).
		Watches(&v1alpha1.ToolManifest{}, handler.EnqueueRequestsFromMapFunc(r.callsOfTool)).
		Watches(&v1alpha1.AgentSession{}, handler.EnqueueRequestsFromMapFunc(r.callsOfSession), builder.WithPredicates(sessionTurns())).
		Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(proposalOfJob), builder.WithPredicates(jobTurns())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, NewQueue: fair.newQueue}).
		Complete(r)
}

func proposalOfReceipt(_ context.Context, o client.Object) []reconcile.Request {
	receipt, ok := o.(*v1alpha1.ApprovalReceipt)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: receipt.Namespace, Name: receipt.Spec.ProposalRef.Name}}}
}

func proposalOfJob(_ context.Context, o client.Object) []reconcile.Request {
	j, ok := o.(*batchv1.Job)
	if !ok {
		return nil
	}
	key, ok := job.CallOf(&j.Spec.Template.Spec)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// jobTurns lets those changes of a Job wake its call that may change what
// becomes of it: its end, its deletion, and all that somebody else wrote. How
// many of its Pods run or are ready is told in its status several times, and
// changes nothing: a Pod that took the call is in the call's own status. Nor
// does a Job that appears: whoever creates it waits for that, and after a
// restart each call is looked at by itself.
func jobTurns() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*batchv1.Job)
			after, ok2 := e.ObjectNew.(*batchv1.Job)
			return !ok || !ok2 || !finishedAt(before).Equal(finishedAt(after)) ||
				!apiequality.Semantic.DeepEqual(withoutStatus(before), withoutStatus(after))
		},
	}
}

func withoutStatus(j *batchv1.Job) batchv1.Job {
	out := *j
	out.Status, out.ResourceVersion, out.ManagedFields = batchv1.JobStatus{}, "", nil
	return out
}

func (r *ProposalReconciler) callsOfTool(ctx context.Context, o client.Object) []reconcile.Request {
	return r.openCalls(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{observe.IndexTool: o.GetName()})
}

func (r *ProposalReconciler) callsOfSession(ctx context.Context, o client.Object) []reconcile.Request {
	return r.openCalls(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{observe.IndexSession: o.GetName()})
}

func (r *ProposalReconciler) openCalls(ctx context.Context, opts ...client.ListOption) []reconcile.Request {
	var list v1alpha1.ToolProposalList
	if err := r.Client.List(ctx, &list, opts...); err != nil {
		// The informer's own store does not fail; a missed wake-up costs time,
		// not correctness, since the commit point looks at everything again.
		ctrl.LoggerFrom(ctx).Error(err, "listing calls to wake")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if !list.Items[i].Status.Phase.Terminal() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// Reconcile moves one call along.
func (r *ProposalReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := &v1alpha1.ToolProposal{}
	if err := r.Client.Get(ctx, req.NamespacedName, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	result, err := r.step(withCall(ctx, p), p)
	if apierrors.IsConflict(err) {
		// Somebody was faster, or the informer is behind: look again.
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return result, err
}

func (r *ProposalReconciler) step(ctx context.Context, p *v1alpha1.ToolProposal) (ctrl.Result, error) {
	if r.Past.Undone(p) {
		return r.undone(ctx, client.ObjectKeyFromObject(p))
	}
	r.Past.Note(p)
	if p.Status.Dispatch != nil || p.Status.Phase.Terminal() {
		if err := r.settleReceipts(ctx, p); err != nil {
			return ctrl.Result{}, err
		}
	}
	switch {
	case p.Status.Phase.Terminal():
		return r.retire(ctx, p)
	case p.Status.Dispatch != nil:
		return r.follow(ctx, p)
	}
	f, err := r.gather(ctx, r.Client, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := proposal.Decide(f.Observed, r.Now())
	if plan.Claim {
		return r.claim(ctx, p)
	}
	if plan.Dispatch {
		return r.commit(ctx, f)
	}
	return r.applyPlan(ctx, f, plan)
}

// applyPlan records a plan that does not dispatch.
func (r *ProposalReconciler) applyPlan(ctx context.Context, f *facts, plan proposal.Plan) (ctrl.Result, error) {
	next := f.Proposal.DeepCopy()
	setPlan(next, plan, r.Now())
	if plan.Phase.Terminal() {
		if err := r.recordEnd(ctx, next, f, &plan); err != nil {
			return r.auditUnavailable(ctx, f.Proposal, err)
		}
	}
	if err := r.writeStatus(ctx, f.Proposal, next); err != nil {
		return ctrl.Result{}, err
	}
	r.traceDecision(f, next)
	if plan.Approval != nil {
		if err := r.writeVerdicts(ctx, plan.Approval.Verdicts); err != nil {
			return ctrl.Result{}, err
		}
	}
	if plan.Phase.Terminal() {
		return r.retire(ctx, next)
	}
	return ctrl.Result{RequeueAfter: plan.Recheck}, nil
}

// retire lets go of a call that has ended: at once of one that is being
// deleted, after its time of any other.
func (r *ProposalReconciler) retire(ctx context.Context, p *v1alpha1.ToolProposal) (ctrl.Result, error) {
	if p.DeletionTimestamp == nil {
		wait := r.retention(ctx, p) - r.Now().Sub(completed(p))
		if wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		if batchOpen(p) {
			// Its batch wakes it: the note of its end is a change of this object.
			return ctrl.Result{RequeueAfter: time.Minute}, nil
		}
		return ctrl.Result{}, r.deleteCall(ctx, p)
	}
	if !controllerutil.ContainsFinalizer(p, v1alpha1.FinalizerOutcome) {
		return ctrl.Result{}, nil
	}
	if err := r.releaseJob(ctx, p); err != nil {
		return ctrl.Result{}, err
	}
	// Whoever deleted it: decisions about a call that is gone are none.
	if err := r.deleteReceipts(ctx, p); err != nil {
		return ctrl.Result{}, err
	}
	next := p.DeepCopy()
	controllerutil.RemoveFinalizer(next, v1alpha1.FinalizerOutcome)
	if err := r.Client.Update(ctx, next); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, nil
}

// completed is when a call ended. A phase that somebody else wrote may lack
// the time that belongs to it.
func completed(p *v1alpha1.ToolProposal) time.Time {
	if p.Status.CompletionTime == nil {
		return p.CreationTimestamp.Time
	}
	return p.Status.CompletionTime.Time
}

// retention is how long an ended call is kept.
func (r *ProposalReconciler) retention(ctx context.Context, p *v1alpha1.ToolProposal) time.Duration {
	m, err := observe.Manifest(ctx, r.Client, p.Namespace, p.Spec.Tool)
	if err == nil && m != nil && m.Spec.Execution != nil && m.Spec.Execution.TTLSecondsAfterFinished != nil {
		return time.Duration(*m.Spec.Execution.TTLSecondsAfterFinished) * time.Second
	}
	return r.Retention
}

// deleteCall deletes proposal and receipts. The finalizer then sees to the Job
// before the proposal goes.
func (r *ProposalReconciler) deleteCall(ctx context.Context, p *v1alpha1.ToolProposal) error {
	if err := r.deleteReceipts(ctx, p); err != nil {
		return err
	}
	err := r.Client.Delete(ctx, p, client.Preconditions{UID: &p.UID})
	return client.IgnoreNotFound(err)
}

func (r *ProposalReconciler) deleteReceipts(ctx context.Context, p *v1alpha1.ToolProposal) error {
	receipts, err := observe.Receipts(ctx, r.Client, p)
	if err != nil {
		return err
	}
	for i := range receipts {
		if receipts[i].Spec.ProposalRef.UID != p.UID {
			continue
		}
		if err := r.Client.Delete(ctx, &receipts[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting receipt %s: %w", receipts[i].Name, err)
		}
	}
	return nil
}
