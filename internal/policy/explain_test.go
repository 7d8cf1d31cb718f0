// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/policy"
)

func TestDecide_NamesPermitsThatAlmostApplied(t *testing.T) {
	t.Parallel()
	text := `permit (principal, action, resource)
when { context.invocation.arguments.amount > 1 && (context.invocation.arguments.amount < 4 && true) };
permit (principal, action, resource) when { context.has_human_approval }
unless { context.invocation.arguments.to == "x" ||
         context.invocation.arguments.to == "y" };
permit (principal == k8s::User::"bob", action, resource) when { false };
forbid (principal, action, resource) when { resource.risk_tier == "low" };
permit (principal, action, resource)
when { context.invocation.arguments has rate && context.invocation.arguments.rate == decimal("1.0") };`
	got := decide(t, small(), text)
	want := []policy.NearMiss{
		{Policy: "team/p0#0", Line: 2, Column: 52, Condition: "context.invocation.arguments.amount < 4"},
		{Policy: "team/p0#1", Line: 4, Column: 10, Condition: `unless { context.invocation.arguments.to == "x" || context.invocation.arguments.to == "y" }`},
		{Policy: "team/p0#2", Line: 6, Column: 9, Condition: `principal == k8s::User::"bob"`},
		{Policy: "team/p0#4", Line: 9, Column: 8, Condition: "context.invocation.arguments has rate"},
	}
	if got.Reason != policy.ReasonNoPolicyPermits {
		t.Fatalf("decision = %+v, want NoPolicyPermits", got)
	}
	if diff := cmp.Diff(want, got.NearMisses); diff != "" {
		t.Errorf("near misses (-want +got):\n%s", diff)
	}
}

func TestDecide_NamesNoNearMissesOfForbiddenCalls(t *testing.T) {
	t.Parallel()
	got := decide(t, small(), `permit (principal, action, resource) when { false };`, `forbid (principal, action, resource);`)
	if got.Reason != policy.ReasonForbidden || got.NearMisses != nil {
		t.Errorf("decision = %+v, want Forbidden without near misses", got)
	}
}

func TestDecide_BoundsExplanations(t *testing.T) {
	t.Parallel()
	long := `context.invocation.arguments.to == "x` + strings.Repeat("é", 300) + `"`
	var texts []string
	for range 9 {
		texts = append(texts, strings.Repeat("permit (principal, action, resource) when { "+long+" };\n", 2))
	}
	got := decide(t, small(), texts...)
	if len(got.NearMisses) != 16 {
		t.Errorf("%d near misses, want 16", len(got.NearMisses))
	}
	condition := got.NearMisses[0].Condition
	if len(condition) > 260 || !strings.HasSuffix(condition, "é…") {
		t.Errorf("condition = %q, want it cut between characters", condition)
	}
}

func TestDecide_SaysInWordsWhatItDecided(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text, want string
	}{
		"allowed":       {permitAll, "permitted by policy team/p0#0"},
		"forbidden":     {permitAll + "forbid (principal, action, resource); forbid (principal, action, resource);", "forbidden by policy team/p0#1, team/p0#2"},
		"not permitted": {`permit (principal, action, resource) when { false };`, "no policy permits the call"},
		"once approved": {`permit (principal, action, resource) when { context.has_human_approval };`, "the policies permit the call once it is approved"},
		"unhealthy":     {`permit (principal, action, resource) when { context.typo };`, "policy team/p0#0 could match the call, but failed validation; fix it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := decide(t, small(), tc.text); got.Message != tc.want {
				t.Errorf("message = %q, want %q", got.Message, tc.want)
			}
		})
	}
	human := small()
	human.Tool.HumanApproval = true
	if got := decide(t, human, permitAll); got.Message != "the policies permit the call, and its contract demands a person's approval" {
		t.Errorf("message = %q", got.Message)
	}
}

func TestDecide_ObserversCannotChangeTheCall(t *testing.T) {
	t.Parallel()
	set := setOf(t, permitAll)
	var kept any
	keep := func(view any) { kept = view }
	change := func(view any) { view.(map[string]any)["to"] = "attacker" }
	look := func(view any) {
		if got := fmt.Sprint(view); got != "map[amount:5 to:x]" {
			t.Errorf("the observer sees %s", got)
		}
	}
	if got := set.Decide(small(), policy.Options{Observers: []func(any){keep, look, look}}); got.Answer != policy.Allow {
		t.Errorf("observers that look: %+v, want Allow", got)
	}
	kept.(map[string]any)["to"] = "attacker" // too late to matter
	got := set.Decide(small(), policy.Options{Observers: []func(any){look, change, look}})
	want := policy.Decision{
		Answer: policy.Deny, Reason: "policy_mutated_arguments", SetDigest: set.Digest("team"),
		Message: "refused at stage snapshot: policy_mutated_arguments: the view differs from the snapshot; a policy must not change its input",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("an observer that changes its view (-want +got):\n%s", diff)
	}
}

