// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"cmp"
	"slices"
	"time"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
)

// BatchPatience is how long after its last outcome a batch waits for calls that
// were never made, in a session that makes no calls of later iterations.
const BatchPatience = 10 * time.Minute

// BatchMember is a call that names a batch, with its verified seal.
type BatchMember struct {
	Proposal *v1alpha1.ToolProposal
	Seal     *attest.ProposalSeal
}

// BatchOwner is whose batch the member names: that of one object of a session
// or, without one, the requester's. Batches of different owners may share an ID.
func (m BatchMember) BatchOwner() attest.SessionRef {
	if s := m.Seal.Session; s != nil {
		return attest.SessionRef{Name: s.Name, UID: s.UID, SpecDigest: s.SpecDigest}
	}
	return attest.SessionRef{Name: m.Seal.Requester.Username}
}

func (m BatchMember) iteration() int64 {
	if m.Seal.Iteration == nil {
		return 0
	}
	return *m.Seal.Iteration
}

// refused says that the call was never one of its session, so that it has no
// outcome to tell.
func (m BatchMember) refused() bool {
	switch m.Proposal.Status.Reason {
	case v1alpha1.ReasonDuplicateCallID, v1alpha1.ReasonIterationBackwards:
		return m.Proposal.Status.Phase == v1alpha1.PhaseInvalid
	}
	return false
}

// BatchVerdict is what the outcomes of a batch amount to.
type BatchVerdict struct {
	// Ended says that nothing is waited for any more. Reason is then
	// BatchComplete, or why the batch failed.
	Ended  bool
	Reason string
	// Outcomes are the calls that count, by call ID.
	Outcomes []BatchMember
	// Iteration and Batch are those of the call that was admitted first.
	Iteration int64
	Batch     attest.BatchRef
	// Recheck is how long until time alone may end the batch; zero when it
	// cannot.
	Recheck time.Duration
}

// Complete says that there is exactly one outcome for each call.
func (v BatchVerdict) Complete() bool { return v.Ended && v.Reason == v1alpha1.ReasonBatchComplete }

// JudgeBatch says what the calls of one owner that name a batch amount to.
// over says that the owner makes no more calls of the batch: its session has
// ended, or has gone on to a later iteration.
func JudgeBatch(members []BatchMember, over bool, now time.Time) BatchVerdict {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b BatchMember) int {
		return cmp.Or(a.Seal.IssuedAt.Compare(b.Seal.IssuedAt), cmp.Compare(a.Proposal.UID, b.Proposal.UID))
	})
	var v BatchVerdict
	first := members[0]
	v.Iteration, v.Batch = first.iteration(), *first.Seal.Batch
	foreign := false
	var last time.Time
	for _, m := range members {
		if !m.Proposal.Status.Phase.Terminal() {
			return v
		}
		if m.refused() {
			continue
		}
		if done := m.Proposal.Status.CompletionTime; done != nil && done.After(last) {
			last = done.Time
		}
		if m.iteration() != v.Iteration || *m.Seal.Batch != v.Batch {
			foreign = true
			continue
		}
		v.Outcomes = append(v.Outcomes, m)
	}
	slices.SortStableFunc(v.Outcomes, func(a, b BatchMember) int { return cmp.Compare(a.Seal.CallID, b.Seal.CallID) })
	v.Reason = reasonOf(v, foreign)
	wait := last.Add(BatchPatience).Sub(now)
	if v.Reason == v1alpha1.ReasonMissingOutcome && !over && wait > 0 {
		v.Reason, v.Recheck = "", wait
		return v
	}
	v.Ended = true
	return v
}

func reasonOf(v BatchVerdict, foreign bool) string {
	for i := 1; i < len(v.Outcomes); i++ {
		if v.Outcomes[i].Seal.CallID == v.Outcomes[i-1].Seal.CallID {
			return v1alpha1.ReasonDuplicateOutcome
		}
	}
	switch n := int64(len(v.Outcomes)); {
	case foreign || n > v.Batch.Size:
		return v1alpha1.ReasonForeignOutcome
	case n < v.Batch.Size:
		return v1alpha1.ReasonMissingOutcome
	}
	return v1alpha1.ReasonBatchComplete
}
