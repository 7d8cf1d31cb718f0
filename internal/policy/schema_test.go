// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/policy"
)

// shopTools are tools of each kind of effect, with arguments of each type; two
// share an action.
func shopTools() []policy.Tool {
	object := map[string]any{
		"type": "object", "required": []any{"currency"},
		"properties": map[string]any{
			"currency":  map[string]any{"type": "string"},
			"__entity":  map[string]any{"type": "boolean"},
			"two words": map[string]any{"type": "array", "items": map[string]any{"type": "integer"}},
			"open":      map[string]any{},
		},
	}
	return []policy.Tool{
		{
			Namespace: "shop", Name: "pay", EffectKind: policy.EffectCommand, RiskTier: "high", Arguments: []policy.Argument{
				{Name: "amount", Kind: "integer", Required: true},
				{Name: "rate", Kind: "number"},
				{Name: "urgent", Kind: "boolean"},
				{Name: "from", Kind: "ip_address"},
				{Name: "options", Kind: "object", Schema: object, Required: true},
				{Name: "tags", Kind: "array", Schema: map[string]any{"type": "array", "items": map[string]any{"type": "string"}}},
				{Name: "anything", Kind: "array"},
			},
		},
		{
			Namespace: "shop", Name: "fetch", ToolName: "fetch_page", EffectKind: policy.EffectHTTP, CedarResource: "Tool::Fetch", CedarAction: "run",
			Arguments: []policy.Argument{{Name: "url", Kind: "url", Required: true}, {Name: "depth", Kind: "integer"}, {Name: "mode", Kind: "string"}},
		},
		{
			Namespace: "shop", Name: "fetch-list", EffectKind: policy.EffectMCP, CedarResource: "Tool::Fetch", CedarAction: "run",
			Arguments:    []policy.Argument{{Name: "url", Kind: "url", Required: true}, {Name: "mode", Kind: "integer"}},
			MCPArguments: []policy.Argument{{Name: "target", Kind: "url", Required: true}},
			MCPConstants: []policy.Constant{{Name: "depth", JSON: "3"}, {Name: "headers", JSON: `{"accept":["text/html"],"follow":false}`}},
		},
		{
			Namespace: "shop", Name: "scan", EffectKind: policy.EffectCommand, CedarResource: "Scan", CedarAction: "run", StringArguments: true,
			Arguments: []policy.Argument{{Name: "ports", Kind: "integer", Required: true}, {Name: "range", Kind: "cidr", Required: true}},
		},
	}
}

