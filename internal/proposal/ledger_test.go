// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
)

func ledgerKeys(t *testing.T) *attest.Keyring {
	t.Helper()
	k, err := attest.NewKeyring(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sessionCall(tool, callID string, iteration *int64) *v1alpha1.ToolProposal {
	return &v1alpha1.ToolProposal{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID("uid-of-" + callID)},
		Spec:       v1alpha1.ToolProposalSpec{Tool: tool, CallID: callID, Iteration: iteration},
	}
}

// sessionWith is a session that has made calls of tool "used", with call IDs
// from 0, in iteration 5.
func sessionWith(t *testing.T, k *attest.Keyring, calls int, limits *v1alpha1.SessionLimits) *v1alpha1.AgentSession {
	t.Helper()
	s := &v1alpha1.AgentSession{ObjectMeta: metav1.ObjectMeta{UID: "session"}, Spec: v1alpha1.AgentSessionSpec{Limits: limits}}
	if calls == 0 {
		return s
	}
	// Each entry is sealed with the whole ledger: the last one is enough.
	s.Status.Ledger = &v1alpha1.SessionLedger{Tools: []v1alpha1.ToolLimit{{Tool: "used", Calls: int32(calls - 1)}}}
	for i := range calls - 1 {
		s.Status.Ledger.Claims = append(s.Status.Ledger.Claims, fmt.Sprintf("%suid-of-%d", claimKey(fmt.Sprint(i)), i))
	}
	if err := EnterClaim(k, s, sessionCall("used", fmt.Sprint(calls-1), new(int64(5)))); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCheckClaim_RefusesExactlyWhatTheSessionMayNot(t *testing.T) {
	k := ledgerKeys(t)
	for name, tc := range map[string]struct {
		made    int
		limits  *v1alpha1.SessionLimits
		call    *v1alpha1.ToolProposal
		pending int
		want    string
	}{
		"the first call":                    {call: sessionCall("used", "a", nil)},
		"a call ID that was used":           {made: 3, call: sessionCall("used", "1", nil), want: v1alpha1.ReasonDuplicateCallID},
		"a call ID of another tool":         {made: 3, call: sessionCall("other", "1", nil), want: v1alpha1.ReasonDuplicateCallID},
		"the same iteration":                {made: 1, call: sessionCall("used", "a", new(int64(5)))},
		"an earlier iteration":              {made: 1, call: sessionCall("used", "a", new(int64(4))), want: v1alpha1.ReasonIterationBackwards},
		"no iteration":                      {made: 1, call: sessionCall("used", "a", nil)},
		"the last call of the budget":       {made: 2, limits: &v1alpha1.SessionLimits{Calls: new(int32(3))}, call: sessionCall("used", "a", nil)},
		"a call beyond the budget":          {made: 3, limits: &v1alpha1.SessionLimits{Calls: new(int32(3))}, call: sessionCall("used", "a", nil), want: v1alpha1.ReasonBudgetExceeded},
		"no call at all allowed":            {limits: &v1alpha1.SessionLimits{Calls: new(int32(0))}, call: sessionCall("used", "a", nil), want: v1alpha1.ReasonBudgetExceeded},
		"as many open calls as allowed":     {limits: &v1alpha1.SessionLimits{Pending: new(int32(2))}, pending: 1, call: sessionCall("used", "a", nil)},
		"one open call too many":            {limits: &v1alpha1.SessionLimits{Pending: new(int32(2))}, pending: 2, call: sessionCall("used", "a", nil), want: v1alpha1.ReasonBudgetExceeded},
		"the last call of a tool":           {made: 1, limits: perTool("used", 2), call: sessionCall("used", "a", nil)},
		"a call of a tool too many":         {made: 2, limits: perTool("used", 2), call: sessionCall("used", "a", nil), want: v1alpha1.ReasonBudgetExceeded},
		"a call of a tool without a limit":  {made: 2, limits: perTool("used", 2), call: sessionCall("other", "a", nil)},
		"the last call that a session has":  {made: v1alpha1.MaxSessionCalls - 1, call: sessionCall("used", "a", nil)},
		"one call more than a session has":  {made: v1alpha1.MaxSessionCalls, call: sessionCall("used", "a", nil), want: v1alpha1.ReasonBudgetExceeded},
		"a call ID that only begins as one": {made: 3, call: sessionCall("used", "11", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if r := CheckClaim(k, sessionWith(t, k, tc.made, tc.limits), tc.call, tc.pending); r != nil {
				got = r.Reason
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func perTool(tool string, calls int32) *v1alpha1.SessionLimits {
	return &v1alpha1.SessionLimits{PerTool: []v1alpha1.ToolLimit{{Tool: tool, Calls: calls}}}
}

func TestClaimOf_KnowsTheOwnerOfACallID(t *testing.T) {
	k := ledgerKeys(t)
	s := sessionWith(t, k, 2, nil)
	owner, other := sessionCall("used", "1", nil), sessionCall("used", "1", nil)
	other.UID = "another"
	for name, tc := range map[string]struct {
		call *v1alpha1.ToolProposal
		want Claim
	}{
		"its owner":        {owner, Claim{}},
		"another proposal": {other, Claim{Refusal: duplicateCallID()}},
		"a new call ID":    {sessionCall("used", "new", nil), Claim{Needed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ClaimOf(k, s, tc.call)); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLedger_ThatWasChanged_RefusesEveryCall(t *testing.T) {
	k := ledgerKeys(t)
	for name, change := range map[string]func(*v1alpha1.AgentSession){
		"a claim removed":              func(s *v1alpha1.AgentSession) { s.Status.Ledger.Claims = s.Status.Ledger.Claims[1:] },
		"a count lowered":              func(s *v1alpha1.AgentSession) { s.Status.Ledger.Tools[0].Calls-- },
		"the iteration lowered":        func(s *v1alpha1.AgentSession) { *s.Status.Ledger.Iteration = 0 },
		"copied from another session":  func(s *v1alpha1.AgentSession) { s.UID = "other" },
		"signed with a key of nobody":  func(s *v1alpha1.AgentSession) { s.Status.Ledger.KeyID = "nobody" },
		"with a seal of another state": func(s *v1alpha1.AgentSession) { s.Status.Ledger.Seal = sessionWith(t, k, 1, nil).Status.Ledger.Seal },
	} {
		t.Run(name, func(t *testing.T) {
			s := sessionWith(t, k, 3, nil)
			change(s)
			call := sessionCall("used", "new", nil)
			if r := CheckClaim(k, s, call, 0); r == nil || r.Reason != v1alpha1.ReasonLedgerTampered {
				t.Errorf("a new call: got %v, want %s", r, v1alpha1.ReasonLedgerTampered)
			}
			if c := ClaimOf(k, s, call); c.Refusal == nil || c.Refusal.Reason != v1alpha1.ReasonLedgerTampered {
				t.Errorf("the claim of a call: got %v, want %s", c, v1alpha1.ReasonLedgerTampered)
			}
		})
	}
}
