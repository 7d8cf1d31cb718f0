// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
)

// ledgerLabel keeps the codes of ledgers apart from others of the same key.
const ledgerLabel = "session-ledger"

// claimDigits is how much of a call ID's digest a claim keeps. Two IDs with one
// beginning would only refuse their own session's call.
const claimDigits = 24

// Claim says how a call stands with its session's ledger.
type Claim struct {
	// Needed says that the session must take up the call before anything is
	// decided about it.
	Needed bool
	// Refusal says why the session does not take up the call; nil when it does.
	Refusal *ClaimRefusal
}

// ClaimRefusal is why a session does not take up a call.
type ClaimRefusal struct {
	// Field of the proposal, Reason in one word, Message what to change.
	Field, Reason, Message string
}

// Phase is what a refused call ends in: a call that can never be made is
// invalid, one that may not be made any more is denied.
func (r ClaimRefusal) Phase() v1alpha1.Phase {
	switch r.Reason {
	case v1alpha1.ReasonDuplicateCallID, v1alpha1.ReasonIterationBackwards:
		return v1alpha1.PhaseInvalid
	}
	return v1alpha1.PhaseDenied
}

// ClaimOf says how the call stands with the session's ledger. Budgets are not
// looked at: they decide when the call is taken up and never again.
func ClaimOf(k *attest.Keyring, s *v1alpha1.AgentSession, p *v1alpha1.ToolProposal) Claim {
	if err := verifyLedger(k, s); err != nil {
		return Claim{Refusal: tamperedLedger()}
	}
	switch owner := ownerOf(s.Status.Ledger, p.Spec.CallID); owner {
	case "":
		return Claim{Needed: true}
	case p.UID:
		return Claim{}
	}
	return Claim{Refusal: duplicateCallID()}
}

// CheckClaim says why the session would not take up the call now; nil when it
// would. pending is how many other calls of the session are open.
func CheckClaim(k *attest.Keyring, s *v1alpha1.AgentSession, p *v1alpha1.ToolProposal, pending int) *ClaimRefusal {
	if err := verifyLedger(k, s); err != nil {
		return tamperedLedger()
	}
	ledger := s.Status.Ledger
	if ledger == nil {
		ledger = &v1alpha1.SessionLedger{}
	}
	switch {
	case ownerOf(ledger, p.Spec.CallID) != "":
		return duplicateCallID()
	case p.Spec.Iteration != nil && ledger.Iteration != nil && *p.Spec.Iteration < *ledger.Iteration:
		return &ClaimRefusal{"spec.iteration", v1alpha1.ReasonIterationBackwards, "the session has made a call of a later iteration"}
	case len(ledger.Claims) >= v1alpha1.MaxSessionCalls:
		return overBudget(fmt.Sprintf("a session carries at most %d calls: use a new one", v1alpha1.MaxSessionCalls))
	}
	return checkBudget(s.Spec.Limits, ledger, p.Spec.Tool, pending)
}

func checkBudget(limits *v1alpha1.SessionLimits, ledger *v1alpha1.SessionLedger, tool string, pending int) *ClaimRefusal {
	if limits == nil {
		return nil
	}
	if limits.Calls != nil && len(ledger.Claims) >= int(*limits.Calls) {
		return overBudget(fmt.Sprintf("the session may make %d calls and has made them", *limits.Calls))
	}
	if limits.Pending != nil && pending >= int(*limits.Pending) {
		return overBudget(fmt.Sprintf("the session may have %d calls open at once and has", *limits.Pending))
	}
	for _, l := range limits.PerTool {
		if l.Tool == tool && callsOf(ledger, tool) >= l.Calls {
			return overBudget(fmt.Sprintf("the session may make %d calls of tool %s and has made them", l.Calls, tool))
		}
	}
	return nil
}

