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

// decide asks texts of namespace team about a call.
func decide(t *testing.T, call policy.Call, texts ...string) policy.Decision {
	t.Helper()
	return setOf(t, texts...).Decide(call, policy.Options{})
}

func small() policy.Call { return payCall(`{"amount":5,"to":"x"}`) }

func forbidWhen(expression string) string {
	return "forbid (principal, action, resource) when { " + expression + " };"
}

// A forbid that is wrong must deny. cedar-go alone would skip each of these and
// let the permit decide. What the validator sees is refused before it is
// evaluated; TestEvaluator_DeniesOnErrors has the same conditions without it.
func TestDecide_DeniesWhenAForbidIsWrong(t *testing.T) {
	t.Parallel()
	unhealthy, failed := policy.ReasonPolicyUnhealthy, policy.ReasonPolicyError
	tests := map[string]struct {
		expression string
		want       policy.Reason
		message    string
	}{
		"a missing attribute":     {`context.invocation.arguments.amuont > 1`, unhealthy, "attribute `amuont` in context for Action::\"tool_call::pay\" not found; did you mean amount?"},
		"an attribute not tested": {`context.invocation.arguments.rate == decimal("1.0")`, unhealthy, "unable to guarantee safety of access to optional attribute"},
		"a wrong type":            {`context.invocation.arguments.amount == "5"`, unhealthy, "the types Long and String are not compatible"},
		"in on a text":            {`context.invocation.arguments.to in ["prod"]`, unhealthy, "unexpected type: expected a set of entities, or an entity but saw Set<String>"},
		"a bad address":           {`ip("300.0.0.1").isLoopback()`, unhealthy, "failed to parse as IP address"},
		"a bad decimal":           {`decimal("1.23456") == decimal("1.0")`, unhealthy, "failed to parse as a decimal value"},
		"an absent entity":        {`k8s::User::"nobody".name == "x"`, failed, "an entity does not exist"},
		"an absent tag":           {`principal.getTag("team") == "x"`, unhealthy, "unable to guarantee safety of access to tag"},
		"an overflow":             {`context.invocation.arguments.amount + 9223372036854775807 > 0`, failed, "integer overflow"},
		"an overflow by product":  {`context.invocation.arguments.amount * 9223372036854775807 > 0`, failed, "integer overflow"},
		"an address not literal":  {`ip(context.invocation.arguments.to).isLoopback()`, unhealthy, "extension constructors may not be called with non-literal expressions"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decide(t, small(), permitAll, forbidWhen(tc.expression))
			if got.Answer != policy.Deny || got.Reason != tc.want {
				t.Fatalf("decision = %+v, want Deny %s", got, tc.want)
			}
			if diff := cmp.Diff([]string{"team/p1#0"}, got.Policies); diff != "" {
				t.Errorf("policies (-want +got):\n%s", diff)
			}
			if len(got.Errors) != 1 || got.Errors[0].Policy != "team/p1#0" || !strings.Contains(got.Errors[0].Message, tc.message) {
				t.Errorf("errors = %+v, want %q", got.Errors, tc.message)
			}
		})
	}
}

func TestDecide_DeniesWhenAPermitFailsInEvaluation(t *testing.T) {
	t.Parallel()
	got := decide(t, small(), permitAll,
		`permit (principal, action, resource) when { context.invocation.arguments.amount + 9223372036854775807 > 0 };`)
	want := verdict{policy.Deny, policy.ReasonPolicyError, []string{"team/p1#0"}}
	if diff := cmp.Diff(want, verdictOf(got)); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}

func TestDecide_DeniesWhenOnlyTheApprovedEvaluationFails(t *testing.T) {
	t.Parallel()
	got := decide(t, small(),
		`permit (principal, action, resource) when { context.has_human_approval && context.invocation.arguments.amount + 9223372036854775807 > 0 };`)
	want := verdict{policy.Deny, policy.ReasonPolicyError, []string{"team/p0#0"}}
	if diff := cmp.Diff(want, verdictOf(got)); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}

