// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// noted notes what is read live.
type noted struct {
	client.Reader
	mu    sync.Mutex
	reads []string
}

func (n *noted) note(what string, o any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reads = append(n.reads, fmt.Sprintf("%s %T", what, o))
}

func (n *noted) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	n.note("get", o)
	return n.Reader.Get(ctx, key, o, opts...)
}

func (n *noted) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	n.note("list", l)
	return n.Reader.List(ctx, l, opts...)
}

// What wakes a call that was dispatched is mostly of no consequence to it. As
// soon as the informers show that something may be to be done, it is done by
// live reads as ever.
func TestDispatchedCall_CostsTheAPIServerNothingWhileNothingIsToBeDone(t *testing.T) {
	w := newWorld(t, false)
	p := w.propose()
	key := client.ObjectKeyFromObject(p)
	o := w.operator(false)
	if err := o.step(key); err != nil {
		t.Fatal(err)
	}
	live := &noted{Reader: admin}
	o.proposals.Live = live
	readsOf := func() []string {
		live.reads = nil
		if err := o.step(key); err != nil {
			t.Fatal(err)
		}
		return live.reads
	}
	if diff := cmp.Diff([]string(nil), readsOf()); diff != "" {
		t.Errorf("a call that waits for its runner is read live (-want +got):\n%s", diff)
	}
	for name, change := range map[string]func(){
		"its deadline passed": func() { w.advance(11 * time.Minute) },
		"its Job ended": func() {
			j := w.jobOf(p)
			now := metav1.Now()
			j.Status.StartTime = &now
			j.Status.Failed = 1
			for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
				j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: "True", LastTransitionTime: now})
			}
			if err := admin.Status().Update(w.ctx, j); err != nil {
				t.Fatal(err)
			}
		},
		"its Job has another template": func() {
			j := w.jobOf(p)
			j.Annotations[v1alpha1.AnnotationTemplateHash] = "other"
			if err := admin.Update(w.ctx, j); err != nil {
				t.Fatal(err)
			}
		},
		"its Job is gone": func() {
			j := w.jobOf(p)
			j.Finalizers = nil
			if err := admin.Update(w.ctx, j); err != nil {
				t.Fatal(err)
			}
			if err := admin.Delete(w.ctx, j, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Fatal(err)
			}
		},
		"it is to be deleted": func() {
			if err := admin.Delete(w.ctx, p); err != nil {
				t.Fatal(err)
			}
		},
		"its status was forged": func() {
			now := w.get(p)
			now.Status.Dispatch.Deadline = metav1.NewTime(now.Status.Dispatch.Deadline.Add(time.Minute))
			if err := admin.Status().Update(w.ctx, now); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w = newWorld(t, false)
			p = w.propose()
			key = client.ObjectKeyFromObject(p)
			o = w.operator(false)
			if err := o.step(key); err != nil {
				t.Fatal(err)
			}
			o.proposals.Live = live
			change()
			if got := readsOf(); len(got) == 0 || got[0] != "get *v1alpha1.ToolProposal" {
				t.Errorf("read live: %v, want the proposal first", got)
			}
		})
	}
}

func (w *world) get(p *v1alpha1.ToolProposal) *v1alpha1.ToolProposal {
	w.t.Helper()
	now := &v1alpha1.ToolProposal{}
	if err := admin.Get(w.ctx, client.ObjectKeyFromObject(p), now); err != nil {
		w.t.Fatal(err)
	}
	return now
}

func (w *world) jobOf(p *v1alpha1.ToolProposal) *batchv1.Job {
	w.t.Helper()
	d := w.get(p).Status.Dispatch
	j := &batchv1.Job{}
	if err := admin.Get(w.ctx, client.ObjectKey{Namespace: d.JobNamespace, Name: d.JobName}, j); err != nil {
		w.t.Fatal(err)
	}
	return j
}
