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

// fetchTool is bound to an action of its own.
func fetchTool() policy.Tool {
	return policy.Tool{
		Namespace: "team", Name: "fetch", CedarResource: "Tool::Fetch", CedarAction: "run", EffectKind: policy.EffectHTTP,
		Arguments: []policy.Argument{{Name: "url", Kind: "url", Required: true}},
	}
}

// report checks one text of namespace team against payTool and fetchTool.
func report(t *testing.T, text string, attributes ...policy.SessionAttribute) policy.Report {
	t.Helper()
	s := source(text)
	s.SessionAttributes = attributes
	c, _ := policy.Compile(s, policy.Limits{})
	set, err := policy.NewSet(policy.Limits{}, c)
	if err != nil {
		t.Fatal(err)
	}
	return set.WithTools("team", []policy.Tool{payTool(), fetchTool()}).Report(policy.Key{Namespace: "team", Name: "p"})
}

const (
	payScope   = `(principal, action == Action::"tool_call::pay", resource == Tool::"pay")`
	sessionTip = `it can be absent, so test it first: `
)

func TestReport_SaysWhereAndWhatIsWrong(t *testing.T) {
	t.Parallel()
	pay := func(condition string) string { return "permit " + payScope + "\nwhen { " + condition + " };" }
	tests := map[string]struct {
		text string
		want []string // after "team/p#0 "
	}{
		"a policy that fits": {pay(`context.invocation.arguments.amount < 5 && principal in k8s::Group::"x"`), nil},
		"a typo in an argument": {pay(`context.invocation.arguments.amuont < 5`), []string{
			"Error line 2, column 37: attribute `amuont` in context for Action::\"tool_call::pay\" not found; did you mean amount?",
		}},
		"a typo further back": {pay("context.invocation.arguments.amount < 5 &&\n    context.invocation.fingerprnt == \"\""), []string{
			"Error line 3, column 24: attribute `fingerprnt` in context for Action::\"tool_call::pay\" not found; did you mean fingerprint?",
		}},
		"a typo written as index": {pay(`context.invocation["fingerprnt"] == ""`), []string{
			"Error line 2, column 27: attribute `fingerprnt` in context for Action::\"tool_call::pay\" not found; did you mean fingerprint?",
		}},
		"an attribute that resembles none": {pay(`resource.colour == "red"`), []string{
			"Error line 2, column 17: attribute `colour` on entity type `Tool` not found; there are call_fingerprint, contract_hash, namespace, risk_tier, tool_name, version",
		}},
		"an attribute of something without any": {pay(`context.invocation.argument_json.a == ""`), []string{
			"Error line 2, column 41: attribute `a` in context for Action::\"tool_call::pay\" not found; it has no attributes that policies can read",
		}},
		"an attribute of one principal type only": {pay(`principal.namespace == "x"`), []string{
			"Error line 2, column 18: attribute `namespace` on entity type `k8s::User` not found; only ServiceAccounts have it, so write \"principal is k8s::ServiceAccount\" in the scope",
		}},
		"an attribute of some tools only": {`permit (principal, action, resource) when { context.invocation.arguments.url like "*" };`, []string{
			"Error line 1, column 74: attribute `url` in context for Action::\"tool_call::pay\" not found; only some tools in scope have it, so test it with \"has\" first",
		}},
		"an argument that can be absent": {pay(`context.invocation.arguments.urgent`), []string{
			"Error line 2, column 37: unable to guarantee safety of access to optional attribute `invocation.arguments.urgent` in context for Action::\"tool_call::pay\"; " + sessionTip + "context.invocation.arguments has …",
		}},
		"one that is tested": {pay(`context.invocation.arguments has urgent && context.invocation.arguments.urgent`), nil},
		"one tested in one place and not in another": {
			pay("context.invocation.arguments has urgent && context.invocation.arguments.urgent ||\n  context.invocation.arguments.urgent"), []string{
				"Error line 3, column 32: unable to guarantee safety of access to optional attribute `invocation.arguments.urgent` in context for Action::\"tool_call::pay\"; " + sessionTip + "context.invocation.arguments has …",
			},
		},
		"a wrong type behind a test": {pay(`context.invocation.arguments has urgent && context.invocation.arguments.urgent == 1`), []string{
			"Error line 2, column 51: the types Bool and Long are not compatible",
		}},
		"a wrong type inside if": {pay(`if context.has_human_approval then context.invocation.arguments.amount > "5" else true`), []string{
			"Error line 2, column 43: unexpected type: expected Long but saw String",
		}},
		"an if that guards": {pay(`if context.invocation.arguments has urgent then context.invocation.arguments.urgent == "x" else true`), []string{
			"Error line 2, column 56: the types Bool and String are not compatible",
		}},
		"a wrong type in the other branch": {pay(`if context.has_human_approval then true else context.invocation.arguments.amount > "5"`), []string{
			"Error line 2, column 53: unexpected type: expected Long but saw String",
		}},
		"a condition that is no truth value": {pay(`context.invocation.arguments.amount`), []string{
			"Error line 2, column 8: unexpected type: expected Bool but saw Long",
		}},
		"two mistakes": {pay(`context.invocation.arguments.to == 1 && resource.risc_tier == "x"`), []string{
			"Error line 2, column 8: the types Long and String are not compatible",
			"Error line 2, column 57: attribute `risc_tier` on entity type `Tool` not found; did you mean risk_tier?",
		}},
		"a mistake in unless": {"permit " + payScope + "\nunless { resource.risc_tier == \"x\" };", []string{
			"Error line 2, column 19: attribute `risc_tier` on entity type `Tool` not found; did you mean risk_tier?",
		}},
		"in on a text": {pay(`context.invocation.arguments.to in ["a"]`), []string{
			"Error line 2, column 8: unexpected type: expected a set of entities, or an entity but saw Set<String>",
			"Error line 2, column 8: unexpected type: expected an entity but saw String",
		}},
		"has on a text": {pay(`context.invocation.arguments.to has x`), []string{
			"Error line 2, column 8: unexpected type: expected an entity, or a record but saw String",
		}},
		"an attribute of a text": {pay(`context.invocation.arguments.to.length == 1`), []string{
			"Error line 2, column 40: unexpected type: expected an entity, or a record but saw String",
		}},
		"contains on a text": {pay(`context.invocation.arguments.to.contains("x")`), []string{
			"Error line 2, column 8: unexpected type: expected a set but saw String",
		}},
		"an empty set": {pay(`context.invocation.resolved.argv == []`), []string{
			"Error line 2, column 44: empty set literals are forbidden in policies",
		}},
		"an address made of an argument": {pay(`ip(context.invocation.arguments.to).isLoopback()`), []string{
			"Error line 2, column 8: extension constructors may not be called with non-literal expressions; context.invocation.argument_addresses holds addresses, and numbers are decimals already",
		}},
		"a mistake in every action": {`permit (principal, action, resource) when { context.session.team == "x" };`, []string{
			"Error line 1, column 53: unable to guarantee safety of access to optional attribute `session` in context for Action::\"tool_call::pay\"; " + sessionTip + "context has …",
			"Error line 1, column 61: attribute `team` in context for Action::\"tool_call::pay\" not found; it has no attributes that policies can read",
		}},
		"asking for a fact that is always there": {pay(`context has approved_fingerprint`), []string{
			"Error line 1, column 1: context always has approved_fingerprint, approved or not; read its value instead",
		}},
		"asking for the other fact": {pay(`context has has_human_approval || resource.risk_tier == "low"`), []string{
			"Error line 1, column 1: context always has has_human_approval, approved or not; read its value instead",
		}},
		"asking and reading": {pay(`context has approved_fingerprint && context.approved_fingerprint == context.invocation.fingerprint`), nil},

		"a permit without any limit": {`permit (principal, action, resource);`, []string{
			`Warning line 1, column 1: this permits every call of every tool to everybody; narrow it, or annotate it with @permit_all if that is meant`,
		}},
		"one that is meant":            {`@permit_all("agents here are trusted") permit (principal, action, resource);`, nil},
		"a permit for some principals": {`permit (principal is k8s::User, action, resource);`, nil},
		"a permit for some actions":    {`permit (principal, action in [Action::"tool_call::pay"], resource);`, nil},
		"a permit for some resources":  {`permit (principal, action, resource is Tool);`, nil},
		"a permit with a condition":    {`permit (principal, action, resource) when { context.has_human_approval };`, nil},
		"a forbid without any limit":   {`forbid (principal, action, resource);`, nil},
		"an unknown action": {`permit (principal, action == Action::"tool_call::pai", resource);`, []string{
			`Warning line 1, column 30: no tool has the action Action::"tool_call::pai" (yet), so that it matches nothing; did you mean Action::"tool_call::pay"?`,
		}},
		"an unknown tool": {`permit (principal, action, resource == Tool::"pai");`, []string{
			`Warning line 1, column 40: there is no tool Tool::"pai" (yet), so that it matches nothing; did you mean Tool::"pay"?`,
		}},
		"an unknown type": {`permit (principal, action, resource is Tool::Fetsch);`, []string{
			`Warning line 1, column 40: no tool has the entity type Tool::Fetsch (yet), so that it matches nothing; did you mean Tool::Fetch?`,
		}},
		"a type without its namespace": {`permit (principal in Group::"x", action, resource);`, []string{
			`Warning line 1, column 22: no tool has the entity type Group (yet), so that it matches nothing; did you mean k8s::Group?`,
		}},
		"a type that resembles none": {`permit (principal, action, resource is Zebra);`, []string{
			`Warning line 1, column 40: no tool has the entity type Zebra (yet), so that it matches nothing`,
		}},
		"unknown names in a condition": {"permit (principal, action, resource)\nwhen { action == Later::Action::\"go\" && resource is Later && principal is Nobody in Nowhere::\"x\" };", []string{
			`Warning line 2, column 18: no tool has the action Later::Action::"go" (yet), so that it matches nothing`,
			`Warning line 2, column 53: no tool has the entity type Later (yet), so that it matches nothing`,
			`Warning line 2, column 75: no tool has the entity type Nobody (yet), so that it matches nothing`,
			`Warning line 2, column 85: no tool has the entity type Nowhere (yet), so that it matches nothing`,
		}},
		"an unknown action beside a known one": {`permit (principal, action in [Action::"tool_call::pay", Action::"later"], resource) when { context.invocation.arguments.amount > 1 };`, []string{
			`Warning line 1, column 57: no tool has the action Action::"later" (yet), so that it matches nothing`,
		}},
		"an unknown action beside a typo": {`permit (principal, action in [Action::"tool_call::pay", Action::"later"], resource) when { context.invocation.arguments.amuont > 1 };`, []string{
			"Error line 1, column 121: attribute `amuont` in context for Action::\"tool_call::pay\" not found; did you mean amount?",
			`Warning line 1, column 57: no tool has the action Action::"later" (yet), so that it matches nothing`,
		}},
		"an unknown action beside a mistake": {`permit (principal, action in [Action::"tool_call::pay", Action::"later"], resource) when { context.invocation.arguments.amount > "x" };`, []string{
			`Error line 1, column 92: unexpected type: expected Long but saw String`,
			`Warning line 1, column 57: no tool has the action Action::"later" (yet), so that it matches nothing`,
		}},
		"parts of the scope that exclude each other": {`permit (principal, action == Action::"tool_call::pay", resource is Tool::Fetch);`, []string{
			`Warning line 1, column 1: no tool matches the scope of the policy (yet)`,
		}},
		"a principal that makes no calls": {`permit (principal is k8s::Group, action, resource);`, []string{
			`Warning line 1, column 1: no call has such a principal, action and resource together, so that the policy matches nothing`,
		}},
		"no action at all": {`permit (principal, action in [], resource);`, []string{
			`Warning line 1, column 1: no tool matches the scope of the policy (yet)`,
		}},
		"has of nothing": {pay(`context.invocation.arguments has amuont && true`), []string{
			`Warning line 2, column 8: no tool in scope has the attribute amuont, so that this test is always false`,
		}},
		"has of nothing, written as text": {pay(`resource has "colour" || true`), []string{
			`Warning line 2, column 8: no tool in scope has the attribute colour, so that this test is always false`,
		}},
		"has of something inside an if": {pay(`if principal has namespace then true else false`), nil},
		"has of a computed record":      {pay(`(if true then context else context) has session`), nil},
		"a condition that cannot hold": {"forbid " + payScope + " when { resource is Tool::Fetch };", []string{
			`Warning line 1, column 88: the condition cannot hold for any tool in scope, so that the policy never applies`,
		}},
		"a condition that always holds, in unless": {"forbid " + payScope + " unless { resource is Tool };", []string{
			`Warning line 1, column 90: the condition cannot hold for any tool in scope, so that the policy never applies`,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := report(t, tc.text)
			var got []string
			for _, p := range r.Problems {
				if p.Source != (policy.Key{Namespace: "team", Name: "p"}) || p.Namespace != "team" || p.Policy != "team/p#0" {
					t.Errorf("problem %+v names another policy", p)
				}
				got = append(got, fmt.Sprintf("%s line %d, column %d: %s", p.Severity, p.Line, p.Column, p.Message))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if r.Policies != 1 {
				t.Errorf("Policies = %d, want 1", r.Policies)
			}
		})
	}
}

func TestReport_ChecksSessionAttributesAsDeclared(t *testing.T) {
	t.Parallel()
	text := func(condition string) string {
		return "permit (principal, action, resource) when { context has session && " + condition + " };"
	}
	tests := map[string]struct {
		condition string
		attribute policy.SessionAttribute
		want      int
	}{
		"declared and required":  {`context.session.a == "x"`, policy.SessionAttribute{Name: "a", Type: policy.AttributeString, Required: true}, 0},
		"declared, not tested":   {`context.session.a == "x"`, policy.SessionAttribute{Name: "a", Type: policy.AttributeString}, 1},
		"declared, tested":       {`context.session has a && context.session.a == "x"`, policy.SessionAttribute{Name: "a", Type: policy.AttributeString}, 0},
		"not declared":           {`context.session.b == "x"`, policy.SessionAttribute{Name: "a", Type: policy.AttributeString}, 1},
		"a number":               {`context.session.a > 1`, policy.SessionAttribute{Name: "a", Type: policy.AttributeLong, Required: true}, 0},
		"a truth value":          {`context.session.a`, policy.SessionAttribute{Name: "a", Type: policy.AttributeBoolean, Required: true}, 0},
		"a set":                  {`context.session.a.contains("x")`, policy.SessionAttribute{Name: "a", Type: policy.AttributeStrings, Required: true}, 0},
		"a set taken for a text": {`context.session.a == "x"`, policy.SessionAttribute{Name: "a", Type: policy.AttributeStrings, Required: true}, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := report(t, text(tc.condition), tc.attribute); len(r.Problems) != tc.want {
				t.Errorf("problems = %v, want %d", r.Problems, tc.want)
			}
		})
	}
}

