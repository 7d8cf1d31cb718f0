// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

// PayloadKind says what a signed statement is for. The kinds are separate
// signing domains: each has its own DSSE payload type and its own predicate
// type.
type PayloadKind string

const (
	// KindProposalSeal seals what admission stamped on a ToolProposal; its
	// predicate is [ProposalSeal].
	KindProposalSeal PayloadKind = "proposal-seal"
	// KindReceiptSeal seals what admission stamped on an ApprovalReceipt; its
	// predicate is [ReceiptSeal].
	KindReceiptSeal PayloadKind = "receipt-seal"
	// KindTicket is the permission to execute one call once; its predicate is
	// [Ticket].
	KindTicket PayloadKind = "ticket"
	// KindAuditRecord is one entry of the audit log. Its predicate belongs to
	// package audit.
	KindAuditRecord PayloadKind = "audit-record"
)

const (
	// statementType is the _type of an in-toto Statement v1
	// (in-toto attestation spec v1, section "Statement").
	statementType = "https://in-toto.io/Statement/v1"

	// The in-toto envelope specification allows
	// application/vnd.in-toto.<predicate>+json beside the general
	// application/vnd.in-toto+json. The specific form is used because DSSE
	// signs the payload type: a signature made for one kind cannot verify as
	// another, even for code that never looks into the payload.
	payloadTypePrefix = "application/vnd.in-toto.assent-"
	payloadTypeSuffix = "+json"

	predicateTypePrefix = "https://assent.dev/"
	predicateTypeSuffix = "/v1alpha1"
)

const (
	// maxSealBytes leaves room for a requester in several thousand groups; a
	// Kubernetes user with more cannot have proposals sealed.
	maxSealBytes = 256 << 10
	// maxTicketBytes holds a call whose arguments and effect are at their own
	// limits, after JSON escaping and base64.
	maxTicketBytes = 8 << 20
	// maxAuditBytes is what one tlog-tiles entry can hold (its length is a
	// 16-bit number).
	maxAuditBytes = 1<<16 - 1
)

// PayloadType returns the DSSE payload type of the kind.
func (k PayloadKind) PayloadType() string {
	return payloadTypePrefix + string(k) + payloadTypeSuffix
}

// PredicateType returns the in-toto predicate type of the kind. The version of
// the predicate is part of it.
func (k PayloadKind) PredicateType() string {
	return predicateTypePrefix + string(k) + predicateTypeSuffix
}

// MaxBytes returns the longest envelope of the kind, in bytes, and 0 for a
// kind that does not exist.
func (k PayloadKind) MaxBytes() int {
	switch k {
	case KindProposalSeal, KindReceiptSeal:
		return maxSealBytes
	case KindTicket:
		return maxTicketBytes
	case KindAuditRecord:
		return maxAuditBytes
	default:
		return 0
	}
}
