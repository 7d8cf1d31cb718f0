// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/policy"
)

const fingerprint = "aa00000000000000000000000000000000000000000000000000000000000001"

// payTool is a tool with arguments of all simple kinds.
func payTool() policy.Tool {
	return policy.Tool{
		Namespace: "team", Name: "pay", Version: "1.0.0", ContractHash: "c0ffee", RiskTier: "high",
		EffectKind: policy.EffectCommand,
		Arguments: []policy.Argument{
			{Name: "to", Kind: "string", Required: true},
			{Name: "amount", Kind: "integer", Required: true},
			{Name: "rate", Kind: "number"},
			{Name: "urgent", Kind: "boolean"},
		},
	}
}

// payCall calls payTool with the arguments given as canonical JSON.
func payCall(args string) policy.Call {
	return policy.Call{
		Tool:              payTool(),
		Principal:         policy.Principal{Username: "system:serviceaccount:team:agent", Groups: []string{"system:authenticated"}},
		ArgsCanonicalJSON: args,
		Fingerprint:       fingerprint,
		Effect:            policy.EffectView{Kind: policy.EffectCommand, Argv: []string{"pay", "now"}, Image: "registry.example/pay@sha256:00"},
	}
}

// setOf compiles texts of namespace team, named p0, p1 and so on; they must all
// be readable.
func setOf(t *testing.T, texts ...string) *policy.Set {
	t.Helper()
	var compiled []*policy.Compiled
	for i, text := range texts {
		c, problems := policy.Compile(policy.Source{Namespace: "team", Name: "p" + string(rune('0'+i)), Text: text}, policy.Limits{})
		if len(problems) > 0 {
			t.Fatalf("policy %d: %v", i, problems)
		}
		compiled = append(compiled, c)
	}
	set, err := policy.NewSet(policy.Limits{}, compiled...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

type verdict struct {
	Answer   policy.Answer
	Reason   policy.Reason
	Policies []string
}

func verdictOf(d policy.Decision) verdict { return verdict{d.Answer, d.Reason, d.Policies} }

func TestDecide_GivesThreeAnswers(t *testing.T) {
	t.Parallel()
	const permitSmall = `permit (principal, action == Action::"tool_call::pay", resource == Tool::"pay") when { context.invocation.arguments.amount <= 100 };`
	const permitApproved = `permit (principal, action == Action::"tool_call::pay", resource == Tool::"pay") when { context.has_human_approval };`
	const forbidLarge = `forbid (principal, action, resource) when { context.invocation.arguments.amount > 1000 };`
	tests := map[string]struct {
		args     string
		human    bool
		approved bool
		want     verdict
	}{
		"what a permit covers is allowed":                   {`{"amount":5,"to":"x"}`, false, false, verdict{policy.Allow, policy.ReasonPermitted, []string{"team/p0#0"}}},
		"what is permitted once approved needs approval":    {`{"amount":500,"to":"x"}`, false, false, verdict{policy.NeedsApproval, policy.ReasonApprovalRequired, []string{"team/p1#0"}}},
		"and is allowed once approved":                      {`{"amount":500,"to":"x"}`, false, true, verdict{policy.Allow, policy.ReasonPermitted, []string{"team/p1#0"}}},
		"a forbid denies":                                   {`{"amount":5000,"to":"x"}`, false, false, verdict{policy.Deny, policy.ReasonForbidden, []string{"team/p2#0"}}},
		"a forbid denies what people approved":              {`{"amount":5000,"to":"x"}`, false, true, verdict{policy.Deny, policy.ReasonForbidden, []string{"team/p2#0"}}},
		"humanApproval demands approval of what is allowed": {`{"amount":5,"to":"x"}`, true, false, verdict{policy.NeedsApproval, policy.ReasonHumanApprovalRequired, []string{"team/p0#0", "team/p1#0"}}},
		"humanApproval is satisfied by an approval":         {`{"amount":5,"to":"x"}`, true, true, verdict{policy.Allow, policy.ReasonPermitted, []string{"team/p0#0", "team/p1#0"}}},
		"humanApproval does not soften a forbid":            {`{"amount":5000,"to":"x"}`, true, false, verdict{policy.Deny, policy.ReasonForbidden, []string{"team/p2#0"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := payCall(tc.args)
			call.Tool.HumanApproval = tc.human
			if tc.approved {
				call.Approved, call.ApprovedFingerprint = true, fingerprint
			}
			got := setOf(t, permitSmall, permitApproved, forbidLarge).Decide(call, policy.Options{})
			if diff := cmp.Diff(tc.want, verdictOf(got)); diff != "" {
				t.Errorf("decision (-want +got):\n%s\n%+v", diff, got)
			}
		})
	}
}
