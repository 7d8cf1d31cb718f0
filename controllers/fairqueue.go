// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// fairness takes work from requesters in turn, so that somebody with a
// thousand calls does not keep the first call of somebody else waiting.
type fairness struct {
	mu sync.RWMutex
	// requesters says whose call a request is about. The queue knows keys only.
	requesters map[reconcile.Request]string
}

func newFairness() *fairness { return &fairness{requesters: map[reconcile.Request]string{}} }

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
			Name: name, Queue: order,
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
