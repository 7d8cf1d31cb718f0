// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ConditionReady is on ToolManifest, ArgumentType, ToolScope, ToolPolicy,
// ClusterToolPolicy and AgentSession. It is True when the object can be used
// as it is, False when it cannot, and the message then names the field and
// what to change.
//
// Reasons for True: Ready.
// Reasons for False, manifests, types and scopes: MissingReference,
// TypeCycle, TypeDepth, InvalidManifest, InvalidArgument, InvalidTemplate,
// InvalidEffect, ImageNotByDigest, CredentialHostMismatch, InvalidScope,
// ScopeMissing, ScopeAmbiguous.
// Reasons for False, policies: SyntaxError, ValidationFailed, LimitExceeded.
// Reasons for False, sessions: SessionExpired, SessionRevoked, ContextInvalid.
const ConditionReady = "Ready"

// Reasons of Ready.
const (
	// ReasonReady says that nothing stands against using the object.
	ReasonReady = "Ready"
	// ReasonMissingReference says that a type or scope that the object names
	// does not exist.
	ReasonMissingReference = "MissingReference"
	// ReasonTypeCycle says that a chain of ArgumentTypes leads back to itself.
	ReasonTypeCycle = "TypeCycle"
	// ReasonTypeDepth says that a chain of ArgumentTypes is too long.
	ReasonTypeDepth = "TypeDepth"
	// ReasonInvalidManifest says that a field outside arguments and effect
	// makes no sense.
	ReasonInvalidManifest = "InvalidManifest"
	// ReasonInvalidArgument says that an argument's declaration makes no sense.
	ReasonInvalidArgument = "InvalidArgument"
	// ReasonInvalidTemplate says that a template of the effect is malformed.
	ReasonInvalidTemplate = "InvalidTemplate"
	// ReasonInvalidEffect says that the effect can never be carried out.
	ReasonInvalidEffect = "InvalidEffect"
	// ReasonImageNotByDigest says that an image is named by tag, so that
	// another program could run under the same contract.
	ReasonImageNotByDigest = "ImageNotByDigest"
	// ReasonCredentialHostMismatch says that a secret would be sent to a host
	// that it is not for.
	ReasonCredentialHostMismatch = "CredentialHostMismatch"
	// ReasonInvalidScope says that a ToolScope has entries that cannot be read.
	ReasonInvalidScope = "InvalidScope"
	// ReasonScopeMissing says that arguments are scope-checked and no
	// ToolScope says what is in reach.
	ReasonScopeMissing = "ScopeMissing"
	// ReasonScopeAmbiguous says that the namespace has several ToolScopes and
	// the manifest names none.
	ReasonScopeAmbiguous = "ScopeAmbiguous"
	// ReasonSyntaxError says that a policy text does not parse.
	ReasonSyntaxError = "SyntaxError"
	// ReasonValidationFailed says that a policy text does not fit the schema
	// of the tools it could match.
	ReasonValidationFailed = "ValidationFailed"
	// ReasonLimitExceeded says that there are more policy objects, in the
	// namespace or in the cluster, than the limit. None of them permits
	// anything then. A text that is too long or too deeply nested is a
	// SyntaxError.
	ReasonLimitExceeded = "LimitExceeded"
	// ReasonServiceAccountNotUsable says that the author of a manifest lacks
	// the verb use on the ServiceAccount that its calls would run as. It is
	// the cause of a refused request, and never a condition.
	ReasonServiceAccountNotUsable = "ServiceAccountNotUsable"
	// ReasonSessionExpired says that the session's time is over.
	ReasonSessionExpired = "SessionExpired"
	// ReasonSessionRevoked says that the session was revoked.
	ReasonSessionRevoked = "SessionRevoked"
	// ReasonContextInvalid says that a session's trusted context cannot be
	// read, is too large, or has a value of another type than a policy
	// declared.
	ReasonContextInvalid = "ContextInvalid"
)

// ConditionDecided is on ToolProposal. It is True once policy answered about
// the sealed call, whatever the answer; the reason is the answer's. It is
// False while the call could not be put to policy at all.
//
// Reasons for True: Permitted, ApprovalRequired, HumanApprovalRequired,
// NoPolicyPermits, Forbidden, PolicyError, PolicyUnhealthy, ContextInvalid,
// NotRepresentable and the others of the policy's decisions.
// Reasons for False: Unsealed, OldEncoding, PrincipalChanged, ContractChanged,
// SessionInvalid, DuplicateCallID, IterationBackwards, BudgetExceeded,
// LedgerTampered, PolicySetNotLoaded.
const ConditionDecided = "Decided"

