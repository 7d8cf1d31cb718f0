// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/proposal"
)

const refundManifest = `apiVersion: assent.dev/v1alpha1
kind: ToolManifest
metadata:
  name: refund
spec:
  version: "1"
  riskTier: low
  arguments:
  - name: cents
    type: integer
    required: true
  command:
    image: registry.example/refund@sha256:0000000000000000000000000000000000000000000000000000000000000000
    argv: [refund, "{cents}"]
`

func toolPolicy(name, cedar string) string {
	return "---\napiVersion: assent.dev/v1alpha1\nkind: ToolPolicy\nmetadata:\n  name: " + name + "\nspec:\n  cedar: |\n    " +
		strings.ReplaceAll(cedar, "\n", "\n    ") + "\n"
}

// folder writes files and gives the folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type ran struct {
	code      int
	out, errs string
}

// command runs the plugin with words in which DIR stands for a folder.
func command(dir, stdin string, args ...string) ran {
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "DIR", dir)
	}
	var out, errs bytes.Buffer
	code := run(args, Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs})
	return ran{code, out.String(), errs.String()}
}

func TestSimulate_PrintsTheDecision(t *testing.T) {
	t.Parallel()
	const small = `permit (principal, action, resource) when { context.invocation.arguments.cents < 100 };`
	tests := map[string]struct {
		policy   string
		manifest func(string) string
		stdin    string
		args     []string
		code     int
		want     map[string]any // members that are compared
	}{
		"allowed": {policy: small, stdin: `{"cents":5}`, want: map[string]any{
			"decision": "Allow", "reason": "Permitted", "policies": []any{"default/p#0"}, "errors": []any{}, "nearMisses": []any{},
		}},
		"denied, with what did not hold": {policy: small, stdin: `{"cents":500}`, code: 2, want: map[string]any{
			"decision": "Deny", "reason": "NoPolicyPermits", "policies": []any{},
			"nearMisses": []any{map[string]any{"policy": "default/p#0", "line": 1.0, "column": 45.0, "condition": "context.invocation.arguments.cents < 100"}},
		}},
		"an approval by somebody else": {
			policy: `permit (principal, action, resource) when { context.has_human_approval };`, stdin: `{"cents":5}`,
			args: []string{"--approved-by", "bob"}, want: map[string]any{"decision": "Allow"},
		},
		"an approval by the requester counts for nothing": {
			policy: `permit (principal, action, resource) when { context.has_human_approval };`, stdin: `{"cents":5}`,
			args: []string{"--approved-by", "alice"}, want: map[string]any{"decision": "NeedsApproval", "reason": "ApprovalRequired"},
		},
		"an approval by a ServiceAccount counts for nothing": {
			policy: `permit (principal, action, resource) when { context.has_human_approval };`, stdin: `{"cents":5}`,
			args: []string{"--approved-by", "system:serviceaccount:a:b"}, want: map[string]any{"decision": "NeedsApproval"},
		},
		"unless the manifest says so": {
			policy: `permit (principal, action, resource) when { context.has_human_approval };`, stdin: `{"cents":5}`,
			manifest: func(m string) string { return m + "  approval: {allowServiceAccounts: true}\n" },
			args:     []string{"--approved-by", "system:serviceaccount:a:b"}, want: map[string]any{"decision": "Allow"},
		},
		"one approval where two people are needed": {
			policy: `permit (principal, action, resource);`, stdin: `{"cents":5}`,
			manifest: func(m string) string {
				return m + "  humanApproval: true\n  approval: {requirements: [{group: a, count: 1}, {group: b, count: 1}]}\n"
			},
			args: []string{"--approved-by", "bob", "--approved-by", "bob"}, want: map[string]any{"decision": "NeedsApproval", "reason": "HumanApprovalRequired"},
		},
		"two approvals where two people are needed": {
			policy: `permit (principal, action, resource);`, stdin: `{"cents":5}`,
			manifest: func(m string) string {
				return m + "  humanApproval: true\n  approval: {requirements: [{group: a, count: 1}, {group: b, count: 1}]}\n"
			},
			args: []string{"--approved-by", "bob", "--approved-by", "carol"}, want: map[string]any{"decision": "Allow"},
		},
		"a policy that cannot be right": {policy: `permit (principal, action, resource) when { context.typo };`, stdin: `{"cents":5}`, code: 2, want: map[string]any{
			"decision": "Deny", "reason": "PolicyUnhealthy",
			"errors": []any{"default/p#0: line 1, column 53: attribute `typo` in context for Action::\"tool_call::refund\" not found; there are approved_fingerprint, has_human_approval, invocation, session"},
		}},
		"a policy that cannot be read": {policy: `permit`, stdin: `{"cents":5}`, code: 2, want: map[string]any{"decision": "Deny", "reason": "PolicyUnhealthy"}},
		"groups": {
			policy: `permit (principal in k8s::Group::"b", action, resource);`, stdin: `{"cents":5}`,
			args: []string{"--group", "a", "--group", "b"}, want: map[string]any{"decision": "Allow"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest := refundManifest
			if tc.manifest != nil {
				manifest = tc.manifest(manifest)
			}
			dir := folder(t, map[string]string{"a.yaml": manifest, "b.yml": toolPolicy("p", tc.policy), "ignored.txt": "{"})
			args := append([]string{"simulate", "-f", "DIR", "--tool", "refund", "--arguments", "-", "--user", "alice"}, tc.args...)
			r := command(dir, tc.stdin, args...)
			if r.code != tc.code || r.errs != "" {
				t.Fatalf("exit code %d, errors %q; want %d", r.code, r.errs, tc.code)
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(r.out), &got); err != nil {
				t.Fatalf("%v: %s", err, r.out)
			}
			for member, want := range tc.want {
				if diff := cmp.Diff(want, got[member]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", member, diff)
				}
			}
			if len(got["fingerprint"].(string)) != 64 || len(got["policySetDigest"].(string)) != 64 {
				t.Errorf("fingerprint or digest is missing: %s", r.out)
			}
		})
	}
}

