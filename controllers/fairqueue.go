// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// fairness takes work from requesters in turn, so that somebody with a
// thousand calls does not keep the first call of somebody else waiting.
type fairness struct {
	clock clock.WithTicker
	mu    sync.RWMutex
	// requesters says whose call a request is about. The queue knows keys only.
	requesters map[reconcile.Request]string
}

func newFairness() *fairness {
	return &fairness{clock: clock.RealClock{}, requesters: map[reconcile.Request]string{}}
}

// goneAfter is how long after its deletion the queue looks for a call the last
// time. Whoever works on it meanwhile has ended by then, or asks for a later time,
// which does not count beside this one.
const goneAfter = time.Second

// observe remembers whose call an object is. It lets every event pass.
func (f *fairness) observe() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { f.remember(e.Object); return true },
		UpdateFunc: func(event.UpdateEvent) bool { return true },
		DeleteFunc: func(e event.DeleteEvent) bool { f.forget(e.Object); return true },
	}
}

func (f *fairness) remember(o client.Object) {
	p, ok := o.(*v1alpha1.ToolProposal)
	if !ok || p.Spec.Requester == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requesters[reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)}] = p.Spec.Requester.Username
}

func (f *fairness) forget(o client.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.requesters, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
}

// letGo empties the queue of a call that is gone. Every call has a time at which
// it is looked at again, which may be hours away, and until which the queue would
// keep it. An earlier time takes the place of that one; by then the call is looked
// for, and not found.
func (f *fairness) letGo() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}, goneAfter)
	}}
}

// classOf is the requester, or the namespace where that is not known.
func (f *fairness) classOf(r reconcile.Request) string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if name, ok := f.requesters[r]; ok {
		return "requester/" + name
	}
	return "namespace/" + r.Namespace
}

// newQueue is a work queue that serves requesters in turn.
func (f *fairness) newQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	order := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{
		Name: name, Queue: &turns{classOf: f.classOf, waiting: map[string][]reconcile.Request{}},
	})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
		Name: name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
			Name: name, Queue: order, Clock: f.clock,
		}),
	})
}

// turns is first come, first served within a class, and one of each class in
// turn. The work queue around it serialises all calls.
type turns struct {
	classOf func(reconcile.Request) string
	waiting map[string][]reconcile.Request
	// order holds each class with something waiting once; the first is next.
	order []string
	total int
}

// Touch has nothing to do: an item keeps its place.
func (t *turns) Touch(reconcile.Request) {}

// Push adds an item to its class.
func (t *turns) Push(r reconcile.Request) {
	class := t.classOf(r)
	if len(t.waiting[class]) == 0 {
		t.order = append(t.order, class)
	}
	t.waiting[class] = append(t.waiting[class], r)
	t.total++
}

// Len is the number of items of all classes.
func (t *turns) Len() int { return t.total }

// Pop takes the first item of the class whose turn it is.
func (t *turns) Pop() reconcile.Request {
	class := t.order[0]
	t.order = t.order[1:]
	items := t.waiting[class]
	if len(items) == 1 {
		delete(t.waiting, class)
	} else {
		t.waiting[class] = items[1:]
		t.order = append(t.order, class)
	}
	t.total--
	return items[0]
}
