// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// Events tells people about transitions. All Events of the project go through
// it, so that no text of a user is ever taken for a format.
type Events struct{ Recorder record.EventRecorder }

// remembered is how many Events are kept to join repetitions, of which there
// are hardly any: a transition happens once. The recorder of the newer Events
// API keeps all of the last minutes instead, which under load is more memory
// than everything else that the operator holds.
const remembered = 128

// NewEvents returns Events that are written in the background until the context
// ends. At most a thousand wait to be written; what comes then is dropped.
func NewEvents(ctx context.Context, c client.Client) *Events {
	return eventsTo(ctx, c.Scheme(), &sink{ctx: ctx, to: c})
}

func eventsTo(ctx context.Context, scheme *runtime.Scheme, to record.EventSink) *Events {
	b := record.NewBroadcaster(record.WithContext(ctx), record.WithCorrelatorOptions(record.CorrelatorOptions{LRUCacheSize: remembered}))
	b.StartRecordingToSink(to)
	return &Events{Recorder: b.NewRecorder(scheme, corev1.EventSource{Component: "assent"})}
}

// sink writes Events by the operator's own client. Those of client-go could
// create any kind, Jobs too.
type sink struct {
	ctx context.Context //nolint:containedctx // the interface hands none on
	to  client.Client
}

// Create implements [record.EventSink].
func (s *sink) Create(e *corev1.Event) (*corev1.Event, error) { return e, s.to.Create(s.ctx, e) }

// Update implements [record.EventSink].
func (s *sink) Update(e *corev1.Event) (*corev1.Event, error) { return e, s.to.Update(s.ctx, e) }

// Patch implements [record.EventSink]. The Event is complete, and has the
// resourceVersion that was seen last.
func (s *sink) Patch(e *corev1.Event, _ []byte) (*corev1.Event, error) { return s.Update(e) }

// Transition emits one Event when a call ended or begins to wait for people:
// after the status is stored, and never for what did not change.
func (e *Events) Transition(old, next *v1alpha1.ToolProposal) {
	phase := next.Status.Phase
	if e == nil || old.Status.Phase == phase {
		return
	}
	switch phase {
	case v1alpha1.PhaseAwaitingApproval, v1alpha1.PhaseSucceeded:
		e.emit(next, corev1.EventTypeNormal, next.Status.Reason, next.Status.Message)
	case v1alpha1.PhaseFailed, v1alpha1.PhaseDenied, v1alpha1.PhaseExpired, v1alpha1.PhaseCancelled, v1alpha1.PhaseInvalid, v1alpha1.PhaseIndeterminate:
		e.emit(next, corev1.EventTypeWarning, next.Status.Reason, next.Status.Message)
	case v1alpha1.PhasePending, v1alpha1.PhaseDispatching, v1alpha1.PhaseRunning:
	}
}

// BatchEnded emits one Event when the batch of a call has ended.
func (e *Events) BatchEnded(p *v1alpha1.ToolProposal) {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionBatchCompleted)
	if e == nil || c == nil {
		return
	}
	kind := corev1.EventTypeNormal
	if c.Status != metav1.ConditionTrue {
		kind = corev1.EventTypeWarning
	}
	e.emit(p, kind, c.Reason, c.Message)
}

// maxNote is what the API server accepts of an Event by its newer API. A
// decision can name more policies than fit; the status has them.
const maxNote = 1024

func (e *Events) emit(o runtime.Object, kind, reason, message string) {
	e.Recorder.Event(o, kind, reason, cut(message, maxNote))
}
