// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
)

// namespaces are those whose policies a request is about.
func (r *EgressReconciler) namespaces(ctx context.Context, name string) ([]string, error) {
	if name == "" {
		return r.withPolicies(ctx)
	}
	own := &corev1.Namespace{}
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, own); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if target := own.Labels[v1alpha1.LabelExecutionNamespace]; target != "" && target != name {
		return []string{name, target}, nil
	}
	return []string{name}, nil
}

// withPolicies are the namespaces that may have policies of calls.
func (r *EgressReconciler) withPolicies(ctx context.Context) ([]string, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(networkingv1.SchemeGroupVersion.WithKind("NetworkPolicyList"))
	if err := r.Live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing NetworkPolicies: %w", err)
	}
	var out []string
	for i := range list.Items {
		if job.IsEgressName(list.Items[i].Name) {
			out = append(out, list.Items[i].Namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// servedBy are the namespaces whose calls run in a namespace, or may as soon as
// both sides agree.
func (r *EgressReconciler) servedBy(ctx context.Context, namespace string) ([]string, error) {
	own := &corev1.Namespace{}
	if err := r.Live.Get(ctx, client.ObjectKey{Name: namespace}, own); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	var out []string
	for _, from := range []string{namespace, own.Labels[v1alpha1.LabelServes]} {
		if from == "" || slices.Contains(out, from) {
			continue
		}
		target, err := observe.ExecutionNamespace(ctx, r.Live, from)
		_, disagree := errors.AsType[*proposal.ObstacleError](err)
		switch {
		case disagree || (err == nil && target == namespace):
			out = append(out, from)
		case err != nil && !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return out, nil
}

// inForce are the contracts that calls can be made under, by tool, of each
// namespace whose calls run in a namespace.
func (r *EgressReconciler) inForce(ctx context.Context, from client.Reader, namespace string) (map[string]map[string]*contract.Contract, error) {
	served, err := r.servedBy(ctx, namespace)
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]*contract.Contract{}
	for _, namespace := range served {
		if out[namespace], err = r.contracts(ctx, from, namespace); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// wanted are the values of LabelEgress of what contracts let their calls reach.
func (r *EgressReconciler) wanted(inForce map[string]map[string]*contract.Contract) (map[string]bool, error) {
	want := map[string]bool{}
	for _, contracts := range inForce {
		for _, c := range contracts {
			label, err := r.Settings().EgressLabel(c.ExecutionSpec())
			if err != nil {
				return nil, err
			}
			want[label] = true
		}
	}
	return want, nil
}

// contracts are those of a namespace that calls can be made under.
func (c *Config) contracts(ctx context.Context, from client.Reader, namespace string) (map[string]*contract.Contract, error) {
	var manifests v1alpha1.ToolManifestList
	if err := from.List(ctx, &manifests, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the ToolManifests of namespace %s: %w", namespace, err)
	}
	tools, err := observe.Tools(ctx, from, namespace)
	if err != nil {
		return nil, err
	}
	out := map[string]*contract.Contract{}
	for i := range manifests.Items {
		if compiled, problem := c.Contracts.Compile(&manifests.Items[i], tools); problem == nil {
			out[manifests.Items[i].Name] = compiled
		}
	}
	return out, nil
}

// needed reads live what may need policies of a namespace, and returns whether
// one with a value of LabelEgress does: a manifest, an open call, a Job or a
// Pod. Ended Jobs and Pods count too: that they ended is only what they say.
func (r *EgressReconciler) needed(ctx context.Context, namespace string) (func(label string) bool, error) {
	inForce, err := r.inForce(ctx, r.Live, namespace)
	if err != nil {
		return nil, err
	}
	want, err := r.wanted(inForce)
	if err != nil {
		return nil, err
	}
	open, err := r.openUnderOld(ctx, inForce)
	if err != nil {
		return nil, err
	}
	var jobs batchv1.JobList
	var pods metav1.PartialObjectMetadataList
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	// The Pods after the Jobs: a Job that goes may leave its Pod for a while.
	for _, list := range []client.ObjectList{&jobs, &pods} {
		if err := r.Live.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelRun: job.RunLabelValue}); err != nil {
			return nil, fmt.Errorf("listing what calls run in namespace %s: %w", namespace, err)
		}
	}
	for i := range jobs.Items {
		want[jobs.Items[i].Spec.Template.Labels[v1alpha1.LabelEgress]] = true
	}
	for i := range pods.Items {
		want[pods.Items[i].Labels[v1alpha1.LabelEgress]] = true
	}
	return func(label string) bool { return open || want[label] }, nil
}

// openUnderOld says whether a call that has not ended was prepared against a
// contract that is not in force any more: what that let it reach cannot be
// told. What other calls reach is wanted by their manifests.
func (r *EgressReconciler) openUnderOld(ctx context.Context, inForce map[string]map[string]*contract.Contract) (bool, error) {
	for namespace, contracts := range inForce {
		var calls v1alpha1.ToolProposalList
		if err := r.Live.List(ctx, &calls, client.InNamespace(namespace)); err != nil {
			return false, fmt.Errorf("listing the calls of namespace %s: %w", namespace, err)
		}
		for i := range calls.Items {
			p := &calls.Items[i]
			if p.Status.Phase.Terminal() || p.Spec.Prepared == nil {
				continue
			}
			if c := contracts[p.Spec.Tool]; c == nil || c.Hash() != p.Spec.Prepared.Contract.Hash {
				return true, nil
			}
		}
	}
	return false, nil
}