func TestReport_ShowsWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	r := report(t, "permit")
	want := policy.Report{Problems: []policy.Problem{{
		Source: policy.Key{Namespace: "team", Name: "p"}, Line: 1, Column: 7,
		Message: `expected "(" after permit or forbid, but the text ends`, Severity: policy.SeverityError,
	}}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	set := setOf(t, permitAll)
	if r := set.Report(policy.Key{Namespace: "team", Name: "none"}); r.Policies != 0 || r.Problems != nil {
		t.Errorf("report of nothing = %+v", r)
	}
}

// An unhealthy policy denies what its scope could match and nothing else.
func TestDecide_DeniesExactlyWhatAnUnhealthyPolicyCouldMatch(t *testing.T) {
	t.Parallel()
	const typo = ` when { context.invocation.arguments.amuont > 1 };`
	tests := map[string]struct {
		scope string
		pay   bool // whether alice's call of pay is denied
		fetch bool // whether alice's call of fetch is denied
	}{
		"of one tool":             {`(principal, action, resource == Tool::"pay")`, true, false},
		"of one action":           {`(principal, action == Tool::Fetch::Action::"run", resource)`, false, true},
		"of everything":           {`(principal, action, resource)`, true, true},
		"of this user":            {`(principal == k8s::User::"alice", action, resource)`, true, true},
		"of another user":         {`(principal == k8s::User::"bob", action, resource)`, false, false},
		"of a group of the user":  {`(principal in k8s::Group::"staff", action == Action::"tool_call::pay", resource)`, true, false},
		"of another group":        {`(principal in k8s::Group::"admins", action, resource)`, false, false},
		"of ServiceAccounts":      {`(principal is k8s::ServiceAccount, action, resource)`, false, false},
		"of users of a group":     {`(principal is k8s::User in k8s::Group::"staff", action, resource)`, true, true},
		"of a type of tools":      {`(principal, action, resource is Tool::Fetch)`, false, true},
		"of a tool inside itself": {`(principal, action, resource is Tool in Tool::"pay")`, true, false},
		"of a list of actions":    {`(principal, action in [Action::"tool_call::pay", Tool::Fetch::Action::"run"], resource)`, true, true},
		"of an empty list":        {`(principal, action in [], resource)`, false, false},
	}
	for name, tc := range tests {
		for _, effect := range []string{"permit", "forbid"} {
			t.Run(effect+" "+name, func(t *testing.T) {
				t.Parallel()
				set := setOf(t, permitAll, effect+" "+tc.scope+typo).WithTools("team", []policy.Tool{payTool(), fetchTool()})
				pay := payCall(`{"amount":5,"to":"x"}`)
				fetch := policy.Call{
					Tool: fetchTool(), ArgsCanonicalJSON: `{"url":"https://example.com/"}`, Fingerprint: fingerprint,
					Effect: policy.EffectView{Kind: policy.EffectHTTP, HTTPURL: "https://example.com/"},
				}
				for call, denied := range map[*policy.Call]bool{&pay: tc.pay, &fetch: tc.fetch} {
					call.Principal = policy.Principal{Username: "alice", Groups: []string{"staff"}}
					got := set.Decide(*call, policy.Options{})
					want := policy.ReasonPermitted
					if denied {
						want = policy.ReasonPolicyUnhealthy
					}
					if got.Reason != want {
						t.Errorf("%s: %+v, want %s", call.Tool.Name, got, want)
					}
				}
			})
		}
	}
}

