// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/job"
)

// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=list;update;delete

// egressSettle is how long after a change a namespace's policies are looked
// at. What changes there meanwhile has them looked at no second time.
const egressSettle = time.Minute

// egressMargin is how much longer than a call may take to start a policy stays
// that is marked: for what lies between reading a clock and writing.
const egressMargin = time.Minute

// EgressReconciler deletes the NetworkPolicies that open the network for calls
// that no tool makes any more. Calls share them, so no call can own one, and
// deleting one while a Pod lives cuts the Pod off. The policy that closes the
// network for all calls of a namespace is never deleted.
//
// A policy goes in two steps: it is marked as unused, and deleted once the mark
// is older than a granted call may take to start. That is safe against the
// commit point, whichever replica either runs in, since the commit point takes
// the mark off a policy that a call is about to use (see ensurePolicy):
//
//   - A call that looked before the mark was written found nothing to take off.
//     When the policy is deleted, that call's time to start is over. Either its
//     Job exists, is seen by the live reads that come before, and keeps the
//     policy; or its runner will be given nothing any more.
//   - A call that looks after the mark was written takes it off. Either that
//     changes the policy's resourceVersion first, and the deletion, which names
//     the version that was marked, is refused. Or the policy is gone first: the
//     call then creates it, or fails to change it and begins anew. The Job comes
//     after this in every case.
//
// Where this fails all the same, such as with clocks that differ by more than
// the time to start, the network stays closed: a Pod without its policy reaches
// nothing, not even the execution service, and its call ends as NeverStarted.
type EgressReconciler struct{ *Config }

// SetupWithManager registers the controller. Its requests are namespaces; the
// one without a name, with which it begins, is all that have such policies.
func (r *EgressReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("egress").
		WatchesRawSource(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			q.Add(reconcile.Request{})
			return nil
		})).
		Watches(&v1alpha1.ToolManifest{}, settled(func(o client.Object) []string { return []string{o.GetNamespace()} })).
		Watches(&v1alpha1.ToolProposal{}, settled(namespacesOfCall), builder.WithPredicates(ends())).
		Complete(r)
}

// namespacesOfCall are where the call was made, and where it ran.
func namespacesOfCall(o client.Object) []string {
	p, ok := o.(*v1alpha1.ToolProposal)
	if !ok || p.Status.Dispatch == nil || p.Status.Dispatch.JobNamespace == p.Namespace {
		return []string{o.GetNamespace()}
	}
	return []string{p.Namespace, p.Status.Dispatch.JobNamespace}
}

// settled has namespaces looked at a while after something changed there.
func settled(namespaces func(client.Object) []string) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(o client.Object, q queue) {
		for _, namespace := range namespaces(o) {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: namespace}}, egressSettle)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(e.Object, q) },
	}
}

// ends lets the moments pass at which calls end or go.
func ends() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.ToolProposal)
			after, ok2 := e.ObjectNew.(*v1alpha1.ToolProposal)
			return ok && ok2 && !before.Status.Phase.Terminal() && after.Status.Phase.Terminal()
		},
	}
}

// Reconcile looks at the policies of a namespace, and of the one that its
// calls run in.
func (r *EgressReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	namespaces, err := r.namespaces(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	var wait time.Duration
	var errs []error
	for _, namespace := range namespaces {
		again, err := r.collect(ctx, namespace)
		if apierrors.IsConflict(err) {
			// Somebody uses the policy, or another replica was faster.
			again, err = egressSettle, nil
		}
		errs = append(errs, err)
		wait = sooner(wait, again)
	}
	return ctrl.Result{RequeueAfter: wait}, errors.Join(errs...)
}

// sooner is the shorter of two times to wait, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// collect marks and deletes policies of a namespace and says when to look
// again; zero when there is nothing that may be deleted.
func (r *EgressReconciler) collect(ctx context.Context, namespace string) (time.Duration, error) {
	policies, err := r.egressPolicies(ctx, namespace)
	if err != nil || len(policies) == 0 {
		return 0, err
	}
	// What the informers know leaves nothing to do most of the time.
	inForce, err := r.inForce(ctx, r.Client, namespace)
	if err != nil {
		return 0, err
	}
	want, err := r.wanted(inForce)
	if err != nil {
		return 0, err
	}
	var wait time.Duration
	var due []*networkingv1.NetworkPolicy
	for i := range policies {
		policy := &policies[i]
		if want[job.EgressOf(policy)] {
			continue
		}
		rest, err := r.mark(ctx, policy)
		if err != nil {
			return 0, err
		}
		if rest == 0 {
			due = append(due, policy)
		}
		wait = sooner(wait, rest)
	}
	if len(due) == 0 {
		return wait, nil
	}
	again, err := r.drop(ctx, namespace, due)
	return sooner(wait, again), err
}

// egressPolicies reads the policies that open the network for calls.
func (r *EgressReconciler) egressPolicies(ctx context.Context, namespace string) ([]networkingv1.NetworkPolicy, error) {
	var list networkingv1.NetworkPolicyList
	if err := r.Live.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the NetworkPolicies of namespace %s: %w", namespace, err)
	}
	var out []networkingv1.NetworkPolicy
	for i := range list.Items {
		if job.EgressOf(&list.Items[i]) != "" && list.Items[i].DeletionTimestamp == nil {
			out = append(out, list.Items[i])
		}
	}
	return out, nil
}

// mark says on the policy that nobody wants it, and for how long it stays.
func (r *EgressReconciler) mark(ctx context.Context, policy *networkingv1.NetworkPolicy) (time.Duration, error) {
	now, stay := r.Now(), r.Settings().StartTimeout+egressMargin
	since, err := time.Parse(time.RFC3339, policy.Annotations[v1alpha1.AnnotationUnused])
	if err == nil && !since.After(now) {
		return max(0, since.Add(stay).Sub(now)), nil
	}
	metav1.SetMetaDataAnnotation(&policy.ObjectMeta, v1alpha1.AnnotationUnused, now.UTC().Format(time.RFC3339))
	if err := r.Client.Update(ctx, policy); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("marking NetworkPolicy %s/%s as unused: %w", policy.Namespace, policy.Name, err)
	}
	return stay, nil
}

// drop deletes those of the policies that, by live reads, nothing needs.
func (r *EgressReconciler) drop(ctx context.Context, namespace string, due []*networkingv1.NetworkPolicy) (time.Duration, error) {
	needed, err := r.needed(ctx, namespace)
	if err != nil {
		return 0, err
	}
	var wait time.Duration
	for _, policy := range due {
		if needed(job.EgressOf(policy)) {
			// Nothing tells when the last Pod of a Job is gone.
			wait = r.Settings().StartTimeout + egressMargin
			continue
		}
		err := r.Client.Delete(ctx, policy, client.Preconditions{UID: &policy.UID, ResourceVersion: &policy.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("deleting NetworkPolicy %s/%s, which is unused: %w", policy.Namespace, policy.Name, err)
		}
		ctrl.LoggerFrom(ctx).Info("deleted a NetworkPolicy that no tool needs any more", "policy", policy.Namespace+"/"+policy.Name)
	}
	return wait, nil
}
