// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/execution"
)

// Whoever may write the status of a proposal can put it back to what it was
// when the grant was made. All of it is authentic, and it must help nobody.
func TestStatus_PutBackAfterTheCallWasFetched_GivesItToNobody(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	first := f.runnerFor(p)
	first.mustRedeem()
	back := f.reload(p)
	back.Status = p.Status
	f.mustWriteStatus(back)
	second := f.runnerFor(p)
	if status, _ := second.redeem(); status != http.StatusConflict {
		t.Errorf("another Pod: got %d, want 409", status)
	}
	stolen := *first
	stolen.nonce = second.nonce
	if status, _ := stolen.redeem(); status != http.StatusConflict {
		t.Errorf("the first Pod with another nonce: got %d, want 409", status)
	}
	if got, want := outcome(f.step(p)), "Indeterminate/StatusTampered"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if n := len(f.liveJobs()); n != 0 {
		t.Errorf("%d Jobs run on, want none", n)
	}
}

func TestStatus_PutBackAfterTheEnd_GrantsNothing(t *testing.T) {
	for name, back := range map[string]func(granted v1alpha1.ToolProposalStatus) v1alpha1.ToolProposalStatus{
		"to the grant":          func(s v1alpha1.ToolProposalStatus) v1alpha1.ToolProposalStatus { return s },
		"to the very beginning": func(v1alpha1.ToolProposalStatus) v1alpha1.ToolProposalStatus { return v1alpha1.ToolProposalStatus{} },
	} {
		t.Run(name, func(t *testing.T) {
			f := callFixture(t)
			p, _ := f.dispatched("restart", web)
			granted := p.Status
			r := f.runnerFor(p)
			if status := r.deliver(r.mustRedeem(), r.report()); status != http.StatusOK {
				t.Fatalf("got %d, want 200", status)
			}
			if got, want := outcome(f.step(p)), "Succeeded/Succeeded"; got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			f.step(p)
			p = f.reload(p)
			p.Status = back(granted)
			f.mustWriteStatus(p)
			for range 2 {
				if got, want := outcome(f.step(p)), "Indeterminate/StatusTampered"; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			if n := len(f.liveJobs()); n != 0 {
				t.Errorf("%d Jobs exist, want none", n)
			}
		})
	}
}

// A Job that was paused and goes on makes a second Pod, and looks as before.
func TestRedeem_FromAJobThatWasChangedAndPutBack_IsRefusedAsDrift(t *testing.T) {
	for name, change := range map[string]func(*batchv1.Job){
		"paused":         func(j *batchv1.Job) { j.Spec.Suspend = new(true) },
		"more Pods":      func(j *batchv1.Job) { j.Spec.Parallelism = new(int32(2)) },
		"another chance": func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := callFixture(t)
			p, j := f.dispatched("restart", web)
			before := j.DeepCopy()
			change(j)
			f.mustUpdate(j)
			pod := f.startPod(before)
			r := f.runnerIn(p, pod)
			if status, _ := r.redeem(); status != http.StatusConflict {
				t.Errorf("changed: got %d, want 409", status)
			}
			j = f.jobOf(p)
			j.Spec = before.Spec
			f.mustUpdate(j)
			if status, _ := r.redeem(); status != http.StatusConflict {
				t.Errorf("put back: got %d, want 409", status)
			}
			if got, want := outcome(f.reload(p)), "Dispatching/PodSpecDrift"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// newer is an API server of a later version, whose Pods have one field more.
type newer struct{ client.Reader }

func (n newer) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := n.Reader.Get(ctx, key, o, opts...)
	if u, ok := o.(*unstructured.Unstructured); ok && err == nil && u.GetKind() == "Pod" {
		return unstructured.SetNestedField(u.Object, "yes", "spec", "runsSomethingElse")
	}
	return err
}

func TestRedeem_FromAPodWithAFieldThatNobodyKnows_IsRefusedAsDrift(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	r := f.runnerFor(p)
	known := r.endpoint
	r.endpoint = (&execution.Server{
		Live: newer{server.admin}, Client: server.admin, Keys: f.shared.Keys, Contracts: f.shared.Contracts,
		ExpectedJob: f.shared.ExpectedJob, Hosts: []string{executionHost}, Now: f.shared.Now, Epoch: f.shared.Epoch, Log: discard(),
	}).Handler()
	if status, _ := r.redeem(); status != http.StatusConflict {
		t.Errorf("got %d, want 409", status)
	}
	if got, want := outcome(f.reload(p)), "Dispatching/PodSpecDrift"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.endpoint = known
	r.mustRedeem()
}
