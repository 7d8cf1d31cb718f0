// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"maps"
	"sync"

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
	// Limits bound texts and sets; a limit that is not positive is the default.
	Limits policy.Limits
	// Compile reads one object; nil is [policy.Compile].
	Compile func(policy.Source, policy.Limits) (*policy.Compiled, []policy.Problem)

	// change is held from reading the objects until what was made of them is in
	// force: loading at the start and a first reconciliation happen at once, and
	// the slower one must not put an older set back.
	change sync.Mutex

	mu sync.Mutex
	// loaded is what the set in force was made of, by namespace; the cluster's
	// policies under the empty name.
	loaded map[string]versions
}

// versions are the generations of the policies that a set was made of.
type versions map[types.UID]int64

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

// Load puts everything in force that exists, unless something is in force
// already. Until it has run, every decision is that the policies are not
// loaded. It is called once the informers are in sync.
func (r *PolicyReconciler) Load(ctx context.Context) error {
	r.change.Lock()
	defer r.change.Unlock()
	if r.Policies.Load() != nil {
		return nil
	}
	return r.load(ctx)
}

func (r *PolicyReconciler) load(ctx context.Context) error {
	set, err := policy.NewSet(r.Limits)
	if err != nil {
		return fmt.Errorf("making an empty policy set: %w", err)
	}
	namespaces, err := r.namespaces(ctx)
	if err != nil {
		return err
	}
	all := map[string]versions{}
	for _, namespace := range namespaces {
		if set, all[namespace], err = r.rebuild(ctx, set, namespace); err != nil {
			return err
		}
	}
	r.enforce(set, all)
	return nil
}

// enforce puts a set in force, and only then says what it was made of: a grant
// in between waits, and never rests on an older set.
func (r *PolicyReconciler) enforce(set *policy.Set, made map[string]versions) {
	r.Policies.Replace(set)
	r.Metrics.forgetPolicies(set.Knows)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loaded == nil {
		r.loaded = map[string]versions{}
	}
	maps.Copy(r.loaded, made)
}

// refresh brings one namespace's share of the set up to date.
func (r *PolicyReconciler) refresh(ctx context.Context, namespace string) error {
	r.change.Lock()
	defer r.change.Unlock()
	set := r.Policies.Load()
	if set == nil {
		return r.load(ctx)
	}
	next, made, err := r.rebuild(ctx, set, namespace)
	if err != nil {
		return err
	}
	r.enforce(next, map[string]versions{namespace: made})
	if !next.AnswersAs(set, namespace) {
		r.Wake.waiting(ctx, r.Client, namespace)
	}
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
	if err := r.refresh(ctx, req.Namespace); err != nil {
		return ctrl.Result{}, err
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

// rebuild replaces a namespace's policies and tools in the set, and says which
// policies these are.
func (r *PolicyReconciler) rebuild(ctx context.Context, set *policy.Set, namespace string) (*policy.Set, versions, error) {
	objects, err := r.list(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	made, compiled := versions{}, r.compile(set, namespace, objects)
	for _, o := range objects {
		made[o.object.GetUID()] = o.object.GetGeneration()
	}
	if set, err = set.WithNamespace(namespace, compiled...); err != nil {
		return nil, nil, fmt.Errorf("putting the policies of namespace %q in force: %w", namespace, err)
	}
	if namespace == "" {
		return set, made, nil
	}
	tools, err := r.tools(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	return set.WithTools(namespace, tools), made, nil
}

// compile reads the objects that the set in force was not made of.
func (r *PolicyReconciler) compile(set *policy.Set, namespace string, objects []policyObject) []*policy.Compiled {
	known := map[policy.Key]*policy.Compiled{}
	for _, c := range set.Sources(namespace) {
		known[c.Key()] = c
	}
	read := r.Compile
	if read == nil {
		read = policy.Compile
	}
	compiled := make([]*policy.Compiled, 0, len(objects))
	for _, o := range objects {
		one := known[policy.Key{Namespace: namespace, Name: o.object.GetName()}]
		if one == nil || !r.knows(namespace, o.object) {
			one, _ = read(proposal.PolicySource(o.namespace, o.object.GetName(), o.spec), r.Limits)
		}
		compiled = append(compiled, one)
	}
	return compiled
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

// Behind says whether the API server has policies of the namespace or of the
// cluster that the set in force was not made of. The commit point waits then:
// a forbid that was just written must count.
func (r *PolicyReconciler) Behind(ctx context.Context, namespace string) (bool, error) {
	var own, cluster bool
	err := observe.Together(
		func() (err error) { own, err = r.behind(ctx, namespace, "ToolPolicy"); return err },
		func() (err error) { cluster, err = r.behind(ctx, "", "ClusterToolPolicy"); return err },
	)
	return own || cluster || err != nil, err
}

func (r *PolicyReconciler) behind(ctx context.Context, namespace, kind string) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
	if err := r.Live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return true, fmt.Errorf("listing policies: %w", err)
	}
	live := versions{}
	for i := range list.Items {
		live[list.Items[i].UID] = list.Items[i].Generation
	}
	return !r.same(namespace, live), nil
}

func (r *PolicyReconciler) same(namespace string, live versions) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Equal(r.loaded[namespace], live)
}