// broken compiles a text that cannot be read, as it can get past admission.
func broken(t *testing.T, namespace, name, text string) *policy.Compiled {
	t.Helper()
	c, problems := policy.Compile(policy.Source{Namespace: namespace, Name: name, Text: text}, policy.Limits{})
	if len(problems) == 0 {
		t.Fatal("the text is readable")
	}
	return c
}

func TestDecide_DeniesEverythingWhileATextCannotBeRead(t *testing.T) {
	t.Parallel()
	texts := make([]string, 10)
	for i := range texts {
		texts[i] = permitAll + permitAll
	}
	healthy := setOf(t, texts...)
	unreadable := healthy.With(broken(t, "team", "torn", "forbid (principal, action, resource"))
	got := unreadable.Decide(small(), policy.Options{})
	want := verdict{policy.Deny, policy.ReasonPolicyUnhealthy, []string{"team/torn"}}
	if diff := cmp.Diff(want, verdictOf(got)); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	wantErrors := []policy.EvaluationError{{Policy: "team/torn", Message: `line 1, column 36: expected ")" after the resource, but the text ends`}}
	if diff := cmp.Diff(wantErrors, got.Errors); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}

	elsewhere := small()
	elsewhere.Tool.Namespace = "other"
	other, _ := policy.Compile(policy.Source{Namespace: "other", Name: "p", Text: permitAll}, policy.Limits{})
	if got := unreadable.With(other).Decide(elsewhere, policy.Options{}); got.Answer != policy.Allow {
		t.Errorf("another namespace: %+v, want Allow", got)
	}
	cluster := healthy.With(other).With(broken(t, "", "torn", "forbid"))
	for _, call := range []policy.Call{small(), elsewhere} {
		if got := cluster.Decide(call, policy.Options{}); got.Reason != policy.ReasonPolicyUnhealthy || got.Policies[0] != "/torn" {
			t.Errorf("with a broken cluster policy: %+v, want PolicyUnhealthy", got)
		}
	}
	recovered := unreadable.Without(policy.Key{Namespace: "team", Name: "torn"})
	if got := recovered.Decide(small(), policy.Options{}); got.Answer != policy.Allow {
		t.Errorf("after the text was deleted: %+v, want Allow", got)
	}
}

func TestDecide_DeniesWhileAnObjectHasAnImpossibleName(t *testing.T) {
	t.Parallel()
	set := setOf(t, permitAll).With(broken(t, "team", "a#0", permitAll))
	want := []policy.EvaluationError{{Policy: "team/a#0", Message: "the name must not be empty, and neither name nor namespace may contain / or #"}}
	got := set.Decide(small(), policy.Options{})
	if diff := cmp.Diff(want, got.Errors); diff != "" || got.Reason != policy.ReasonPolicyUnhealthy {
		t.Errorf("decision = %+v, want PolicyUnhealthy (-want +got):\n%s", got, diff)
	}
}

func TestDecide_EnforcesEveryPolicyOfAText(t *testing.T) {
	t.Parallel()
	got := decide(t, small(), permitAll+"\nforbid (principal, action, resource);")
	want := verdict{policy.Deny, policy.ReasonForbidden, []string{"team/p0#1"}}
	if diff := cmp.Diff(want, verdictOf(got)); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
}

func TestDecide_KeepsPoliciesOfTwoTextsApart(t *testing.T) {
	t.Parallel()
	annotated := `@id("same") `
	for _, texts := range [][]string{
		{annotated + permitAll, annotated + "forbid (principal, action, resource);"},
		{annotated + "forbid (principal, action, resource);", annotated + permitAll},
	} {
		if got := decide(t, small(), texts...); got.Reason != policy.ReasonForbidden {
			t.Errorf("%v: %+v, want Forbidden", texts, got)
		}
	}
}

