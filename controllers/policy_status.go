// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"math"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/policy"
)

// maxTold bounds the problems, and separately the warnings, that a status
// lists: a cluster policy has one of each kind for every namespace, and the
// object must stay small enough to be stored.
const maxTold = 64

// tell writes to each policy what is wrong with it.
func (r *PolicyReconciler) tell(ctx context.Context, namespace string) error {
	objects, err := r.list(ctx, namespace)
	if err != nil {
		return err
	}
	set, limit := r.Policies.Load(), r.Limits.Objects
	if limit <= 0 {
		limit = policy.DefaultObjects
	}
	for _, o := range objects {
		if !r.knows(namespace, o.object) {
			// Its own event is on the way; what is known is about another text.
			continue
		}
		key := policy.Key{Namespace: o.namespace, Name: o.object.GetName()}
		next := policyStatus(set.Report(key), o)
		if len(objects) > limit {
			setTooMany(&next, len(objects), limit)
		}
		if apiequality.Semantic.DeepEqual(*o.status, next) {
			continue
		}
		*o.status = next
		if err := client.IgnoreNotFound(r.Client.Status().Update(ctx, o.object)); err != nil {
			return fmt.Errorf("writing the status of policy %s: %w", key, err)
		}
	}
	return nil
}

// knows says whether the set in force was made of exactly this object.
func (r *PolicyReconciler) knows(namespace string, o client.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	generation, ok := r.loaded[namespace][o.GetUID()]
	return ok && generation == o.GetGeneration()
}

// policyStatus words a report.
func policyStatus(report policy.Report, o policyObject) v1alpha1.PolicyStatus {
	next := *o.status.DeepCopy()
	next.ObservedGeneration = o.object.GetGeneration()
	next.Policies, next.Problems, next.Warnings = count(report.Policies), nil, nil
	var problems, warnings int
	for _, p := range report.Problems {
		out := v1alpha1.PolicyProblem{
			Namespace: p.Namespace, Policy: p.Policy, Line: count(p.Line), Column: count(p.Column), Message: p.Message,
		}
		if p.Severity == policy.SeverityWarning {
			next.Warnings, warnings = appendBounded(next.Warnings, out), warnings+1
			continue
		}
		next.Problems, problems = appendBounded(next.Problems, out), problems+1
	}
	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: o.object.GetGeneration(),
	}
	switch {
	case problems > 0 && report.Policies == 0:
		condition.Reason, condition.Message = v1alpha1.ReasonSyntaxError, problemsText(next.Problems, problems)
	case problems > 0:
		condition.Reason, condition.Message = v1alpha1.ReasonValidationFailed, problemsText(next.Problems, problems)
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, v1alpha1.ReasonReady, "the policies are in force"
		if warnings > 0 {
			condition.Message += "; warning: " + problemsText(next.Warnings, warnings)
		}
	}
	condition.Message = shorten(condition.Message)
	meta.SetStatusCondition(&next.Conditions, condition)
	return next
}

// count is a number of things in a text of 32 KiB.
func count(n int) int32 { return int32(min(n, math.MaxInt32)) } //nolint:gosec // bounded here

// setTooMany says of an object in whose namespace, or in the cluster, there are
// too many that it is one of them. What else is wrong with it stays listed.
func setTooMany(s *v1alpha1.PolicyStatus, objects, limit int) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonLimitExceeded,
		Message:            fmt.Sprintf("there are %d policy objects where %d are the limit, and no call is permitted: merge or delete some", objects, limit),
		ObservedGeneration: s.ObservedGeneration,
	})
}

func appendBounded(list []v1alpha1.PolicyProblem, p v1alpha1.PolicyProblem) []v1alpha1.PolicyProblem {
	if len(list) == maxTold {
		return list
	}
	return append(list, p)
}

// problemsText gives the first problem, and how many more there are.
func problemsText(told []v1alpha1.PolicyProblem, total int) string {
	p := told[0]
	text := p.Message
	if p.Line > 0 {
		text = fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message)
	}
	if p.Namespace != "" {
		text += fmt.Sprintf(" (tools of namespace %s)", p.Namespace)
	}
	if total > 1 {
		text += fmt.Sprintf("; and %d more", total-1)
	}
	return text
}
