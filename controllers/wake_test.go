// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// later remembers what was put into a queue, and for when.
type later struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added map[string]time.Duration
}

// AddAfter implements the queue.
func (l *later) AddAfter(r reconcile.Request, after time.Duration) { l.added[r.String()] = after }

// listed is an informer's store of calls.
type listed struct {
	client.Reader
	calls []v1alpha1.ToolProposal
	err   error
}

// List implements [client.Reader].
func (l listed) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	list, ok := into.(*v1alpha1.ToolProposalList)
	if !ok {
		return errors.New("another kind")
	}
	for i := range l.calls {
		if o.Namespace == "" || o.Namespace == l.calls[i].Namespace {
			list.Items = append(list.Items, l.calls[i])
		}
	}
	return l.err
}

func waitingCalls() listed {
	call := func(namespace, name string, phase v1alpha1.Phase) v1alpha1.ToolProposal {
		return v1alpha1.ToolProposal{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: v1alpha1.ToolProposalStatus{Phase: phase}}
	}
	granted := call("a", "granted", v1alpha1.PhaseDispatching)
	granted.Status.Dispatch = &v1alpha1.Dispatch{}
	return listed{calls: []v1alpha1.ToolProposal{
		call("a", "new", ""), call("a", "ended", v1alpha1.PhaseDenied), granted, call("a", "asked", v1alpha1.PhaseAwaitingApproval),
		call("b", "pending", v1alpha1.PhasePending),
	}}
}

func TestWake_LooksAgainAtWaitingCallsOneAfterTheOther(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string
		want      map[string]time.Duration
	}{
		"a namespace":         {"a", map[string]time.Duration{"a/new": 250 * time.Millisecond, "a/asked": 260 * time.Millisecond}},
		"a namespace without": {"c", map[string]time.Duration{}},
		"the cluster": {"", map[string]time.Duration{
			"a/new": 250 * time.Millisecond, "a/asked": 260 * time.Millisecond, "b/pending": 270 * time.Millisecond,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			queue, w := &later{added: map[string]time.Duration{}}, &Wake{}
			if err := w.Source().Start(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			w.waiting(t.Context(), waitingCalls(), tc.namespace)
			if diff := cmp.Diff(tc.want, queue.added); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

// Nothing rests on it: without a queue, or without the list, nobody is woken.
func TestWake_ThatCannotWakesNobody(t *testing.T) {
	var none *Wake
	none.waiting(t.Context(), waitingCalls(), "")
	(&Wake{}).waiting(t.Context(), waitingCalls(), "")
	queue, w := &later{added: map[string]time.Duration{}}, &Wake{}
	if err := w.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	calls := waitingCalls()
	calls.err = errors.New("no list")
	w.waiting(t.Context(), calls, "")
	if len(queue.added) != 0 {
		t.Errorf("woken: %v", queue.added)
	}
}
