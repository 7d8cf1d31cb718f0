// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

// Kinds of object that a seal can be for.
const (
	ObjectToolProposal    = "ToolProposal"
	ObjectApprovalReceipt = "ApprovalReceipt"
)

// EncodingV1 is the version of the snapshot and fingerprint rules that a seal
// was made under. A seal of another version is refused, so that an upgrade
// that canonicalises differently cannot reuse old approvals.
const EncodingV1 = "v1"

// User is an authenticated Kubernetes user as the API server reported it at
// admission.
type User struct {
	Username string `json:"username"`
	// UID tells apart a user or service account from a later one of the same
	// name. It is empty for authenticators that give none.
	UID    string              `json:"uid"`
	Groups []string            `json:"groups"`
	Extra  map[string][]string `json:"extra"`
}

// SessionRef binds a call to one state of one AgentSession.
type SessionRef struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// SpecDigest is the hex SHA-256 of the session's spec when the call was
	// prepared; another spec voids the call.
	SpecDigest string `json:"specDigest"`
}

// BatchRef places a call in a batch of Size calls.
type BatchRef struct {
	ID   string `json:"id"`
	Size int64  `json:"size"`
}

// ContractRef names one exact contract.
type ContractRef struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Hash is the hex SHA-256 of the full resolved contract.
	Hash string `json:"hash"`
}

// ProposalSeal is the predicate of [KindProposalSeal]: everything that
// admission found out about a proposal and that the stored object alone could
// not prove.
type ProposalSeal struct {
	// SealID is 16 random bytes in hex, new at each admission. A copy of a
	// sealed object, or the object re-created, carries a seal already seen.
	SealID string `json:"sealID"`
	// Namespace and Kind are where the sealed object must be found.
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`

	Fingerprint  string `json:"fingerprint"`
	ProposalHash string `json:"proposalHash"`
	// ArgsDigest is the hex SHA-256 of the canonical arguments, RawDigest that
	// of the argument text as the agent sent it.
	ArgsDigest string `json:"argsDigest"`
	RawDigest  string `json:"rawDigest"`

	Tool         string `json:"tool"`
	CallID       string `json:"callID"`
	ContractHash string `json:"contractHash"`

	Requester User        `json:"requester"`
	Session   *SessionRef `json:"session,omitzero"`
	Iteration *int64      `json:"iteration,omitzero"`
	Batch     *BatchRef   `json:"batch,omitzero"`

	// Encoding is [EncodingV1].
	Encoding string `json:"encoding"`
	// Epoch is the operator's restore epoch; a seal of an older epoch is void.
	Epoch     int64      `json:"epoch"`
	IssuedAt  time.Time  `json:"issuedAt"`
	ExpiresAt *time.Time `json:"expiresAt,omitzero"`
}

// ReceiptSeal is the predicate of [KindReceiptSeal]: who decided what about
// which call, until when.
type ReceiptSeal struct {
	SealID    string `json:"sealID"`
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`

	ProposalName string `json:"proposalName"`
	ProposalUID  string `json:"proposalUID"`
	Fingerprint  string `json:"fingerprint"`
	// Decision is [DecisionApproved] or [DecisionDenied].
	Decision string `json:"decision"`
	Approver User   `json:"approver"`

	Epoch     int64     `json:"epoch"`
	IssuedAt  time.Time `json:"issuedAt"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Decisions of a receipt.
const (
	DecisionApproved = "Approved"
	DecisionDenied   = "Denied"
)

// NewSealID reads 16 bytes from random, which must be a cryptographic source,
// and returns them in hex.
func NewSealID(random io.Reader) (string, error) {
	var id [16]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return "", fmt.Errorf("reading randomness for a seal ID: %w", err)
	}
	return hex.EncodeToString(id[:]), nil
}

func (s ProposalSeal) payloadKind() PayloadKind { return KindProposalSeal }
func (s ProposalSeal) subjectDigest() string    { return s.Fingerprint }

func (s ProposalSeal) check() error {
	var f fields
	f.require(isHex(s.SealID, 32), "sealID", "must be 32 lower-case hex digits")
	f.name("namespace", s.Namespace)
	f.require(s.Kind == ObjectToolProposal, "kind", "must be "+ObjectToolProposal)
	f.sha256("proposalHash", s.ProposalHash)
	f.sha256("argsDigest", s.ArgsDigest)
	f.sha256("rawDigest", s.RawDigest)
	f.name("tool", s.Tool)
	f.name("callID", s.CallID)
	f.sha256("contractHash", s.ContractHash)
	s.Requester.check(&f, "requester")
	s.Session.check(&f)
	s.Batch.check(&f)
	if s.Iteration != nil {
		f.notNegative("iteration", *s.Iteration)
	}
	// Which version it must be is for those to say who rely on the hashes: a
	// valid seal of another version is told apart from no seal at all.
	f.name("encoding", s.Encoding)
	f.notNegative("epoch", s.Epoch)
	f.time("issuedAt", s.IssuedAt)
	if s.ExpiresAt != nil {
		f.after("expiresAt", *s.ExpiresAt, s.IssuedAt)
	}
	return f.err
}

func (s ReceiptSeal) payloadKind() PayloadKind { return KindReceiptSeal }
func (s ReceiptSeal) subjectDigest() string    { return s.Fingerprint }

func (s ReceiptSeal) check() error {
	var f fields
	f.require(isHex(s.SealID, 32), "sealID", "must be 32 lower-case hex digits")
	f.name("namespace", s.Namespace)
	f.require(s.Kind == ObjectApprovalReceipt, "kind", "must be "+ObjectApprovalReceipt)
	f.name("proposalName", s.ProposalName)
	f.name("proposalUID", s.ProposalUID)
	f.require(s.Decision == DecisionApproved || s.Decision == DecisionDenied,
		"decision", "must be "+DecisionApproved+" or "+DecisionDenied)
	s.Approver.check(&f, "approver")
	f.notNegative("epoch", s.Epoch)
	f.time("issuedAt", s.IssuedAt)
	f.after("expiresAt", s.ExpiresAt, s.IssuedAt)
	return f.err
}

func (u User) check(f *fields, field string) {
	f.name(field+".username", u.Username)
	f.optionalName(field+".uid", u.UID)
}

func (s *SessionRef) check(f *fields) {
	if s == nil {
		return
	}
	f.name("session.name", s.Name)
	f.name("session.uid", s.UID)
	f.sha256("session.specDigest", s.SpecDigest)
}

func (b *BatchRef) check(f *fields) {
	if b == nil {
		return
	}
	f.name("batch.id", b.ID)
	f.require(b.Size > 0, "batch.size", "must be at least 1")
}

func (c ContractRef) check(f *fields) {
	f.name("contract.name", c.Name)
	f.optionalName("contract.version", c.Version)
	f.sha256("contract.hash", c.Hash)
}
