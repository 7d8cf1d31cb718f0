// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/assent-dev/assent/api/v1alpha1"
)

func callOf(requester, name string) *v1alpha1.ToolProposal {
	return &v1alpha1.ToolProposal{
		ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: name},
		Spec:       v1alpha1.ToolProposalSpec{Requester: &v1alpha1.Identity{Username: requester}},
	}
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "agents", Name: name}}
}

func TestFairQueue_ServesRequestersInTurn(t *testing.T) {
	f := newFairness()
	q := f.newQueue("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	add := func(requester, name string) {
		if !f.observe().Create(event.CreateEvent{Object: callOf(requester, name)}) {
			t.Fatal("an event was dropped")
		}
		q.Add(request(name))
	}
	for i := range 1000 {
		add("flood", fmt.Sprintf("f%d", i))
	}
	add("bob", "b0")
	add("bob", "b1")
	add("carol", "c0")
	var got []string
	for range 7 {
		r, _ := q.Get()
		q.Done(r)
		got = append(got, r.Name)
	}
	if diff := cmp.Diff([]string{"f0", "b0", "c0", "f1", "b1", "f2", "f3"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if n := q.Len(); n != 996 {
		t.Errorf("%d are left, want 996", n)
	}
}

func TestFairQueue_ServesACallOnceHoweverOftenItIsAdded(t *testing.T) {
	f := newFairness()
	q := f.newQueue("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	for range 3 {
		q.Add(request("a"))
	}
	if n := q.Len(); n != 1 {
		t.Errorf("%d wait, want 1", n)
	}
}

func TestFairness_ForgetsCallsThatAreGone(t *testing.T) {
	f := newFairness()
	p := callOf("bob", "b")
	f.observe().Create(event.CreateEvent{Object: p})
	if got := f.classOf(request("b")); got != "requester/bob" {
		t.Errorf("class %s", got)
	}
	f.observe().Delete(event.DeleteEvent{Object: p})
	if len(f.requesters) != 0 || f.classOf(request("b")) != "namespace/agents" {
		t.Errorf("a call that is gone is remembered: %v", f.requesters)
	}
}
