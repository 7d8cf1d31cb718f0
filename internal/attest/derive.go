// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
)

// deriveDomain keeps keys derived here apart from any other use of the seed.
const deriveDomain = "assent.dev/derive/v1"

// DeriveKey returns a symmetric key that every holder of the signing seed can
// compute again: HKDF-SHA-256 (RFC 5869) with the Ed25519 seed as input key
// material, no salt, and label and parts as info.
//
// Each part is framed with its length, so ("ab","c") and ("a","bc") give
// unrelated keys. A keyring without a signing seed returns [ErrNoSigningKey].
func (k *Keyring) DeriveKey(label string, parts ...string) ([32]byte, error) {
	return k.DeriveKeyWith(k.signingID, label, parts...)
}

// DeriveKeyWith derives like [Keyring.DeriveKey] from the seed of the named
// key. A result is authenticated with a key derived when its ticket was issued;
// after a rotation in between, the previous seed must still be asked.
func (k *Keyring) DeriveKeyWith(keyID, label string, parts ...string) ([32]byte, error) {
	var key [32]byte
	private, ok := k.private[keyID]
	if !ok {
		return key, ErrNoSigningKey
	}
	derived, err := hkdf.Key(sha256.New, private.Seed(), nil, deriveInfo(label, parts), len(key))
	copy(key[:], derived)
	return key, err
}

func deriveInfo(label string, parts []string) string {
	info := appendFramed(nil, deriveDomain)
	info = appendFramed(info, label)
	for _, part := range parts {
		info = appendFramed(info, part)
	}
	return string(info)
}

func appendFramed(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}