func TestDecide_RefusesArgumentsWhoseTypeDependsOnTheTool(t *testing.T) {
	t.Parallel()
	one, two := fetchTool(), fetchTool()
	one.Arguments = append(one.Arguments, policy.Argument{Name: "mode", Kind: "string"})
	two.Name = "fetch-two"
	two.Arguments = append(two.Arguments, policy.Argument{Name: "mode", Kind: "integer"})
	const message = `the tools that share Tool::Fetch::Action::"run" give argument mode different types; narrow them to one type, or give the tools actions of their own`
	for _, condition := range []string{`context.invocation.arguments has mode`, `context.invocation.arguments.mode == "x"`} {
		set := setOf(t, `permit (principal, action, resource) when { `+condition+` };`).WithTools("team", []policy.Tool{one, two})
		problems := set.Problems("team")
		if len(problems) != 1 || problems[0].Message != message || problems[0].Severity != policy.SeverityError {
			t.Errorf("%s: problems = %v", condition, problems)
		}
	}
	set := setOf(t, `permit (principal, action, resource) when { context.invocation.arguments.url like "https*" };`).WithTools("team", []policy.Tool{one, two})
	if problems := set.Problems("team"); len(problems) > 0 {
		t.Errorf("a policy that does not read it: %v", problems)
	}
}

