// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/assent-dev/assent/controllers"
)

// wakes is a queue that remembers what was put into it.
type wakes struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []string
}

// AddAfter implements the queue.
func (w *wakes) AddAfter(r reconcile.Request, _ time.Duration) { w.added = append(w.added, r.Name) }

// names are the calls that were woken since the last time.
func (w *wakes) names() []string {
	got := slices.Clone(w.added)
	w.added = nil
	return got
}

// woken listens to what changes of policies wake.
func (f *fixture) woken() *wakes {
	f.t.Helper()
	queue := &wakes{}
	f.shared.Wake = &controllers.Wake{}
	if err := f.shared.Wake.Source().Start(f.ctx, queue); err != nil {
		f.t.Fatal(err)
	}
	return queue
}
