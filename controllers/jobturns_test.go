// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/assent-dev/assent/api/v1alpha1"
)

func TestJobTurns_WakeTheCall_ForWhatMayChangeWhatBecomesOfIt(t *testing.T) {
	then := metav1.NewTime(time.Unix(1000, 0))
	condition := func(kind batchv1.JobConditionType) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: then})
		}
	}
	for name, tc := range map[string]struct {
		change func(*batchv1.Job)
		want   bool
	}{
		"nothing":                     {func(*batchv1.Job) {}, false},
		"its Pod started":             {func(j *batchv1.Job) { j.Status.StartTime, j.Status.Active = &then, 1 }, false},
		"its Pod is ready":            {func(j *batchv1.Job) { j.Status.Ready = new(int32(1)) }, false},
		"its Pod failed":              {func(j *batchv1.Job) { j.Status.Failed = 1 }, false},
		"it is about to fail":         {condition(batchv1.JobFailureTarget), false},
		"field managers":              {func(j *batchv1.Job) { j.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}} }, false},
		"it failed":                   {condition(batchv1.JobFailed), true},
		"it is complete":              {condition(batchv1.JobComplete), true},
		"it is being deleted":         {func(j *batchv1.Job) { j.DeletionTimestamp = &then }, true},
		"it is let go":                {func(j *batchv1.Job) { j.Finalizers = nil }, true},
		"it is another's":             {func(j *batchv1.Job) { j.Labels[v1alpha1.LabelProposalUID] = "other" }, true},
		"it promises something else":  {func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationTemplateHash] = "other" }, true},
		"it is suspended":             {func(j *batchv1.Job) { j.Spec.Suspend = new(true) }, true},
		"its container is another":    {func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Image = "other" }, true},
		"it is another with its name": {func(j *batchv1.Job) { j.UID = "other" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
				Namespace: "agents", Name: "call-1", UID: "uid", ResourceVersion: "1", Finalizers: []string{v1alpha1.FinalizerOutcome},
				Labels: map[string]string{v1alpha1.LabelProposalUID: "p"}, Annotations: map[string]string{v1alpha1.AnnotationTemplateHash: "h"},
			}}
			before.Spec.Template.Spec.Containers = []corev1.Container{{Name: "tool", Image: "i"}}
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			tc.change(after)
			if got := jobTurns().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("wakes: %v, want %v", got, tc.want)
			}
		})
	}
	if !jobTurns().Delete(event.DeleteEvent{Object: &batchv1.Job{}}) {
		t.Error("a Job that is gone wakes nobody")
	}
	if jobTurns().Create(event.CreateEvent{Object: &batchv1.Job{}}) {
		t.Error("a Job that appears wakes its call")
	}
}
