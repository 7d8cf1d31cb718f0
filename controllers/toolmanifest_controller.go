// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
)

// ManifestReconciler says of each manifest whether its tool can be called.
type ManifestReconciler struct{ *Config }

// SetupWithManager registers the controller. A type or scope that changes
// wakes every manifest of its namespace.
func (r *ManifestReconciler) SetupWithManager(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(r.manifestsOf)
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.ToolManifest{}).
		Watches(&v1alpha1.ArgumentType{}, all).
		Watches(&v1alpha1.ToolScope{}, all).
		Complete(r)
}

func (r *ManifestReconciler) manifestsOf(ctx context.Context, o client.Object) []reconcile.Request {
	var list v1alpha1.ToolManifestList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing manifests to wake")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// Reconcile compiles one manifest and says what came of it.
func (r *ManifestReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	m := &v1alpha1.ToolManifest{}
	if err := r.Client.Get(ctx, req.NamespacedName, m); err != nil {
		if apierrors.IsNotFound(err) {
			r.Contracts.Forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	tools, err := observe.Tools(ctx, r.Client, m.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	compiled, problem := r.Contracts.Compile(m, tools)
	next := m.DeepCopy()
	setManifestStatus(next, compiled, problem)
	if apiequality.Semantic.DeepEqual(m.Status, next.Status) {
		return ctrl.Result{}, nil
	}
	if err := client.IgnoreNotFound(r.Client.Status().Update(ctx, next)); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the status of ToolManifest %s: %w", req.NamespacedName, err)
	}
	return ctrl.Result{}, nil
}

func setManifestStatus(m *v1alpha1.ToolManifest, c *contract.Contract, problem error) {
	s := &m.Status
	s.ObservedGeneration = m.Generation
	if c != nil {
		s.Effect, s.ContractHash, s.Approval = c.EffectKind(), c.Hash(), approvalText(c)
		if open := c.Problems(); problem == nil && len(open) > 0 {
			problem = &open[0]
		}
	} else {
		s.Effect, s.ContractHash, s.Approval = "", "", ""
	}
	meta.SetStatusCondition(&s.Conditions, readyCondition(problem, m.Generation, "the tool can be called"))
}

func compileReason(problem error) string {
	if e, ok := errors.AsType[*contract.CompileError](problem); ok {
		return string(e.Reason)
	}
	return v1alpha1.ReasonInvalidEffect
}

// maxConditionMessage is what metav1.Condition allows.
const maxConditionMessage = 32768

func shorten(text string) string { return cut(text, maxConditionMessage) }

// cut shortens a text to a number of bytes, between two characters, and shows
// that it did.
func cut(text string, limit int) string {
	const mark = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}

// approvalText says in one word or two who must approve.
func approvalText(c *contract.Contract) string {
	rules := proposal.RulesOf(c)
	if len(rules.Requirements) == 0 {
		if c.HumanApproval() {
			return "required"
		}
		return "policy"
	}
	var parts []string
	for _, req := range rules.Requirements {
		parts = append(parts, fmt.Sprintf("%d of %s", req.Count, req.Group))
	}
	return strings.Join(parts, ", ")
}
