// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/contract/lint"
)

const image = "registry.example/tool@sha256:0000000000000000000000000000000000000000000000000000000000000000"

func command(arguments, members string) string {
	return `{"version": "1", "arguments": [` + arguments + `], "command": {"image": "` + image + `", ` + members + `}}`
}

func request(arguments, members string) string {
	return `{"version": "1", "arguments": [` + arguments + `], "http": {` + members + `},
		"secrets": [{"name": "t", "secretName": "s", "key": "k", "hosts": ["api.example.com"]}]}`
}

func spec(members string) string {
	return `{"version": "1", ` + members + `, "command": {"image": "` + image + `", "argv": ["tool"]}}`
}

const (
	text    = `{"name": "a", "type": "string"}`
	pattern = `{"name": "a", "type": "string", "pattern": "^[a-z]+$"}`
)

// cases are, per rule, a manifest that it is about and one that is in order in
// this respect.
var cases = map[string]struct{ found, fine, field string }{
	"does-not-compile":      {command(text, `"argv": ["tool"]`), command(text, `"argv": ["tool", "--a={a}"]`), "spec.arguments[0]"},
	"image-tag":             {strings.Replace(command(pattern, `"argv": ["tool", "{a}"]`), "@sha256:0000000000000000000000000000000000000000000000000000000000000000", ":v1", 1), command(pattern, `"argv": ["tool", "{a}"]`), "spec.command.image"},
	"shell":                 {command(text, `"argv": ["/bin/sh", "-c", "echo", "{a}"]`), command(text, `"argv": ["/bin/sh", "-c", "echo", "{a}"], "allowShell": true`), "spec.command.argv[0]"},
	"interpreter":           {command(text, `"argv": ["/usr/bin/python3", "-c", "print({{}}, {a})"]`), command(text, `"argv": ["python3", "/opt/tool.py", "--a={a}"]`), "spec.command.argv[2]"},
	"risk-without-approval": {spec(`"riskTier": "critical"`), spec(`"riskTier": "high", "humanApproval": true`), "spec.riskTier"},
	"secret-without-hosts":  {strings.Replace(request(pattern, `"method": "GET", "url": "https://api.example.com/{a}", "headers": [{"name": "X", "value": "{_secret:t}"}]`), `, "hosts": ["api.example.com"]`, "", 1), request(pattern, `"method": "GET", "url": "https://api.example.com/{a}", "headers": [{"name": "X", "value": "{_secret:t}"}]`), "spec.secrets[0].hosts"},
	"secret-over-http":      {request(pattern, `"method": "GET", "url": "http://api.example.com/{a}", "headers": [{"name": "X", "value": "{_secret:t}"}]`), request(pattern, `"method": "GET", "url": "https://api.example.com/{a}", "headers": [{"name": "X", "value": "{_secret:t}"}]`), "spec.http.url"},
	"no-scope":              {command(`{"name": "a", "type": "scope_target"}`, `"argv": ["tool", "{a}"]`), command(pattern, `"argv": ["tool", "{a}"]`), "spec.scopeRef"},
	"free-text-first-word":  {command(text, `"argv": ["tool", "{a}"]`), command(pattern, `"argv": ["tool", "{a}"]`), "spec.command.argv[1]"},
	"free-text-decides":     {command(text, `"argv": ["tool", "--a={a}", "{c}"], "conditionals": [{"name": "c", "when": "a == 'x'", "template": "y"}]`), command(text, `"argv": ["tool", "--a={a}", "{c}"], "conditionals": [{"name": "c", "when": "a != ''", "template": "y"}]`), "spec.command.conditionals[0].when"},
	"unanchored-pattern":    {command(`{"name": "a", "type": "string", "pattern": "^SELECT"}`, `"argv": ["tool", "{a}"]`), command(pattern, `"argv": ["tool", "{a}"]`), "spec.arguments[0].pattern"},
	"multiline-pattern":     {command(`{"name": "a", "type": "string", "pattern": "(?m)^a$"}`, `"argv": ["tool", "{a}"]`), command(pattern, `"argv": ["tool", "{a}"]`), "spec.arguments[0].pattern"},
	"leading-dash":          {command(`{"name": "a", "type": "string", "pattern": "x", "allowLeadingDash": true}`, `"argv": ["tool", "{a}"]`), command(`{"name": "a", "type": "string", "pattern": "x", "allowLeadingDash": true}`, `"argv": ["tool", "--", "{a}"]`), "spec.command.argv[1]"},
	"no-option-terminator":  {command(text, `"argv": ["tool", "get", "{a}"]`), command(text, `"argv": ["tool", "get", "--", "{a}"]`), "spec.command.argv[2]"},
	"enum-option":           {command(`{"name": "a", "type": "enum", "allowed": ["-v", "x"]}`, `"argv": ["tool", "{a}"]`), command(`{"name": "a", "type": "enum", "allowed": ["-v", "x"]}`, `"argv": ["tool", "--x={a}"]`), "spec.command.argv[1]"},
	"unmapped-value":        {command(`{"name": "a", "type": "enum", "allowed": ["x", "y"]}`, `"argv": ["tool", "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "-x"}]}]`), command(`{"name": "a", "type": "enum", "allowed": ["x"]}`, `"argv": ["tool", "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "-x"}]}]`), "spec.command.mappings[0].values"},
	"plain-http":            {request(pattern, `"method": "GET", "url": "HTTP://api.example.com/{a}"`), request(pattern, `"method": "GET", "url": "https://api.example.com/{a}"`), "spec.http.url"},
	"private-addresses":     {request(pattern, `"method": "GET", "url": "https://api.example.com/{a}", "allowPrivate": true`), request(pattern, `"method": "GET", "url": "https://api.example.com/{a}"`), "spec.http.allowPrivate"},
	"no-scope-check":        {command(`{"name": "a", "type": "url"}`, `"argv": ["tool", "{a}"]`), command(`{"name": "a", "type": "url", "scopeCheck": true}`, `"argv": ["tool", "{a}"]`), "spec.arguments[0]"},
	"wide-egress":           {spec(`"execution": {"egress": [{"cidr": "0.0.0.0/0", "ports": [443]}]}`), spec(`"execution": {"egress": [{"cidr": "10.0.0.0/8", "ports": [443]}, {"namespace": "db", "ports": [5432]}]}`), "spec.execution.egress[0].cidr"},
	"raw-body":              {request(pattern, `"method": "POST", "url": "https://api.example.com/", "headers": [{"name": "Content-Type", "value": "application/xml"}], "body": "<a>{a}</a>"`), request(pattern, `"method": "POST", "url": "https://api.example.com/", "headers": [{"name": "Content-Type", "value": "application/json"}], "body": "{\"a\": \"{a}\"}"`), "spec.http.body"},
	"open-object":           {command(`{"name": "a", "type": "object", "schema": "{\"items\": [{\"properties\": {\"x\": {}}}]}"}`, `"argv": ["tool", "{a}"]`), command(`{"name": "a", "type": "object", "schema": "{\"properties\": {\"x\": {}}, \"additionalProperties\": false}"}`, `"argv": ["tool", "{a}"]`), "spec.arguments[0].schema"},
	"format-not-enforced":   {command(`{"name": "a", "type": "object", "schema": "{\"properties\": {\"x\": {\"format\": \"email\"}}, \"unevaluatedProperties\": false}"}`, `"argv": ["tool", "{a}"]`), command(`{"name": "a", "type": "object", "schema": "{\"properties\": {\"format\": {}}, \"additionalProperties\": false}"}`, `"argv": ["tool", "{a}"]`), "spec.arguments[0].schema"},
	"sensitive-name":        {command(`{"name": "db_Password", "type": "string"}`, `"argv": ["tool", "--p={db_Password}"]`), command(`{"name": "db_Password", "type": "string", "sensitive": true}`, `"argv": ["tool", "--p={db_Password}"]`), "spec.arguments[0].name"},
	"robot-approval":        {spec(`"humanApproval": true, "approval": {"allowServiceAccounts": true}`), spec(`"humanApproval": true, "approval": {"requirements": [{"group": "a", "count": 1}]}`), "spec.approval.allowServiceAccounts"},
	"cluster-identity":      {spec(`"execution": {"serviceAccountName": "admin"}`), spec(`"execution": {"cpu": "1"}`), "spec.execution.serviceAccountName"},
	"required-default":      {command(`{"name": "a", "type": "string", "required": true, "default": "x"}`, `"argv": ["tool", "--a={a}"]`), command(`{"name": "a", "type": "string", "default": "x"}`, `"argv": ["tool", "--a={a}"]`), "spec.arguments[0].required"},
	"no-output-schema":      {spec(`"output": {"format": "json"}`), spec(`"output": {"format": "json", "schema": "{}"}`), "spec.output.format"},
	"output-file":           {command(pattern, `"argv": ["tool", "{a}", "-o", "{o}"], "defaults": [{"name": "o", "value": "/work/output"}]`), strings.Replace(command(pattern, `"argv": ["tool", "{a}", "-o", "{o}"], "defaults": [{"name": "o", "value": "/work/output"}]`), "{", `{"output": {"file": "/work/output"}, `, 1), "spec.command.defaults[0].value"},
}

