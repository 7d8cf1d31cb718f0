// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"golang.org/x/mod/sumdb/note"
)

// noteAlgEd25519 is the signature type of Ed25519 in signed notes
// (C2SP signed-note).
const noteAlgEd25519 = 1

// NoteSigner returns a signer of checkpoints for the audit log of this origin,
// with the signing key. A checkpoint and a DSSE statement cannot stand for
// each other: what DSSE signs begins with "DSSEv1 ", and an origin contains no
// space.
func (k *Keyring) NoteSigner(origin string) (note.Signer, error) {
	private, ok := k.private[k.signingID]
	if !ok {
		return nil, ErrNoSigningKey
	}
	public := private.Public().(ed25519.PublicKey)
	signer, err := note.NewSigner(noteSignerKey(origin, public, private.Seed()))
	if err != nil {
		return nil, fmt.Errorf("origin of the audit log: %w", err)
	}
	return signer, nil
}

// NoteVerifiers returns a verifier of this origin's checkpoints for every
// public key of the keyring, the signing key's first.
func (k *Keyring) NoteVerifiers(origin string) ([]note.Verifier, error) {
	keys := k.PublicKeys()
	verifiers := make([]note.Verifier, 0, len(keys))
	for _, public := range keys {
		key, err := note.NewEd25519VerifierKey(origin, public)
		if err == nil {
			var v note.Verifier
			v, err = note.NewVerifier(key)
			verifiers = append(verifiers, v)
		}
		if err != nil {
			return nil, fmt.Errorf("origin of the audit log: %w", err)
		}
	}
	return verifiers, nil
}

// noteSignerKey renders a private key as a signed note key: origin, key hash,
// algorithm and seed. The hash is that of the public key.
func noteSignerKey(origin string, public ed25519.PublicKey, seed []byte) string {
	h := sha256.New()
	h.Write([]byte(origin + "\n"))
	h.Write(append([]byte{noteAlgEd25519}, public...))
	hash := binary.BigEndian.Uint32(h.Sum(nil))
	encoded := base64.StdEncoding.EncodeToString(append([]byte{noteAlgEd25519}, seed...))
	return fmt.Sprintf("PRIVATE+KEY+%s+%08x+%s", origin, hash, encoded)
}
