// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/observe"
)

// slow is an API server whose reads wait to be let on. Each answer says by its
// resource version the how many-th read it is.
type slow struct {
	began chan string
	let   chan error
	n     atomic.Int64
}

func (s *slow) answer(what string, set func(version string)) error {
	n := s.n.Add(1)
	s.began <- what
	if err := <-s.let; err != nil {
		return err
	}
	set(fmt.Sprint(n))
	return nil
}

func (s *slow) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return s.answer("get "+key.String(), o.SetResourceVersion)
}

func (s *slow) List(_ context.Context, l client.ObjectList, _ ...client.ListOption) error {
	return s.answer(fmt.Sprintf("list %T", l), l.SetResourceVersion)
}

func newSlow() *slow { return &slow{began: make(chan string), let: make(chan error)} }

// ask lists types in the background and tells the version it got.
func ask(ctx context.Context, r client.Reader) <-chan string {
	got := make(chan string, 1)
	go func() {
		var list v1alpha1.ArgumentTypeList
		if err := r.List(ctx, &list, client.InNamespace("a")); err != nil {
			got <- err.Error()
			return
		}
		got <- list.ResourceVersion
	}()
	return got
}

func TestShared_NobodyGetsAnAnswerOlderThanTheQuestion(t *testing.T) {
	server := newSlow()
	reader := observe.Share(server)
	first := ask(t.Context(), reader)
	<-server.began
	// The first read has begun: it may have seen what was before these asked.
	second, third := ask(t.Context(), reader), ask(t.Context(), reader)
	observe.AwaitWaiting(reader, 2)
	server.let <- nil
	if got := <-first; got != "1" {
		t.Errorf("the first got read %s, want 1", got)
	}
	<-server.began
	server.let <- nil
	for _, c := range []<-chan string{second, third} {
		if got := <-c; got != "2" {
			t.Errorf("a later one got read %s, want 2: its own, shared", got)
		}
	}
	fourth := ask(t.Context(), reader)
	<-server.began
	server.let <- nil
	if got := <-fourth; got != "3" {
		t.Errorf("after all had ended: got read %s, want a new one", got)
	}
}

func TestShared_AnErrorIsThatOfAllWhoWaitedForTheRead(t *testing.T) {
	server := newSlow()
	reader := observe.Share(server)
	first := ask(t.Context(), reader)
	<-server.began
	server.let <- errors.New("not now")
	if got := <-first; got != "not now" {
		t.Errorf("got %s", got)
	}
}

func TestShared_WhoGivesUpTakesTheReadFromNobody(t *testing.T) {
	server := newSlow()
	reader := observe.Share(server)
	ctx, cancel := context.WithCancel(t.Context())
	first := ask(ctx, reader)
	<-server.began
	second := ask(t.Context(), reader)
	observe.AwaitWaiting(reader, 1)
	cancel()
	if got := <-first; got != context.Canceled.Error() {
		t.Errorf("the first got %s", got)
	}
	server.let <- nil
	<-server.began
	server.let <- nil
	if got := <-second; got != "2" {
		t.Errorf("the second got %s, want 2", got)
	}
}

func TestShared_KeepsDifferentThingsApart(t *testing.T) {
	meta := func(kind string) *metav1.PartialObjectMetadataList {
		l := &metav1.PartialObjectMetadataList{}
		l.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
		return l
	}
	reads := []func(context.Context, client.Reader) error{
		func(ctx context.Context, r client.Reader) error {
			return r.Get(ctx, client.ObjectKey{Namespace: "a", Name: "x"}, &v1alpha1.ToolManifest{})
		},
		func(ctx context.Context, r client.Reader) error {
			return r.Get(ctx, client.ObjectKey{Namespace: "b", Name: "x"}, &v1alpha1.ToolManifest{})
		},
		func(ctx context.Context, r client.Reader) error {
			return r.Get(ctx, client.ObjectKey{Name: "x"}, &corev1.Namespace{})
		},
		func(ctx context.Context, r client.Reader) error {
			return r.List(ctx, &v1alpha1.ToolScopeList{}, client.InNamespace("a"))
		},
		func(ctx context.Context, r client.Reader) error {
			return r.List(ctx, &v1alpha1.ToolScopeList{}, client.InNamespace("b"))
		},
		func(ctx context.Context, r client.Reader) error {
			return r.List(ctx, meta("ToolPolicyList"), client.InNamespace("a"))
		},
		func(ctx context.Context, r client.Reader) error {
			return r.List(ctx, meta("ClusterToolPolicyList"), client.InNamespace("a"))
		},
		// What is a single call's is never shared.
		func(ctx context.Context, r client.Reader) error {
			return r.Get(ctx, client.ObjectKey{Namespace: "a", Name: "p"}, &v1alpha1.ToolProposal{})
		},
		func(ctx context.Context, r client.Reader) error {
			return r.Get(ctx, client.ObjectKey{Namespace: "a", Name: "p"}, &v1alpha1.ToolProposal{})
		},
		func(ctx context.Context, r client.Reader) error {
			return r.List(ctx, &v1alpha1.ToolProposalList{}, client.InNamespace("a"))
		},
		func(ctx context.Context, r client.Reader) error {
			return r.List(ctx, &v1alpha1.ApprovalReceiptList{}, client.InNamespace("a"), client.MatchingFields{observe.IndexReceiptProposal: "p"})
		},
	}
	server := newSlow()
	reader := observe.Share(server)
	ended := make(chan error, len(reads))
	for _, do := range reads {
		go func() { ended <- do(t.Context(), reader) }()
		// One begins after the other, and none waits for another.
		<-server.began
	}
	for range reads {
		server.let <- nil
	}
	for range reads {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
