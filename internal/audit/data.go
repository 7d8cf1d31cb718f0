// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"time"

	"github.com/assent-dev/assent/internal/attest"
)

// Types of record. Each belongs to the structure of the same name.
const (
	TypeJournalOpened      RecordType = "JournalOpened"
	TypeRecordPart         RecordType = "RecordPart"
	TypeProposalAdmitted   RecordType = "ProposalAdmitted"
	TypeProposalRefused    RecordType = "ProposalRefused"
	TypePolicyEvaluated    RecordType = "PolicyEvaluated"
	TypeDenied             RecordType = "Denied"
	TypeReceiptAdmitted    RecordType = "ReceiptAdmitted"
	TypeReceiptRejected    RecordType = "ReceiptRejected"
	TypeReceiptConsumed    RecordType = "ReceiptConsumed"
	TypeDispatched         RecordType = "Dispatched"
	TypeRedeemed           RecordType = "Redeemed"
	TypeRedeemRefused      RecordType = "RedeemRefused"
	TypeToolCompleted      RecordType = "ToolCompleted"
	TypeToolBatchCompleted RecordType = "ToolBatchCompleted"
	TypeProposalEnded      RecordType = "ProposalEnded"
	TypeSessionChanged     RecordType = "SessionChanged"
	TypeIntegrityAlarm     RecordType = "IntegrityAlarm"
	TypeEpochChanged       RecordType = "EpochChanged"
)

// AllTypes lists every type of record.
func AllTypes() []RecordType {
	return []RecordType{
		TypeJournalOpened, TypeRecordPart, TypeProposalAdmitted, TypeProposalRefused,
		TypePolicyEvaluated, TypeDenied, TypeReceiptAdmitted, TypeReceiptRejected,
		TypeReceiptConsumed, TypeDispatched, TypeRedeemed, TypeRedeemRefused,
		TypeToolCompleted, TypeToolBatchCompleted, TypeProposalEnded, TypeSessionChanged,
		TypeIntegrityAlarm, TypeEpochChanged,
	}
}

// zeroData returns the empty structure of a type, or nil for an unknown type.
func zeroData(t RecordType) Data {
	for _, d := range []Data{
		JournalOpened{},
		RecordPart{},
		ProposalAdmitted{},
		ProposalRefused{},
		PolicyEvaluated{},
		Denied{},
		ReceiptAdmitted{},
		ReceiptRejected{},
		ReceiptConsumed{},
		Dispatched{},
		Redeemed{},
		RedeemRefused{},
		ToolCompleted{},
		ToolBatchCompleted{},
		ProposalEnded{},
		SessionChanged{},
		IntegrityAlarm{},
		EpochChanged{},
	} {
		if d.recordType() == t {
			return d
		}
	}
	return nil
}

// Decision is an answer of the policy phase.
type Decision string

// The three answers.
const (
	DecisionAllow         Decision = "Allow"
	DecisionNeedsApproval Decision = "NeedsApproval"
	DecisionDeny          Decision = "Deny"
)

// Receipt names an approval receipt inside a record.
type Receipt struct {
	Name     string      `json:"name"`
	UID      string      `json:"uid"`
	SealID   string      `json:"sealID"`
	Decision string      `json:"decision"`
	Approver attest.User `json:"approver"`
	// Fingerprint that the receipt names; it may differ from the record's in a
	// [ReceiptRejected].
	Fingerprint string    `json:"fingerprint"`
	ExpiresAt   time.Time `json:"expiresAt"`
}

// JournalOpened is the first record of each writer.
type JournalOpened struct {
	// Size is how many records the log had before this one.
	Size uint64 `json:"size"`
	// Software is the version that writes.
	Software string `json:"software"`
}

// RecordPart is a piece of the data of a later record that is too large for
// one entry.
type RecordPart struct {
	// SHA256 is the hex digest of the whole data text, Number counts from 0.
	SHA256 string `json:"sha256"`
	Number uint64 `json:"number"`
	Bytes  []byte `json:"bytes"`
}

// ProposalAdmitted says that a proposal was prepared, sealed and stored.
type ProposalAdmitted struct {
	Requester    attest.User        `json:"requester"`
	SealID       string             `json:"sealID"`
	CallID       string             `json:"callID"`
	Session      *attest.SessionRef `json:"session,omitzero"`
	Iteration    *int64             `json:"iteration,omitzero"`
	Batch        *attest.BatchRef   `json:"batch,omitzero"`
	Tool         string             `json:"tool"`
	Contract     attest.ContractRef `json:"contract"`
	ProposalHash string             `json:"proposalHash"`
	RawDigest    string             `json:"rawDigest"`
	Binding      string             `json:"binding"`
	Call         CallText           `json:"call"`
}

// ProposalRefused says that admission refused a proposal; nothing was stored.
type ProposalRefused struct {
	Requester attest.User `json:"requester"`
	// Tool as far as it is known; it may be a name that does not exist.
	Tool   string `json:"tool"`
	Stage  string `json:"stage"`
	Reason string `json:"reason"`
}