func TestSimulate_ReadsTheSession(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"a.yaml": refundManifest + toolPolicy("p", `permit (principal, action, resource) when { context has session && context.session.team == "x" };`) +
			"  sessionAttributes: [{name: team, type: String, required: true}]\n",
		"args.json": `{"cents":5}`, "x.json": `{"team":"x"}`, "y.json": `{"team":1}`,
	})
	for session, want := range map[string]string{"x.json": `"Allow"`, "y.json": `"ContextInvalid"`} {
		r := command(dir, "", "simulate", "-f", "DIR/a.yaml", "--tool", "refund", "--arguments", "DIR/args.json", "--user", "alice", "--session-context", "DIR/"+session)
		if !strings.Contains(r.out, want) {
			t.Errorf("%s: %+v, want %s", session, r, want)
		}
	}
}

func TestSimulate_RefusesBeforeAnyPolicyIsAsked(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a.yaml": refundManifest})
	r := command(dir, `{"cents":"many"}`, "simulate", "-f", "DIR", "--tool", "refund", "--arguments", "-", "--user", "alice")
	var got refusal
	if err := json.Unmarshal([]byte(r.errs), &got); err != nil {
		t.Fatal(err)
	}
	if r.code != exitRefused || r.out != "" || got.Stage != "schema" || got.Path != "cents" || strings.Contains(r.errs, "many") {
		t.Errorf("got %+v", r)
	}
}

