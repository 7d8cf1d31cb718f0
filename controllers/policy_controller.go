// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"sync"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
)

// PolicyReconciler keeps the policies in force: what is compiled and checked
// here is what calls are decided with. It works on whole namespaces, since a
// change of one manifest can make any policy there fit or not.
type PolicyReconciler struct {
	*Config

	mu sync.Mutex
	// loaded is what the set in force was made of, by namespace; the cluster's
	// policies under the empty name.
	loaded map[string]map[types.UID]int64
}

// policyObject is one policy of either kind.
type policyObject struct {
	object    client.Object
	namespace string
	spec      v1alpha1.PolicySpec
	status    *v1alpha1.PolicyStatus
}

// SetupWithManager registers the controller and what wakes it.
func (r *PolicyReconciler) SetupWithManager(mgr ctrl.Manager) error {
	own := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: "policies"}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("policies").
		Watches(&v1alpha1.ToolPolicy{}, own).
		Watches(&v1alpha1.ClusterToolPolicy{}, own).
		Watches(&v1alpha1.ToolManifest{}, own).
		Watches(&v1alpha1.ArgumentType{}, own).
		Watches(&v1alpha1.ToolScope{}, own).
		Complete(r)
}

// Load puts everything in force that exists. Until it has run, every decision
// is that the policies are not loaded. It is called once the informers are in
// sync.
func (r *PolicyReconciler) Load(ctx context.Context) error {
	empty, err := policy.NewSet(policy.DefaultLimits())
	if err != nil {
		return fmt.Errorf("making an empty policy set: %w", err)
	}
	namespaces, err := r.namespaces(ctx)
	if err != nil {
		return err
	}
	set := empty
	for _, namespace := range namespaces {
		if set, err = r.rebuild(ctx, set, namespace); err != nil {
			return err
		}
	}
	r.Policies.Replace(set)
	return nil
}

func (r *PolicyReconciler) namespaces(ctx context.Context) ([]string, error) {
	seen := map[string]bool{"": true}
	var policies v1alpha1.ToolPolicyList
	if err := r.Client.List(ctx, &policies); err != nil {
		return nil, fmt.Errorf("listing policies: %w", err)
	}
	for i := range policies.Items {
		seen[policies.Items[i].Namespace] = true
	}
	var manifests v1alpha1.ToolManifestList
	if err := r.Client.List(ctx, &manifests); err != nil {
		return nil, fmt.Errorf("listing manifests: %w", err)
	}
	for i := range manifests.Items {
		seen[manifests.Items[i].Namespace] = true
	}
	var out []string
	for namespace := range seen {
		out = append(out, namespace)
	}
	return out, nil
}

// Reconcile brings one namespace's share of the set up to date and tells each
// policy what is wrong with it.
func (r *PolicyReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.Policies.Load() == nil {
		if err := r.Load(ctx); err != nil {
			return ctrl.Result{}, err
		}
	} else {
		next, err := r.rebuild(ctx, r.Policies.Load(), req.Namespace)
		if err != nil {
			return ctrl.Result{}, err
		}
		// This controller is the only writer and works on one request at a time.
		r.Policies.Replace(next)
	}
	if err := r.tell(ctx, req.Namespace); err != nil {
		return ctrl.Result{}, err
	}
	if req.Namespace == "" {
		return ctrl.Result{}, nil
	}
	// A manifest of this namespace may have changed whether a cluster policy fits.
	return ctrl.Result{}, r.tell(ctx, "")
}

