// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// sharedReadTime bounds a read that others wait for as well: it must not end
// with the caller that happened to begin it.
const sharedReadTime = 20 * time.Second

// Shared is a live reader for many callers at once. What calls have in common
// (manifests, types, scopes, policies, namespaces, the store's version) is read
// once for all that ask at the same time. A caller never gets an answer that is
// older than its question: while a read is on its way, whoever asks waits for
// the next one, which begins after all of them asked. Anything else is passed on.
type Shared struct {
	client.Reader

	mu    sync.Mutex
	reads map[string]*queue
}

// queue is one thing to read: the read on its way, and the one after it, which
// some wait for.
type queue struct {
	now, next *read
	waiting   int
}

// read is done when its channel is closed; only then the rest may be looked at.
type read struct {
	done chan struct{}
	got  runtime.Object
	err  error
}

// Share returns a reader that shares what is read live from another.
func Share(live client.Reader) *Shared {
	return &Shared{Reader: live, reads: map[string]*queue{}}
}

// Get implements [client.Reader].
func (s *Shared) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	switch into.(type) {
	case *v1alpha1.ToolManifest, *corev1.Namespace, *networkingv1.NetworkPolicy:
	default:
		return s.Reader.Get(ctx, key, into, opts...)
	}
	if len(opts) > 0 {
		return s.Reader.Get(ctx, key, into, opts...)
	}
	return s.share(ctx, fmt.Sprintf("%T %s", into, key), into, func(ctx context.Context) (runtime.Object, error) {
		fresh, ok := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(into).Elem()))
		if !ok {
			return nil, fmt.Errorf("%T is no object", into)
		}
		return fresh, s.Reader.Get(ctx, key, fresh)
	})
}

// receiptPage is up to how many receipts of a namespace are read for all its
// calls together.
const receiptPage = 16

// receipts reads the receipts of one call. Where people decide on few calls,
// all calls of a namespace share one look at all its receipts.
func (s *Shared) receipts(ctx context.Context, into *v1alpha1.ApprovalReceiptList, namespace, proposal string) (bool, error) {
	var page v1alpha1.ApprovalReceiptList
	err := s.List(ctx, &page, client.InNamespace(namespace), client.Limit(receiptPage))
	if err != nil || page.Continue != "" {
		return false, err
	}
	into.ListMeta = page.ListMeta
	into.Items = slices.DeleteFunc(page.Items, func(r v1alpha1.ApprovalReceipt) bool { return r.Spec.ProposalRef.Name != proposal })
	return true, nil
}

// receiptsOf says that a list is of one call's receipts and nothing else.
func receiptsOf(o *client.ListOptions) (proposal string, ok bool) {
	if o.FieldSelector == nil || o.Namespace == "" || o.LabelSelector != nil || o.Limit != 0 || o.Continue != "" || o.Raw != nil {
		return "", false
	}
	wanted := o.FieldSelector.Requirements()
	if len(wanted) != 1 || wanted[0].Field != IndexReceiptProposal || wanted[0].Operator != selection.Equals {
		return "", false
	}
	return wanted[0].Value, true
}

// List implements [client.Reader].
func (s *Shared) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if list, ok := into.(*v1alpha1.ApprovalReceiptList); ok {
		if proposal, ok := receiptsOf(&o); ok {
			if done, err := s.receipts(ctx, list, o.Namespace, proposal); done || err != nil {
				return err
			}
		}
	}
	name, ok := listName(into, &o)
	if !ok {
		return s.Reader.List(ctx, into, opts...)
	}
	empty := into.DeepCopyObject() // the caller's own may be gone by then
	return s.share(ctx, name, into, func(ctx context.Context) (runtime.Object, error) {
		fresh, ok := empty.DeepCopyObject().(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%T is no list", empty)
		}
		return fresh, s.Reader.List(ctx, fresh, opts...)
	})
}

// listName names a list that is shared. Those of single calls are not.
func listName(into client.ObjectList, o *client.ListOptions) (string, bool) {
	if o.LabelSelector != nil || o.FieldSelector != nil || o.Continue != "" || o.Raw != nil {
		return "", false
	}
	kind := ""
	switch list := into.(type) {
	case *v1alpha1.ArgumentTypeList, *v1alpha1.ToolScopeList:
	case *metav1.PartialObjectMetadataList:
		kind = list.GroupVersionKind().String()
	case *v1alpha1.ToolProposalList:
		// One is enough to learn the version of the store.
		if o.Limit != 1 {
			return "", false
		}
	case *v1alpha1.ApprovalReceiptList:
		if o.Limit != receiptPage {
			return "", false
		}
	default:
		return "", false
	}
	return fmt.Sprintf("%T %s %s %d", into, kind, o.Namespace, o.Limit), true
}

// share waits for the next read of a name and copies what it got.
func (s *Shared) share(ctx context.Context, name string, into runtime.Object, do func(context.Context) (runtime.Object, error)) error {
	r := s.join(ctx, name, do)
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.err != nil {
		return r.err
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(r.got.DeepCopyObject()).Elem())
	return nil
}

// join returns the first read that begins after now.
func (s *Shared) join(ctx context.Context, name string, do func(context.Context) (runtime.Object, error)) *read {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.reads[name]; q != nil {
		if q.next == nil {
			q.next = &read{done: make(chan struct{})}
		}
		q.waiting++
		return q.next
	}
	q := &queue{now: &read{done: make(chan struct{})}}
	s.reads[name] = q
	go s.serve(context.WithoutCancel(ctx), name, q, do)
	return q.now
}

// serve reads until nobody waits any more.
func (s *Shared) serve(ctx context.Context, name string, q *queue, do func(context.Context) (runtime.Object, error)) {
	for q.now != nil {
		func() {
			ctx, cancel := context.WithTimeout(ctx, sharedReadTime)
			defer cancel()
			q.now.got, q.now.err = do(ctx)
			close(q.now.done)
		}()
		s.mu.Lock()
		q.now, q.next, q.waiting = q.next, nil, 0
		if q.now == nil {
			delete(s.reads, name)
		}
		s.mu.Unlock()
	}
}
