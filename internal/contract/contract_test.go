// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/snapshot"
)

func TestContract_DescribesItself(t *testing.T) {
	c := compile(t, `{"version": "1.2", "toolName": "my_tool", "description": "does it", "riskTier": "critical", "humanApproval": true,
		"arguments": [
			{"name": "a", "type": "serious", "required": true, "sensitive": true},
			{"name": "b", "type": "server", "default": "app.example.com", "description": "which"},
			{"name": "o", "type": "object", "schema": "{\"type\": \"object\"}"}],
		"approval": {"timeout": "90m", "requirements": [{"group": "sre", "count": 2}], "allowServiceAccounts": true},
		"cedar": {"resource": "Tool::X", "action": "run"},
		"command": {"image": "`+image+`", "argv": ["tool", "{a}", "{b}", "{o}"]},
		"execution": {"timeout": "1h", "egress": [{"namespace": "db", "podLabels": {"app": "x"}, "ports": [5432]}], "ttlSecondsAfterFinished": 60}}`)
	resource, action, ok := c.Cedar()
	got := []any{c.Name(), c.Namespace(), c.Version(), c.ToolName(), c.Description(), c.RiskTier(), c.HumanApproval(), resource, action, ok}
	want := []any{"tool", "default", "1.2", "my_tool", "does it", "critical", true, "Tool::X", "run", true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	arguments := []contract.ArgumentInfo{
		{Name: "a", Kind: "enum", ValueKind: "enum", Required: true, Sensitive: true},
		{Name: "b", Kind: "string", ValueKind: "string", HasDefault: true, ScopeChecked: true, Description: "which"},
		{Name: "o", Kind: "object", ValueKind: "object", Schema: map[string]any{"type": "object"}},
	}
	if diff := cmp.Diff(arguments, c.Arguments()); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	approval := contract.ApprovalSettings{
		Timeout: 90 * time.Minute, ReceiptLifetime: 15 * time.Minute,
		Requirements: []contract.ApprovalRequirement{{Group: "sre", Count: 2}}, AllowServiceAccounts: true,
	}
	if diff := cmp.Diff(approval, c.Approval()); diff != "" {
		t.Errorf("approval (-want +got):\n%s", diff)
	}
	execution := contract.ExecutionSettings{
		Timeout: time.Hour, CPU: "500m", Memory: "256Mi", EphemeralStorage: "256Mi", TTLSecondsAfterFinished: new(int32(60)),
		Egress: []contract.EgressRule{{Namespace: "db", PodLabels: map[string]string{"app": "x"}, Ports: []int32{5432}}},
	}
	if diff := cmp.Diff(execution, c.Execution()); diff != "" {
		t.Errorf("execution (-want +got):\n%s", diff)
	}
}

func TestContract_WritesOutDefaults(t *testing.T) {
	c := compile(t, spec(`"scopeRef": {"name": "lab"}`))
	if _, _, bound := c.Cedar(); bound || c.ToolName() != "tool" {
		t.Errorf("tool name %q, Cedar %v", c.ToolName(), bound)
	}
	got := []any{
		c.RiskTier(), c.ArgumentEncoding(), c.Output().Format, prepare(t, c, `{}`).Effect.Command.WorkingDir,
		c.Execution().Timeout, c.Approval().Timeout, c.Approval().ReceiptLifetime,
	}
	want := []any{"medium", "Typed", "text", "/work", 5 * time.Minute, time.Hour, 15 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(contract.Output{Format: "text"}, c.Output()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestCompile_AcceptsAsManyApproversAsReceiptsCount(t *testing.T) {
	c := compile(t, spec(`"approval": {"requirements": [{"group": "a", "count": 8}, {"group": "b", "count": 8}]}`))
	if n := c.Approval().Requirements; n[0].Count+n[1].Count != contract.MaxReceipts {
		t.Errorf("%v", n)
	}
}

func TestContract_HandsOutCopies(t *testing.T) {
	c := compile(t, mcp(`"arguments": [{"name": "where", "argument": "a"}, {"name": "how", "value": "\"fast\""}], `+mcpFine))
	want := []contract.MCPArgument{{Name: "where", Argument: "a"}, {Name: "how", Value: new(`"fast"`)}}
	for range 2 {
		mapped, isMCP := c.MCPArguments()
		if diff := cmp.Diff(want, mapped); diff != "" || !isMCP {
			t.Errorf("mapped arguments, MCP %v (-want +got):\n%s", isMCP, diff)
		}
		mapped[0].Argument, *mapped[1].Value = "evil", `"evil"`
	}
	c = compile(t, execution(`"egress": [{"namespace": "db", "podLabels": {"app": "x"}, "ports": [1]}], "ttlSecondsAfterFinished": 1`))
	if mapped, isMCP := c.MCPArguments(); isMCP || mapped != nil {
		t.Errorf("a command has mapped arguments %v", mapped)
	}
	before := c.ExecutionSpec()
	x := c.ExecutionSpec()
	*x.Timeout, *x.TTLSecondsAfterFinished, x.Egress[0].PodLabels["app"], x.Egress[0].Ports[0] = 0, 2, "evil", 2
	x.Egress[0] = contract.EgressRule{}
	if diff := cmp.Diff(before, c.ExecutionSpec()); diff != "" {
		t.Errorf("whoever changes a copy changes the contract:\n%s", diff)
	}
}

func TestCheckCondition_AcceptsConditionsOnly(t *testing.T) {
	if err := contract.CheckCondition(`a == 'x' and b != "" and c == -1.5`); err != nil {
		t.Error(err)
	}
	if err := contract.CheckCondition("a == 'x' or b == 'y'"); err == nil {
		t.Error("or is accepted")
	}
}

func TestCompile_DoesNotChangeItsInput(t *testing.T) {
	in := input(t, commandManifest)
	before, err := json.Marshal(in.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := contract.Compile(in); err != nil {
		t.Fatal(err)
	}
	after, err := json.Marshal(in.Manifest)
	if err != nil || string(before) != string(after) {
		t.Errorf("the manifest became %s", after)
	}
}

func TestKinds_AreAllKnown(t *testing.T) {
	if n := len(contract.Kinds()); n != 17 || !slices.IsSorted(contract.Kinds()) {
		t.Errorf("%d kinds", n)
	}
	for _, k := range contract.Kinds() {
		extra := map[string]string{"enum": `, "allowed": ["x"]`, "regex_match": `, "pattern": "x"`, "object": `, "schema": "{}"`, "array": `, "schema": "{}"`}[k]
		c := compile(t, oneArgument(fmt.Sprintf(`"type": %q%s`, k, extra)))
		if got := c.Arguments()[0].Kind; got != k {
			t.Errorf("kind %s became %s", k, got)
		}
	}
	c := compile(t, inString(oneArgument(`"type": "integer"`)))
	if a := c.Arguments()[0]; a.Kind != "integer" || a.ValueKind != "string" {
		t.Errorf("under String: %+v", a)
	}
}

// validate compiles a generated schema with the library and holds values to it.
func validate(t *testing.T, schema any, canonical string) error {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("https://assent.dev/test", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("https://assent.dev/test")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	value, err := snapshot.DecodeText(canonical)
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

func TestInputSchema_AcceptsWhatPrepareProduces(t *testing.T) {
	for name, v := range acceptedValues {
		t.Run(name, func(t *testing.T) {
			tool, encoded := strings.CutPrefix(v.tool, "S:")
			m := hostileManifests[tool]
			if encoded {
				m = inString(m)
			}
			c := compile(t, m)
			if err := validate(t, c.InputSchema(), prepare(t, c, `{"a":`+v.value+`}`).ArgsCanonicalJSON); err != nil {
				t.Errorf("%v\n%v", err, c.InputSchema())
			}
		})
	}
}

func TestInputSchema_SaysWhatItCan(t *testing.T) {
	c := compile(t, `{"version": "1", "arguments": [
			{"name": "s", "type": "server", "required": true, "maxLength": 20, "description": "host"},
			{"name": "e", "type": "serious", "default": "high"},
			{"name": "r", "type": "rate", "min": 5},
			{"name": "n", "type": "number"},
			{"name": "b", "type": "boolean"},
			{"name": "u", "type": "url"},
			{"name": "p", "type": "string", "pattern": "[a-z]+"},
			{"name": "o", "type": "object", "schema": "{\"required\": [\"x\"]}", "default": "{\"x\": 1}"}],
		"mcp": {`+mcpFine+`}, "output": {"format": "json", "schema": "{\"type\": \"object\"}"}}`)
	want := map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{"s"},
		"properties": map[string]any{
			"s": map[string]any{"type": "string", "description": "host", "minLength": 1, "maxLength": 20, "allOf": []any{
				map[string]any{"pattern": `^(?:.*\.example\.com)$`}, map[string]any{"pattern": `^(?:[a-z0-9.-]+)$`},
			}},
			"e": map[string]any{"type": "string", "enum": []any{"critical", "high"}, "default": "high"},
			"r": map[string]any{"type": "integer", "minimum": 5.0, "maximum": 100.0},
			"n": map[string]any{"type": "number"},
			"b": map[string]any{"type": "boolean"},
			"u": map[string]any{"type": "string", "format": "uri"},
			"p": map[string]any{"type": "string", "pattern": `^(?:[a-z]+)$`},
			"o": map[string]any{"type": "object", "allOf": []any{map[string]any{"required": []any{"x"}}}, "default": map[string]any{"x": 1.0}},
		},
	}
	if diff := cmp.Diff(want, c.InputSchema()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"type": "object"}, c.OutputSchema()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if got := compile(t, spec(`"riskTier": "low"`)).OutputSchema(); got != nil {
		t.Errorf("output schema %v, want none", got)
	}
}

func TestArguments_JoinSchemasOfSeveralLinks(t *testing.T) {
	in := input(t, oneArgument(`"type": "outer", "schema": "{\"maxProperties\": 2}"`))
	in.Types = map[string]contract.ArgumentType{"outer": narrowed("object", contract.ArgumentConstraints{Schema: `{"minProperties": 1}`})}
	c, err := contract.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"allOf": []any{map[string]any{"minProperties": 1.0}, map[string]any{"maxProperties": 2.0}}}
	if diff := cmp.Diff(want, c.Arguments()[0].Schema); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for raw, ok := range map[string]bool{`{"a":{}}`: false, `{"a":{"x":1}}`: true, `{"a":{"x":1,"y":2,"z":3}}`: false} {
		if _, err := c.Prepare("agent", raw); (err == nil) != ok {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