// update rewrites golden files: UPDATE_GOLDEN=1 go test ./internal/policy
var update = os.Getenv("UPDATE_GOLDEN") != ""

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestSchema_DescribesEveryTool(t *testing.T) {
	t.Parallel()
	text, err := policy.Schema("shop", shopTools(), []policy.SessionAttribute{
		{Name: "tenant", Type: policy.AttributeString, Required: true},
		{Name: "level", Type: policy.AttributeLong},
		{Name: "night", Type: policy.AttributeBoolean},
		{Name: "roles", Type: policy.AttributeStrings},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "shop.cedarschema", text)
	var parsed schema.Schema
	if err := parsed.UnmarshalCedar([]byte(text)); err != nil {
		t.Fatalf("the text is no schema: %v", err)
	}
	resolved, err := parsed.Resolve()
	if err != nil {
		t.Fatalf("the schema does not hold together: %v", err)
	}
	if len(resolved.Actions) != 3 || len(resolved.Entities) != 6 {
		t.Errorf("%d actions and %d entity types, want 3 and 6", len(resolved.Actions), len(resolved.Entities))
	}
	again, err := policy.Schema("shop", shopTools(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if same, _ := policy.Schema("shop", shopTools(), nil); same != again {
			t.Fatal("the same tools have two schemas")
		}
	}
}

func TestSchema_SaysWhatHasNoCedarForm(t *testing.T) {
	t.Parallel()
	bad := func(resource, action string) policy.Tool {
		return policy.Tool{Namespace: "shop", Name: "bad", CedarResource: resource, CedarAction: action, EffectKind: policy.EffectHTTP}
	}
	tests := map[string]struct {
		tools []policy.Tool
		want  string
	}{
		"a reserved name":     {[]policy.Tool{bad("k8s::User", "run")}, "tool shop/bad: cedar.resource must not use the names k8s, Action or __cedar; choose another type name"},
		"a name that is none": {[]policy.Tool{bad("a b", "run")}, "tool shop/bad: cedar.resource is not a Cedar type name, or cedar.action is empty"},
		"names that cannot stand side by side": {
			[]policy.Tool{bad("Fetch", "run"), {Namespace: "shop", Name: "b", CedarResource: "Tool::Fetch", CedarAction: "run", EffectKind: policy.EffectHTTP}},
			`the names in cedar.resource exclude each other: definition of "Tool::Fetch" illegally shadows the existing definition of "Fetch"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := policy.Schema("shop", tc.tools, nil)
			if err == nil || err.Error() != tc.want || text != "" {
				t.Errorf("Schema = %q, %v; want %s", text, err, tc.want)
			}
		})
	}
}

// Names that exclude each other in one schema text are fine for policies: Cedar
// itself keeps them apart.
func TestValidate_KeepsTypesOfTheSameLastNameApart(t *testing.T) {
	t.Parallel()
	tools := []policy.Tool{
		{Namespace: "team", Name: "a", CedarResource: "Fetch", CedarAction: "run", EffectKind: policy.EffectHTTP},
		{Namespace: "team", Name: "b", CedarResource: "Tool::Fetch", CedarAction: "run", EffectKind: policy.EffectHTTP},
	}
	set := setOf(t, permitAll+`forbid (principal, action, resource is Fetch);`).WithTools("team", tools)
	if problems := set.Problems("team"); len(problems) > 0 {
		t.Errorf("problems = %v", problems)
	}
	for i, want := range []policy.Answer{policy.Deny, policy.Allow} {
		call := policy.Call{Tool: tools[i], ArgsCanonicalJSON: "{}", Effect: policy.EffectView{Kind: policy.EffectHTTP}}
		if got := set.Decide(call, policy.Options{}); got.Answer != want {
			t.Errorf("%s: %+v, want %s", tools[i].Name, got, want)
		}
	}
}

// Every value that a request holds has the type that the schema gives it, and
// everything that the schema requires is there: otherwise a policy that passed
// validation could still fail.
func TestSchema_HoldsForEveryRequest(t *testing.T) {
	t.Parallel()
	calls := []policy.Call{
		{
			ArgsCanonicalJSON: `{"amount":7,"anything":[1,"x"],"from":"10.1.2.3","options":{"__entity":true,"currency":"EUR","open":[{}],"two words":[1,2]},"rate":0.25,"tags":["a"],"urgent":true}`,
			Effect:            policy.EffectView{Kind: policy.EffectCommand, Argv: []string{"pay"}, Image: "i", WorkingDir: "/work", EnvNames: []string{"A"}, SecretNames: []string{"s"}},
		},
		{
			ArgsCanonicalJSON: `{"depth":3,"url":"https://example.com/"}`,
			Effect:            policy.EffectView{Kind: policy.EffectHTTP, HTTPURL: "https://example.com/", HTTPMethod: "GET", HTTPHost: "example.com"},
		},
		{
			ArgsCanonicalJSON: `{"mode":3,"url":"https://example.com/"}`,
			Effect:            policy.EffectView{Kind: policy.EffectMCP, MCPServer: "https://mcp.example/", MCPTool: "list", MCPArgumentsJSON: `{"depth":3,"headers":{"accept":["text/html"],"follow":false},"target":"https://example.com/"}`},
		},
		{
			ArgsCanonicalJSON: `{"ports":"80","range":"10.0.0.0/8"}`,
			Effect:            policy.EffectView{Kind: policy.EffectCommand, Argv: []string{"scan", "80"}},
		},
	}
	conditions := [][]string{
		{
			`context.invocation.arguments.amount == 7`, `context.invocation.arguments.options.currency == "EUR"`,
			`context.invocation.arguments.options has "two words" && context.invocation.arguments.options["two words"].contains(2)`,
			`context.invocation.arguments.options has __entity && context.invocation.arguments.options.__entity`,
			`context.invocation.arguments has rate && context.invocation.arguments.rate == decimal("0.25")`,
			`context.invocation.arguments has urgent && context.invocation.arguments.urgent`,
			`context.invocation.arguments has tags && context.invocation.arguments.tags == ["a"]`,
			`context.invocation.argument_json has tags && context.invocation.argument_json.tags == "[\"a\"]"`,
			`context.invocation.argument_json has anything && context.invocation.argument_json.anything == "[1,\"x\"]"`,
			`context.invocation.argument_json.options like "{\"__entity\":true*"`,
			`context.invocation.argument_lengths has anything && context.invocation.argument_lengths.anything == 2`,
			`context.invocation.argument_addresses has from && context.invocation.argument_addresses.from.isInRange(ip("10.0.0.0/8"))`,
			`context.invocation.resolved.kind == "command" && context.invocation.resolved.argv.contains("pay")`,
			`context.invocation.resolved.image == "i" && context.invocation.resolved.working_dir == "/work"`,
			`context.invocation.resolved.env_names == ["A"] && context.invocation.resolved.secret_names.contains("s")`,
			`resource.tool_name == "pay" && resource.risk_tier == "high" && resource.namespace == "shop"`,
			`context.invocation.contract.name == "pay"`, `resource == Tool::"pay" && action == Action::"tool_call::pay"`,
		},
		{
			`context.invocation.arguments.url like "https://*"`, `context.invocation.arguments has depth && context.invocation.arguments.depth == 3`,
			`context.invocation.resolved has http_url && context.invocation.resolved.http_url == "https://example.com/"`,
			`context.invocation.resolved has http_method && context.invocation.resolved.http_method == "GET"`,
			`context.invocation.resolved has http_host && context.invocation.resolved.http_host == "example.com"`,
			`context.invocation.resolved has http_body && context.invocation.resolved.http_body == ""`,
			`resource == Tool::Fetch::"fetch_page" && action == Tool::Fetch::Action::"run"`, `resource.tool_name == "fetch_page"`,
			`context.invocation.contract.name == "fetch"`,
		},
		{
			`context.invocation.resolved has mcp_server && context.invocation.resolved.mcp_server == "https://mcp.example/"`,
			`context.invocation.resolved has mcp_tool && context.invocation.resolved.mcp_tool == "list"`,
			`context.invocation.resolved has mcp_arguments && context.invocation.resolved.mcp_arguments.target == "https://example.com/"`,
			`context.invocation.resolved has mcp_arguments && context.invocation.resolved.mcp_arguments.depth == 3 && !context.invocation.resolved.mcp_arguments.headers.follow`,
			`context.invocation.resolved has mcp_arguments_json && context.invocation.resolved.mcp_arguments_json like "{*"`,
		},
		{
			`context.invocation.arguments.ports == "80"`, `context.invocation.argument_addresses.range.isInRange(ip("10.0.0.0/8"))`,
			`context.invocation.resolved.argv_json == "[\"scan\",\"80\"]"`, `resource is Scan && action == Scan::Action::"run"`,
		},
	}
	for i, tool := range shopTools() {
		call := calls[i]
		call.Tool = tool
		for _, condition := range conditions[i] {
			t.Run(fmt.Sprintf("%s %s", tool.Name, condition), func(t *testing.T) {
				t.Parallel()
				scope := fmt.Sprintf(`permit (principal, action, resource) when { resource.tool_name == %q } when { %s };`, toolName(&tool), condition)
				if strings.Contains(condition, "arguments") || strings.Contains(condition, "resolved") || strings.Contains(condition, "argument_") {
					scope = fmt.Sprintf(`permit (principal, action == %s, resource) when { %s };`, actionOf(&tool), condition)
				}
				c, problems := policy.Compile(policy.Source{Namespace: "shop", Name: "p", Text: scope}, policy.Limits{})
				if len(problems) > 0 {
					t.Fatal(problems)
				}
				set, err := policy.NewSet(policy.Limits{}, c)
				if err != nil {
					t.Fatal(err)
				}
				if got := set.WithTools("shop", shopTools()).Decide(call, policy.Options{}); got.Answer != policy.Allow {
					t.Errorf("decision = %+v, want Allow", got)
				}
			})
		}
	}
}

func toolName(tool *policy.Tool) string {
	if tool.ToolName != "" {
		return tool.ToolName
	}
	return tool.Name
}

func actionOf(tool *policy.Tool) string {
	if tool.CedarResource == "" {
		return fmt.Sprintf("Action::%q", "tool_call::"+toolName(tool))
	}
	return fmt.Sprintf("%s::Action::%q", tool.CedarResource, tool.CedarAction)
}