// PolicyEvaluated says that a decision was made. At the commit point it is durable
// before the call is dispatched.
type PolicyEvaluated struct {
	// Commit is true for the evaluation at the commit point.
	Commit   bool               `json:"commit"`
	Decision Decision           `json:"decision"`
	Reason   string             `json:"reason"`
	Tool     string             `json:"tool"`
	Contract attest.ContractRef `json:"contract"`
	Call     CallText           `json:"call"`
	// Policies are the IDs that determined the decision, Errors the IDs of
	// policies that failed.
	Policies []string `json:"policies"`
	Errors   []string `json:"errors"`
	// PolicySetDigest identifies the whole set that was asked.
	PolicySetDigest string    `json:"policySetDigest"`
	Receipts        []Receipt `json:"receipts"`
	Binding         string    `json:"binding"`
	Epoch           int64     `json:"epoch"`
}

// Denied says that the call ended without running, by policy, by a person or by a check
// of Assent.
type Denied struct {
	Reason string `json:"reason"`
	// By is the person whose receipt denied the call.
	By       *attest.User `json:"by,omitzero"`
	Policies []string     `json:"policies"`
}

// ReceiptAdmitted says that an approval receipt was sealed and stored.
type ReceiptAdmitted struct {
	Receipt Receipt `json:"receipt"`
}

// ReceiptRejected says that a stored receipt does not count.
type ReceiptRejected struct {
	Receipt Receipt `json:"receipt"`
	Reason  string  `json:"reason"`
}

// ReceiptConsumed says that the receipt was used up by the commit point and is never
// valid again.
type ReceiptConsumed struct {
	Receipt Receipt `json:"receipt"`
}

// Dispatched says that the proposal is committed and its Job is about to be created.
type Dispatched struct {
	JobName      string    `json:"jobName"`
	TemplateHash string    `json:"templateHash"`
	ContractHash string    `json:"contractHash"`
	Binding      string    `json:"binding"`
	Deadline     time.Time `json:"deadline"`
}

// Redeemed says that one Pod was given the ticket. From here on the effect may happen.
type Redeemed struct {
	JobUID      string `json:"jobUID"`
	PodName     string `json:"podName"`
	PodUID      string `json:"podUID"`
	NodeName    string `json:"nodeName"`
	NonceDigest string `json:"nonceDigest"`
	// TicketDigest is the hex SHA-256 of the ticket's envelope, or empty where
	// the writer of the record did not issue the ticket.
	TicketDigest string    `json:"ticketDigest"`
	Deadline     time.Time `json:"deadline"`
}

// RedeemRefused says that a Pod asked for the ticket and did not get it.
type RedeemRefused struct {
	PodUID string `json:"podUID"`
	Reason string `json:"reason"`
}

// ToolCompleted says that an outcome was accepted for the call.
type ToolCompleted struct {
	CallID string `json:"callID"`
	PodUID string `json:"podUID"`
	// Phase and Reason are the proposal's terminal phase and its reason.
	Phase      string `json:"phase"`
	Reason     string `json:"reason"`
	ExitCode   *int32 `json:"exitCode,omitzero"`
	HTTPStatus *int32 `json:"httpStatus,omitzero"`
	// Digests and lengths are those of [attest.Result]; empty digests mean that
	// there was no result.
	StdoutSHA256   string `json:"stdoutSHA256"`
	StderrSHA256   string `json:"stderrSHA256"`
	StdoutBytes    int64  `json:"stdoutBytes"`
	StderrBytes    int64  `json:"stderrBytes"`
	Truncated      bool   `json:"truncated"`
	DurationMillis int64  `json:"durationMillis"`
}

// BatchOutcome is the outcome of one call of a batch.
type BatchOutcome struct {
	CallID      string           `json:"callID"`
	Proposal    attest.ObjectRef `json:"proposal"`
	Fingerprint string           `json:"fingerprint"`
	Phase       string           `json:"phase"`
	Reason      string           `json:"reason"`
	Call        CallText         `json:"call"`
}

// ToolBatchCompleted says that every call of a batch has ended, or that it failed
// because an outcome is missing, duplicate or foreign.
type ToolBatchCompleted struct {
	Session   attest.SessionRef `json:"session"`
	Iteration int64             `json:"iteration"`
	Batch     attest.BatchRef   `json:"batch"`
	Complete  bool              `json:"complete"`
	// Reason says why an incomplete batch is incomplete.
	Reason   string         `json:"reason"`
	Outcomes []BatchOutcome `json:"outcomes"`
}

// ProposalEnded says that the call reached a terminal phase without an outcome of its
// own: Expired, Cancelled, Invalid, Failed before it started, Indeterminate.
type ProposalEnded struct {
	Phase  string       `json:"phase"`
	Reason string       `json:"reason"`
	By     *attest.User `json:"by,omitzero"`
}

// SessionChanged says that a session was revoked, changed or deleted, which voids its
// open calls.
type SessionChanged struct {
	Namespace string            `json:"namespace"`
	Session   attest.SessionRef `json:"session"`
	Reason    string            `json:"reason"`
}

// IntegrityAlarm says that something that Assent relies on was found changed:
// StatusTampered, EnforcementDrift, RestoreDetected and the like.
type IntegrityAlarm struct {
	Reason string `json:"reason"`
	// Objects name what was found, as kind/namespace/name.
	Objects []string `json:"objects"`
}

// EpochChanged says that an operator ended the freeze after a restore; receipts and
// seals of earlier epochs are void.
type EpochChanged struct {
	From int64       `json:"from"`
	To   int64       `json:"to"`
	By   attest.User `json:"by"`
}
