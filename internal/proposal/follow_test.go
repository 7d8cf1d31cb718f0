// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/proposal"
)

// dispatched is a call that was granted a minute before its deadline, whose
// Job exists and runs.
func dispatched(edit func(*proposal.Run)) proposal.Run {
	p := &v1alpha1.ToolProposal{Status: v1alpha1.ToolProposalStatus{
		Phase: v1alpha1.PhaseDispatching, Reason: v1alpha1.ReasonGranted,
		Dispatch: &v1alpha1.Dispatch{Deadline: metav1.NewTime(now.Add(time.Minute))},
	}}
	r := proposal.Run{Proposal: p, JobExists: true, Timeout: time.Minute}
	edit(&r)
	return r
}

// redeemed is the same after a runner fetched it, just now.
func redeemed(edit func(*proposal.Run)) proposal.Run {
	return dispatched(func(r *proposal.Run) {
		r.Proposal.Status.RedeemedBy = &v1alpha1.Redemption{Time: metav1.NewTime(now)}
		edit(r)
	})
}

func reported(outcome, reason string, edit func(*proposal.Run)) proposal.Run {
	return redeemed(func(r *proposal.Run) {
		r.Proposal.Status.Result = &v1alpha1.Result{Outcome: outcome, Reason: reason}
		edit(r)
	})
}

// end is phase, reason and what is done about the Job. Messages are for
// people; where one is carried over a test of its own says so.
func end(s proposal.Step) string {
	text := string(s.Phase) + "/" + s.Reason
	if s.CreateJob {
		text += " create"
	}
	if s.StopJob {
		text += " stop"
	}
	if s.Recheck > 0 {
		text += " again in " + s.Recheck.String()
	}
	return text
}

