// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Keyring holds one signing key, or none, and any number of public keys for
// verification. Its keys never change. It is safe for concurrent use.
type Keyring struct {
	signingID string
	// private also holds the keys of earlier seeds: they derive, they do not
	// sign.
	private map[string]ed25519.PrivateKey
	public  map[string]ed25519.PublicKey
	// checked are envelopes that these keys signed.
	checked memory
}

// NewKeyring returns a keyring that signs with the key of signingSeed
// (32 bytes, RFC 8032) and verifies with that key and with extraPublic.
func NewKeyring(signingSeed []byte, extraPublic ...ed25519.PublicKey) (*Keyring, error) {
	k, err := NewVerifier(extraPublic...)
	if err != nil {
		return nil, err
	}
	if k.signingID, err = k.addSeed(signingSeed); err != nil {
		return nil, err
	}
	return k, nil
}

// NewVerifier returns a keyring that can only verify.
func NewVerifier(public ...ed25519.PublicKey) (*Keyring, error) {
	k := &Keyring{
		private: map[string]ed25519.PrivateKey{},
		public:  map[string]ed25519.PublicKey{},
	}
	for i, pub := range public {
		if len(pub) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("public key %d has %d bytes; an Ed25519 public key has %d", i, len(pub), ed25519.PublicKeySize)
		}
		k.public[KeyID(pub)] = slices.Clone(pub)
	}
	return k, nil
}

// WithPrevious returns a copy of the keyring that also verifies with, and
// derives keys from, the seeds of earlier signing keys. It lets calls that
// were in flight during a rotation finish.
func (k *Keyring) WithPrevious(seeds ...[]byte) (*Keyring, error) {
	next := &Keyring{
		signingID: k.signingID,
		private:   maps.Clone(k.private),
		public:    maps.Clone(k.public),
	}
	for _, seed := range seeds {
		if _, err := next.addSeed(seed); err != nil {
			return nil, err
		}
	}
	return next, nil
}

func (k *Keyring) addSeed(seed []byte) (string, error) {
	if len(seed) != ed25519.SeedSize {
		return "", fmt.Errorf("signing seed has %d bytes; an Ed25519 seed has %d", len(seed), ed25519.SeedSize)
	}
	private := ed25519.NewKeyFromSeed(seed)
	public := private.Public().(ed25519.PublicKey)
	id := KeyID(public)
	k.private[id] = private
	k.public[id] = public
	return id, nil
}

// GenerateSeed reads a new Ed25519 seed from random, which must be a
// cryptographic source such as crypto/rand.Reader.
func GenerateSeed(random io.Reader) ([]byte, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, fmt.Errorf("reading randomness for a signing seed: %w", err)
	}
	return seed, nil
}

// KeyID names a public key: the lower-case hex SHA-256 of its
// SubjectPublicKeyInfo (RFC 8410), which is what
// "openssl pkey -pubin -outform DER | sha256sum" prints. It returns "" for
// bytes that are no Ed25519 public key.
func KeyID(public ed25519.PublicKey) string {
	if len(public) != ed25519.PublicKeySize {
		return ""
	}
	// It fails for foreign key types only; the size was checked.
	der, _ := x509.MarshalPKIXPublicKey(public)
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// SigningKeyID returns the ID of the key that signs, or "" when the keyring
// can only verify.
func (k *Keyring) SigningKeyID() string { return k.signingID }

// PublicKeys returns copies of every key that verifies: the signing key first,
// the others in order of their IDs.
func (k *Keyring) PublicKeys() []ed25519.PublicKey {
	ids := make([]string, 0, len(k.public))
	for id := range k.public {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		if a == k.signingID {
			return -1
		}
		if b == k.signingID {
			return 1
		}
		return cmp.Compare(a, b)
	})
	keys := make([]ed25519.PublicKey, 0, len(ids))
	for _, id := range ids {
		keys = append(keys, slices.Clone(k.public[id]))
	}
	return keys
}
