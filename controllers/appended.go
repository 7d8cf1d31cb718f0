// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// appended remembers the records of open calls that are in the log and not in
// a status yet. A step that is tried again, because another write or record of
// it failed, then does not repeat them. It is a help to readers of the log and
// no more: after a restart a record may be repeated, under the same ID.
type appended struct {
	mu    sync.Mutex
	calls map[types.UID]map[string]int64
}

func (a *appended) index(call types.UID, id string) (int64, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	index, ok := a.calls[call][id]
	return index, ok
}

// any says that records about the call were made.
func (a *appended) any(call types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.calls[call]) > 0
}

func (a *appended) add(call types.UID, id string, index int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == nil {
		a.calls = map[types.UID]map[string]int64{}
	}
	if a.calls[call] == nil {
		a.calls[call] = map[string]int64{}
	}
	a.calls[call][id] = index
}

// forget drops what a stored status says now.
func (a *appended) forget(p *v1alpha1.ToolProposal) {
	if !p.Status.Phase.Terminal() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.calls, p.UID)
}