func TestFollow_EveryRow(t *testing.T) {
	keep := func(*proposal.Run) {}
	cancel := func(r *proposal.Run) { r.Cancel, r.CancelMessage = "DeniedByApprover", "denied by alice" }
	gone := func(r *proposal.Run) { r.PodsGone, r.JobFinishedAt = true, now }
	for name, tc := range map[string]struct {
		run   proposal.Run
		after time.Duration
		want  string
	}{
		"it waits for its runner":                 {dispatched(keep), 0, "/ again in 1m0s"},
		"a missing Job was never created":         {dispatched(func(r *proposal.Run) { r.JobExists = false }), 0, "/ create again in 1m0s"},
		"nobody came before the deadline":         {dispatched(keep), time.Minute, "Failed/NeverStarted stop"},
		"nobody came and there was no Job":        {dispatched(func(r *proposal.Run) { r.JobExists = false }), time.Minute, "Failed/NeverStarted"},
		"its Job ended before its runner came":    {dispatched(gone), 0, "Failed/NeverStarted stop"},
		"its Job ended and a Pod still runs":      {dispatched(func(r *proposal.Run) { r.JobFinishedAt = now }), 0, "/ again in 1m0s"},
		"somebody else's Job has the name":        {dispatched(func(r *proposal.Run) { r.JobExists, r.Squatted = false, true }), 0, "Failed/NameSquatted"},
		"cancelled before a runner came":          {dispatched(cancel), 0, "Cancelled/DeniedByApprover stop"},
		"cancelled without a Job":                 {dispatched(func(r *proposal.Run) { cancel(r); r.JobExists = false }), 0, "Cancelled/DeniedByApprover"},
		"its Pod's network was open":              {dispatched(func(r *proposal.Run) { gone(r); r.NotIsolated = true }), 0, "Failed/EgressNotIsolated stop"},
		"a Pod that still runs says nothing":      {dispatched(func(r *proposal.Run) { r.NotIsolated = true }), 0, "/ again in 1m0s"},
		"granted before a restore":                {dispatched(func(r *proposal.Run) { cancel(r); r.OtherEpoch = true }), 0, "Indeterminate/RestoreDetected stop"},
		"granted before a restore, without a Job": {dispatched(func(r *proposal.Run) { r.JobExists, r.OtherEpoch = false, true }), 0, "Indeterminate/RestoreDetected"},
		"it runs since before a restore":          {redeemed(func(r *proposal.Run) { r.OtherEpoch = true }), 0, "Running/Redeemed again in 1m30s"},
		"its Pod was changed by somebody":         {dispatched(func(r *proposal.Run) { gone(r); r.Proposal.Status.Reason = "PodSpecDrift" }), 0, "Failed/PodSpecDrift stop"},
		"it runs":                                 {redeemed(keep), 0, "Running/Redeemed again in 1m30s"},
		"it runs past the deadline for starting":  {redeemed(keep), time.Minute, "Running/Redeemed again in 30s"},
		"it never reported":                       {redeemed(keep), 90 * time.Second, "Indeterminate/ResultLost stop"},
		"its Pod ended and the report may come":   {redeemed(gone), 0, "/ again in 15s"},
		"its Pod ended and no report came":        {redeemed(gone), 15 * time.Second, "Indeterminate/ResultLost stop"},
		"its Job was taken away":                  {redeemed(func(r *proposal.Run) { r.JobExists, r.PodsGone = false, true }), 0, "Indeterminate/ResultLost stop"},
		"cancelled while it runs":                 {redeemed(cancel), 0, "/ stop again in 1s"},
		"cancelled, and its Job went first":       {redeemed(func(r *proposal.Run) { cancel(r); r.JobExists = false }), 0, "/ again in 1s"},
		"cancelled and stopped":                   {redeemed(func(r *proposal.Run) { cancel(r); r.PodsGone = true }), 0, "Cancelled/DeniedByApprover stop"},
		"cancelled, and its Pod never went":       {redeemed(cancel), 90 * time.Second, "Indeterminate/ResultLost stop"},
		"its Job was taken away, its Pod runs on": {redeemed(func(r *proposal.Run) { r.JobExists = false }), 0, "Running/Redeemed again in 1m30s"},

		"success":                         {reported("Succeeded", "", keep), 0, "Succeeded/Succeeded"},
		"success that breaks its schema":  {reported("Succeeded", "", func(r *proposal.Run) { r.SchemaProblem = "no" }), 0, "Failed/ResultSchemaViolation"},
		"failure":                         {reported("Failed", "", keep), 0, "Failed/ToolFailed"},
		"failure for a reason":            {reported("Failed", "DialRefused", keep), 0, "Failed/DialRefused"},
		"a request whose answer was lost": {reported("Failed", "ResponseLost", keep), 0, "Indeterminate/ResponseLost"},
		"the same at its timeout":         {reported("TimedOut", "ResponseLost", keep), 0, "Indeterminate/ResponseLost"},
		"timeout":                         {reported("TimedOut", "", keep), 0, "Failed/TimedOut"},

		"a report counts although it is cancelled": {reported("Succeeded", "", cancel), 0, "Succeeded/Succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := end(proposal.Follow(tc.run, now.Add(tc.after))); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestFollow_SaysWhatChangedThePod(t *testing.T) {
	run := dispatched(func(r *proposal.Run) {
		r.Proposal.Status.Reason, r.Proposal.Status.Message = v1alpha1.ReasonPodSpecDrift, "a container was added"
	})
	want := proposal.Step{Phase: v1alpha1.PhaseFailed, Reason: "PodSpecDrift", Message: "a container was added", StopJob: true}
	if diff := cmp.Diff(want, proposal.Follow(run, now.Add(time.Minute))); diff != "" {
		t.Errorf("step (-want +got):\n%s", diff)
	}
}

// No effect may begin when the operator has given its call up.
func TestTicketDeadline_LiesBeforeTheCallIsGivenUp(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, time.Minute, 24 * time.Hour} {
		run := redeemed(func(r *proposal.Run) { r.Timeout = timeout })
		deadline := proposal.TicketDeadline(now, timeout)
		if got := proposal.Follow(run, deadline); got.Phase.Terminal() {
			t.Errorf("timeout %s: at the ticket's deadline the call is given up as %s", timeout, end(got))
		}
		if !deadline.After(now.Add(timeout)) {
			t.Errorf("timeout %s: the ticket leaves no time for the call", timeout)
		}
	}
}

// A report says that a text was cut, and not which one.
func TestOutputIsCut_TellsTheOutputFromTheErrorOutput(t *testing.T) {
	for name, c := range map[string]struct {
		cut    bool
		text   string
		length int64
		want   bool
	}{
		"nothing was cut":               {false, "text", 4, false},
		"bytes that are not UTF-8":      {false, "\uFFFD", 1, false},
		"the output was cut":            {true, "text", 5, true},
		"the error output was cut":      {true, "text", 4, false},
		"both, which cannot be told":    {true, "\uFFFD", 1, true},
		"an output of which is nothing": {true, "", 0, false},
	} {
		if got := proposal.OutputIsCut(c.cut, c.text, c.length); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