func TestDecide_ShowsObserversOnlyCanonicalText(t *testing.T) {
	t.Parallel()
	call := payCall(`{"to": "x", "amount": 5}`)
	got := setOf(t, permitAll).Decide(call, policy.Options{Observers: []func(any){func(any) { t.Error("the observer was asked") }}})
	if got.Reason != policy.ReasonNotRepresentable {
		t.Errorf("decision = %+v, want NotRepresentable", got)
	}
}

func TestDecide_StopsAtTheTimeBudget(t *testing.T) {
	t.Parallel()
	set := setOf(t, permitAll)
	want := policy.Decision{
		Answer: policy.Deny, Reason: policy.ReasonPolicyTimeout, Policies: []string{"team/p0#0"}, SetDigest: set.Digest("team"),
		Message: "policy team/p0#0: the time for the decision ran out before this policy",
		Errors:  []policy.EvaluationError{{Policy: "team/p0#0", Message: "the time for the decision ran out before this policy"}},
	}
	if diff := cmp.Diff(want, set.Decide(small(), policy.Options{Expired: func() bool { return true }})); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	if got := set.Decide(small(), policy.Options{Expired: func() bool { return false }}); got.Answer != policy.Allow {
		t.Errorf("with time left: %+v, want Allow", got)
	}
}