// objectRules are tested on types and scopes below.
var objectRules = []string{"wide-scope", "unused-object"}

func decode(t *testing.T, text string) contract.Manifest {
	t.Helper()
	m, err := contract.DecodeManifest([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return m
}

func one(t *testing.T, text string) lint.Namespace {
	t.Helper()
	return lint.Namespace{Name: "default", Manifests: map[string]contract.Manifest{"tool": decode(t, text)}}
}

// fields lists where a rule found something.
func fields(findings []lint.Finding, rule string) []string {
	var out []string
	for _, f := range findings {
		if f.Rule == rule {
			out = append(out, f.Field)
		}
	}
	return out
}

func TestCheck_FindsWhatEachRuleIsAbout(t *testing.T) {
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			found := lint.Check(one(t, c.found), lint.Options{})
			if diff := cmp.Diff([]string{c.field}, fields(found, rule)); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%v", diff, found)
			}
			if got := fields(lint.Check(one(t, c.fine), lint.Options{}), rule); got != nil {
				t.Errorf("found at %v in what is in order", got)
			}
			if got := fields(lint.Check(one(t, c.found), lint.Options{Disable: []string{rule}}), rule); got != nil {
				t.Errorf("found at %v although it is disabled", got)
			}
			for _, f := range found {
				if f.Message == "" || f.Why == "" || f.Kind != "ToolManifest" || f.Name != "tool" || f.Namespace != "default" || strings.Contains(f.Message, "%!") {
					t.Errorf("finding %+v", f)
				}
			}
		})
	}
}