func TestOfflineCommands_SayWhatIsWrongWithTheirInput(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"a.yaml": refundManifest, "empty.yaml": "# nothing\n", "cases.yaml": "cases: []\n",
		"bad.yaml":    strings.Replace(refundManifest, "command:", "comand:", 1),
		"broken.yaml": strings.Replace(refundManifest, "type: integer", "type: nosuch", 1),
		"twice.yaml":  refundManifest + "---\n" + refundManifest,
		"pod.yaml":    "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n",
		"kind.yaml":   "apiVersion: assent.dev/v1alpha1\nkind: ApprovalReceipt\nmetadata: {name: x}\n",
		"name.yaml":   strings.Replace(refundManifest, "  name: refund\n", "  labels: {}\n", 1),
		"dup.yaml":    "a: 1\na: 2\n",
		"list.yaml":   "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod}]\n",
		"k8s.yaml":    refundManifest + "  cedar: {resource: k8s::User, action: run}\n",
		"nocase.yaml": "cases: [{name: a}]\n", "both.yaml": "cases: [{name: a, tool: refund, user: u, expect: {decision: Allow}}]\n",
		"answer.yaml": "cases: [{name: a, tool: refund, user: u, arguments: {}, expect: {decision: Maybe}}]\n",
		"field.yaml":  "cases: [{name: a, tol: refund}]\n",
		"tool.yaml":   "cases: [{name: a, tool: none, user: u, arguments: {}, expect: {decision: Allow}}]\n",
	})
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	call := []string{"--tool", "refund", "--arguments", "-", "--user", "u"}
	tests := map[string]struct {
		args []string
		want string
	}{
		"no files":                         {append([]string{"simulate"}, call...), "no files: name them with -f"},
		"no call":                          {[]string{"simulate", "-f", "DIR/a.yaml"}, "--tool, --arguments and --user are needed"},
		"an unknown format":                {append([]string{"simulate", "-f", "DIR/a.yaml", "-o", "xml"}, call...), `output format must be json or text, not "xml"`},
		"a file that is not there":         {append([]string{"simulate", "-f", "DIR/none.yaml"}, call...), "none.yaml: no such file or directory"},
		"a folder without files":           {append([]string{"simulate", "-f", "DIR/folder"}, call...), "folder holds no .yaml, .yml or .json file"},
		"an unknown tool":                  {[]string{"simulate", "-f", "DIR/empty.yaml", "--tool", "x", "--arguments", "-", "--user", "u"}, "there is no ToolManifest x in namespace default of the files"},
		"another namespace":                {append([]string{"simulate", "-n", "other", "-f", "DIR/a.yaml", "--replay"}, call...), "there is no ToolProposal of namespace other among the documents"},
		"a field that is not there":        {append([]string{"simulate", "-f", "DIR/bad.yaml"}, call...), `bad.yaml, document 1: unknown field "spec.comand"`},
		"a manifest that does not compile": {append([]string{"simulate", "-f", "DIR/broken.yaml"}, call...), "ToolManifest refund: "},
		"an object that occurs twice":      {append([]string{"simulate", "-f", "DIR/twice.yaml"}, call...), "twice.yaml, document 2: ToolManifest /refund occurs twice, first in "},
		"another API":                      {append([]string{"simulate", "-f", "DIR/pod.yaml"}, call...), `apiVersion "v1", kind "Pod" is not one of Assent's; use assent.dev/v1alpha1`},
		"another API in a list":            {append([]string{"simulate", "-f", "DIR/list.yaml"}, call...), `items[0]: apiVersion "v1", kind "Pod" is not one of Assent's`},
		"a kind that takes no part":        {append([]string{"simulate", "-f", "DIR/kind.yaml"}, call...), `kind "ApprovalReceipt" takes no part in this; leave it out`},
		"an object without a name":         {append([]string{"simulate", "-f", "DIR/name.yaml"}, call...), "metadata.name is missing"},
		"a key given twice":                {append([]string{"simulate", "-f", "DIR/dup.yaml"}, call...), `key "a" already set in map`},
		"a session that is not there":      {append([]string{"simulate", "-f", "DIR/a.yaml", "--session-context", "DIR/none"}, call...), "reading the session's context: "},
		"arguments that are not there":     {[]string{"simulate", "-f", "DIR/a.yaml", "--tool", "refund", "--arguments", "DIR/none", "--user", "u"}, "reading the arguments: "},
		"a schema without files":           {[]string{"schema", "--cedar"}, "no files: name them with -f"},
		"a schema of broken manifests":     {[]string{"schema", "--cedar", "-f", "DIR/broken.yaml"}, "ToolManifest refund: "},
		"a schema with reserved names":     {[]string{"schema", "--cedar", "-f", "DIR/k8s.yaml"}, "cedar.resource must not use the names k8s, Action or __cedar"},
		"a policy without files":           {[]string{"generate", "policy"}, "no files: name them with -f"},
		"a policy in an unknown format":    {[]string{"generate", "policy", "-f", "DIR/a.yaml", "-o", "toml"}, `output format must be yaml, json or cedar, not "toml"`},
		"a policy of a broken manifest":    {[]string{"generate", "policy", "-f", "DIR/broken.yaml"}, "ToolManifest refund: "},
		"a policy with reserved names":     {[]string{"generate", "policy", "-f", "DIR/k8s.yaml"}, "cedar.resource must not use the names k8s, Action or __cedar"},
		"tests without policies":           {[]string{"policy", "test", "DIR/cases.yaml"}, "no policies: name their files with -f"},
		"tests in an unknown format":       {[]string{"policy", "test", "-f", "DIR/a.yaml", "-o", "xml", "DIR/cases.yaml"}, `output format must be json or text, not "xml"`},
		"tests without cases":              {[]string{"policy", "test", "-f", "DIR/a.yaml", "DIR/cases.yaml"}, "cases.yaml: there are no cases; list them under cases"},
		"tests that are not there":         {[]string{"policy", "test", "-f", "DIR/a.yaml", "DIR/none"}, "none: no such file or directory"},
		"a case without a tool":            {[]string{"policy", "test", "-f", "DIR/a.yaml", "DIR/nocase.yaml"}, "cases[0]: name, tool and user are needed"},
		"a case without arguments":         {[]string{"policy", "test", "-f", "DIR/a.yaml", "DIR/both.yaml"}, "cases[0]: set exactly one of arguments and argumentsJson"},
		"a case with an unknown answer":    {[]string{"policy", "test", "-f", "DIR/a.yaml", "DIR/answer.yaml"}, "expect.decision must be one of Allow, NeedsApproval, Deny, Refused"},
		"a case with an unknown field":     {[]string{"policy", "test", "-f", "DIR/a.yaml", "DIR/field.yaml"}, `unknown field "cases[0].tol"`},
		"a case of an unknown tool":        {[]string{"policy", "test", "-f", "DIR/a.yaml", "DIR/tool.yaml"}, `case "a": there is no ToolManifest none`},
		"a case file with a key twice":     {[]string{"policy", "test", "-f", "DIR/a.yaml", "DIR/dup.yaml"}, `key "a" already set in map`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := command(dir, `{"cents":5}`, tc.args...)
			if r.code != exitError || r.out != "" || !strings.Contains(r.errs, tc.want) {
				t.Errorf("exit code %d, output %q, errors %q; want 1 and %q", r.code, r.out, r.errs, tc.want)
			}
		})
	}
}

