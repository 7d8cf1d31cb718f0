// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// Policies are often changed many at a time, and a cluster policy concerns all
// calls that wait anywhere.
const (
	// wakeSettle is how long after a change the first call is looked at again.
	// What changes meanwhile wakes nobody a second time.
	wakeSettle = 250 * time.Millisecond
	// wakeSpacing lies between two calls. Looking at one costs requests to the
	// API server, of which the calls that are granted need some, too.
	wakeSpacing = 10 * time.Millisecond
)

// Wake has calls that wait looked at again when policies changed: those that
// people are still being asked about may be denied by now, or permitted without
// them. Nothing rests on it but how soon people see that. The zero Wake and nil
// wake nobody.
type Wake struct {
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]]
}

// Source ties the queue of the controller of calls to what wakes it.
func (w *Wake) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.queue.Store(&queue)
		return nil
	})
}

// waiting wakes the calls of a namespace, or with an empty name of all, that
// were neither granted nor ended. A call that is waiting to be looked at
// already keeps its place.
func (w *Wake) waiting(ctx context.Context, from client.Reader, namespace string) {
	if w == nil || w.queue.Load() == nil {
		return
	}
	var list v1alpha1.ToolProposalList
	// Nothing is changed in the objects, of which there may be many.
	if err := from.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		// The informer's own store does not fail; a missed wake-up costs time,
		// not correctness, since the commit point looks at everything again.
		ctrl.LoggerFrom(ctx).Error(err, "listing calls to wake")
		return
	}
	queue, after := *w.queue.Load(), wakeSettle
	for i := range list.Items {
		p := &list.Items[i]
		if p.Status.Phase.Terminal() || p.Status.Dispatch != nil {
			continue
		}
		queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)}, after)
		after += wakeSpacing
	}
}
