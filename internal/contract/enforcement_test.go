// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/contract"
)

// pair is two manifests that differ in one field, and a call. What can be
// observed of them apart from hashes must differ, so that removing what
// enforces the field fails the test.
type pair struct{ with, without, raw string }

// differs makes the pair of a manifest in which WITH stands for the first text
// or the second.
func differs(manifest, with, without, raw string) pair {
	return pair{strings.Replace(manifest, "WITH", with, 1), strings.Replace(manifest, "WITH", without, 1), raw}
}

const (
	rootManifest = `{"version": "1", WITH"arguments": [{"name": "a", "type": "string"}], "command": {"image": "` + image + `", "argv": ["tool", "{a}"]}}`
	argManifest  = `{"version": "1", "arguments": [{"name": "a", WITH}], "command": {"image": "` + image + `", "argv": ["tool", "{a}"]}}`
	cmdManifest  = `{"version": "1", "arguments": [{"name": "a", "type": "string"}, {"name": "b", "type": "string"}], "command": {WITH},
		"secrets": [{"name": "t", "secretName": "s", "key": "k"}, {"name": "u", "secretName": "s", "key": "u"}]}`
	httpWith = `{"version": "1", "arguments": [{"name": "a", "type": "string", "required": true}], "http": {WITH},
		"secrets": [{"name": "t", "secretName": "s", "key": "k", "hosts": ["api.example.com"]}]}`
	mcpWith = `{"version": "1", "arguments": [{"name": "a", "type": "string"}, {"name": "b", "type": "string"}], "mcp": {WITH},
		"secrets": [{"name": "t", "secretName": "s", "key": "k", "hosts": ["mcp.example.com", "mcp.example.org"]}]}`
	secretWith = `{"version": "1", "command": {"image": "` + image + `", "argv": ["tool"], "env": [{"name": "T", "secret": "t"}]}, "secrets": [{WITH}]}`
	execWith   = `{"version": "1", "execution": {WITH}, "command": {"image": "` + image + `", "argv": ["tool"]}}`
)

// cmd, web and call complete a command, a request and an MCP call.
func cmd(with, without string) pair {
	const words = `, "env": [{"name": "T", "secret": "t"}, {"name": "U", "secret": "u"}]`
	complete := func(members string) string {
		if !strings.Contains(members, `"env"`) {
			members += words
		}
		if !strings.Contains(members, `"image"`) {
			members = `"image": "` + image + `", ` + members
		}
		return members
	}
	return differs(cmdManifest, complete(with), complete(without), `{"a":"x","b":"y"}`)
}

func web(with, without string) pair {
	complete := func(members string) string {
		for name, fallback := range map[string]string{"method": `"POST"`, "url": `"https://api.example.com/{a}"`, "headers": `[{"name": "X", "value": "{_secret:t}"}]`} {
			if !strings.Contains(members, `"`+name+`"`) {
				members += fmt.Sprintf(`, %q: %s`, name, fallback)
			}
		}
		return strings.TrimPrefix(members, ", ")
	}
	return differs(httpWith, complete(with), complete(without), `{"a":"x"}`)
}

func call(with, without string) pair {
	complete := func(members string) string {
		for name, fallback := range map[string]string{
			"url": `"https://mcp.example.com/"`, "tool": `"t"`, "toolDigest": `"` + strings.Repeat("0", 64) + `"`,
			"headers": `[{"name": "X", "value": "{_secret:t}"}]`,
		} {
			if !strings.Contains(members, `"`+name+`"`) {
				members += fmt.Sprintf(`, %q: %s`, name, fallback)
			}
		}
		return strings.TrimPrefix(members, ", ")
	}
	return differs(mcpWith, complete(with), complete(without), `{"a":"x","b":"y"}`)
}

func arg(with, without, value string) pair {
	return differs(argManifest, with, without, `{"a":`+value+`}`)
}

const abWords = `"argv": ["tool", "{a}", "{b}"`