func TestGenerate_WritesObjectsThatCanBeApplied(t *testing.T) {
	t.Parallel()
	second := strings.ReplaceAll(strings.Replace(refundManifest, "riskTier: low", "riskTier: critical\n  humanApproval: true", 1), "name: refund", "name: payout")
	dir := folder(t, map[string]string{"a.yaml": refundManifest + "---\n" + second})
	r := command(dir, "", "generate", "policy", "-n", "shop", "-f", "DIR/a.yaml")
	if r.code != exitDone {
		t.Fatalf("got %+v", r)
	}
	d, err := loadDocuments([]string{"-"}, strings.NewReader(r.out))
	if err != nil {
		t.Fatalf("%v:\n%s", err, r.out)
	}
	if len(d.Policies) != 2 || d.Policies[0].Namespace != "shop" || strings.Contains(r.out, "status") {
		t.Errorf("output:\n%s", r.out)
	}
	cases := `cases:
- {name: one, tool: refund, user: u, arguments: {cents: 1}, expect: {decision: Allow, policy: default/refund#0}}
- {name: two, tool: payout, user: u, arguments: {cents: 1}, expect: {decision: NeedsApproval}}
`
	generated := folder(t, map[string]string{"a.yaml": refundManifest + "---\n" + second, "p.yaml": strings.ReplaceAll(r.out, "shop", "default"), "cases": cases})
	if r := command(generated, "", "policy", "test", "-f", "DIR/a.yaml", "-f", "DIR/p.yaml", "DIR/cases"); r.code != exitDone {
		t.Errorf("the generated policies do not fit: %+v", r)
	}
	r = command(dir, "", "generate", "policy", "-f", "DIR/a.yaml", "--tool", "payout", "-o", "json")
	var object v1alpha1.ToolPolicy
	if err := json.Unmarshal([]byte(r.out), &object); err != nil || object.Name != "payout" || !strings.Contains(object.Spec.Cedar, "has_human_approval") {
		t.Errorf("json: %v, %+v", err, r)
	}
}

func TestSchemaCommand_UnitesSessionAttributes(t *testing.T) {
	t.Parallel()
	attributes := func(list string) string { return "  sessionAttributes: " + list + "\n" }
	dir := folder(t, map[string]string{
		"a.yaml": refundManifest +
			toolPolicy("a", "permit (principal, action, resource);") + attributes("[{name: both, type: String, required: true}, {name: clash, type: String}, {name: one, type: Long}]") +
			toolPolicy("b", "permit (principal, action, resource);") + attributes("[{name: both, type: String}, {name: clash, type: Long}]"),
	})
	r := command(dir, "", "schema", "--cedar", "-f", "DIR/a.yaml")
	want := "session?: {\n\t\t\tboth?: String,\n\t\t\tone?: Long\n\t\t}\n"
	if r.code != exitDone || !strings.Contains(r.out, want) {
		t.Errorf("got %+v, want %q in it", r, want)
	}
}

