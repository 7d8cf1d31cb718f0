// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/snapshot"
)

const (
	digest = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	image  = "registry.example/tool" + digest
)

// oneArgument is a command with one argument of its own word, described by the
// members given as JSON.
func oneArgument(members string) string {
	return `{"version": "1", "arguments": [{"name": "a", ` + members + `}],
		"command": {"image": "` + image + `", "argv": ["tool", "{a}"]}}`
}

// inString is the manifest under the encoding String.
func inString(manifest string) string {
	return strings.Replace(manifest, `{"version": "1",`, `{"version": "1", "argumentEncoding": "String",`, 1)
}

// labScope is the only scope of the test namespace.
var labScope = map[string]contract.Scope{"lab": {
	Targets: []string{"10.0.0.0/8", "2001:db8::/32"},
	Domains: []string{"*.example.com", "api.example.org"},
	Exclude: []string{"10.9.0.0/16", "vault.example.com"},
}}

// labTypes are the ArgumentTypes of the test namespace.
var labTypes = map[string]contract.ArgumentType{
	"severity": {Base: "enum", ArgumentConstraints: contract.ArgumentConstraints{Allowed: []string{"low", "high", "critical"}}},
	"serious":  {Base: "severity", ArgumentConstraints: contract.ArgumentConstraints{Allowed: []string{"high", "critical"}}},
	"machine":  {Base: "string", ArgumentConstraints: contract.ArgumentConstraints{ScopeCheck: true, Pattern: `[a-z0-9.-]+`}},
	"server":   {Base: "machine", ArgumentConstraints: contract.ArgumentConstraints{Pattern: `.*\.example\.com`}},
	"rate":     {Base: "integer", ArgumentConstraints: contract.ArgumentConstraints{Min: number(1), Max: number(100)}},
}

func number(n int32) *contract.IntOrString { return &contract.IntOrString{Int: n} }

func text(s string) *contract.IntOrString { return &contract.IntOrString{IsString: true, Str: s} }

func decode(tb testing.TB, text string) contract.Manifest {
	tb.Helper()
	m, err := contract.DecodeManifest([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func input(tb testing.TB, manifest string) contract.Input {
	tb.Helper()
	return contract.Input{
		Name: "tool", Namespace: "default", Manifest: decode(tb, manifest), Types: labTypes, Scopes: labScope,
		RunnerImage: "registry.example/runner" + digest,
	}
}

func compile(tb testing.TB, manifest string) *contract.Contract {
	tb.Helper()
	c, err := contract.Compile(input(tb, manifest))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func prepare(tb testing.TB, c *contract.Contract, raw string) *contract.Prepared {
	tb.Helper()
	p, err := c.Prepare("agent", raw)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// refused returns stage, reason and path of a call that must not be prepared.
func refused(tb testing.TB, c *contract.Contract, raw string) snapshot.Error {
	tb.Helper()
	p, err := c.Prepare("agent", raw)
	if err == nil {
		tb.Fatalf("prepared %+v, want a refusal", p)
	}
	var why *snapshot.Error
	var refusal *contract.RefusedError
	if !errors.As(err, &why) || !errors.As(err, &refusal) || refusal.Tool != c.Name() {
		tb.Fatalf("error %T is not the refusal of the tool: %v", err, err)
	}
	return *why
}

// compileErrors returns what is wrong with a manifest.
func compileErrors(tb testing.TB, in contract.Input) contract.CompileErrors {
	tb.Helper()
	_, err := contract.Compile(in)
	if err == nil {
		tb.Fatal("compiled, want errors")
	}
	var list contract.CompileErrors
	var one *contract.CompileError
	if !errors.As(err, &list) || !errors.As(err, &one) || one != list[0] {
		tb.Fatalf("error %T is no list of compile errors", err)
	}
	return list
}
