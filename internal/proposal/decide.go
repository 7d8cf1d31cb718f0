// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/policy"
)

// Observed is everything that a decision about a call rests on.
type Observed struct {
	Proposal *v1alpha1.ToolProposal
	// Seal is the verified seal; nil with SealErr set.
	Seal    *attest.ProposalSeal
	SealErr error
	// Epoch is the operator's restore epoch.
	Epoch int64
	// PrincipalProblem says why the requester is not who they were; empty when
	// they are. Only the commit point asks.
	PrincipalProblem string
	// ContractHash is the hash of the tool's contract as it is now; empty with
	// ContractProblem when there is none.
	ContractHash    string
	ContractProblem string
	// SessionProblem says why the call's session does not carry it; empty when
	// it does, or when the call names none.
	SessionProblem string
	// Claim says how the call stands with its session's ledger; zero when the
	// call names no session.
	Claim Claim
	// Policy answers about the call, without and with a person's approval.
	Policy func(approved bool) policy.Decision
	// Rules and Receipts are for calls that need approval.
	Rules    ApprovalRules
	Receipts []ReceiptFacts
	Keys     *attest.Keyring
	// Restored says that the cluster or the log was put back to an earlier
	// state; nothing is granted while it is not empty.
	Restored string
	// Obstacle says why there is no place for the call's Pod; nil when there
	// is one. Only the commit point asks.
	Obstacle *ObstacleError
	// Drift says what differs from what was installed; nothing is granted
	// while it is not empty.
	Drift string
}

// ObstacleError is something outside the call that its Pod needs and does not have:
// with it in the way the Job could be created, and would never get a Pod.
type ObstacleError struct{ Reason, Message string }

// Error implements error.
func (o *ObstacleError) Error() string { return o.Message }

// Plan is what happens next with a call.
type Plan struct {
	Phase   v1alpha1.Phase
	Reason  string
	Message string
	// Decision is the policy's answer, where it was asked.
	Decision *policy.Decision
	// Approval is what the receipts amount to, where people are needed.
	Approval *Approval
	// ExpiresAt is when the wait for approval ends.
	ExpiresAt time.Time
	// Dispatch says that the call may go through the commit point.
	Dispatch bool
	// Claim says that the call's session must take it up before more can be
	// said.
	Claim bool
	// Recheck is how long until time alone may change the plan; zero when it
	// cannot.
	Recheck time.Duration
}

// Decide says what happens next with a call that has not been dispatched. It
// is asked with cached facts to move the call along, and again by the commit
// point with live ones: the second answer is the one that counts.
func Decide(o Observed, now time.Time) Plan {
	for _, step := range []func(Observed, time.Time) *Plan{decideObject, decideContract, decideSession} {
		if plan := step(o, now); plan != nil {
			return *plan
		}
	}
	return decidePolicy(o, now)
}

func ended(phase v1alpha1.Phase, reason, message string) *Plan {
	return &Plan{Phase: phase, Reason: reason, Message: message}
}

func decideObject(o Observed, _ time.Time) *Plan {
	switch {
	case o.Proposal.DeletionTimestamp != nil:
		return ended(v1alpha1.PhaseCancelled, v1alpha1.ReasonDeleted, "the proposal was deleted before it was dispatched")
	case errors.Is(o.SealErr, ErrOldEncoding):
		return ended(v1alpha1.PhaseInvalid, v1alpha1.ReasonOldEncoding, "the call was prepared by another version of Assent: create it again")
	case o.SealErr != nil:
		return ended(v1alpha1.PhaseInvalid, v1alpha1.ReasonUnsealed, "the object did not pass admission as it stands: create it again while Assent's webhook is up")
	case o.Seal.Epoch != o.Epoch:
		return ended(v1alpha1.PhaseInvalid, v1alpha1.ReasonUnsealed, "the call was sealed before the cluster was restored: create it again")
	case o.PrincipalProblem != "":
		return ended(v1alpha1.PhaseDenied, v1alpha1.ReasonPrincipalChanged, o.PrincipalProblem)
	}
	return nil
}

func decideContract(o Observed, _ time.Time) *Plan {
	switch {
	case o.ContractProblem != "":
		return ended(v1alpha1.PhaseDenied, v1alpha1.ReasonContractChanged, "the contract that the call was prepared against is gone: "+o.ContractProblem)
	case o.ContractHash != o.Proposal.Spec.Prepared.Contract.Hash:
		return ended(v1alpha1.PhaseDenied, v1alpha1.ReasonContractChanged, "the tool's contract is not the one that the call was prepared against: create the call again")
	}
	return nil
}

func decideSession(o Observed, _ time.Time) *Plan {
	switch refusal := o.Claim.Refusal; {
	case o.SessionProblem != "":
		return ended(v1alpha1.PhaseDenied, v1alpha1.ReasonSessionInvalid, o.SessionProblem)
	case refusal != nil:
		return ended(refusal.Phase(), refusal.Reason, refusal.Message)
	case o.Claim.Needed:
		return &Plan{
			Phase: v1alpha1.PhasePending, Reason: v1alpha1.ReasonAwaitingSession,
			Message: "the session has not taken up the call yet", Claim: true, Recheck: time.Second,
		}
	}
	return nil
}