func TestReport_JudgesClusterPoliciesPerNamespace(t *testing.T) {
	t.Parallel()
	compile := func(name, text string) *policy.Compiled {
		c, problems := policy.Compile(policy.Source{Name: name, Text: text}, policy.Limits{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return c
	}
	set, err := policy.NewSet(policy.Limits{},
		compile("small", `permit (principal, action == Action::"tool_call::pay", resource) when { context.invocation.arguments.amount < 10 };`),
		compile("odd", `permit (principal, action == Action::"tool_call::none", resource);`))
	if err != nil {
		t.Fatal(err)
	}
	here, there := payTool(), payTool()
	there.Namespace, there.Arguments = "other", []policy.Argument{{Name: "amount", Kind: "string", Required: true}}
	third := fetchTool()
	third.Namespace = "third"
	set = set.WithTools("team", []policy.Tool{here}).WithTools("other", []policy.Tool{there}).WithTools("third", []policy.Tool{third})

	r := set.Report(policy.Key{Name: "small"})
	want := []string{"Error /small#0 line 1, column 73: unexpected type: expected Long but saw String (tools of namespace other)"}
	if diff := cmp.Diff(want, lines(r.Problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	r = set.Report(policy.Key{Name: "odd"})
	if len(r.Problems) != 1 || r.Problems[0].Namespace != "" || !strings.Contains(r.Problems[0].Message, `no tool has the action Action::"tool_call::none" (yet)`) {
		t.Errorf("problems = %v, want one warning", lines(r.Problems))
	}
	call := payCall(`{"amount":5,"to":"x"}`)
	if got := set.Decide(call, policy.Options{}); got.Answer != policy.Allow {
		t.Errorf("where it fits: %+v, want Allow", got)
	}
	call.Tool, call.ArgsCanonicalJSON = there, `{"amount":"5"}`
	if got := set.Decide(call, policy.Options{}); got.Reason != policy.ReasonPolicyUnhealthy {
		t.Errorf("where it does not: %+v, want PolicyUnhealthy", got)
	}
}

// A call may be decided on before the set knows its tool, or while the set knows
// an older contract.
func TestDecide_ChecksPoliciesAgainstTheToolAsItIs(t *testing.T) {
	t.Parallel()
	set := setOf(t, `permit (principal, action, resource) when { context.invocation.arguments.amount < 10 };`)
	call := payCall(`{"amount":5,"to":"x"}`)
	if got := set.Decide(call, policy.Options{}); got.Answer != policy.Allow {
		t.Errorf("a set without tools: %+v, want Allow", got)
	}
	older := payTool()
	older.Arguments = older.Arguments[:1]
	set = set.WithTools("team", []policy.Tool{older})
	if problems := set.Problems("team"); len(problems) != 1 {
		t.Errorf("with the older contract: %v, want one problem", problems)
	}
	if got := set.Decide(call, policy.Options{}); got.Answer != policy.Allow {
		t.Errorf("a set with an older contract: %+v, want Allow", got)
	}
	// The other tools of the namespace still count.
	set = set.WithTools("team", []policy.Tool{older, fetchTool()})
	if got := set.Decide(call, policy.Options{}); got.Reason != policy.ReasonPolicyUnhealthy {
		t.Errorf("a set in which another tool lacks the argument: %+v, want PolicyUnhealthy", got)
	}
	newer := call
	newer.Tool.Arguments = []policy.Argument{{Name: "amount", Kind: "string", Required: true}}
	newer.ArgsCanonicalJSON = `{"amount":"5"}`
	if got := set.Without(policy.Key{}).WithTools("team", nil).Decide(newer, policy.Options{}); got.Reason != policy.ReasonPolicyUnhealthy {
		t.Errorf("a newer contract that the policy does not fit: %+v, want PolicyUnhealthy", got)
	}
}