func TestRules_AreAllTestedAndSayWhy(t *testing.T) {
	var ids []string
	for _, r := range lint.Rules() {
		ids = append(ids, r.ID)
		if len(r.Why) < 20 || r.Summary == "" || !slices.Contains([]lint.Level{lint.Error, lint.Warning, lint.Note}, r.Level) {
			t.Errorf("rule %+v", r)
		}
	}
	var tested []string
	for id := range cases {
		tested = append(tested, id)
	}
	tested = append(tested, objectRules...)
	slices.Sort(tested)
	if diff := cmp.Diff(tested, ids); diff != "" {
		t.Errorf("rules (-tested +known):\n%s", diff)
	}
	if got := lint.UnknownRules([]string{"shell", "no-such-rule"}); !slices.Equal(got, []string{"no-such-rule"}) {
		t.Errorf("unknown rules %v", got)
	}
}

// outputPlaces names a file in every part of a command.
const outputPlaces = `"argv": ["tool", "{a}", "{m}", "{c}", "{o}", "in-argv"], "defaults": [{"name": "o", "value": "in-default"}],
	"mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "in-flags"}]}],
	"conditionals": [{"name": "c", "when": "a != ''", "template": "in-template"}], "env": [{"name": "O", "value": "in-env"}, {"name": "T", "secret": "t"}]`

func TestCheck_KnowsWhereACommandIsToldOfAFile(t *testing.T) {
	for _, place := range []string{"in-argv", "in-default", "in-flags", "in-template", "in-env"} {
		text := strings.Replace(command(pattern, outputPlaces), "{", `{"output": {"file": "/work/`+place+`"}, "secrets": [{"name": "t", "secretName": "s", "key": "k"}], `, 1)
		if got := fields(lint.Check(one(t, text), lint.Options{}), "output-file"); got != nil {
			t.Errorf("%s: found at %v", place, got)
		}
	}
}