// ConditionApproved is on ToolProposal where people must approve. It is True
// when enough receipts count, False when somebody denied or nobody decided in
// time, Unknown while it waits.
//
// Reasons for True: Approved.
// Reasons for False: DeniedByApprover, ApprovalTimeout.
// Reasons for Unknown: AwaitingApproval.
const ConditionApproved = "Approved"

// ConditionDispatched is on ToolProposal. It is True once the commit point
// granted the call; it never goes back. It is False when something other than
// a decision kept the call from being granted.
//
// Reasons for True: Granted.
// Reasons for False: AuditUnavailable, EnforcementDrift, RestoreDetected,
// ExecutionNamespaceNotAgreed, RuntimeClassNotFound, ServiceAccountNotFound.
const ConditionDispatched = "Dispatched"

// ConditionCompleted is on ToolProposal. It is True when the call ended,
// whatever the end; the reason is that of status.reason.
//
// Reasons for True: Succeeded, ToolFailed, TimedOut, NeverStarted, PodSpecDrift,
// EgressNotIsolated, ResultSchemaViolation, ResultLost, NameSquatted,
// StatusTampered, RestoreDetected, Deleted, those of the runner and those of
// the decision.
const ConditionCompleted = "Completed"

// Reasons of a ToolProposal, in status.reason and its conditions.
const (
	// ReasonUnsealed says that the object carries no seal of this operator for
	// exactly what it says: it did not pass admission as it stands.
	ReasonUnsealed = "Unsealed"
	// ReasonStatusTampered says that somebody else wrote a grant or a result
	// into the status.
	ReasonStatusTampered = "StatusTampered"
	// ReasonOldEncoding says that the call was prepared by another version of
	// the encoding. It is never prepared anew silently.
	ReasonOldEncoding = "OldEncoding"
	// ReasonContractChanged says that the tool's contract is not the one that
	// the call was prepared against.
	ReasonContractChanged = "ContractChanged"
	// ReasonToolNotReady says that the tool's manifest is missing or not Ready.
	ReasonToolNotReady = "ToolNotReady"
	// ReasonPolicyChanged says that people had approved the call when the
	// policies changed, and that they do not permit it any more. The condition
	// Decided and status.decision have the policies' own reason.
	ReasonPolicyChanged = "PolicyChanged"
	// ReasonPrincipalChanged says that the requester's ServiceAccount is gone,
	// or was created anew, since it asked.
	ReasonPrincipalChanged = "PrincipalChanged"
	// ReasonSessionInvalid says that the call's session is missing, expired,
	// revoked, changed or another principal's.
	ReasonSessionInvalid = "SessionInvalid"
	// ReasonAwaitingApproval says that people must approve.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonApproved says that enough receipts count.
	ReasonApproved = "Approved"
	// ReasonDeniedByApprover says that somebody entitled denied the call.
	ReasonDeniedByApprover = "DeniedByApprover"
	// ReasonApprovalTimeout says that nobody decided in time.
	ReasonApprovalTimeout = "ApprovalTimeout"
	// ReasonAuditUnavailable says that a record that must come first could not
	// be made durable. The call waits.
	ReasonAuditUnavailable = "AuditUnavailable"
	// ReasonEnforcementDrift says that admission or RBAC differs from what was
	// installed. Nothing is granted until it is restored.
	ReasonEnforcementDrift = "EnforcementDrift"
	// ReasonExecutionNamespaceNotAgreed says that the namespace names another
	// one for its calls, which does not say the same.
	ReasonExecutionNamespaceNotAgreed = "ExecutionNamespaceNotAgreed"
	// ReasonRuntimeClassNotFound says that the tool's RuntimeClass does not exist.
	ReasonRuntimeClassNotFound = "RuntimeClassNotFound"
	// ReasonServiceAccountNotFound says that the ServiceAccount that the tool
	// runs as does not exist where its calls run.
	ReasonServiceAccountNotFound = "ServiceAccountNotFound"
	// ReasonGranted says that the commit point granted the call.
	ReasonGranted = "Granted"
	// ReasonRedeemed says that the runner fetched the call.
	ReasonRedeemed = "Redeemed"
	// ReasonNameSquatted says that a Job of somebody else's has the name of
	// ours. It is never adopted.
	ReasonNameSquatted = "NameSquatted"
	// ReasonPodSpecDrift says that the call's Pod was changed by somebody else,
	// so that it did not get the call.
	ReasonPodSpecDrift = "PodSpecDrift"
	// ReasonEgressNotIsolated says that the network of the call's Pod was open
	// though the manifest requires isolation, so that it did not ask for the call.
	ReasonEgressNotIsolated = "EgressNotIsolated"
	// ReasonNeverStarted says that no runner ever fetched the call: it is safe
	// to propose it again.
	ReasonNeverStarted = "NeverStarted"
	// ReasonResultLost says that a runner fetched the call and never reported.
	ReasonResultLost = "ResultLost"
	// ReasonSucceeded says that the tool reported success.
	ReasonSucceeded = "Succeeded"
	// ReasonToolFailed says that the tool reported failure.
	ReasonToolFailed = "ToolFailed"
	// ReasonTimedOut says that the tool was stopped at its timeout.
	ReasonTimedOut = "TimedOut"
	// ReasonResultSchemaViolation says that the output does not satisfy the
	// manifest's schema.
	ReasonResultSchemaViolation = "ResultSchemaViolation"
	// ReasonDeleted says that the proposal was deleted before it ended.
	ReasonDeleted = "Deleted"
)

