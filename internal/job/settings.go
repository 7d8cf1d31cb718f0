// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
)

// Settings are the operator's own share of every Job: what is the same for all
// calls. The commit point and the execution endpoint must have the same ones,
// or no Pod is given its call.
type Settings struct {
	RunnerImage      string
	Endpoint         Endpoint
	Canaries         []string
	StartTimeout     time.Duration
	ImagePullSecrets []string
}

// errUnprepared says that a proposal has no prepared call to build a Job for.
var errUnprepared = errors.New("the proposal has no prepared call")

// Input is what the Job of a proposal's call is built from.
func (s Settings) Input(p *v1alpha1.ToolProposal, sealID string, effect contract.Effect, execution contract.Execution, namespace string) (Input, error) {
	if p.Spec.Prepared == nil {
		return Input{}, errUnprepared
	}
	return Input{
		Namespace: namespace,
		SealID:    sealID,
		Proposal: Proposal{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID,
			Fingerprint: p.Spec.Prepared.Fingerprint,
		},
		Tool:             p.Spec.Tool,
		Effect:           effect,
		Execution:        execution,
		RunnerImage:      s.RunnerImage,
		Endpoint:         s.Endpoint,
		Canaries:         s.Canaries,
		StartTimeout:     s.StartTimeout,
		ImagePullSecrets: s.ImagePullSecrets,
	}, nil
}

// Ours says whether a live Job that has the name of an expected one is the
// Job that the commit point created, rather than somebody else's. What its
// Pod looks like is another question, which [Diff] answers.
func Ours(expected, live *batchv1.Job) bool {
	if live.Annotations[v1alpha1.AnnotationTemplateHash] != expected.Annotations[v1alpha1.AnnotationTemplateHash] ||
		live.Labels[v1alpha1.LabelProposalUID] != expected.Labels[v1alpha1.LabelProposalUID] {
		return false
	}
	want := metav1.GetControllerOf(expected)
	have := metav1.GetControllerOf(live)
	if want == nil {
		return have == nil
	}
	return have != nil && have.UID == want.UID && have.Kind == want.Kind
}

// CallOf reads from the Pod template which call its runner asks for.
func CallOf(spec *corev1.PodSpec) (types.NamespacedName, bool) {
	for _, c := range spec.Containers {
		for _, e := range c.Env {
			if e.Name != "ASSENT_PROPOSAL" {
				continue
			}
			namespace, name, ok := strings.Cut(e.Value, "/")
			return types.NamespacedName{Namespace: namespace, Name: name}, ok
		}
	}
	return types.NamespacedName{}, false
}
