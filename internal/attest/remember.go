// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"crypto/sha256"
	"sync"
)

// rememberedEnvelopes is how many envelopes each of the two generations of a
// memory holds: together about 400 KiB.
const rememberedEnvelopes = 2048

// memory knows envelopes whose signature a keyring made or found good. A call
// is looked at several times by the same process, and the signature is most of
// the work of opening its seal; everything else about an envelope is checked
// each time. What it knows is the SHA-256 of the whole text, key ID and
// signature included, so that no other text can pass for one that was checked.
//
// It forgets by generations: a full one becomes the old one, and the one before
// is dropped. An envelope that is looked at again moves to the young one.
type memory struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]struct{}
}

func digestOf(kind PayloadKind, text string) (sum [sha256.Size]byte) {
	h := sha256.New()
	// The kind has no line break, so that no two pairs are hashed alike.
	h.Write([]byte(kind + "\n"))
	h.Write([]byte(text))
	h.Sum(sum[:0])
	return sum
}

// knows says that the envelope's signature was found good before.
func (m *memory) knows(sum [sha256.Size]byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.young[sum]; ok {
		return true
	}
	_, ok := m.old[sum]
	if ok {
		m.keep(sum)
	}
	return ok
}

func (m *memory) add(sum [sha256.Size]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(sum)
}

func (m *memory) keep(sum [sha256.Size]byte) {
	if m.young == nil || len(m.young) >= rememberedEnvelopes {
		m.young, m.old = make(map[[sha256.Size]byte]struct{}), m.young
	}
	m.young[sum] = struct{}{}
}
