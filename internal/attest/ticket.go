// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/assent-dev/assent/snapshot"
)

// ErrFingerprintMismatch is returned when the call in a ticket is not the call
// that its fingerprint names.
var ErrFingerprintMismatch = errors.New("the call in the ticket does not have the ticket's fingerprint")

// ObjectRef names one object of a namespace, and by its UID one life of it.
type ObjectRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Call is the material that a fingerprint is computed from, complete.
type Call struct {
	// Agent and Tool enter the proposal hash together with ArgsCanonicalJSON.
	Agent             string      `json:"agent"`
	Tool              string      `json:"tool"`
	ArgsCanonicalJSON string      `json:"argsCanonicalJson"`
	Namespace         string      `json:"namespace"`
	Contract          ContractRef `json:"contract"`
	// EffectJSON is the canonical text of the resolved effect: what to do.
	EffectJSON string `json:"effectJson"`
}

// Fingerprint computes the fingerprint of the call from nothing but the call.
func (c Call) Fingerprint() (string, error) {
	proposalHash, err := snapshot.ProposalHash(c.Agent, c.Tool, c.ArgsCanonicalJSON)
	if err != nil {
		return "", fmt.Errorf("proposal hash: %w", err)
	}
	return Fingerprint(proposalHash, c.Namespace, c.Contract, c.EffectJSON)
}

// Limits are what the runner must keep to.
type Limits struct {
	// TimeoutSeconds is how long the effect may run.
	TimeoutSeconds int64 `json:"timeoutSeconds"`
	// OutputMaxBytes is how much of each output stream is read and digested.
	OutputMaxBytes int64 `json:"outputMaxBytes"`
	// StatusMaxBytes is how much text of each stream is returned.
	StatusMaxBytes int64 `json:"statusMaxBytes"`
}

// Ticket is the predicate of [KindTicket]: the permission to run one call once
// in one Pod.
type Ticket struct {
	Proposal ObjectRef `json:"proposal"`
	JobUID   string    `json:"jobUID"`
	PodUID   string    `json:"podUID"`
	// NonceDigest is [NonceDigest] of the nonce the runner redeemed with.
	NonceDigest string `json:"nonceDigest"`
	Fingerprint string `json:"fingerprint"`
	// Binding is [Binding.Hash] of the decided call.
	Binding string `json:"binding"`
	Call    Call   `json:"call"`
	Limits  Limits `json:"limits"`
	Epoch   int64  `json:"epoch"`

	IssuedAt time.Time `json:"issuedAt"`
	// Deadline is when the effect must have ended; no effect may start after it.
	Deadline time.Time `json:"deadline"`
}

// CheckFingerprint recomputes the fingerprint from the call and compares. A
// runner must do this before any effect.
func (t Ticket) CheckFingerprint() error {
	computed, err := t.Call.Fingerprint()
	if err != nil {
		return err
	}
	if computed != t.Fingerprint {
		return ErrFingerprintMismatch
	}
	return nil
}

func (t Ticket) payloadKind() PayloadKind { return KindTicket }
func (t Ticket) subjectDigest() string    { return t.Fingerprint }

func (t Ticket) check() error {
	var f fields
	t.Proposal.check(&f, "proposal")
	f.name("jobUID", t.JobUID)
	f.name("podUID", t.PodUID)
	f.sha256("nonceDigest", t.NonceDigest)
	f.sha256("binding", t.Binding)
	f.require(t.Call.Namespace == t.Proposal.Namespace, "call.namespace", "must be the proposal's namespace")
	f.require(t.Limits.TimeoutSeconds > 0, "limits.timeoutSeconds", "must be at least 1")
	f.require(t.Limits.OutputMaxBytes > 0, "limits.outputMaxBytes", "must be at least 1")
	f.require(t.Limits.StatusMaxBytes > 0, "limits.statusMaxBytes", "must be at least 1")
	f.notNegative("epoch", t.Epoch)
	f.time("issuedAt", t.IssuedAt)
	f.after("deadline", t.Deadline, t.IssuedAt)
	return f.err
}

func (r ObjectRef) check(f *fields, field string) {
	f.name(field+".namespace", r.Namespace)
	f.name(field+".name", r.Name)
	f.name(field+".uid", r.UID)
}

// NewNonce reads 32 bytes from random, which must be a cryptographic source,
// and returns them in hex. A runner draws one nonce and redeems only with it.
func NewNonce(random io.Reader) (string, error) {
	var nonce [32]byte
	if _, err := io.ReadFull(random, nonce[:]); err != nil {
		return "", fmt.Errorf("reading randomness for a nonce: %w", err)
	}
	return hex.EncodeToString(nonce[:]), nil
}

// NonceDigest returns the hex SHA-256 of the nonce text. Only the digest is
// stored, so that reading the proposal's status does not let another Pod
// redeem again.
func NonceDigest(nonce string) string {
	sum := sha256.Sum256([]byte(nonce))
	return hex.EncodeToString(sum[:])
}
