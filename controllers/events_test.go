// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// written takes the place of the API server.
type written chan *corev1.Event

func (w written) Create(e *corev1.Event) (*corev1.Event, error)          { w <- e; return e, nil }
func (w written) Update(e *corev1.Event) (*corev1.Event, error)          { w <- e; return e, nil }
func (w written) Patch(e *corev1.Event, _ []byte) (*corev1.Event, error) { w <- e; return e, nil }

func failed(i int) (before, after *v1alpha1.ToolProposal) {
	before = &v1alpha1.ToolProposal{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: fmt.Sprintf("call-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i))}}
	after = before.DeepCopy()
	after.Status.Phase, after.Status.Reason = v1alpha1.PhaseFailed, v1alpha1.ReasonToolFailed
	after.Status.Message = fmt.Sprintf("%d%% of it failed: %s", i, strings.Repeat("x", 2*maxNote))
	return before, after
}

func TestEvents_SayWhatTheStatusSaysOfWhichCall(t *testing.T) {
	scheme := kruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	sink := make(written, 1)
	eventsTo(t.Context(), scheme, sink).Transition(failed(7))
	got := <-sink
	want := &corev1.Event{
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "assent.dev/v1alpha1", Kind: "ToolProposal", Namespace: "agents", Name: "call-7", UID: "uid-7",
		},
		Type: corev1.EventTypeWarning, Reason: "ToolFailed", Message: got.Message, Count: 1,
		Source: corev1.EventSource{Component: "assent"}, ReportingController: "assent",
		ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: got.Name}, FirstTimestamp: got.FirstTimestamp, LastTimestamp: got.LastTimestamp,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(got.Message, "7% of it failed: xxx") || len(got.Message) > maxNote {
		t.Errorf("a message of %d bytes: %.20s", len(got.Message), got.Message)
	}
}

// An Event of one that came before is 2 KiB and more where it is kept.
func TestEvents_KeepNoMoreThanAFewOfThemInMemory(t *testing.T) {
	const many, allowed = 20000, 4 << 20
	scheme := kruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	sink := make(written)
	events := eventsTo(t.Context(), scheme, sink)
	emit := func(i int) {
		events.Transition(failed(i))
		<-sink
	}
	emit(0)
	before := heap()
	for i := range many {
		emit(i + 1)
	}
	if grown := int64(heap()) - int64(before); grown > allowed {
		t.Errorf("%d Events are %d bytes, want at most %d", many, grown, allowed)
	}
	runtime.KeepAlive(events)
}

// heap is what a collection leaves, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