func decidePolicy(o Observed, now time.Time) Plan {
	answer := o.Policy(false)
	plan := Plan{Decision: &answer, Reason: string(answer.Reason)}
	switch {
	case answer.Reason == policy.ReasonPolicySetNotLoaded:
		// Not a denial: the policies that would permit may be on their way.
		plan.Phase, plan.Message = v1alpha1.PhasePending, "the policies are not loaded yet"
		plan.Recheck = time.Second
		return plan
	case answer.Answer == policy.Allow:
		return decideAllowed(o, plan, now)
	case answer.Answer == policy.NeedsApproval:
		return decideApproval(o, plan, now)
	}
	return denied(o, plan, now)
}

// decideAllowed lets a call go on that needs nobody's approval. Somebody
// entitled may have said no all the same: while it could not be granted, or
// while policies that are no more had it wait for people.
func decideAllowed(o Observed, plan Plan, now time.Time) Plan {
	a := JudgeReceipts(o.Keys, o.Proposal, o.Rules, o.Epoch, o.Receipts, now)
	if a.Denied == nil {
		return grant(o, plan)
	}
	plan.Approval = &a
	return deniedBy(a.Denied, plan)
}

func deniedBy(r *v1alpha1.ApprovalReceipt, plan Plan) Plan {
	plan.Phase, plan.Reason = v1alpha1.PhaseDenied, v1alpha1.ReasonDeniedByApprover
	plan.Message = "denied by " + r.Spec.Approver.Username
	return plan
}

// denied ends a call that the policy denies. The reason is the policy's own,
// unless people had approved the call under policies that let them: they are
// told that it was not their decision that failed. What is wrong with a policy
// is said in either case, since somebody must mend it.
func denied(o Observed, plan Plan, now time.Time) Plan {
	answer := *plan.Decision
	plan.Phase, plan.Reason, plan.Message = v1alpha1.PhaseDenied, string(answer.Reason), answer.Message
	before := o.Proposal.Status.Decision
	switch {
	case answer.Reason != policy.ReasonForbidden && answer.Reason != policy.ReasonNoPolicyPermits:
	case before == nil || before.Answer != string(policy.NeedsApproval) || before.PolicySetDigest == answer.SetDigest:
	case JudgeReceipts(o.Keys, o.Proposal, o.Rules, o.Epoch, o.Receipts, now).Granted > 0:
		plan.Reason, plan.Message = v1alpha1.ReasonPolicyChanged, "the policies changed after people approved the call: "+answer.Message
	}
	return plan
}

func decideApproval(o Observed, plan Plan, now time.Time) Plan {
	a := JudgeReceipts(o.Keys, o.Proposal, o.Rules, o.Epoch, o.Receipts, now)
	plan.Approval = &a
	plan.ExpiresAt = o.Proposal.CreationTimestamp.Add(o.Rules.Timeout)
	switch {
	case a.Denied != nil:
		return deniedBy(a.Denied, plan)
	case !now.Before(plan.ExpiresAt):
		plan.Phase, plan.Reason = v1alpha1.PhaseExpired, v1alpha1.ReasonApprovalTimeout
		plan.Message = "nobody decided in time"
		return plan
	case !a.Satisfied:
		plan.Phase, plan.Reason = v1alpha1.PhaseAwaitingApproval, v1alpha1.ReasonAwaitingApproval
		plan.Message = fmt.Sprintf("%d of %d approvals", a.Granted, a.Needed)
		plan.Recheck = untilFirst(now, plan.ExpiresAt, a.NextExpiry)
		return plan
	}
	// The policy has the last word, now with the approval before it.
	answer := o.Policy(true)
	plan.Decision = &answer
	if answer.Answer != policy.Allow {
		return denied(o, plan, now)
	}
	plan.Reason = v1alpha1.ReasonApproved
	return grant(o, plan)
}

// grant is the only place that lets a call go on.
func grant(o Observed, plan Plan) Plan {
	if o.Restored != "" {
		plan.Phase, plan.Reason, plan.Message = v1alpha1.PhasePending, v1alpha1.ReasonRestoreDetected, o.Restored
		plan.Recheck = 5 * time.Second
		return plan
	}
	if o.Drift != "" {
		plan.Phase, plan.Reason, plan.Message = v1alpha1.PhasePending, v1alpha1.ReasonEnforcementDrift, o.Drift
		plan.Recheck = 5 * time.Second
		return plan
	}
	if o.Obstacle != nil {
		plan.Phase, plan.Reason, plan.Message = v1alpha1.PhaseDenied, o.Obstacle.Reason, o.Obstacle.Message
		return plan
	}
	plan.Phase, plan.Dispatch = v1alpha1.PhaseDispatching, true
	plan.Message = "the call may run"
	return plan
}

func untilFirst(now time.Time, times ...time.Time) time.Duration {
	var first time.Duration
	for _, t := range times {
		if t.IsZero() {
			continue
		}
		if d := t.Sub(now); first == 0 || d < first {
			first = d
		}
	}
	return max(first, time.Millisecond)
}
