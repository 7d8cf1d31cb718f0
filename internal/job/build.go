// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// Audience of the token with which a Pod redeems its call. A token for any
// other audience is refused, and this one is worth nothing elsewhere.
const Audience = "assent.dev/execution"

// RunLabelValue is the value of LabelRun on the Pods of calls.
const RunLabelValue = "call"

// optOuts ask the usual injectors to leave the Pod alone. One that does not
// listen makes the Pod differ from the expected one, and the call is refused.
var (
	optOutAnnotations = map[string]string{
		"sidecar.istio.io/inject":                        "false",
		"linkerd.io/inject":                              "disabled",
		"kuma.io/sidecar-injection":                      "disabled",
		"consul.hashicorp.com/connect-inject":            "false",
		"vault.hashicorp.com/agent-inject":               "false",
		"sidecar.opentelemetry.io/inject":                "false",
		"sidecar.jaegertracing.io/inject":                "false",
		"dapr.io/enabled":                                "false",
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
		"karpenter.sh/do-not-disrupt":                    "true",
	}
	optOutLabels = map[string]string{
		"sidecar.istio.io/inject":         "false",
		"istio.io/dataplane-mode":         "none",
		"kuma.io/sidecar-injection":       "disabled",
		"admission.datadoghq.com/enabled": "false",
	}
)

// Build returns the Job of a call. Every field that the API server would fill
// with a default is set, so that the live object can be compared as it is.
//
// The Job completes when its runner has reported, whatever the tool's outcome.
// It is never started again: a second Pod would be refused its call anyway.
func Build(in Input) (*batchv1.Job, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	spec, err := podSpec(in)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{
		v1alpha1.LabelProposalUID: string(in.Proposal.UID),
		v1alpha1.LabelTool:        toolLabel(in.Tool),
		v1alpha1.LabelRun:         RunLabelValue,
	}
	egress, err := in.egress()
	if err != nil {
		return nil, err
	}
	podLabels := maps.Clone(labels)
	maps.Copy(podLabels, optOutLabels)
	if podLabels[v1alpha1.LabelEgress], err = egressLabel(egress); err != nil {
		return nil, err
	}

	job := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       in.Namespace,
			Name:            Name(in.SealID),
			Labels:          labels,
			Finalizers:      []string{v1alpha1.FinalizerOutcome},
			OwnerReferences: in.owners(),
		},
		Spec: batchv1.JobSpec{
			Parallelism:           new(int32(1)),
			Completions:           new(int32(1)),
			ActiveDeadlineSeconds: new(int64(in.ActiveDeadline().Seconds())),
			BackoffLimit:          new(int32(0)),
			ManualSelector:        new(false),
			CompletionMode:        new(batchv1.NonIndexedCompletion),
			Suspend:               new(false),
			PodReplacementPolicy:  new(batchv1.Failed),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels, Annotations: maps.Clone(optOutAnnotations)},
				Spec:       *spec,
			},
		},
	}
	hash, err := TemplateHash(job)
	if err != nil {
		return nil, err
	}
	job.Annotations = map[string]string{v1alpha1.AnnotationTemplateHash: hash}
	return job, nil
}

// owners makes the proposal the owner where Kubernetes allows it: an owner in
// another namespace would have the Job collected as an orphan.
func (in Input) owners() []metav1.OwnerReference {
	if in.Namespace != in.Proposal.Namespace {
		return nil
	}
	return []metav1.OwnerReference{{
		APIVersion:         v1alpha1.GroupVersion.String(),
		Kind:               "ToolProposal",
		Name:               in.Proposal.Name,
		UID:                in.Proposal.UID,
		Controller:         new(true),
		BlockOwnerDeletion: new(true),
	}}
}

// TemplateHash is the SHA-256, in hex, over the Job's spec as [Build] made it.
// The status of the proposal records it when the call is granted.
func TemplateHash(job *batchv1.Job) (string, error) {
	// encoding/json sorts the keys of maps, so the text is one of a kind for
	// one version of the API types.
	text, err := json.Marshal(job.Spec)
	if err != nil {
		return "", fmt.Errorf("hashing the Job's template: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

func pullSecrets(names []string) []corev1.LocalObjectReference {
	var out []corev1.LocalObjectReference
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		out = append(out, corev1.LocalObjectReference{Name: name})
	}
	return out
}