// certificate is PEM text that is accepted as a bundle.
func certificate(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(testCertificate)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func enforced(t *testing.T) map[string]pair {
	t.Helper()
	ca := certificate(t)
	all := map[string]pair{
		"version":          {strings.Replace(rootManifest, `"version": "1", WITH`, `"version": "2", `, 1), strings.Replace(rootManifest, "WITH", "", 1), `{}`},
		"toolName":         differs(rootManifest, `"toolName": "tool_x", `, ``, `{}`),
		"description":      differs(rootManifest, `"description": "x", `, ``, `{}`),
		"riskTier":         differs(rootManifest, `"riskTier": "high", `, ``, `{}`),
		"argumentEncoding": differs(strings.Replace(rootManifest, `"string"`, `"integer"`, 1), `"argumentEncoding": "String", `, ``, `{"a":"1"}`),
		"scopeRef":         differs(strings.Replace(rootManifest, `"string"`, `"scope_target"`, 1), `"scopeRef": {"name": "none"}, `, ``, `{"a":"10.0.0.1"}`),
		"scopeRef.name":    differs(strings.Replace(rootManifest, `"string"`, `"scope_target"`, 1), `"scopeRef": {"name": "none"}, `, `"scopeRef": {"name": "lab"}, `, `{"a":"10.0.0.1"}`),
		"humanApproval":    differs(rootManifest, `"humanApproval": true, `, ``, `{}`),

		"approval":                          differs(rootManifest, `"approval": {"timeout": "5m"}, `, ``, `{}`),
		"approval.timeout":                  differs(rootManifest, `"approval": {"timeout": "5m"}, `, `"approval": {"timeout": "6m"}, `, `{}`),
		"approval.receiptLifetime":          differs(rootManifest, `"approval": {"receiptLifetime": "5m"}, `, ``, `{}`),
		"approval.requirements":             differs(rootManifest, `"approval": {"requirements": [{"group": "a", "count": 1}]}, `, ``, `{}`),
		"approval.requirements[].group":     differs(rootManifest, `"approval": {"requirements": [{"group": "a", "count": 1}]}, `, `"approval": {"requirements": [{"group": "b", "count": 1}]}, `, `{}`),
		"approval.requirements[].count":     differs(rootManifest, `"approval": {"requirements": [{"group": "a", "count": 1}]}, `, `"approval": {"requirements": [{"group": "a", "count": 2}]}, `, `{}`),
		"approval.allowServiceAccounts":     differs(rootManifest, `"approval": {"allowServiceAccounts": true}, `, ``, `{}`),
		"cedar":                             differs(rootManifest, `"cedar": {"resource": "Tool::A", "action": "x"}, `, ``, `{}`),
		"cedar.resource":                    differs(rootManifest, `"cedar": {"resource": "Tool::A", "action": "x"}, `, `"cedar": {"resource": "Tool::B", "action": "x"}, `, `{}`),
		"cedar.action":                      differs(rootManifest, `"cedar": {"resource": "Tool::A", "action": "x"}, `, `"cedar": {"resource": "Tool::A", "action": "y"}, `, `{}`),
		"output":                            differs(rootManifest, `"output": {"format": "json"}, `, ``, `{}`),
		"output.format":                     differs(rootManifest, `"output": {"format": "json"}, `, `"output": {"format": "csv"}, `, `{}`),
		"output.schema":                     differs(rootManifest, `"output": {"schema": "{\"required\":[\"x\"]}"}, `, ``, `{}`),
		"output.file":                       differs(rootManifest, `"output": {"file": "/work/o"}, `, ``, `{}`),
		"output.sensitive":                  differs(rootManifest, `"output": {"sensitive": true}, `, ``, `{}`),
		"execution":                         differs(rootManifest, `"execution": {"cpu": "1"}, `, ``, `{}`),
		"execution.timeout":                 differs(execWith, `"timeout": "1m"`, ``, `{}`),
		"execution.cpu":                     differs(execWith, `"cpu": "1"`, ``, `{}`),
		"execution.memory":                  differs(execWith, `"memory": "1Gi"`, ``, `{}`),
		"execution.ephemeralStorage":        differs(execWith, `"ephemeralStorage": "1Gi"`, ``, `{}`),
		"execution.runtimeClassName":        differs(execWith, `"runtimeClassName": "gvisor"`, ``, `{}`),
		"execution.serviceAccountName":      differs(execWith, `"serviceAccountName": "tool"`, ``, `{}`),
		"execution.allowDNS":                differs(execWith, `"allowDNS": true`, ``, `{}`),
		"execution.requireIsolation":        differs(execWith, `"requireIsolation": true`, ``, `{}`),
		"execution.ttlSecondsAfterFinished": differs(execWith, `"ttlSecondsAfterFinished": 5`, ``, `{}`),
		"execution.egress":                  differs(execWith, `"egress": [{"cidr": "10.0.0.0/8", "ports": [1]}]`, ``, `{}`),
		"execution.egress[].cidr":           differs(execWith, `"egress": [{"cidr": "10.0.0.0/8", "ports": [1]}]`, `"egress": [{"cidr": "10.0.0.0/9", "ports": [1]}]`, `{}`),
		"execution.egress[].ports":          differs(execWith, `"egress": [{"cidr": "10.0.0.0/8", "ports": [1]}]`, `"egress": [{"cidr": "10.0.0.0/8", "ports": [2]}]`, `{}`),
		"execution.egress[].namespace":      differs(execWith, `"egress": [{"namespace": "a", "ports": [1]}]`, `"egress": [{"namespace": "b", "ports": [1]}]`, `{}`),
		"execution.egress[].podLabels":      differs(execWith, `"egress": [{"namespace": "a", "podLabels": {"x": "y"}, "ports": [1]}]`, `"egress": [{"namespace": "a", "ports": [1]}]`, `{}`),

		"arguments":                    differs(argManifest, `"type": "string"`, `"type": "string"}, {"name": "b", "type": "string"`, `{"b":"x"}`),
		"arguments[].name":             {strings.ReplaceAll(strings.Replace(argManifest, "WITH", `"type": "string"`, 1), `"a"`, `"b"`), strings.Replace(argManifest, "WITH", `"type": "string"`, 1), `{"a":"x"}`},
		"arguments[].type":             arg(`"type": "integer"`, `"type": "string"`, `"1"`),
		"arguments[].description":      arg(`"type": "string", "description": "x"`, `"type": "string"`, `"x"`),
		"arguments[].required":         differs(argManifest, `"type": "string", "required": true`, `"type": "string"`, `{}`),
		"arguments[].default":          differs(argManifest, `"type": "string", "default": "x"`, `"type": "string"`, `{}`),
		"arguments[].allowed":          arg(`"type": "string", "allowed": ["x"]`, `"type": "string"`, `"y"`),
		"arguments[].pattern":          arg(`"type": "string", "pattern": "x"`, `"type": "string"`, `"y"`),
		"arguments[].min":              arg(`"type": "integer", "min": 5`, `"type": "integer"`, `4`),
		"arguments[].max":              arg(`"type": "integer", "max": 5`, `"type": "integer"`, `6`),
		"arguments[].clamp":            arg(`"type": "integer", "max": 5, "clamp": true`, `"type": "integer", "max": 5`, `6`),
		"arguments[].schemes":          arg(`"type": "url", "schemes": ["http"]`, `"type": "url"`, `"http://a.example.com/"`),
		"arguments[].scopeCheck":       arg(`"type": "string", "scopeCheck": true`, `"type": "string"`, `"evil.test"`),
		"arguments[].maxLength":        arg(`"type": "string", "maxLength": 1`, `"type": "string"`, `"ab"`),
		"arguments[].allowLeadingDash": arg(`"type": "string", "allowLeadingDash": true`, `"type": "string"`, `"-x"`),
		"arguments[].sensitive":        arg(`"type": "string", "sensitive": true`, `"type": "string"`, `"x"`),
		"arguments[].schema":           arg(`"type": "object", "schema": "{\"required\":[\"x\"]}"`, `"type": "object", "schema": "{}"`, `{}`),

		"command":                           {strings.Replace(rootManifest, "WITH", "", 1), `{"version": "1", "arguments": [{"name": "a", "type": "string"}], "mcp": {` + mcpFine + `}}`, `{}`},
		"command.image":                     cmd(`"image": "r.example/other`+digest+`", `+abWords+`]`, abWords+`]`),
		"command.argv":                      cmd(abWords+`, "x"]`, abWords+`]`),
		"command.defaults":                  cmd(abWords+`, "{d}"], "defaults": [{"name": "d", "value": "x"}]`, abWords+`, "{d}"]`),
		"command.defaults[].name":           cmd(abWords+`, "{d}"], "defaults": [{"name": "d", "value": "x"}]`, abWords+`, "{d}"], "defaults": [{"name": "e", "value": "x"}]`),
		"command.defaults[].value":          cmd(abWords+`, "{d}"], "defaults": [{"name": "d", "value": "x"}]`, abWords+`, "{d}"], "defaults": [{"name": "d", "value": 7}]`),
		"command.mappings":                  cmd(abWords+`, "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "-x"}]}]`, abWords+`, "{m}"]`),
		"command.mappings[].name":           cmd(abWords+`, "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "-x"}]}]`, abWords+`, "{m}"], "mappings": [{"name": "n", "argument": "a", "values": [{"value": "x", "flags": "-x"}]}]`),
		"command.mappings[].argument":       cmd(abWords+`, "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "-x"}]}]`, abWords+`, "{m}"], "mappings": [{"name": "m", "argument": "b", "values": [{"value": "x", "flags": "-x"}]}]`),
		"command.mappings[].values":         cmd(abWords+`, "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "-x"}]}]`, abWords+`, "{m}"], "mappings": [{"name": "m", "argument": "a", "values": []}]`),
		"command.mappings[].values[].value": cmd(abWords+`, "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "-x"}]}]`, abWords+`, "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "y", "flags": "-x"}]}]`),
		"command.mappings[].values[].flags": cmd(abWords+`, "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "-x"}]}]`, abWords+`, "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "-y"}]}]`),
		"command.conditionals":              cmd(abWords+`, "{c}"], "conditionals": [{"name": "c", "when": "a == 'x'", "template": "y"}]`, abWords+`, "{c}"]`),
		"command.conditionals[].name":       cmd(abWords+`, "{c}"], "conditionals": [{"name": "c", "when": "a == 'x'", "template": "y"}]`, abWords+`, "{c}"], "conditionals": [{"name": "d", "when": "a == 'x'", "template": "y"}]`),
		"command.conditionals[].when":       cmd(abWords+`, "{c}"], "conditionals": [{"name": "c", "when": "a == 'x'", "template": "y"}]`, abWords+`, "{c}"], "conditionals": [{"name": "c", "when": "a != 'x'", "template": "y"}]`),
		"command.conditionals[].template":   cmd(abWords+`, "{c}"], "conditionals": [{"name": "c", "when": "a == 'x'", "template": "y"}]`, abWords+`, "{c}"], "conditionals": [{"name": "c", "when": "a == 'x'", "template": "z"}]`),
		"command.env":                       cmd(abWords+`], "env": [{"name": "T", "secret": "t"}, {"name": "U", "secret": "u"}, {"name": "A", "value": "x"}]`, abWords+`]`),
		"command.env[].name":                cmd(abWords+`], "env": [{"name": "V", "secret": "t"}, {"name": "U", "secret": "u"}]`, abWords+`]`),
		"command.env[].value":               cmd(abWords+`], "env": [{"name": "T", "secret": "t"}, {"name": "U", "secret": "u"}, {"name": "A", "value": "x"}]`, abWords+`], "env": [{"name": "T", "secret": "t"}, {"name": "U", "secret": "u"}, {"name": "A", "value": ""}]`),
		"command.env[].secret":              cmd(abWords+`], "env": [{"name": "T", "secret": "u"}, {"name": "U", "secret": "t"}]`, abWords+`]`),
		"command.workingDir":                cmd(abWords+`], "workingDir": "/tmp"`, abWords+`]`),
		"command.allowShell":                cmd(`"argv": ["sh", "-c", "{a}{b}"], "allowShell": true`, `"argv": ["sh", "-c", "{a}{b}"]`),

		"http":                 {strings.Replace(httpWith, "WITH", `"method": "GET", "url": "https://api.example.com/{a}", "headers": [{"name": "X", "value": "{_secret:t}"}]`, 1), strings.Replace(rootManifest, "WITH", "", 1), `{"a":"x"}`},
		"http.method":          web(`"method": "PUT"`, `"method": "POST"`),
		"http.url":             web(`"url": "https://api.example.com/x/{a}"`, `"url": "https://api.example.com/{a}"`),
		"http.headers":         web(`"headers": [{"name": "X", "value": "{_secret:t}"}, {"name": "Y", "value": "y"}]`, `"headers": [{"name": "X", "value": "{_secret:t}"}]`),
		"http.headers[].name":  web(`"headers": [{"name": "Y", "value": "{_secret:t}"}]`, `"headers": [{"name": "X", "value": "{_secret:t}"}]`),
		"http.headers[].value": web(`"headers": [{"name": "X", "value": "y{_secret:t}"}]`, `"headers": [{"name": "X", "value": "{_secret:t}"}]`),
		"http.body":            web(`"body": "x"`, ``),
		"http.successStatus":   web(`"successStatus": [204]`, ``),
		"http.caBundle":        web(`"caBundle": `+ca, ``),
		"http.allowPrivate":    web(`"allowPrivate": true`, ``),

		"mcp":                      {strings.Replace(rootManifest, "WITH", "", 1), `{"version": "1", "arguments": [{"name": "a", "type": "string"}], "mcp": {` + mcpFine + `}}`, `{}`},
		"mcp.url":                  call(`"url": "https://mcp.example.org/"`, ``),
		"mcp.tool":                 call(`"tool": "u"`, ``),
		"mcp.toolDigest":           call(`"toolDigest": "`+strings.Repeat("1", 64)+`"`, ``),
		"mcp.arguments":            call(`"arguments": [{"name": "x", "argument": "a"}, {"name": "y", "argument": "b"}]`, ``),
		"mcp.arguments[].name":     call(`"arguments": [{"name": "x", "argument": "a"}, {"name": "y", "argument": "b"}]`, `"arguments": [{"name": "x", "argument": "a"}, {"name": "z", "argument": "b"}]`),
		"mcp.arguments[].argument": call(`"arguments": [{"name": "x", "argument": "a"}, {"name": "y", "argument": "b"}]`, `"arguments": [{"name": "x", "argument": "b"}, {"name": "y", "argument": "a"}]`),
		"mcp.arguments[].value":    call(`"arguments": [{"name": "x", "argument": "a"}, {"name": "y", "argument": "b"}, {"name": "z", "value": "1"}]`, `"arguments": [{"name": "x", "argument": "a"}, {"name": "y", "argument": "b"}, {"name": "z", "value": "2"}]`),
		"mcp.headers":              call(`"headers": [{"name": "X", "value": "{_secret:t}"}, {"name": "Y", "value": "y"}]`, ``),
		"mcp.headers[].name":       call(`"headers": [{"name": "Y", "value": "{_secret:t}"}]`, ``),
		"mcp.headers[].value":      call(`"headers": [{"name": "X", "value": "y{_secret:t}"}]`, ``),
		"mcp.caBundle":             call(`"caBundle": `+ca, ``),
		"mcp.allowPrivate":         call(`"allowPrivate": true`, ``),

		"secrets":              differs(secretWith, `"name": "t", "secretName": "s", "key": "k"`, `"name": "t", "secretName": "s", "key": "k"}, {"name": "u", "secretName": "s", "key": "k"`, `{}`),
		"secrets[].name":       differs(secretWith, `"name": "t", "secretName": "s", "key": "k"`, `"name": "u", "secretName": "s", "key": "k"`, `{}`),
		"secrets[].secretName": differs(secretWith, `"name": "t", "secretName": "s", "key": "k"`, `"name": "t", "secretName": "r", "key": "k"`, `{}`),
		"secrets[].key":        differs(secretWith, `"name": "t", "secretName": "s", "key": "k"`, `"name": "t", "secretName": "s", "key": "l"`, `{}`),
		"secrets[].hosts":      {strings.Replace(web(``, ``).with, `["api.example.com"]`, `["api.example.org"]`, 1), web(``, ``).with, `{"a":"x"}`},
	}
	return all
}

// typeFields are the fields of an ArgumentType, on an argument of that type and
// a value.
var typeFields = map[string]struct {
	with, without contract.ArgumentType
	value         string
}{
	"base":             {contract.ArgumentType{Base: "integer"}, contract.ArgumentType{Base: "string"}, `"x"`},
	"description":      {contract.ArgumentType{Base: "string", Description: "x"}, contract.ArgumentType{Base: "string"}, `"x"`},
	"allowed":          {narrowed("string", contract.ArgumentConstraints{Allowed: []string{"x"}}), contract.ArgumentType{Base: "string"}, `"y"`},
	"pattern":          {narrowed("string", contract.ArgumentConstraints{Pattern: "x"}), contract.ArgumentType{Base: "string"}, `"y"`},
	"min":              {narrowed("integer", contract.ArgumentConstraints{Min: number(5)}), contract.ArgumentType{Base: "integer"}, `4`},
	"max":              {narrowed("integer", contract.ArgumentConstraints{Max: number(5)}), contract.ArgumentType{Base: "integer"}, `6`},
	"clamp":            {narrowed("integer", contract.ArgumentConstraints{Max: number(5), Clamp: true}), narrowed("integer", contract.ArgumentConstraints{Max: number(5)}), `6`},
	"schemes":          {narrowed("url", contract.ArgumentConstraints{Schemes: []string{"http"}}), contract.ArgumentType{Base: "url"}, `"http://x.test/"`},
	"scopeCheck":       {narrowed("string", contract.ArgumentConstraints{ScopeCheck: true}), contract.ArgumentType{Base: "string"}, `"evil.test"`},
	"maxLength":        {narrowed("string", contract.ArgumentConstraints{MaxLength: new(int32(1))}), contract.ArgumentType{Base: "string"}, `"ab"`},
	"allowLeadingDash": {narrowed("string", contract.ArgumentConstraints{AllowLeadingDash: true}), contract.ArgumentType{Base: "string"}, `"-x"`},
	"sensitive":        {narrowed("string", contract.ArgumentConstraints{Sensitive: true}), contract.ArgumentType{Base: "string"}, `"x"`},
	"schema":           {narrowed("object", contract.ArgumentConstraints{Schema: `{"required":["x"]}`}), narrowed("object", contract.ArgumentConstraints{Schema: `{}`}), `{}`},
}

func narrowed(base string, c contract.ArgumentConstraints) contract.ArgumentType {
	return contract.ArgumentType{Base: base, ArgumentConstraints: c}
}

// scopeFields are the fields of a ToolScope, on a target.
var scopeFields = map[string]struct {
	with, without contract.Scope
	value         string
}{
	"targets": {contract.Scope{Targets: []string{"10.0.0.0/8"}}, contract.Scope{}, `"10.0.0.1"`},
	"domains": {contract.Scope{Domains: []string{"*.example.com"}}, contract.Scope{}, `"a.example.com"`},
	"exclude": {contract.Scope{Targets: []string{"10.0.0.0/8"}, Exclude: []string{"10.0.0.1"}}, contract.Scope{Targets: []string{"10.0.0.0/8"}}, `"10.0.0.1"`},
}

func TestEveryField_IsEnforced(t *testing.T) {
	pairs := enforced(t)
	want := fieldPaths(reflect.TypeFor[contract.Manifest](), "")
	if diff := cmp.Diff(want, sortedKeys(pairs)); diff != "" {
		t.Errorf("fields of ToolManifest without a test of their effect, or the other way round (-fields +tests):\n%s", diff)
	}
	for path, p := range pairs {
		t.Run(path, func(t *testing.T) {
			if observe(t, input(t, p.with), p.raw) == observe(t, input(t, p.without), p.raw) {
				t.Errorf("the field changes nothing:\n%s", observe(t, input(t, p.with), p.raw))
			}
		})
	}
	argument := oneArgument(`"type": "custom"`)
	checkFields(t, "ArgumentType", fieldPaths(reflect.TypeFor[contract.ArgumentType](), ""), sortedKeys(typeFields))
	for path, f := range typeFields {
		t.Run("ArgumentType "+path, func(t *testing.T) {
			with, without := input(t, argument), input(t, argument)
			with.Types = map[string]contract.ArgumentType{"custom": f.with}
			without.Types = map[string]contract.ArgumentType{"custom": f.without}
			raw := `{"a":` + f.value + `}`
			if observe(t, with, raw) == observe(t, without, raw) {
				t.Error("the field changes nothing")
			}
		})
	}
	target := oneArgument(`"type": "scope_target"`)
	checkFields(t, "ToolScope", fieldPaths(reflect.TypeFor[contract.Scope](), ""), sortedKeys(scopeFields))
	for path, f := range scopeFields {
		t.Run("ToolScope "+path, func(t *testing.T) {
			with, without := input(t, target), input(t, target)
			with.Scopes = map[string]contract.Scope{"lab": f.with}
			without.Scopes = map[string]contract.Scope{"lab": f.without}
			raw := `{"a":` + f.value + `}`
			if observe(t, with, raw) == observe(t, without, raw) {
				t.Error("the field changes nothing")
			}
		})
	}
}

func checkFields(t *testing.T, kind string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields of %s (-fields +tests):\n%s", kind, diff)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// fieldPaths lists the JSON paths of all fields of a struct.
func fieldPaths(t reflect.Type, prefix string) []string {
	var out []string
	for f := range t.Fields() {
		if f.Anonymous {
			out = append(out, fieldPaths(f.Type, prefix)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		path, inner := prefix+name, f.Type
		out = append(out, path)
		if inner.Kind() == reflect.Slice {
			path, inner = path+"[]", inner.Elem()
		}
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[contract.IntOrString]() {
			out = append(out, fieldPaths(inner, path+".")...)
		}
	}
	slices.Sort(out)
	return out
}

// observe is everything that others can see of a contract and of one call,
// without the hashes.
func observe(t *testing.T, in contract.Input, raw string) string {
	t.Helper()
	c, err := contract.Compile(in)
	if err != nil {
		return "compile: " + err.Error()
	}
	var b strings.Builder
	resource, action, bound := c.Cedar()
	fmt.Fprintln(&b, c.Name(), c.Namespace(), c.Version(), c.ToolName(), c.Description(), c.RiskTier(), c.HumanApproval(), c.EffectKind(), resource, action, bound, c.Problems())
	for _, part := range []any{c.Arguments(), c.Approval(), c.Execution(), c.Output(), c.InputSchema(), c.ArgumentEncoding()} {
		text, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	for _, output := range []string{"{}", "a,b\n1,2", "x"} {
		value, err := c.CheckOutput(output, false)
		fmt.Fprintln(&b, value, err)
	}
	p, err := c.Prepare("agent", raw)
	if err != nil {
		fmt.Fprintln(&b, err)
		return b.String()
	}
	fmt.Fprintln(&b, p.ArgsCanonicalJSON, p.EffectJSON)
	return b.String()
}