func TestDecide_DeniesWithoutPolicies(t *testing.T) {
	t.Parallel()
	empty, err := policy.NewSet(policy.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := verdict{policy.Deny, policy.ReasonNoPolicyPermits, nil}
	if diff := cmp.Diff(want, verdictOf(empty.Decide(small(), policy.Options{}))); diff != "" {
		t.Errorf("empty set (-want +got):\n%s", diff)
	}
	var none *policy.Set
	want.Reason = policy.ReasonPolicySetNotLoaded
	if diff := cmp.Diff(want, verdictOf(none.Decide(small(), policy.Options{}))); diff != "" {
		t.Errorf("no set (-want +got):\n%s", diff)
	}
	var store policy.Store
	if diff := cmp.Diff(want, verdictOf(store.Decide(small(), policy.Options{}))); diff != "" {
		t.Errorf("empty store (-want +got):\n%s", diff)
	}
}

// objectTool takes one object of which nothing is declared.
func objectCall(argument string) policy.Call {
	call := small()
	call.Tool.Arguments = []policy.Argument{{Name: "who", Kind: "object", Required: true}}
	call.ArgsCanonicalJSON = `{"who":` + argument + `}`
	return call
}

func TestDecide_NeverTakesArgumentsForEntities(t *testing.T) {
	t.Parallel()
	const admin = `permit (principal, action, resource) when { context.invocation.arguments.who == k8s::User::"admin" };`
	for _, argument := range []string{
		`{"__entity":{"id":"admin","type":"k8s::User"},"x":1}`,
		`{"__entity":{"id":"admin","type":"k8s::User"}}`,
		`{"id":"admin","type":"k8s::User"}`,
		`{"__extn":{"arg":"1.0","fn":"decimal"}}`,
	} {
		// The validator refuses the comparison outright; a record is not an entity.
		if got := decide(t, objectCall(argument), admin); got.Reason != policy.ReasonPolicyUnhealthy {
			t.Errorf("%s: %+v, want PolicyUnhealthy", argument, got)
		}
		if got := decide(t, objectCall(argument), permitAll); got.Answer != policy.Allow {
			t.Errorf("%s: %+v, want Allow", argument, got)
		}
	}
}

func TestDecide_RefusesWhatCedarCannotHold(t *testing.T) {
	t.Parallel()
	number := func(text string) policy.Call {
		call := small()
		call.Tool.Arguments = []policy.Argument{{Name: "rate", Kind: "number"}, {Name: "count", Kind: "integer"}, {Name: "list", Kind: "array"}}
		call.ArgsCanonicalJSON = text
		return call
	}
	tests := map[string]struct{ args, argument string }{
		"five digits behind the point":  {`{"rate":0.12345}`, "rate"},
		"a tiny number":                 {`{"rate":1e-7}`, "rate"},
		"a huge number":                 {`{"rate":1e+21}`, "rate"},
		"a whole number beyond Long":    {`{"count":10000000000000000000}`, "count"},
		"a fraction for a whole number": {`{"count":1.5}`, "count"},
		"a number inside an array":      {`{"list":[[0.00001]]}`, "list"},
		"null inside an array":          {`{"list":[null]}`, "list"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decide(t, number(tc.args), permitAll)
			if got.Answer != policy.Deny || got.Reason != policy.ReasonNotRepresentable {
				t.Fatalf("decision = %+v, want Deny NotRepresentable", got)
			}
			if !strings.HasPrefix(got.Message, "tool team/pay, argument "+tc.argument+": ") {
				t.Errorf("message = %q, want it to name %s", got.Message, tc.argument)
			}
		})
	}
}

func TestDecide_ShowsOrderAndLengthOfArraysBesidesTheSet(t *testing.T) {
	t.Parallel()
	call := small()
	call.Tool.Arguments = []policy.Argument{{Name: "list", Kind: "array", Required: true, Schema: map[string]any{
		"type": "array", "items": map[string]any{"type": "integer"},
	}}}
	call.ArgsCanonicalJSON = `{"list":[2,1,1,2]}`
	tests := map[string]string{
		"the set has neither order nor repetition": `context.invocation.arguments.list == [1, 2]`,
		"the text has both":                        `context.invocation.argument_json.list == "[2,1,1,2]"`,
		"the length counts repetitions":            `context.invocation.argument_lengths.list == 4`,
		"the whole text is there":                  `context.invocation.args_canonical_json == "{\"list\":[2,1,1,2]}"`,
		"the order of words is kept":               `context.invocation.resolved.argv_json == "[\"pay\",\"now\"]"`,
	}
	for name, expression := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := decide(t, call, "permit (principal, action, resource) when { "+expression+" };"); got.Answer != policy.Allow {
				t.Errorf("decision = %+v, want Allow", got)
			}
		})
	}
}