func TestPolicyTest_FailsOnUnsoundPoliciesAndWrongOutcomes(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"a.yaml":    refundManifest + toolPolicy("p", "@id(\"small\")\npermit (principal, action, resource) when { context.invocation.arguments.cents < 100 };"),
		"typo.yaml": toolPolicy("typo", `permit (principal == k8s::User::"x", action, resource) when { context.typo };`),
		"cases": `cases:
- {name: by ID, tool: refund, user: u, arguments: {cents: 1}, expect: {decision: Allow, policy: default/p#0}}
- {name: by name, tool: refund, user: u, arguments: {cents: 1}, expect: {decision: Allow, policy: small, reason: Permitted}}
- {name: another policy, tool: refund, user: u, arguments: {cents: 1}, expect: {decision: Allow, policy: large}}
- {name: another reason, tool: refund, user: u, arguments: {cents: 500}, expect: {decision: Deny, reason: Forbidden}}
- {name: refused, tool: refund, user: u, argumentsJson: '{"cents":1,"cents":2}', expect: {decision: Refused, reason: DuplicateKey}}
- {name: not refused, tool: refund, user: u, arguments: {cents: 1}, expect: {decision: Refused}}
`,
	})
	r := command(dir, "", "policy", "test", "-f", "DIR/a.yaml", "DIR/cases")
	want := `PASS  by ID
PASS  by name
FAIL  another policy
      expected Allow by large
      got      Allow (Permitted) by default/p#0, small
      permitted by policy default/p#0
FAIL  another reason
      expected Deny (Forbidden)
      got      Deny (NoPolicyPermits)
      no policy permits the call
      not default/p#0, line 2: this did not hold: context.invocation.arguments.cents < 100
PASS  refused
FAIL  not refused
      expected Refused
      got      Allow (Permitted) by default/p#0, small
      permitted by policy default/p#0
3 passed, 3 failed
`
	if diff := cmp.Diff(ran{exitRefused, want, ""}, r, cmp.AllowUnexported(ran{})); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
	r = command(dir, "", "policy", "test", "-f", "DIR/a.yaml", "-f", "DIR/typo.yaml", "-o", "json", "DIR/cases")
	first, _, _ := strings.Cut(r.out, "\n")
	var result caseResult
	if err := json.Unmarshal([]byte(first), &result); err != nil || r.code != exitRefused || result.Pass || result.Name != "the policies are sound" {
		t.Errorf("with a typo: %v, %d, %s", err, r.code, first)
	}
}

func TestPolicyTest_ShowsErrorsOfDecisions(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"a.yaml": refundManifest + toolPolicy("p", "permit (principal, action, resource) when { context.invocation.arguments.cents + 9223372036854775807 > 0 };"),
		"cases":  "cases:\n- {name: overflow, tool: refund, user: u, arguments: {cents: 1}, session: {a: 1}, approvedBy: [x], expect: {decision: Allow}}\n",
	})
	r := command(dir, "", "policy", "test", "-f", "DIR/a.yaml", "DIR/cases")
	if r.code != exitRefused || !strings.Contains(r.out, "error in default/p#0: the condition could not be evaluated (policy at line 1, column 1): integer overflow") {
		t.Errorf("got %+v", r)
	}
}

