// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/proposal"
)

// ExecutionNamespace is where the Jobs of a namespace's calls run: the
// namespace itself, or another that both sides agree on by their labels. The
// error is a [proposal.ObstacleError] where they do not.
func ExecutionNamespace(ctx context.Context, from client.Reader, namespace string) (string, error) {
	own := &corev1.Namespace{}
	if err := from.Get(ctx, client.ObjectKey{Name: namespace}, own); err != nil {
		return "", fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	target := own.Labels[v1alpha1.LabelExecutionNamespace]
	if target == "" || target == namespace {
		return namespace, nil
	}
	disagree := func(what string) error {
		return &proposal.ObstacleError{
			Reason:  v1alpha1.ReasonExecutionNamespaceNotAgreed,
			Message: fmt.Sprintf("namespace %s names %s for its calls, but that %s", namespace, target, what),
		}
	}
	other := &corev1.Namespace{}
	err := from.Get(ctx, client.ObjectKey{Name: target}, other)
	switch {
	case apierrors.IsNotFound(err):
		return "", disagree("does not exist")
	case err != nil:
		return "", fmt.Errorf("reading execution namespace %s: %w", target, err)
	case other.Labels[v1alpha1.LabelServes] != namespace:
		return "", disagree(fmt.Sprintf("has no label %s=%s", v1alpha1.LabelServes, namespace))
	}
	return target, nil
}

// Obstacle says what the Pod of a call would lack in a namespace; nil when it
// lacks nothing. Without it the Job controller could not even create the Pod,
// and nobody would hear of it before the call's time to start is over.
func Obstacle(ctx context.Context, from client.Reader, namespace string, execution contract.Execution) (*proposal.ObstacleError, error) {
	if name := execution.RuntimeClassName; name != "" {
		err := from.Get(ctx, client.ObjectKey{Name: name}, &nodev1.RuntimeClass{})
		if apierrors.IsNotFound(err) {
			return &proposal.ObstacleError{
				Reason:  v1alpha1.ReasonRuntimeClassNotFound,
				Message: fmt.Sprintf("the tool's execution.runtimeClassName is %s, and the cluster has no such RuntimeClass", name),
			}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading RuntimeClass %s: %w", name, err)
		}
	}
	if name := execution.ServiceAccountName; name != "" {
		err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ServiceAccount{})
		if apierrors.IsNotFound(err) {
			return &proposal.ObstacleError{
				Reason:  v1alpha1.ReasonServiceAccountNotFound,
				Message: fmt.Sprintf("the tool's execution.serviceAccountName is %s, and namespace %s has no such ServiceAccount", name, namespace),
			}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading ServiceAccount %s/%s: %w", namespace, name, err)
		}
	}
	return nil, nil //nolint:nilnil // that nothing stands in the way is an answer here
}