// The text is matched as it is: only the argument type path keeps ".." out.
func TestDecide_MatchesTextsAsTheyAre(t *testing.T) {
	t.Parallel()
	call := payCall(`{"amount":5,"to":"/safe/../etc/passwd"}`)
	if got := decide(t, call, `permit (principal, action, resource) when { context.invocation.arguments.to like "/safe/*" };`); got.Answer != policy.Allow {
		t.Errorf("decision = %+v, want Allow", got)
	}
}

func TestDecide_OrdersNegativeDecimals(t *testing.T) {
	t.Parallel()
	call := payCall(`{"amount":5,"rate":-0.5,"to":"x"}`)
	got := decide(t, call, `permit (principal, action, resource) when {
		context.invocation.arguments has rate && context.invocation.arguments.rate.lessThan(decimal("0.0")) };`)
	if got.Answer != policy.Allow {
		t.Errorf("decision = %+v, want Allow: -0.5 is less than 0", got)
	}
}

func TestDecide_RefusesToolNamesOnlyWhereTheyMeanSomethingElse(t *testing.T) {
	t.Parallel()
	// A name with a quote is data: it can end no text.
	quoted := small()
	quoted.Tool.Name = `x" || true || "`
	if got := decide(t, quoted, `permit (principal, action == Action::"tool_call::x", resource);`); got.Reason != policy.ReasonNoPolicyPermits {
		t.Errorf("decision = %+v, want NoPolicyPermits", got)
	}
	for _, binding := range [][2]string{
		{"k8s::User", "use"},
		{"k8s", "use"},
		{"Action", "use"},
		{"Tool::Action", "use"},
		{"Action::Tool", "use"},
		{"Tool::Fetch\"", "use"},
		{"Tool::", "use"},
		{"__cedar::Tool", "use"},
		{"if", "use"},
		{"Tool", ""},
		{"", "use"},
	} {
		call := small()
		call.Tool.CedarResource, call.Tool.CedarAction = binding[0], binding[1]
		if got := decide(t, call, permitAll); got.Reason != policy.ReasonNotRepresentable {
			t.Errorf("%v: %+v, want NotRepresentable", binding, got)
		}
	}
}

func TestDecide_KeepsGroupsThatAreNamedTwice(t *testing.T) {
	t.Parallel()
	call := small()
	call.Principal.Groups = []string{"a", "b", "a"}
	if got := decide(t, call, `permit (principal in k8s::Group::"a", action, resource) when { principal in k8s::Group::"b" };`); got.Answer != policy.Allow {
		t.Errorf("decision = %+v, want Allow", got)
	}
}

// The two forms of a limit differ when the argument is absent; the
// documentation recommends the second.
func TestDecide_ShowsWhatAnAbsentArgumentDoes(t *testing.T) {
	t.Parallel()
	const rate = "context.invocation.arguments has rate && context.invocation.arguments.rate"
	forms := map[string]string{
		"when":   permitAll + "forbid (principal, action, resource) when { " + rate + `.greaterThan(decimal("100.0")) };`,
		"unless": permitAll + "forbid (principal, action, resource) unless { " + rate + `.lessThanOrEqual(decimal("100.0")) };`,
	}
	tests := map[string]struct {
		args string
		want map[string]policy.Answer
	}{
		"below":  {`{"amount":1,"rate":100,"to":"x"}`, map[string]policy.Answer{"when": policy.Allow, "unless": policy.Allow}},
		"above":  {`{"amount":1,"rate":100.5,"to":"x"}`, map[string]policy.Answer{"when": policy.Deny, "unless": policy.Deny}},
		"absent": {`{"amount":1,"to":"x"}`, map[string]policy.Answer{"when": policy.Allow, "unless": policy.Deny}},
	}
	for name, tc := range tests {
		for form, want := range tc.want {
			t.Run(name+" "+form, func(t *testing.T) {
				t.Parallel()
				if got := decide(t, payCall(tc.args), forms[form]); got.Answer != want {
					t.Errorf("decision = %+v, want %s", got, want)
				}
			})
		}
	}
}

