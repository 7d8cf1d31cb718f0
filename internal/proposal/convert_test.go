// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
)

func TestEffectJSON_IsTheTextThatPreparationMade(t *testing.T) {
	for name, m := range map[string]*v1alpha1.ToolManifest{"command": commandManifest(), "http": httpManifest(), "mcp": mcpManifest()} {
		t.Run(name, func(t *testing.T) {
			c := compile(t, m)
			prepared, err := c.Prepare(agent, `{"target":"web"}`)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := proposal.PreparedCall(c, prepared)
			if err != nil {
				t.Fatal(err)
			}
			got, err := proposal.EffectJSON(stored.Effect)
			if err != nil || got != prepared.EffectJSON {
				t.Errorf("got %s, %v, want %s", got, err, prepared.EffectJSON)
			}
		})
	}
}

func TestIdentityOf_DependsOnNoOrder(t *testing.T) {
	user := func(groups ...string) authenticationv1.UserInfo {
		return authenticationv1.UserInfo{Username: "alice", UID: "7", Groups: groups, Extra: map[string]authenticationv1.ExtraValue{
			"b": {"2", "1"}, "a": {"x"},
		}}
	}
	want := &v1alpha1.Identity{
		Username: "alice", UID: "7", Groups: []string{"g1", "g2"},
		Extra: []v1alpha1.IdentityExtra{{Key: "a", Values: []string{"x"}}, {Key: "b", Values: []string{"2", "1"}}},
	}
	for _, u := range []authenticationv1.UserInfo{user("g1", "g2"), user("g2", "g1")} {
		if diff := cmp.Diff(want, proposal.IdentityOf(u)); diff != "" {
			t.Errorf("identity (-want +got):\n%s", diff)
		}
	}
	back := attest.User{Username: "alice", UID: "7", Groups: []string{"g1", "g2"}, Extra: map[string][]string{"a": {"x"}, "b": {"2", "1"}}}
	if diff := cmp.Diff(back, proposal.UserOf(want)); diff != "" {
		t.Errorf("user (-want +got):\n%s", diff)
	}
}

func TestContractInput_NamesTheObjectThatCannotBeRead(t *testing.T) {
	bad := metav1.ObjectMeta{Name: "odd", Namespace: namespace}
	tools := proposal.Tools{
		Types:  []v1alpha1.ArgumentType{{ObjectMeta: bad, Spec: v1alpha1.ArgumentTypeSpec{Base: "string"}}},
		Scopes: []v1alpha1.ToolScope{{ObjectMeta: bad, Spec: v1alpha1.ToolScopeSpec{Targets: []string{"10.0.0.0/8"}}}},
	}
	in, err := proposal.ContractInput(commandManifest(), tools, runner, true)
	if err != nil {
		t.Fatal(err)
	}
	if in.Types["odd"].Base != "string" || in.Scopes["odd"].Targets[0] != "10.0.0.0/8" || !in.AllowImageTags || in.RunnerImage != runner {
		t.Errorf("got %+v", in)
	}
}

func TestCompiler_KeepsAContractUntilAnythingItIsMadeOfChanges(t *testing.T) {
	c := &proposal.Compiler{RunnerImage: runner}
	m := commandManifest()
	first, err := c.Compile(m, proposal.Tools{})
	if err != nil {
		t.Fatal(err)
	}
	again, _ := c.Compile(m, proposal.Tools{})
	if again != first {
		t.Error("the same manifest was compiled twice")
	}
	for name, change := range map[string]func(*v1alpha1.ToolManifest, *proposal.Tools){
		"an edit":      func(m *v1alpha1.ToolManifest, _ *proposal.Tools) { m.Generation++ },
		"a new object": func(m *v1alpha1.ToolManifest, _ *proposal.Tools) { m.UID = "other" },
		"another type": func(_ *v1alpha1.ToolManifest, t *proposal.Tools) {
			t.Types = []v1alpha1.ArgumentType{{Spec: v1alpha1.ArgumentTypeSpec{Base: "string"}}}
		},
		"another scope": func(_ *v1alpha1.ToolManifest, t *proposal.Tools) { t.Scopes = make([]v1alpha1.ToolScope, 1) },
	} {
		m, tools := commandManifest(), proposal.Tools{}
		change(m, &tools)
		if got, err := c.Compile(m, tools); err != nil || got == first {
			t.Errorf("after %s the old contract is used (%v)", name, err)
		}
	}
	last, _ := c.Compile(commandManifest(), proposal.Tools{})
	c.Forget(types.NamespacedName{Namespace: m.Namespace, Name: m.Name})
	if got, _ := c.Compile(commandManifest(), proposal.Tools{}); got == last {
		t.Error("a forgotten contract is still there")
	}
}

