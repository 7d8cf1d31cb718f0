// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// The operator loads the policies at its start while the first of their events
// arrive. The slower of the two must not put back what the other replaced, so
// that nobody reads while the other has not put in force what it read.
func TestPolicies_AreNeverReadTwiceAtOnce(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.create(f.newPolicy("allow", permitAll))
	held, proceed := make(chan struct{}), make(chan struct{})
	var reading, overlapped atomic.Bool
	f.shared.Client = interceptor.NewClient(server.admin, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if reading.Load() {
				overlapped.Store(true)
			}
			err := c.List(ctx, list, opts...)
			o := client.ListOptions{}
			if _, ok := list.(*v1alpha1.ToolPolicyList); ok && o.ApplyOptions(opts).Namespace == f.namespace && reading.CompareAndSwap(false, true) {
				close(held)
				<-proceed
				reading.Store(false)
			}
			return err
		},
	})
	loaded, reconciled := make(chan error, 1), make(chan error, 1)
	go func() { loaded <- f.policies.Load(f.ctx) }()
	<-held
	f.create(f.newPolicy("late", `forbid (principal, action, resource);`))
	go func() {
		_, err := f.policies.Reconcile(f.ctx, requestFor(f.namespace))
		reconciled <- err
	}()
	// Reads of another kind give the reconciliation time to start.
	for range 50 {
		if _, err := f.policies.Behind(f.ctx, f.namespace); err != nil {
			t.Fatal(err)
		}
	}
	f.shared.Client = server.admin
	close(proceed)
	for _, ended := range []chan error{loaded, reconciled} {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if overlapped.Load() {
		t.Error("the policies were read while what had been read was not in force")
	}
	f.wantCall("restart", "Denied/Forbidden")
}

// Load comes late where events have already brought everything in force.
func TestPolicies_InForce_AreNotLoadedAgain(t *testing.T) {
	f := newFixture(t)
	f.policy("allow", permitAll)
	before := f.shared.Policies.Load()
	if err := f.policies.Load(f.ctx); err != nil {
		t.Fatal(err)
	}
	if f.shared.Policies.Load() != before {
		t.Error("the policies were loaded a second time")
	}
}
