// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
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

// timed is a clock that tells for how long its timers are set. The queue sets
// one for the first of what it keeps for later.
type timed struct {
	*clocktesting.FakeClock
	set chan time.Duration
}

func (c *timed) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.set <- d
	return timer
}

func TestFairQueue_KeepsNothingForLaterOfACallThatIsGone(t *testing.T) {
	f := newFairness()
	c := &timed{clocktesting.NewFakeClock(time.Unix(0, 0)), make(chan time.Duration, 10)}
	f.clock = c
	q := f.newQueue("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	wantTimer := func(want time.Duration) {
		t.Helper()
		select {
		case got := <-c.set:
			if got != want {
				t.Fatalf("the queue waits for %s, want %s", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("the queue does not wait for %s", want)
		}
	}
	q.AddAfter(request("gone"), time.Hour)
	wantTimer(time.Hour)
	f.letGo().Delete(t.Context(), event.DeleteEvent{Object: callOf("bob", "gone")}, q)
	wantTimer(goneAfter)
	c.Step(goneAfter)
	r, _ := q.Get()
	q.Done(r)
	if r != request("gone") {
		t.Errorf("%s is looked for", r)
	}
	q.AddAfter(request("other"), 2*time.Hour)
	wantTimer(2 * time.Hour)
}
