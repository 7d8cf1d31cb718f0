// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"time"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
)

// reportGrace is how long after its Pod ended a result may still arrive.
const reportGrace = 15 * time.Second

// reasonResponseLost is the runner's word for a request that was sent, at
// least in part, and had no complete answer: the one report that does not say
// whether there was an effect.
const reasonResponseLost = "ResponseLost"

// startGrace is for the runner between the answer that gives it the call and
// the beginning of the effect.
const startGrace = 10 * time.Second

// TicketDeadline is when the effect of a call that was redeemed must have
// ended. It lies before the time at which [Follow] gives the call up: what was
// given up must not begin any more.
func TicketDeadline(redeemed time.Time, timeout time.Duration) time.Time {
	return redeemed.Add(timeout + startGrace)
}

// OutputIsCut says whether the text of a reported output is only its beginning,
// length being that of the whole in bytes. A report tells that a text was cut
// and not which one: the error output may be all that is too long.
func OutputIsCut(cut bool, text string, length int64) bool {
	return cut && int64(len(text)) != length
}

// Run is what is known about a call that was dispatched.
type Run struct {
	Proposal *v1alpha1.ToolProposal
	// JobExists says that a Job of ours exists; Squatted that somebody else's
	// has its name.
	JobExists, Squatted bool
	// JobFinishedAt is when the Job ended; zero while it runs.
	JobFinishedAt time.Time
	// PodsGone says that no Pod that has or may get the call can still run.
	PodsGone bool
	// NotIsolated says that a Pod ended by saying that its network is open.
	// It is a hint: whoever may write a Pod's status can say it too, and gains
	// another reason for a call that did not run.
	NotIsolated bool
	// Cancel is why the call should be stopped; empty when it should not.
	Cancel        string
	CancelMessage string
	// SchemaProblem says why the output breaks its schema; empty when it does not.
	SchemaProblem string
	// OtherEpoch says that the call was granted before the cluster or the log
	// was restored.
	OtherEpoch bool
	// Timeout of the tool itself.
	Timeout time.Duration
}

// Step is what follows for a call that was dispatched.
type Step struct {
	// Phase is empty when nothing changes.
	Phase   v1alpha1.Phase
	Reason  string
	Message string
	// CreateJob says that the Job was never created and must be now.
	CreateJob bool
	// StopJob says that the Job must be deleted before anything else.
	StopJob bool
	Recheck time.Duration
}

// Follow says what follows for a call that was dispatched. A call that was
// never redeemed had no effect; one that was redeemed and did not report may
// have had one, and is never run again.
func Follow(r Run, now time.Time) Step {
	status := &r.Proposal.Status
	switch {
	case status.Result != nil:
		return finish(r)
	case status.RedeemedBy == nil:
		return followUnredeemed(r, now)
	}
	return followRedeemed(r, now)
}

func followUnredeemed(r Run, now time.Time) Step {
	deadline := r.Proposal.Status.Dispatch.Deadline.Time
	neverStarted := Step{Phase: v1alpha1.PhaseFailed, Reason: v1alpha1.ReasonNeverStarted, StopJob: r.JobExists}
	if r.Proposal.Status.Reason == v1alpha1.ReasonPodSpecDrift {
		// What kept the runner from the call says more than that it was kept.
		neverStarted.Reason, neverStarted.Message = v1alpha1.ReasonPodSpecDrift, r.Proposal.Status.Message
	}
	switch {
	case r.OtherEpoch:
		return Step{
			Phase: v1alpha1.PhaseIndeterminate, Reason: v1alpha1.ReasonRestoreDetected, StopJob: r.JobExists,
			Message: "the call was granted in an earlier epoch, and what is known of it may be older than what became of it; it is not run any more",
		}
	case r.Cancel != "":
		return Step{Phase: v1alpha1.PhaseCancelled, Reason: r.Cancel, Message: r.CancelMessage, StopJob: r.JobExists}
	case r.Squatted:
		return Step{Phase: v1alpha1.PhaseFailed, Reason: v1alpha1.ReasonNameSquatted, Message: "a Job that Assent did not create has the name of this call's Job; it was not touched and nothing ran"}
	case !now.Before(deadline):
		neverStarted.Message = orElse(neverStarted.Message, "no runner fetched the call before its deadline; it had no effect")
	case !r.JobExists:
		return Step{CreateJob: true, Recheck: deadline.Sub(now)}
	case r.JobFinishedAt.IsZero() || !r.PodsGone:
		return Step{Recheck: deadline.Sub(now)}
	case r.NotIsolated:
		neverStarted.Reason = v1alpha1.ReasonEgressNotIsolated
		neverStarted.Message = "the tool requires isolation, and its Pod reached what no rule allows; does the network plugin enforce NetworkPolicy? The call had no effect"
	default:
		neverStarted.Message = orElse(neverStarted.Message, "the Job ended before its runner fetched the call; it had no effect")
	}
	return neverStarted
}

func followRedeemed(r Run, now time.Time) Step {
	redeemed := r.Proposal.Status.RedeemedBy.Time.Time
	giveUp := redeemed.Add(r.Timeout + 2*reportGrace)
	lost := Step{
		Phase: v1alpha1.PhaseIndeterminate, Reason: v1alpha1.ReasonResultLost, StopJob: true,
		Message: "a runner fetched the call and never reported; whether it had its effect is not known, and it is not run again",
	}
	switch {
	case r.Cancel != "" && r.PodsGone:
		return Step{Phase: v1alpha1.PhaseCancelled, Reason: r.Cancel, Message: r.CancelMessage + "; its effect may have begun", StopJob: r.JobExists}
	case !now.Before(giveUp):
		return lost
	case r.Cancel != "":
		// Deleting the Job ends its Pod, which takes its time.
		return Step{StopJob: r.JobExists, Recheck: time.Second}
	case r.PodsGone && !r.JobExists:
		return lost
	case r.PodsGone && !r.JobFinishedAt.IsZero():
		if wait := r.JobFinishedAt.Add(reportGrace).Sub(now); wait > 0 {
			return Step{Recheck: wait}
		}
		return lost
	}
	return Step{Phase: v1alpha1.PhaseRunning, Reason: v1alpha1.ReasonRedeemed, Message: "the runner fetched the call", Recheck: giveUp.Sub(now)}
}

func finish(r Run) Step {
	result := r.Proposal.Status.Result
	switch {
	case result.Reason == reasonResponseLost:
		return Step{
			Phase: v1alpha1.PhaseIndeterminate, Reason: result.Reason,
			Message: "the request was sent and its answer was lost; whether it had its effect is not known, and it is not sent again",
		}
	case result.Outcome == string(attest.OutcomeTimedOut):
		return Step{Phase: v1alpha1.PhaseFailed, Reason: v1alpha1.ReasonTimedOut, Message: "the tool was stopped at its timeout"}
	case result.Outcome != string(attest.OutcomeSucceeded):
		reason := result.Reason
		if reason == "" {
			reason = v1alpha1.ReasonToolFailed
		}
		return Step{Phase: v1alpha1.PhaseFailed, Reason: reason, Message: "the tool reported failure"}
	case r.SchemaProblem != "":
		return Step{Phase: v1alpha1.PhaseFailed, Reason: v1alpha1.ReasonResultSchemaViolation, Message: r.SchemaProblem}
	}
	return Step{Phase: v1alpha1.PhaseSucceeded, Reason: v1alpha1.ReasonSucceeded, Message: "the tool reported success"}
}

func orElse(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}
