// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// Past remembers of each call that a runner fetched it, and that it ended.
// Neither is ever undone, so that a status which says otherwise was put back by
// somebody else: whoever may write it could have a call fetched a second time.
// No seal could show that, for the status that was put back is authentic.
//
// It is memory of one process, filled from what its informers and its own
// writes show, and kept for as long as the call exists. What was put back while
// no replica was running, or before its informer saw the state, it cannot know;
// then the Job, which makes one Pod once, still is in the way.
type Past struct {
	mu    sync.Mutex
	calls map[types.UID]past
}

type past struct {
	// pod and nonce are those of the runner that fetched the call.
	pod   types.UID
	nonce string
	ended bool
}

// Note remembers what a stored proposal says.
func (m *Past) Note(p *v1alpha1.ToolProposal) {
	if m == nil || p.Status.RedeemedBy == nil && !p.Status.Phase.Terminal() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls == nil {
		m.calls = map[types.UID]past{}
	}
	known := m.calls[p.UID]
	if by := p.Status.RedeemedBy; by != nil && known.pod == "" {
		known.pod, known.nonce = by.PodUID, by.NonceDigest
	}
	known.ended = known.ended || p.Status.Phase.Terminal()
	m.calls[p.UID] = known
}

// Undone says that a proposal has forgotten what it said before.
func (m *Past) Undone(p *v1alpha1.ToolProposal) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.calls[p.UID]
	if !ok {
		return false
	}
	by := p.Status.RedeemedBy
	return known.ended && !p.Status.Phase.Terminal() ||
		known.pod != "" && (by == nil || by.PodUID != known.pod || by.NonceDigest != known.nonce)
}

// Redeemed says that a runner fetched the call, whatever its status says now.
func (m *Past) Redeemed(call types.UID) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[call].pod != ""
}

// Forget drops a call that does not exist any more.
func (m *Past) Forget(call types.UID) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.calls, call)
}

// OnAdd implements cache.ResourceEventHandler.
func (m *Past) OnAdd(o any, _ bool) { m.see(o) }

// OnUpdate implements cache.ResourceEventHandler.
func (m *Past) OnUpdate(_, o any) { m.see(o) }

// OnDelete implements cache.ResourceEventHandler.
func (m *Past) OnDelete(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if p, ok := o.(*v1alpha1.ToolProposal); ok {
		m.Forget(p.UID)
	}
}

func (m *Past) see(o any) {
	if p, ok := o.(*v1alpha1.ToolProposal); ok {
		m.Note(p)
	}
}
