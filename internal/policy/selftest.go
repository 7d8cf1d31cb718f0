// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
)

// probe is a question whose answer is known, whatever policies are in force.
type probe struct {
	name  string
	texts []string
	// approved asks about the call as people had approved it.
	approved bool
	want     Decision
}

const (
	probePermit = `permit (principal == k8s::User::"probe", action == Action::"tool_call::probe", resource == Tool::"probe")
		when { context.invocation.arguments.count <= 5 };`
	probeForbid   = "forbid (principal, action, resource);"
	probeAlmost   = "permit (principal, action, resource) when { context.invocation.arguments.count > 5 };"
	probeOverflow = "forbid (principal, action, resource) when { context.invocation.arguments.count + 9223372036854775807 < 0 };"
	probeTypo     = "forbid (principal, action, resource) when { context.invocation.arguments.cuont > 5 };"
	probeApproved = "permit (principal, action, resource) when { context.has_human_approval };"
	probeDecimal  = `forbid (principal, action, resource) unless { context.invocation.arguments.rate.lessThan(decimal("0.0")) };`
)

// probes are what must hold for any other answer to be worth something. Each
// is a way in which an engine, or the code around it, would permit too much or
// deny without saying why. The policies of the first text are probe/t0#0 and
// so on.
func probes() []probe {
	permitted := Decision{Answer: Allow, Reason: ReasonPermitted, Policies: []string{"probe/t0#0"}}
	forbidden := Decision{Answer: Deny, Reason: ReasonForbidden}
	by := func(d Decision, policies ...string) Decision {
		d.Policies = policies
		return d
	}
	nobody := Decision{Answer: Deny, Reason: ReasonNoPolicyPermits}
	near := nobody
	near.NearMisses = []NearMiss{{Policy: "probe/t0#0"}}
	return []probe{
		{name: "a permit that holds", texts: []string{probePermit}, want: permitted},
		{name: "no policy at all", want: nobody},
		{name: "a permit of another tool", texts: []string{`permit (principal, action, resource == Tool::"other");`}, want: nobody},
		{name: "a permit that almost holds", texts: []string{probeAlmost}, want: near},
		{name: "a forbid beside a permit", texts: []string{probePermit, probeForbid}, want: by(forbidden, "probe/t1#0")},
		{name: "a forbid behind a permit in one text", texts: []string{probePermit + probeForbid}, want: by(forbidden, "probe/t0#1")},
		{name: "a forbid of an approved call", texts: []string{probePermit, probeForbid}, approved: true, want: by(forbidden, "probe/t1#0")},
		{name: "a forbid that fails", texts: []string{probePermit, probeOverflow}, want: Decision{
			Answer: Deny, Reason: ReasonPolicyError, Policies: []string{"probe/t1#0"},
		}},
		{name: "a forbid with a typo", texts: []string{probePermit, probeTypo}, want: Decision{
			Answer: Deny, Reason: ReasonPolicyUnhealthy, Policies: []string{"probe/t1#0"},
		}},
		{name: "a permit of approved calls", texts: []string{probeApproved}, want: Decision{
			Answer: NeedsApproval, Reason: ReasonApprovalRequired, Policies: []string{"probe/t0#0"},
		}},
		{name: "an approved call", texts: []string{probeApproved}, approved: true, want: permitted},
		{name: "a decimal below zero", texts: []string{probePermit, probeDecimal}, want: permitted},
	}
}

// probeCall is the call that all of them are about.
func probeCall(approved bool) Call {
	const fingerprint = "0000000000000000000000000000000000000000000000000000000000000000"
	call := Call{
		Tool: Tool{
			Namespace: "probe", Name: "probe", Version: "1", EffectKind: EffectCommand,
			Arguments: []Argument{{Name: "count", Kind: "integer", Required: true}, {Name: "rate", Kind: "number", Required: true}},
		},
		Principal: Principal{Username: "probe"}, ArgsCanonicalJSON: `{"count":5,"rate":-0.5}`, Fingerprint: fingerprint,
		Effect: EffectView{Kind: EffectCommand, Argv: []string{"true"}},
	}
	if approved {
		call.Approved, call.ApprovedFingerprint = true, fingerprint
	}
	return call
}

// SelfTest asks an engine, by the way of every decision, what is known, and says
// which answer was another one. It takes about a millisecond.
func SelfTest(engine Engine) error {
	for _, p := range probes() {
		if got := p.ask(engine); !p.answered(got) {
			return fmt.Errorf("self-test of the policy engine, %s: the answer is %s (%s) by %q where it must be %s (%s) by %q; replace this build",
				p.name, got.Answer, got.Reason, got.Policies, p.want.Answer, p.want.Reason, p.want.Policies)
		}
	}
	return nil
}

func (p *probe) ask(engine Engine) Decision {
	set := newSet(Limits{}).withEngine(engine)
	for i, text := range p.texts {
		// A text that cannot be read gives another answer than the known one.
		one, _ := Compile(Source{Namespace: "probe", Name: fmt.Sprintf("t%d", i), Text: text}, Limits{})
		set = set.With(one)
	}
	call := probeCall(p.approved)
	return set.WithTools("probe", []Tool{call.Tool}).Decide(call, Options{})
}

// answered compares what decides and what explains, not the wording.
func (p *probe) answered(got Decision) bool {
	return got.Answer == p.want.Answer && got.Reason == p.want.Reason && slices.Equal(got.Policies, p.want.Policies) &&
		slices.EqualFunc(got.NearMisses, p.want.NearMisses, func(a, b NearMiss) bool { return a.Policy == b.Policy })
}
