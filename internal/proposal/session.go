// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"fmt"
	"time"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/snapshot"
)

// maxSessionContext is how long the trusted context of a session may be, in bytes.
const maxSessionContext = 16 << 10

// CheckSessionContext decodes the trusted context of a session under the same
// strict rules as arguments. Errors name no content.
func CheckSessionContext(context string) error {
	if context == "" {
		return nil
	}
	if len(context) > maxSessionContext {
		return fmt.Errorf("context is longer than %d bytes", maxSessionContext)
	}
	tree, err := snapshot.Decode(context)
	if err != nil {
		return fmt.Errorf("context: %w", err)
	}
	if _, ok := tree.(map[string]any); !ok {
		return fmt.Errorf("context must be a JSON object")
	}
	return nil
}

// SessionProblem says why a session does not carry a call of this principal
// now; empty when it does. A missing session is nil.
func SessionProblem(s *v1alpha1.AgentSession, principal string, now time.Time) string {
	switch {
	case s == nil:
		return "the session that the call names does not exist"
	case s.DeletionTimestamp != nil:
		return "the call's session was deleted"
	case s.Spec.Revoked:
		return "the call's session was revoked"
	case !now.Before(s.Spec.ExpiresAt.Time):
		return "the call's session has expired"
	case s.Spec.Principal != principal:
		return "the call's session is another principal's"
	case CheckSessionContext(s.Spec.Context) != nil:
		return "the trusted context of the call's session cannot be read"
	}
	return ""
}

// SessionChanged says why a session is not the one that a call was sealed
// with; empty when it is.
func SessionChanged(s *v1alpha1.AgentSession, sealed *attest.SessionRef) string {
	if sealed == nil || s == nil {
		return ""
	}
	digest, err := SessionDigest(s)
	if err != nil || digest != sealed.SpecDigest || string(s.UID) != sealed.UID {
		return "the call's session changed since the call was prepared"
	}
	return ""
}

// RulesOf are the approval rules of a contract.
func RulesOf(c *contract.Contract) ApprovalRules {
	a := c.Approval()
	rules := ApprovalRules{Timeout: a.Timeout, AllowServiceAccounts: a.AllowServiceAccounts}
	for _, r := range a.Requirements {
		rules.Requirements = append(rules.Requirements, Requirement{Group: r.Group, Count: int(r.Count)})
	}
	return rules
}
