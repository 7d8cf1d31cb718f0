// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"sync"
	"sync/atomic"
)

// Store holds the set in force. Reading it never waits, and a reader keeps the
// set that it read. The zero Store is not loaded: what it gives denies.
//
// It answers only if the engine passes the self-test, which is made once,
// before the first answer.
type Store struct {
	// Engine evaluates; nil is Cedar's own.
	Engine Engine

	set    atomic.Pointer[Set]
	tested sync.Once
	flaw   error
}

// SelfTest says what is wrong with the engine. While anything is, every
// decision is a denial.
func (s *Store) SelfTest() error {
	s.tested.Do(func() { s.flaw = SelfTest(s.Engine) })
	return s.flaw
}

// Load returns the set in force, or nil before the first Replace.
func (s *Store) Load() *Set { return s.set.Load() }

// Replace puts another set in force.
func (s *Store) Replace(set *Set) {
	if s.Engine != nil {
		set = set.withEngine(s.Engine)
	}
	s.set.Store(set)
}

// Update replaces the set by what change makes of it, again if another update
// came in between. A store that is not loaded starts from an empty set only if
// the caller says so, by having called Replace.
func (s *Store) Update(change func(*Set) *Set) bool {
	for {
		old := s.set.Load()
		if old == nil {
			return false
		}
		if s.set.CompareAndSwap(old, change(old)) {
			return true
		}
	}
}

// Decide answers from the set in force.
func (s *Store) Decide(call Call, options Options) Decision {
	if err := s.SelfTest(); err != nil {
		return deny(ReasonPolicySelfTestFailed, err.Error())
	}
	return s.Load().Decide(call, options)
}