// ConditionValid is on ApprovalReceipt. It is True while the receipt counts,
// False when it does not, with the reason why.
//
// Reasons for True: Counted.
// Reasons for False: Unsealed, UIDMismatch, FingerprintMismatch,
// SelfApproval, ServiceAccountNotAllowed, ApproverNotAuthorized,
// ApproverNoLongerAuthorized, NotInRequiredGroup, ReceiptExpired, NotYetValid,
// NotAwaitingApproval, AlreadyConsumed, TooManyReceipts, DuplicateApprover,
// ProposalNotFound.
const ConditionValid = "Valid"

// ConditionConsumed is on ApprovalReceipt. It is True once a grant rested on
// the receipt: it is never used again.
//
// Reasons for True: Consumed.
// Reasons for False: NotConsumed.
const ConditionConsumed = "Consumed"

// Reasons of an ApprovalReceipt.
const (
	// ReasonCounted says that the receipt counts.
	ReasonCounted = "Counted"
	// ReasonUIDMismatch says that the receipt is for an earlier object of the
	// same name.
	ReasonUIDMismatch = "UIDMismatch"
	// ReasonFingerprintMismatch says that the receipt is for another call.
	ReasonFingerprintMismatch = "FingerprintMismatch"
	// ReasonSelfApproval says that requester and approver are the same person.
	ReasonSelfApproval = "SelfApproval"
	// ReasonServiceAccountNotAllowed says that a ServiceAccount approved and
	// the manifest does not let it.
	ReasonServiceAccountNotAllowed = "ServiceAccountNotAllowed"
	// ReasonApproverNotAuthorized says that the approver lacks the verb
	// approve on the ToolManifest.
	ReasonApproverNotAuthorized = "ApproverNotAuthorized"
	// ReasonApproverNoLongerAuthorized says that the approver lost the verb
	// approve since the receipt was created, or that their ServiceAccount is
	// gone or was created anew.
	ReasonApproverNoLongerAuthorized = "ApproverNoLongerAuthorized"
	// ReasonNotInRequiredGroup says that the approver is in none of the groups
	// whose approval is still needed.
	ReasonNotInRequiredGroup = "NotInRequiredGroup"
	// ReasonReceiptExpired says that the receipt's time is over.
	ReasonReceiptExpired = "ReceiptExpired"
	// ReasonNotYetValid says that the receipt was issued in the future.
	ReasonNotYetValid = "NotYetValid"
	// ReasonNotAwaitingApproval says that the proposal does not wait for
	// approval.
	ReasonNotAwaitingApproval = "NotAwaitingApproval"
	// ReasonTooManyReceipts says that the proposal has 16 receipts already.
	ReasonTooManyReceipts = "TooManyReceipts"
	// ReasonDuplicateApprover says that the same person's other receipt counts.
	ReasonDuplicateApprover = "DuplicateApprover"
	// ReasonProposalNotFound says that there is no such proposal.
	ReasonProposalNotFound = "ProposalNotFound"
	// ReasonConsumed says that a grant rested on the receipt.
	ReasonConsumed = "Consumed"
	// ReasonNotConsumed says that no grant rested on the receipt yet.
	ReasonNotConsumed = "NotConsumed"
	// ReasonAlreadyConsumed says that the receipt was used before.
	ReasonAlreadyConsumed = "AlreadyConsumed"
)
