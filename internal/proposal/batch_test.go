// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
)

var batchStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// batchCall is a call of a batch of two in iteration 1 that has ended.
func batchCall(callID string, change ...func(*BatchMember)) BatchMember {
	m := BatchMember{
		Proposal: &v1alpha1.ToolProposal{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID(callID)},
			Status:     v1alpha1.ToolProposalStatus{Phase: v1alpha1.PhaseSucceeded, CompletionTime: &metav1.Time{Time: batchStart}},
		},
		Seal: &attest.ProposalSeal{CallID: callID, Iteration: new(int64(1)), Batch: &attest.BatchRef{ID: "b", Size: 2}, IssuedAt: batchStart},
	}
	for _, c := range change {
		c(&m)
	}
	return m
}

func TestJudgeBatch_EveryRow(t *testing.T) {
	running := func(m *BatchMember) {
		m.Proposal.Status.Phase, m.Proposal.Status.CompletionTime = v1alpha1.PhaseRunning, nil
	}
	denied := func(m *BatchMember) { m.Proposal.Status.Phase = v1alpha1.PhaseDenied }
	duplicate := func(m *BatchMember) {
		m.Proposal.Status.Phase, m.Proposal.Status.Reason = v1alpha1.PhaseInvalid, v1alpha1.ReasonDuplicateCallID
		m.Proposal.UID += "-again"
	}
	later := func(m *BatchMember) { m.Seal.IssuedAt = batchStart.Add(time.Second) }
	otherIteration := func(m *BatchMember) { later(m); m.Seal.Iteration = new(int64(2)) }
	otherSize := func(m *BatchMember) { later(m); m.Seal.Batch = &attest.BatchRef{ID: "b", Size: 3} }
	type want struct {
		Ended   bool
		Reason  string
		Calls   []string
		Recheck time.Duration
	}
	for name, tc := range map[string]struct {
		members []BatchMember
		over    bool
		after   time.Duration
		want    want
	}{
		"all ended":                            {members: []BatchMember{batchCall("2"), batchCall("1", denied)}, want: want{true, "BatchComplete", []string{"1", "2"}, 0}},
		"one runs":                             {members: []BatchMember{batchCall("1"), batchCall("2", running)}, want: want{}},
		"one runs in a session that is over":   {members: []BatchMember{batchCall("1"), batchCall("2", running)}, over: true, want: want{}},
		"one was not made yet":                 {members: []BatchMember{batchCall("1")}, after: time.Minute, want: want{false, "", []string{"1"}, 9 * time.Minute}},
		"one was never made":                   {members: []BatchMember{batchCall("1")}, after: BatchPatience, want: want{true, "MissingOutcome", []string{"1"}, 0}},
		"one will not be made":                 {members: []BatchMember{batchCall("1")}, over: true, want: want{true, "MissingOutcome", []string{"1"}, 0}},
		"a duplicate that its session refused": {members: []BatchMember{batchCall("1"), batchCall("2"), batchCall("2", duplicate)}, want: want{true, "BatchComplete", []string{"1", "2"}, 0}},
		"two with one call ID":                 {members: []BatchMember{batchCall("1"), batchCall("1", later)}, want: want{true, "DuplicateOutcome", []string{"1", "1"}, 0}},
		"one of another iteration":             {members: []BatchMember{batchCall("1"), batchCall("2"), batchCall("3", otherIteration)}, want: want{true, "ForeignOutcome", []string{"1", "2"}, 0}},
		"one of another size":                  {members: []BatchMember{batchCall("1"), batchCall("2", otherSize)}, want: want{true, "ForeignOutcome", []string{"1"}, 0}},
		"one too many":                         {members: []BatchMember{batchCall("1"), batchCall("2"), batchCall("3")}, want: want{true, "ForeignOutcome", []string{"1", "2", "3"}, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			v := JudgeBatch(tc.members, tc.over, batchStart.Add(tc.after))
			got := want{Ended: v.Ended, Reason: v.Reason, Recheck: v.Recheck}
			if v.Ended || v.Recheck > 0 {
				for _, m := range v.Outcomes {
					got.Calls = append(got.Calls, m.Seal.CallID)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}