// stored gives a ToolProposal as it lies in a cluster.
func stored(t *testing.T, name, args, answer string, change func(*v1alpha1.ToolProposal)) string {
	t.Helper()
	d, err := loadDocuments([]string{"-"}, strings.NewReader(refundManifest))
	if err != nil {
		t.Fatal(err)
	}
	d.keep("default")
	in, err := proposal.ContractInput(&d.Manifests[0], proposal.Tools{}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := c.Prepare("alice", args)
	if err != nil {
		t.Fatal(err)
	}
	p := v1alpha1.ToolProposal{}
	p.APIVersion, p.Kind, p.Name, p.Namespace = v1alpha1.GroupVersion.String(), "ToolProposal", name, "default"
	p.Spec.Tool, p.Spec.Arguments, p.Spec.CallID = "refund", args, name
	p.Spec.Requester = &v1alpha1.Identity{Username: "alice"}
	if p.Spec.Prepared, err = proposal.PreparedCall(c, prepared); err != nil {
		t.Fatal(err)
	}
	if answer != "" {
		p.Status.Decision = &v1alpha1.Decision{Answer: answer}
	}
	if change != nil {
		change(&p)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSimulate_ReplaysStoredCalls(t *testing.T) {
	t.Parallel()
	approvedCall := func(p *v1alpha1.ToolProposal) {
		p.Status.Conditions = append(p.Status.Conditions, approvedCondition())
	}
	session := func(p *v1alpha1.ToolProposal) { p.Spec.SessionRef = &v1alpha1.SessionReference{Name: "s"} }
	other := func(p *v1alpha1.ToolProposal) { p.Spec.Prepared.Contract.Hash = strings.Repeat("0", 64) }
	list := `{"apiVersion":"v1","kind":"List","items":[` + strings.Join([]string{
		stored(t, "small", `{"cents":5}`, "Allow", session), stored(t, "large", `{"cents":500}`, "Allow", nil),
		stored(t, "approved", `{"cents":500}`, "Allow", approvedCall), stored(t, "new", `{"cents":5}`, "", other),
		`{"apiVersion":"assent.dev/v1alpha1","kind":"AgentSession","metadata":{"name":"s","namespace":"default"},"spec":{"principal":"alice","context":"{\"x\":1}","expiresAt":"2030-01-01T00:00:00Z"}}`,
	}, ",") + `]}`
	dir := folder(t, map[string]string{
		"draft.yaml": refundManifest + toolPolicy("p", "permit (principal, action, resource) when { context.invocation.arguments.cents < 100 };\n"+
			"permit (principal, action, resource) when { context.has_human_approval };"),
		"baseline.yaml": toolPolicy("p", "permit (principal, action, resource) when { context.has_human_approval };"),
		"broken.yaml":   "a: [",
	})
	r := command(dir, list, "simulate", "-f", "DIR/draft.yaml", "-f", "-", "--replay", "-o", "text")
	want := "large (refund): Allow becomes NeedsApproval (ApprovalRequired)\n" +
		"new (refund): undecided becomes Allow (Permitted); the contract in the files is not the one of the call\n" +
		"2 of 4 decisions would change\n"
	if diff := cmp.Diff(ran{exitDone, want, ""}, r, cmp.AllowUnexported(ran{})); diff != "" {
		t.Errorf("against what was decided (-want +got):\n%s", diff)
	}
	r = command(dir, list, "simulate", "-f", "DIR/draft.yaml", "-f", "-", "--replay", "--baseline", "DIR/baseline.yaml")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	var first replayed
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	wantFirst := replayed{Proposal: "approved", Tool: "refund", Decided: "Allow", Before: "Allow", After: "Allow", Reason: "Permitted", Policies: []string{"default/p#1"}}
	if diff := cmp.Diff(wantFirst, first); diff != "" || len(lines) != 4 {
		t.Errorf("against a baseline (-want +got):\n%s\n%s", diff, r.out)
	}
	if !strings.Contains(lines[2], `"before":"NeedsApproval","after":"Allow"`) || !strings.Contains(lines[2], `"changed":true`) {
		t.Errorf("the new call: %s", lines[2])
	}
	if r := command(dir, list, "simulate", "-f", "DIR/draft.yaml", "-f", "-", "--replay", "--baseline", "DIR/broken.yaml"); r.code != exitError || !strings.Contains(r.errs, "reading the baseline: ") {
		t.Errorf("a broken baseline: %+v", r)
	}
	unprepared := stored(t, "raw", `{"cents":5}`, "", func(p *v1alpha1.ToolProposal) { p.Spec.Prepared = nil })
	if r := command(dir, unprepared, "simulate", "-f", "DIR/draft.yaml", "-f", "-", "--replay"); r.code != exitError || !strings.Contains(r.errs, "ToolProposal raw: it was never prepared") {
		t.Errorf("an unprepared call: %+v", r)
	}
	unknown := stored(t, "raw", `{"cents":5}`, "", func(p *v1alpha1.ToolProposal) { p.Spec.Tool = "none" })
	if r := command(dir, unknown, "simulate", "-f", "DIR/draft.yaml", "-f", "-", "--replay"); r.code != exitError || !strings.Contains(r.errs, "there is no ToolManifest none") {
		t.Errorf("an unknown tool: %+v", r)
	}
}

func approvedCondition() metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionApproved, Status: metav1.ConditionTrue, Reason: "Approved"}
}