func TestDecide_RestsOnThePoliciesOfTheMoment(t *testing.T) {
	t.Parallel()
	set := setOf(t, `permit (principal, action, resource) when { context.has_human_approval };`)
	call := small()
	if got := set.Decide(call, policy.Options{}); got.Answer != policy.NeedsApproval {
		t.Fatalf("before approval: %+v, want NeedsApproval", got)
	}
	call.Approved, call.ApprovedFingerprint = true, call.Fingerprint
	before := set.Decide(call, policy.Options{})
	if before.Answer != policy.Allow {
		t.Fatalf("approved: %+v, want Allow", before)
	}
	added, _ := policy.Compile(policy.Source{Name: "stop", Text: "forbid (principal, action, resource);"}, policy.Limits{})
	after := set.With(added).Decide(call, policy.Options{})
	want := verdict{policy.Deny, policy.ReasonForbidden, []string{"/stop#0"}}
	if diff := cmp.Diff(want, verdictOf(after)); diff != "" {
		t.Errorf("after a forbid was added (-want +got):\n%s", diff)
	}
	if before.SetDigest == after.SetDigest {
		t.Error("both decisions carry the same digest of the set")
	}
}

func TestDecide_DerivesApprovalFromReceiptsAlone(t *testing.T) {
	t.Parallel()
	const asked = `permit (principal, action, resource) when { context.has_human_approval && context.approved_fingerprint == context.invocation.fingerprint };`
	forged := payCall(`{"amount":5,"approved_fingerprint":"` + fingerprint + `","has_human_approval":true,"to":"x"}`)
	forged.Tool.Arguments = append(forged.Tool.Arguments,
		policy.Argument{Name: "has_human_approval", Kind: "boolean"}, policy.Argument{Name: "approved_fingerprint", Kind: "string"})
	forged.HasSession = true
	forged.SessionContext = `{"has_human_approval":true,"approved_fingerprint":"` + fingerprint + `"}`
	if got := decide(t, forged, asked); got.Answer != policy.NeedsApproval {
		t.Errorf("forged facts: %+v, want NeedsApproval", got)
	}
	for _, other := range []string{"", "bb" + fingerprint[2:]} {
		mismatched := small()
		mismatched.Approved, mismatched.ApprovedFingerprint = true, other
		if got := decide(t, mismatched, asked); got.Reason != policy.ReasonApprovalMismatch {
			t.Errorf("approval of %q: %+v, want ApprovalMismatch", other, got)
		}
	}
	unused := small()
	unused.ApprovedFingerprint = unused.Fingerprint // without Approved it says nothing
	if got := decide(t, unused, `permit (principal, action, resource) when { context.approved_fingerprint == context.invocation.fingerprint };`); got.Answer != policy.NeedsApproval {
		t.Errorf("fingerprint without approval: %+v, want NeedsApproval", got)
	}
}

// ToolClad's generated policies read the fact in both of these ways.
func TestDecide_UnderstandsToolCladsPolicies(t *testing.T) {
	t.Parallel()
	call := payCall(`{"url":"https://example.com/"}`)
	call.Tool = policy.Tool{
		Namespace: "team", Name: "curl-fetch", ToolName: "curl_fetch", CedarResource: "Tool::HttpFetch", CedarAction: "execute_tool",
		EffectKind: policy.EffectCommand, Arguments: []policy.Argument{{Name: "url", Kind: "url", Required: true}}, StringArguments: true,
	}
	for _, condition := range []string{
		`resource.tool_name == "curl_fetch" && context.has_human_approval == true`,
		`resource.tool_name == "curl_fetch" && context has has_human_approval && context.has_human_approval == true`,
	} {
		text := fmt.Sprintf(`permit (principal, action == Tool::HttpFetch::Action::"execute_tool", resource) when { %s };`, condition)
		if got := decide(t, call, text); got.Answer != policy.NeedsApproval {
			t.Errorf("%s: %+v, want NeedsApproval", condition, got)
		}
	}
}
