// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of a ToolProposal that its session gives.
const (
	// ReasonAwaitingSession says that the session has not taken up the call yet.
	ReasonAwaitingSession = "AwaitingSession"
	// ReasonDuplicateCallID says that another proposal of the session has the
	// same call ID. A changed call is another call: it needs an ID of its own.
	ReasonDuplicateCallID = "DuplicateCallID"
	// ReasonIterationBackwards says that the session has made a call of a later
	// iteration.
	ReasonIterationBackwards = "IterationBackwards"
	// ReasonBudgetExceeded says that the session may not make this call on top
	// of those it has made, or that are open.
	ReasonBudgetExceeded = "BudgetExceeded"
	// ReasonLedgerTampered says that somebody else wrote the session's ledger.
	ReasonLedgerTampered = "LedgerTampered"
)

// ConditionBatchCompleted is on ToolProposals that are part of a batch. It is
// True once every call of the batch has ended, whatever its end, and False
// when the batch failed because its outcomes do not add up.
//
// Reasons for True: BatchComplete.
// Reasons for False: MissingOutcome, DuplicateOutcome, ForeignOutcome.
const ConditionBatchCompleted = "BatchCompleted"

// Reasons of BatchCompleted.
const (
	// ReasonBatchComplete says that there is one outcome for each call.
	ReasonBatchComplete = "BatchComplete"
	// ReasonMissingOutcome says that fewer calls were made than the batch has.
	ReasonMissingOutcome = "MissingOutcome"
	// ReasonDuplicateOutcome says that two calls of the batch have one call ID.
	ReasonDuplicateOutcome = "DuplicateOutcome"
	// ReasonForeignOutcome says that calls name the batch that are none of its:
	// of another iteration, with another size, or more than it has.
	ReasonForeignOutcome = "ForeignOutcome"
)

// ReasonRestoreDetected says that the audit log or the cluster was put back to
// an earlier state. Nothing is granted until the operator's epoch is raised.
const ReasonRestoreDetected = "RestoreDetected"
