// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

// Answer is what the policies say of a call.
type Answer string

// The three answers.
const (
	// Allow: the call may run as it is.
	Allow Answer = "Allow"
	// NeedsApproval: the call may run once people have approved exactly it.
	NeedsApproval Answer = "NeedsApproval"
	// Deny: the call must not run, whoever approves it.
	Deny Answer = "Deny"
)

// Reason is a stable word for why an answer was given.
type Reason string

// Reasons of Allow and NeedsApproval.
const (
	// ReasonPermitted: a permit holds and no forbid does.
	ReasonPermitted Reason = "Permitted"
	// ReasonApprovalRequired: the policies permit the call only once it is
	// approved.
	ReasonApprovalRequired Reason = "ApprovalRequired"
	// ReasonHumanApprovalRequired: the policies permit the call as it is, but
	// its contract demands a person's approval.
	ReasonHumanApprovalRequired Reason = "HumanApprovalRequired"
)

// Reasons of Deny that the policies give.
const (
	// ReasonForbidden: a forbid holds, also for an approved call.
	ReasonForbidden Reason = "Forbidden"
	// ReasonNoPolicyPermits: no permit holds, also for an approved call.
	ReasonNoPolicyPermits Reason = "NoPolicyPermits"
)

// Reasons of Deny because something is wrong.
const (
	// ReasonPolicyError: a condition could not be evaluated. Cedar would skip
	// the policy, and with it what it forbids.
	ReasonPolicyError Reason = "PolicyError"
	// ReasonPolicyUnhealthy: a text does not parse, or a policy whose scope
	// matches the call failed validation.
	ReasonPolicyUnhealthy Reason = "PolicyUnhealthy"
	// ReasonPolicySetTooLarge: more objects than the limit are in force.
	ReasonPolicySetTooLarge Reason = "PolicySetTooLarge"
	// ReasonPolicySetNotLoaded: no set was loaded yet.
	ReasonPolicySetNotLoaded Reason = "PolicySetNotLoaded"
	// ReasonPolicySelfTestFailed: the engine gave a wrong answer to a question
	// whose answer is known. No other answer of it is worth anything then.
	ReasonPolicySelfTestFailed Reason = "PolicySelfTestFailed"
	// ReasonPolicyPanic: the evaluation of a policy panicked.
	ReasonPolicyPanic Reason = "PolicyPanic"
	// ReasonPolicyTimeout: the time for the evaluation ran out.
	ReasonPolicyTimeout Reason = "PolicyTimeout"
	// ReasonPolicyMutatedArguments: an observer changed its view of the
	// arguments. The spelling is RFC-0016's.
	ReasonPolicyMutatedArguments Reason = "policy_mutated_arguments"
	// ReasonContextInvalid: the session's trusted context cannot be read, or an
	// attribute that a policy declares is missing or of another type.
	ReasonContextInvalid Reason = "ContextInvalid"
	// ReasonNotRepresentable: a value of the call has no Cedar value.
	ReasonNotRepresentable Reason = "NotRepresentable"
	// ReasonApprovalMismatch: the approval is for another fingerprint.
	ReasonApprovalMismatch Reason = "ApprovalMismatch"
)

// Decision is the answer for one call, with everything that explains it.
// Nothing in it quotes an argument of the call.
type Decision struct {
	// Answer and Reason.
	Answer Answer
	Reason Reason
	// Message says the same for people, in one sentence.
	Message string
	// Policies are the IDs of the policies that determined the answer, sorted:
	// the permits of Allow and NeedsApproval, the forbids of Forbidden, and
	// those that are to blame when something is wrong.
	Policies []string
	// NearMisses are, for denials without a forbid, the permits of the call's
	// action and resource, with what of each did not hold, sorted by ID.
	NearMisses []NearMiss
	// Errors are what went wrong, sorted by policy.
	Errors []EvaluationError
	// SetDigest is the SHA-256, in hex, of the policies that were in force in
	// the tool's namespace.
	SetDigest string
}

// NearMiss is a permit that would have applied.
type NearMiss struct {
	// Policy is the ID.
	Policy string
	// Line and Column of the condition that did not hold.
	Line, Column int
	// Condition is its text, from the policy; that of the scope's principal
	// when the policy is for somebody else.
	Condition string
}

// EvaluationError is one failed evaluation.
type EvaluationError struct {
	// Policy is the ID; empty when no single policy is to blame.
	Policy string
	// Message says what is wrong.
	Message string
}

// deny makes a denial for something that is wrong.
func deny(reason Reason, message string, errors ...EvaluationError) Decision {
	d := Decision{Answer: Deny, Reason: reason, Message: message, Errors: errors}
	for _, e := range errors {
		if e.Policy != "" {
			d.Policies = append(d.Policies, e.Policy)
		}
	}
	return d
}
