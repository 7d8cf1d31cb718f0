// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"encoding/hex"
	"strconv"
)

// RememberedEnvelopes is how many envelopes one generation of a memory holds.
const RememberedEnvelopes = rememberedEnvelopes

// MACForTest authenticates any text, so that tests can reach the checks behind
// the MAC.
func MACForTest(key [32]byte, text string) SignedResult {
	return SignedResult{Result: text, MAC: hex.EncodeToString(resultMAC(key, text))}
}

// Remembers says that the keyring need not check this envelope's signature.
func (k *Keyring) Remembers(kind PayloadKind, text string) bool {
	return k.checked.knows(digestOf(kind, text))
}

// Remember lets the keyring remember some text.
func (k *Keyring) Remember(i int) {
	k.checked.add(digestOf(KindProposalSeal, strconv.Itoa(i)))
}

// RememberedCount is how many envelopes the keyring remembers.
func (k *Keyring) RememberedCount() int {
	return len(k.checked.young) + len(k.checked.old)
}
