// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/proposal"
)

// ArgumentTypeReconciler says of each argument type whether it can be used.
type ArgumentTypeReconciler struct{ *Config }

// SetupWithManager registers the controller. A type that changes wakes every
// type of its namespace, since any of them may be based on it.
func (r *ArgumentTypeReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("argumenttype").
		Watches(&v1alpha1.ArgumentType{}, handler.EnqueueRequestsFromMapFunc(r.typesOf)).
		Complete(r)
}

func (r *ArgumentTypeReconciler) typesOf(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1alpha1.ArgumentTypeList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing argument types to wake")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// Reconcile checks one type with all it is based on.
func (r *ArgumentTypeReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	t := &v1alpha1.ArgumentType{}
	if err := r.Client.Get(ctx, req.NamespacedName, t); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var list v1alpha1.ArgumentTypeList
	if err := r.Client.List(ctx, &list, client.InNamespace(t.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing argument types of namespace %s: %w", t.Namespace, err)
	}
	types, err := proposal.ArgumentTypes(list.Items)
	if err == nil {
		err = contract.CheckType(t.Name, types)
	}
	next := t.DeepCopy()
	next.Status.ObservedGeneration = t.Generation
	meta.SetStatusCondition(&next.Status.Conditions, readyCondition(err, t.Generation, "the type can be used"))
	if apiequality.Semantic.DeepEqual(t.Status, next.Status) {
		return ctrl.Result{}, nil
	}
	if err := client.IgnoreNotFound(r.Client.Status().Update(ctx, next)); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status of ArgumentType %s: %w", req.NamespacedName, err)
	}
	return ctrl.Result{}, nil
}

// ToolScopeReconciler says of each scope whether it can be used.
type ToolScopeReconciler struct{ *Config }

// SetupWithManager registers the controller.
func (r *ToolScopeReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.ToolScope{}).Complete(r)
}

// Reconcile checks one scope.
func (r *ToolScopeReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := &v1alpha1.ToolScope{}
	if err := r.Client.Get(ctx, req.NamespacedName, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	scope, err := proposal.Scope(s)
	if err == nil {
		err = contract.CheckScope(s.Name, scope)
	}
	next := s.DeepCopy()
	next.Status.ObservedGeneration = s.Generation
	meta.SetStatusCondition(&next.Status.Conditions, readyCondition(err, s.Generation, "the scope can be used"))
	if apiequality.Semantic.DeepEqual(s.Status, next.Status) {
		return ctrl.Result{}, nil
	}
	if err := client.IgnoreNotFound(r.Client.Status().Update(ctx, next)); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status of ToolScope %s: %w", req.NamespacedName, err)
	}
	return ctrl.Result{}, nil
}

// readyCondition is Ready for an object that compiles, or says why it does not.
func readyCondition(problem error, generation int64, good string) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		Message: good, ObservedGeneration: generation,
	}
	if problem != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, compileReason(problem), shorten(problem.Error())
	}
	return c
}