func TestCheck_FindsEveryFormOfSomeRules(t *testing.T) {
	for name, c := range map[string]struct{ rule, manifest, field string }{
		"a shell that gets nothing of the agent's": {"shell", `{"version": "1", "command": {"image": "` + image + `", "argv": ["env", "bash"]}}`, "spec.command.argv[0]"},
		"an interpreter without an option":         {"interpreter", command(text, `"argv": ["awk", "{a}"]`), "spec.command.argv[1]"},
		"an output file nobody writes":             {"output-file", strings.Replace(command(pattern, outputPlaces), "{", `{"output": {"file": "/work/other"}, `, 1), "spec.output.file"},
		"a high risk":                              {"risk-without-approval", spec(`"riskTier": "high", "approval": {"timeout": "1h"}`), "spec.riskTier"},
		"a secret for another host":                {"secret-without-hosts", request(pattern, `"method": "GET", "url": "https://api.example.org/{a}", "headers": [{"name": "X", "value": "{_secret:t}"}]`), "spec.secrets[0].hosts"},
		"a secret in a body without TLS":           {"secret-over-http", request(pattern, `"method": "POST", "url": "http://api.example.com/{a}", "headers": [{"name": "Content-Type", "value": "application/json"}], "body": "\"{_secret:t}\""`), "spec.http.url"},
		"a mapping of a free text":                 {"free-text-decides", command(text, `"argv": ["tool", "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "-x"}]}]`), "spec.command.mappings[0].argument"},
		"a pattern with an end only":               {"unanchored-pattern", command(`{"name": "a", "type": "string", "pattern": "x$"}`, `"argv": ["tool", "{a}"]`), "spec.arguments[0].pattern"},
		"a pattern that ends with anything":        {"unanchored-pattern", command(`{"name": "a", "type": "string", "pattern": "x.*"}`, `"argv": ["tool", "{a}"]`), "spec.arguments[0].pattern"},
		"a pattern that begins with anything":      {"unanchored-pattern", command(`{"name": "a", "type": "string", "pattern": ".+x"}`, `"argv": ["tool", "{a}"]`), "spec.arguments[0].pattern"},
		"a pattern over line ends":                 {"multiline-pattern", command(`{"name": "a", "type": "string", "pattern": "(?s)a.b"}`, `"argv": ["tool", "{a}"]`), "spec.arguments[0].pattern"},
		"a format in an output":                    {"format-not-enforced", spec(`"output": {"format": "json", "schema": "{\"properties\": {\"x\": {\"format\": \"date\"}}}"}`), "spec.output.schema"},
		"wide egress of IPv6":                      {"wide-egress", spec(`"execution": {"egress": [{"cidr": "2000::/3", "ports": [443]}]}`), "spec.execution.egress[0].cidr"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{c.field}, fields(lint.Check(one(t, c.manifest), lint.Options{}), c.rule)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheck_LeavesInOrderWhatIs(t *testing.T) {
	for name, m := range map[string]string{
		"a pattern without anchors":    command(`{"name": "a", "type": "string", "pattern": "[a-z]+"}`, `"argv": ["tool", "{a}"]`),
		"a pattern that is anything":   command(`{"name": "a", "type": "string", "pattern": ".*", "maxLength": 10}`, `"argv": ["tool", "--a={a}"]`),
		"an MCP call":                  `{"version": "1", "mcp": {"url": "https://mcp.example.com/", "tool": "t", "toolDigest": "` + strings.Repeat("0", 64) + `"}}`,
		"a number with a dash":         command(`{"name": "a", "type": "integer", "allowLeadingDash": true}`, `"argv": ["tool", "x", "{a}"]`),
		"a body without values":        request(pattern, `"method": "POST", "url": "https://api.example.com/?a={a}", "headers": [{"name": "Content-Type", "value": "text/plain"}, {"name": "X", "value": "{_secret:t}"}], "body": "x"`),
		"an output that may have more": spec(`"output": {"format": "json", "schema": "{\"properties\": {}}"}`),
		"a tag that is allowed":        strings.Replace(command(pattern, `"argv": ["tool", "{a}"]`), image, "registry.example/tool:v1", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if got := lint.Check(one(t, m), lint.Options{AllowImageTags: true}); len(got) > 0 {
				t.Errorf("found %v", got)
			}
		})
	}
}

func TestCheck_SurvivesACommandWithoutWords(t *testing.T) {
	found := lint.Check(one(t, command(text, `"argv": []`)), lint.Options{})
	if diff := cmp.Diff([]string{"spec.arguments[0]", "spec.command.argv"}, fields(found, "does-not-compile")); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestCheck_LooksAtTypesAndScopes(t *testing.T) {
	n := one(t, command(`{"name": "a", "type": "used"}, {"name": "b", "type": "broken"}`, `"argv": ["tool", "--a={a}", "--b={b}"]`))
	n.Types = map[string]contract.ArgumentType{
		"used":   {Base: "inner"},
		"inner":  {Base: "scope_target"},
		"broken": {Base: "lost", ArgumentConstraints: contract.ArgumentConstraints{Pattern: "^x"}},
		"above":  {Base: "broken"},
		"unused": {Base: "object", ArgumentConstraints: contract.ArgumentConstraints{Schema: `{"format": "x"}`}},
	}
	n.Scopes = map[string]contract.Scope{"lab": {
		Targets: []string{"10.0.0.0/8", "0.0.0.0/1", "2000::/3", "example.com", "10.0.0.1"}, Domains: []string{"*.example.com", "*.com", "com"},
	}}
	var got []string
	for _, f := range lint.Check(n, lint.Options{}) {
		got = append(got, fmt.Sprintf("%s/%s %s %s", f.Kind, f.Name, f.Field, f.Rule))
	}
	want := []string{
		"ArgumentType/above metadata.name unused-object",
		"ArgumentType/broken spec.base does-not-compile",
		"ArgumentType/broken spec.pattern unanchored-pattern",
		"ArgumentType/unused metadata.name unused-object",
		"ArgumentType/unused spec.schema format-not-enforced",
		"ToolScope/lab spec.domains[1] wide-scope",
		"ToolScope/lab spec.targets[1] wide-scope",
		"ToolScope/lab spec.targets[2] wide-scope",
		"ToolScope/lab spec.targets[3] does-not-compile",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	n = one(t, strings.Replace(command(pattern, `"argv": ["tool", "{a}"]`), `"version"`, `"scopeRef": {"name": "lab"}, "version"`, 1))
	n.Scopes = map[string]contract.Scope{"lab": {}, "other": {}}
	if got := lint.Check(n, lint.Options{}); len(got) != 1 || got[0].Rule != "unused-object" || got[0].Name != "other" {
		t.Errorf("findings %v", got)
	}
}

func TestSARIF_LeadsToFileAndLine(t *testing.T) {
	findings := lint.Check(one(t, cases["shell"].found), lint.Options{})
	i := slices.IndexFunc(findings, func(f lint.Finding) bool { return f.Rule == "shell" })
	findings[i].File, findings[i].Line = `deploy/tool.yaml`, 7
	text, err := lint.SARIF(findings)
	if err != nil {
		t.Fatal(err)
	}
	var log struct {
		Schema  string `json:"$schema"`
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct{ ID string }
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation *struct {
						ArtifactLocation struct{ URI string }
						Region           *struct{ StartLine int }
					}
					LogicalLocations []struct{ FullyQualifiedName string }
				}
			}
		}
	}
	if err := json.Unmarshal(text, &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if log.Version != "2.1.0" || !strings.Contains(log.Schema, "sarif-schema-2.1.0") || len(run.Tool.Driver.Rules) != len(lint.Rules()) || len(run.Results) != len(findings) {
		t.Errorf("log %s", text)
	}
	for n, r := range run.Results {
		if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || r.RuleID != findings[n].Rule || r.Message.Text == "" || r.Locations[0].LogicalLocations[0].FullyQualifiedName == "" {
			t.Errorf("result %+v", r)
		}
	}
	if p := run.Results[i].Locations[0].PhysicalLocation; p == nil || p.ArtifactLocation.URI != "deploy/tool.yaml" || p.Region.StartLine != 7 {
		t.Errorf("location %+v", p)
	}
	findings[i].Line = 0
	if text, err = lint.SARIF(findings); err != nil || strings.Contains(string(text), "startLine") {
		t.Errorf("a line that is not known is written: %v", err)
	}
	if text, err = lint.SARIF(nil); err != nil || !strings.Contains(string(text), `"results": []`) {
		t.Errorf("nothing found is %s, %v", text, err)
	}
}