// rebuild replaces a namespace's policies and tools in the set.
func (r *PolicyReconciler) rebuild(ctx context.Context, set *policy.Set, namespace string) (*policy.Set, error) {
	objects, err := r.list(ctx, namespace)
	if err != nil {
		return nil, err
	}
	versions := map[types.UID]int64{}
	var compiled []*policy.Compiled
	for _, o := range objects {
		one, _ := policy.Compile(proposal.PolicySource(o.namespace, o.object.GetName(), o.spec), policy.DefaultLimits())
		compiled = append(compiled, one)
		versions[o.object.GetUID()] = o.object.GetGeneration()
	}
	if set, err = set.WithNamespace(namespace, compiled...); err != nil {
		return nil, fmt.Errorf("putting the policies of namespace %q in force: %w", namespace, err)
	}
	if namespace != "" {
		tools, err := r.tools(ctx, namespace)
		if err != nil {
			return nil, err
		}
		set = set.WithTools(namespace, tools)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loaded == nil {
		r.loaded = map[string]map[types.UID]int64{}
	}
	r.loaded[namespace] = versions
	return set, nil
}

// tools are the contracts in force. A manifest that does not compile has no
// calls to check policies against.
func (r *PolicyReconciler) tools(ctx context.Context, namespace string) ([]policy.Tool, error) {
	var manifests v1alpha1.ToolManifestList
	if err := r.Client.List(ctx, &manifests, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing manifests of namespace %s: %w", namespace, err)
	}
	shared, err := observe.Tools(ctx, r.Client, namespace)
	if err != nil {
		return nil, err
	}
	var tools []policy.Tool
	for i := range manifests.Items {
		if c, err := r.Contracts.Compile(&manifests.Items[i], shared); err == nil {
			tools = append(tools, proposal.PolicyTool(namespace, c))
		}
	}
	return tools, nil
}

// list reads a namespace's policies, or the cluster's.
func (r *PolicyReconciler) list(ctx context.Context, namespace string) ([]policyObject, error) {
	var out []policyObject
	if namespace == "" {
		var list v1alpha1.ClusterToolPolicyList
		if err := r.Client.List(ctx, &list); err != nil {
			return nil, fmt.Errorf("listing cluster policies: %w", err)
		}
		for i := range list.Items {
			p := list.Items[i].DeepCopy()
			out = append(out, policyObject{object: p, spec: p.Spec, status: &p.Status})
		}
		return out, nil
	}
	var list v1alpha1.ToolPolicyList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing policies of namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		p := list.Items[i].DeepCopy()
		out = append(out, policyObject{object: p, namespace: namespace, spec: p.Spec, status: &p.Status})
	}
	return out, nil
}

// tell writes to each policy what is wrong with it.
func (r *PolicyReconciler) tell(ctx context.Context, namespace string) error {
	objects, err := r.list(ctx, namespace)
	if err != nil {
		return err
	}
	set := r.Policies.Load()
	for _, o := range objects {
		key := policy.Key{Namespace: o.namespace, Name: o.object.GetName()}
		next := policyStatus(set, key, o)
		if apiequality.Semantic.DeepEqual(*o.status, next) {
			continue
		}
		*o.status = next
		if err := r.Client.Status().Update(ctx, o.object); err != nil {
			return fmt.Errorf("writing the status of policy %s: %w", key, err)
		}
	}
	return nil
}

func policyStatus(set *policy.Set, key policy.Key, o policyObject) v1alpha1.PolicyStatus {
	next := *o.status.DeepCopy()
	next.ObservedGeneration = o.object.GetGeneration()
	next.Policies, next.Problems, next.Warnings = 0, nil, nil
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		Message: "the policies are in force", ObservedGeneration: o.object.GetGeneration(),
	}
	report := set.Report(key)
	next.Policies = int32(report.Policies)
	for _, p := range report.Problems {
		out := v1alpha1.PolicyProblem{
			Namespace: p.Namespace, Policy: p.Policy, Line: int32(p.Line), Column: int32(p.Column), Message: p.Message,
		}
		if p.Severity == policy.SeverityWarning {
			next.Warnings = append(next.Warnings, out)
			continue
		}
		next.Problems = append(next.Problems, out)
	}
	if len(next.Problems) > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonValidationFailed
		if next.Policies == 0 {
			condition.Reason = v1alpha1.ReasonSyntaxError
		}
		condition.Message = problemText(next.Problems[0])
	}
	meta.SetStatusCondition(&next.Conditions, condition)
	return next
}

func problemText(p v1alpha1.PolicyProblem) string {
	text := fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message)
	if p.Namespace != "" {
		text += fmt.Sprintf(" (tools of namespace %s)", p.Namespace)
	}
	return text
}

// Behind says whether the API server has policies of the namespace or of the
// cluster that the set in force was not made of. The commit point waits then:
// a forbid that was just written must count.
func (r *PolicyReconciler) Behind(ctx context.Context, namespace string) (bool, error) {
	for _, part := range []struct{ namespace, kind string }{{namespace, "ToolPolicy"}, {"", "ClusterToolPolicy"}} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(part.kind + "List"))
		if err := r.Live.List(ctx, list, client.InNamespace(part.namespace)); err != nil {
			return true, fmt.Errorf("listing policies: %w", err)
		}
		live := map[types.UID]int64{}
		for i := range list.Items {
			live[list.Items[i].UID] = list.Items[i].Generation
		}
		if !r.same(part.namespace, live) {
			return true, nil
		}
	}
	return false, nil
}

func (r *PolicyReconciler) same(namespace string, live map[types.UID]int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	loaded := r.loaded[namespace]
	if len(loaded) != len(live) {
		return false
	}
	for uid, generation := range live {
		if have, ok := loaded[uid]; !ok || have != generation {
			return false
		}
	}
	return true
}