// EnterClaim writes the call into the session's ledger. CheckClaim must have
// found nothing against it in the same state of the session.
func EnterClaim(k *attest.Keyring, s *v1alpha1.AgentSession, p *v1alpha1.ToolProposal) error {
	if s.Status.Ledger == nil {
		s.Status.Ledger = &v1alpha1.SessionLedger{}
	}
	ledger := s.Status.Ledger
	ledger.Claims = append(ledger.Claims, claimKey(p.Spec.CallID)+string(p.UID))
	s.Status.Calls = int32(len(ledger.Claims)) //nolint:gosec // at most MaxSessionCalls
	i := slices.IndexFunc(ledger.Tools, func(t v1alpha1.ToolLimit) bool { return t.Tool == p.Spec.Tool })
	if i < 0 {
		i = len(ledger.Tools)
		ledger.Tools = append(ledger.Tools, v1alpha1.ToolLimit{Tool: p.Spec.Tool})
	}
	ledger.Tools[i].Calls++
	if p.Spec.Iteration != nil && (ledger.Iteration == nil || *ledger.Iteration < *p.Spec.Iteration) {
		iteration := *p.Spec.Iteration
		ledger.Iteration = &iteration
	}
	ledger.KeyID = k.SigningKeyID()
	code, err := ledgerCode(k, s)
	if err != nil {
		return err
	}
	ledger.Seal = code
	return nil
}

// HasClaim says whether the ledger names the proposal.
func HasClaim(s *v1alpha1.AgentSession, uid types.UID) bool {
	if s.Status.Ledger == nil {
		return false
	}
	return slices.ContainsFunc(s.Status.Ledger.Claims, func(c string) bool { return strings.HasSuffix(c, "/"+string(uid)) })
}

func claimKey(callID string) string {
	sum := sha256.Sum256([]byte(callID))
	return hex.EncodeToString(sum[:])[:claimDigits] + "/"
}

func ownerOf(ledger *v1alpha1.SessionLedger, callID string) types.UID {
	if ledger == nil {
		return ""
	}
	key := claimKey(callID)
	for _, c := range ledger.Claims {
		if uid, ok := strings.CutPrefix(c, key); ok {
			return types.UID(uid)
		}
	}
	return ""
}

func callsOf(ledger *v1alpha1.SessionLedger, tool string) int32 {
	for _, t := range ledger.Tools {
		if t.Tool == tool {
			return t.Calls
		}
	}
	return 0
}

// verifyLedger checks that the ledger is the operator's own, for this session.
func verifyLedger(k *attest.Keyring, s *v1alpha1.AgentSession) error {
	if s.Status.Ledger == nil {
		return nil
	}
	code, err := ledgerCode(k, s)
	if err != nil || !hmac.Equal([]byte(code), []byte(s.Status.Ledger.Seal)) {
		return fmt.Errorf("%w: ledger", ErrStatusTampered)
	}
	return nil
}

func ledgerCode(k *attest.Keyring, s *v1alpha1.AgentSession) (string, error) {
	ledger := s.Status.Ledger.DeepCopy()
	ledger.Seal = ""
	text, err := json.Marshal(ledger)
	if err != nil {
		return "", fmt.Errorf("encoding the session's ledger: %w", err)
	}
	key, err := k.DeriveKeyWith(ledger.KeyID, ledgerLabel, string(s.UID))
	if err != nil {
		return "", fmt.Errorf("deriving the key of the session's ledger: %w", err)
	}
	mac := hmac.New(sha256.New, key[:])
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)), nil
}

func duplicateCallID() *ClaimRefusal {
	return &ClaimRefusal{"spec.callID", v1alpha1.ReasonDuplicateCallID, "another proposal of the session has this call ID: a changed call is another call and needs an ID of its own"}
}

func overBudget(message string) *ClaimRefusal {
	return &ClaimRefusal{"spec.sessionRef", v1alpha1.ReasonBudgetExceeded, message}
}

func tamperedLedger() *ClaimRefusal {
	return &ClaimRefusal{"spec.sessionRef", v1alpha1.ReasonLedgerTampered, "somebody else wrote the ledger of the call's session: use a new session"}
}