func TestDecide_DeniesOnInvalidTrustedContext(t *testing.T) {
	t.Parallel()
	s := source(permitAll + `permit (principal, action, resource) when { context has session && context.session has tenant && context.session.tenant == "x" };`)
	s.SessionAttributes = []policy.SessionAttribute{
		{Name: "tenant", Type: policy.AttributeString},
		{Name: "level", Type: policy.AttributeLong},
		{Name: "night", Type: policy.AttributeBoolean},
		{Name: "roles", Type: policy.AttributeStrings},
	}
	required := source(permitAll)
	required.Name, required.SessionAttributes = "q", []policy.SessionAttribute{{Name: "owner", Type: policy.AttributeString, Required: true}}
	elsewhere := source(`permit (principal, action == Action::"none", resource);`)
	elsewhere.Name, elsewhere.SessionAttributes = "r", []policy.SessionAttribute{{Name: "owner", Type: policy.AttributeLong, Required: true}}
	var all []*policy.Compiled
	for _, one := range []policy.Source{s, required, elsewhere} {
		c, problems := policy.Compile(one, policy.Limits{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		all = append(all, c)
	}
	set := mustSet(t, policy.Limits{}, all...)
	tests := map[string]struct {
		session string
		want    string // empty: allowed
	}{
		"what is required":            {`{"owner":"x"}`, ""},
		"all of the declared types":   {`{"level":1,"night":true,"owner":"x","roles":["a"],"tenant":"x"}`, ""},
		"an empty set":                {`{"owner":"x","roles":[]}`, ""},
		"more than is declared":       {`{"owner":"x","other":{"a":[1]}}`, ""},
		"nothing":                     {``, "the session's attribute owner, which the policy declares, is missing; correct the AgentSession"},
		"null for what is required":   {`{"owner":null}`, "the session's attribute owner, which the policy declares, is missing; correct the AgentSession"},
		"a number for a text":         {`{"owner":1}`, "the session's attribute owner, which the policy declares, has another type than String; correct the AgentSession"},
		"a text for a number":         {`{"level":"1","owner":"x"}`, "the session's attribute level, which the policy declares, has another type than Long; correct the AgentSession"},
		"a fraction for a number":     {`{"level":1.5,"owner":"x"}`, "the session's attribute level, which the policy declares, has another type than Long; correct the AgentSession"},
		"a text for a truth value":    {`{"night":"true","owner":"x"}`, "the session's attribute night, which the policy declares, has another type than Boolean; correct the AgentSession"},
		"a text for a set":            {`{"owner":"x","roles":"a"}`, "the session's attribute roles, which the policy declares, has another type than Set<String>; correct the AgentSession"},
		"a set of numbers":            {`{"owner":"x","roles":[1]}`, "the session's attribute roles, which the policy declares, has another type than Set<String>; correct the AgentSession"},
		"a set for a text":            {`{"owner":"x","tenant":["x"]}`, "the session's attribute tenant, which the policy declares, has another type than String; correct the AgentSession"},
		"an object for a text":        {`{"owner":{"a":1}}`, "the session's attribute owner, which the policy declares, has another type than String; correct the AgentSession"},
		"a truth value for a text":    {`{"owner":true}`, "the session's attribute owner, which the policy declares, has another type than String; correct the AgentSession"},
		"something that is no JSON":   {`nonsense`, "the session's context: refused at stage decode: Syntax: not a JSON text; send exactly one JSON value as RFC 8259 defines it"},
		"something that is no object": {`[]`, "the session's context: the text is not a JSON object"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := small()
			call.HasSession, call.SessionContext = true, tc.session
			got := set.Decide(call, policy.Options{})
			want := verdict{policy.Deny, policy.ReasonContextInvalid, got.Policies}
			if tc.want == "" {
				want = verdict{policy.Allow, policy.ReasonPermitted, got.Policies}
			}
			if diff := cmp.Diff(want, verdictOf(got)); diff != "" || (tc.want != "" && got.Message != tc.want) {
				t.Errorf("decision = %+v, want %s (-want +got):\n%s", got, tc.want, diff)
			}
		})
	}
	if got := set.Decide(small(), policy.Options{}); got.Answer != policy.Allow {
		t.Errorf("without a session: %+v, want Allow", got)
	}
}

func TestGenerate_WritesPoliciesThatFitTheirTool(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*policy.Tool)
		want   string
		answer policy.Answer
	}{
		"a tool of low risk": {
			func(tool *policy.Tool) { tool.RiskTier = "low" },
			"// Calls of pay, risk tier low. Narrow who may call it, and with which arguments.\n" +
				"permit (\n  principal,\n  action == Action::\"tool_call::pay\",\n  resource == Tool::\"pay\"\n);\n",
			policy.Allow,
		},
		"a tool that demands approval": {
			func(tool *policy.Tool) { tool.RiskTier, tool.HumanApproval = "medium", true },
			"// Calls of pay, risk tier medium. Narrow who may call it, and with which arguments.\n" +
				"permit (\n  principal,\n  action == Action::\"tool_call::pay\",\n  resource == Tool::\"pay\"\n)\nwhen { context.has_human_approval };\n",
			policy.NeedsApproval,
		},
		"a tool of high risk": {
			func(*policy.Tool) {},
			"// Calls of pay, risk tier high. Narrow who may call it, and with which arguments.\n" +
				"// WARNING: the risk tier is high. Review and restrict this policy before it is used.\n" +
				"// To demand a person's approval, add: when { context.has_human_approval }\n" +
				"permit (\n  principal,\n  action == Action::\"tool_call::pay\",\n  resource == Tool::\"pay\"\n);\n",
			policy.Allow,
		},
		"a critical tool with a binding and approval": {
			func(tool *policy.Tool) {
				tool.RiskTier, tool.HumanApproval, tool.ToolName = "critical", true, "pay_now"
				tool.CedarResource, tool.CedarAction = "Tool::Pay", "execute"
			},
			"// Calls of pay_now, risk tier critical. Narrow who may call it, and with which arguments.\n" +
				"// WARNING: the risk tier is critical. Review and restrict this policy before it is used.\n" +
				"permit (\n  principal,\n  action == Tool::Pay::Action::\"execute\",\n  resource == Tool::Pay::\"pay_now\"\n)\nwhen { context.has_human_approval };\n",
			policy.NeedsApproval,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := small()
			tc.change(&call.Tool)
			got, err := policy.Generate(call.Tool)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Generate (-want +got):\n%s", diff)
			}
			set := setOf(t, got).WithTools("team", []policy.Tool{call.Tool})
			if problems := set.Problems("team"); len(problems) > 0 {
				t.Errorf("problems = %v", problems)
			}
			if d := set.Decide(call, policy.Options{}); d.Answer != tc.answer {
				t.Errorf("decision = %+v, want %s", d, tc.answer)
			}
		})
	}
	if _, err := policy.Generate(policy.Tool{Name: "x", CedarResource: "k8s::User", CedarAction: "run"}); err == nil {
		t.Error("a tool without a Cedar form has a policy")
	}
}