// Two drafts have no UID, and one must not pass for the other.
func TestCompiler_KeepsNothingOfAManifestThatIsNotStored(t *testing.T) {
	c := &proposal.Compiler{RunnerImage: runner}
	draft, other := commandManifest(), commandManifest()
	draft.UID, other.UID = "", ""
	other.Spec.Version = "2"
	first, err := c.Compile(draft, proposal.Tools{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Compile(other, proposal.Tools{}); err != nil || got.Version() != "2" || first.Version() == "2" {
		t.Errorf("got the contract of another draft (%v)", err)
	}
}

func TestCheckSessionContext_IsAsStrictAsArguments(t *testing.T) {
	for name, tc := range map[string]struct{ context, want string }{
		"none":          {"", ""},
		"an object":     {`{"a":1}`, ""},
		"at the limit":  {`{"a":"` + strings.Repeat("x", 16<<10-8) + `"}`, ""},
		"beyond it":     {`{"a":"` + strings.Repeat("x", 16<<10-7) + `"}`, "context is longer than 16384 bytes"},
		"an array":      {`[]`, "context must be a JSON object"},
		"duplicate key": {`{"a":1,"a":2}`, "context: "},
	} {
		err := proposal.CheckSessionContext(tc.context)
		if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

func TestSessionProblem_EveryReason(t *testing.T) {
	if got := proposal.SessionProblem(nil, agent, now); got != "the session that the call names does not exist" {
		t.Errorf("missing: %q", got)
	}
	for want, edit := range map[string]func(*v1alpha1.AgentSession){
		"":                               func(*v1alpha1.AgentSession) {},
		"the call's session was deleted": func(s *v1alpha1.AgentSession) { s.DeletionTimestamp = new(metav1.NewTime(now)) },
		"the call's session was revoked": func(s *v1alpha1.AgentSession) { s.Spec.Revoked = true },
		"the call's session has expired": func(s *v1alpha1.AgentSession) { s.Spec.ExpiresAt = metav1.NewTime(now) },
		"the call's session is another principal's":                func(s *v1alpha1.AgentSession) { s.Spec.Principal = "other" },
		"the trusted context of the call's session cannot be read": func(s *v1alpha1.AgentSession) { s.Spec.Context = "{" },
	} {
		s := session()
		edit(s)
		if got := proposal.SessionProblem(s, agent, now); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSessionChanged_SeesAnotherSpecAndAnotherObject(t *testing.T) {
	ref, err := proposal.SessionRef(session())
	if err != nil {
		t.Fatal(err)
	}
	if got := proposal.SessionChanged(session(), ref); got != "" {
		t.Errorf("unchanged: %q", got)
	}
	for name, edit := range map[string]func(*v1alpha1.AgentSession){
		"context": func(s *v1alpha1.AgentSession) { s.Spec.Context = `{"team":"blue"}` },
		"expiry":  func(s *v1alpha1.AgentSession) { s.Spec.ExpiresAt = metav1.NewTime(now.Add(2 * time.Hour)) },
		"object":  func(s *v1alpha1.AgentSession) { s.UID = "other" },
	} {
		s := session()
		edit(s)
		if proposal.SessionChanged(s, ref) == "" {
			t.Errorf("a changed %s passes", name)
		}
	}
}

func TestRulesOf_AreTheContractsWithItsDefaults(t *testing.T) {
	m := commandManifest()
	got := proposal.RulesOf(compile(t, m))
	if diff := cmp.Diff(proposal.ApprovalRules{Timeout: time.Hour}, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	m.Spec.Approval = &v1alpha1.ApprovalRules{
		Timeout: &metav1.Duration{Duration: time.Minute}, AllowServiceAccounts: true,
		Requirements: []v1alpha1.ApprovalRequirement{{Group: "sre", Count: 2}},
	}
	want := proposal.ApprovalRules{Timeout: time.Minute, AllowServiceAccounts: true, Requirements: []proposal.Requirement{{Group: "sre", Count: 2}}}
	if diff := cmp.Diff(want, proposal.RulesOf(compile(t, m))); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestPolicyCall_ShowsPoliciesTheSealedCallAndNothingElse(t *testing.T) {
	k := keyring(t, 1)
	for name, tc := range map[string]struct {
		manifest *v1alpha1.ToolManifest
		want     policy.EffectView
	}{
		"command": {commandManifest(), policy.EffectView{
			Kind: policy.EffectCommand, Image: "registry.example/tool@" + digest, Argv: []string{"tool", "web"},
			WorkingDir: "/work", EnvNames: []string{"MODE", "TOKEN"}, SecretNames: []string{"token"},
		}},
		"http": {httpManifest(), policy.EffectView{
			Kind: policy.EffectHTTP, HTTPURL: "https://api.example.com/things/web", HTTPMethod: "POST",
			HTTPHost: "api.example.com", HTTPBody: "plain", SecretNames: []string{"token"},
		}},
		"mcp": {mcpManifest(), policy.EffectView{
			Kind: policy.EffectMCP, MCPServer: "https://mcp.example.com/", MCPTool: "change",
			MCPArgumentsJSON: `{"how":"fast","where":"web"}`, SecretNames: []string{"token"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := sealed(t, k, tc.manifest)
			call, err := proposal.PolicyCall(compile(t, tc.manifest), p, session())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, call.Effect); diff != "" {
				t.Errorf("effect (-want +got):\n%s", diff)
			}
			if call.Approved || call.ApprovedFingerprint != "" || call.Fingerprint != p.Spec.Prepared.Fingerprint ||
				call.Principal.Username != agent || !call.HasSession || call.SessionContext != `{"team":"red"}` {
				t.Errorf("call %+v", call)
			}
			if call, _ := proposal.PolicyCall(compile(t, tc.manifest), p, nil); call.HasSession || call.SessionContext != "" {
				t.Errorf("a call without a session has one: %+v", call)
			}
		})
	}
}

func TestPolicyTool_DescribesTheContract(t *testing.T) {
	m := mcpManifest()
	m.Spec.Cedar = &v1alpha1.CedarBinding{Resource: "Tool::Fetch", Action: "execute"}
	m.Spec.Arguments = append(m.Spec.Arguments, v1alpha1.Argument{
		Name: "options", Type: "object", ArgumentConstraints: v1alpha1.ArgumentConstraints{Schema: `{"type":"object"}`},
	})
	m.Spec.MCP.Arguments = append(m.Spec.MCP.Arguments, v1alpha1.MCPArgument{Name: "opts", Argument: "options"})
	got := proposal.PolicyTool(namespace, compile(t, m))
	if got.CedarResource != "Tool::Fetch" || got.CedarAction != "execute" || got.Name != "change" || got.EffectKind != "mcp" {
		t.Errorf("tool %+v", got)
	}
	object := map[string]any{"type": "object"}
	wantMCP := []policy.Argument{{Name: "where", Kind: "string", Required: true}, {Name: "opts", Kind: "object", Schema: object}}
	if diff := cmp.Diff(wantMCP, got.MCPArguments); diff != "" {
		t.Errorf("arguments of the server (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]policy.Constant{{Name: "how", JSON: `"fast"`}}, got.MCPConstants); diff != "" {
		t.Errorf("constants for the server (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(any(object), got.Arguments[1].Schema); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
	m.Spec.MCP.Arguments = nil
	if same := proposal.PolicyTool(namespace, compile(t, m)); len(same.MCPArguments) != 2 || len(same.MCPConstants) != 0 {
		t.Errorf("without a mapping the server gets %v and %v", same.MCPArguments, same.MCPConstants)
	}
}

// The types of policy are derived from what the contract hands over: in another
// form than policy reads, everything inside objects and arrays would be untyped.
func TestPolicyTool_LetsPoliciesReadInsideObjectsArraysAndConstants(t *testing.T) {
	m := mcpManifest()
	m.Spec.Arguments = append(m.Spec.Arguments,
		v1alpha1.Argument{Name: "options", Type: "object", ArgumentConstraints: v1alpha1.ArgumentConstraints{
			Schema: `{"type":"object","required":["level"],"properties":{"level":{"type":"integer"}}}`,
		}},
		v1alpha1.Argument{Name: "tags", Type: "array", Required: true, ArgumentConstraints: v1alpha1.ArgumentConstraints{
			Schema: `{"type":"array","items":{"type":"string"}}`,
		}})
	m.Spec.MCP.Arguments = []v1alpha1.MCPArgument{
		{Name: "where", Argument: "target"},
		{Name: "opts", Argument: "options"},
		{Name: "tags", Argument: "tags"},
		{Name: "how", Value: new(`"fast"`)},
		{Name: "limits", Value: new(`{"tries":3,"hosts":["a","b"],"dry":false}`)},
	}
	text := `permit (principal, action, resource) when {
		context.invocation.arguments has options && context.invocation.arguments.options.level == 3 &&
		context.invocation.arguments.tags.contains("x") &&
		context.invocation.resolved.mcp_arguments has opts && context.invocation.resolved.mcp_arguments.opts.level == 3 &&
		context.invocation.resolved.mcp_arguments.how == "fast" &&
		context.invocation.resolved.mcp_arguments.limits.tries == 3 &&
		context.invocation.resolved.mcp_arguments.limits.hosts.contains("b") &&
		!context.invocation.resolved.mcp_arguments.limits.dry
	};`
	compiled, problems := policy.Compile(policy.Source{Namespace: namespace, Name: "p", Text: text}, policy.Limits{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	set, err := policy.NewSet(policy.Limits{}, compiled)
	if err != nil {
		t.Fatal(err)
	}
	c := compile(t, m)
	set = set.WithTools(namespace, []policy.Tool{proposal.PolicyTool(namespace, c)})
	if report := set.Report(policy.Key{Namespace: namespace, Name: "p"}); len(report.Problems) > 0 {
		t.Fatalf("problems %v", report.Problems)
	}
	for arguments, want := range map[string]policy.Answer{
		`{"target":"web","tags":["x"],"options":{"level":3}}`: policy.Allow,
		`{"target":"web","tags":["y"],"options":{"level":3}}`: policy.Deny,
		`{"target":"web","tags":["x"],"options":{"level":4}}`: policy.Deny,
		`{"target":"web","tags":["x"]}`:                       policy.Deny,
	} {
		prepared, err := c.Prepare(agent, arguments)
		if err != nil {
			t.Fatal(err)
		}
		got := set.Decide(policy.Call{
			Tool: proposal.PolicyTool(namespace, c), Principal: policy.Principal{Username: agent},
			ArgsCanonicalJSON: prepared.ArgsCanonicalJSON, Fingerprint: prepared.Fingerprint, Effect: proposal.EffectView(prepared.Effect),
		}, policy.Options{})
		if got.Answer != want {
			t.Errorf("%s: %+v, want %s", arguments, got, want)
		}
	}
}

func TestPolicySource_CarriesTheDeclaredAttributes(t *testing.T) {
	got := proposal.PolicySource(namespace, "p", v1alpha1.PolicySpec{
		Cedar: "text", SessionAttributes: []v1alpha1.SessionAttribute{{Name: "team", Type: "String", Required: true}},
	})
	want := policy.Source{Namespace: namespace, Name: "p", Text: "text", SessionAttributes: []policy.SessionAttribute{
		{Name: "team", Type: "String", Required: true},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("source (-want +got):\n%s", diff)
	}
}
