// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartext_test

import (
	"testing"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/ast"

	"github.com/assent-dev/assent/internal/policy/cedartext"
)

// FuzzCheck_KeepsCedarSafeAndAgreesOnStructure holds what the package promises:
// a text that passes Check can be given to cedar-go, and what cedar-go accepts,
// Parse accepts with the same policies at the same places.
func FuzzCheck_KeepsCedarSafeAndAgreesOnStructure(f *testing.F) {
	for _, seed := range []string{
		"", "// nothing", wrap("true"), wrap(`context.a["b"].contains([1, {a: ip("::1")}]) && !(-1 < 2 * 3)`),
		`@id("x") forbid (principal is A in B::"c", action in [A::"a"], resource == R::"r") unless { context has a.b.c };`,
		wrap(`if principal in A::"b" then context.a like "x*" else resource is B::C in D::"e"`),
		wrap("((((((((") + "[[[[{{{{", `permit (principal == ?principal, action, resource);`, "\"\\", "/*", "@ @ @", wrap("é"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if cedartext.Check(text, limits()) != nil {
			return
		}
		document, syntax := cedartext.Parse(text)
		list, err := cedar.NewPolicyListFromBytes("fuzz", []byte(text))
		if err != nil {
			return
		}
		if syntax != nil {
			t.Fatalf("cedar-go accepts what Parse refuses: %v", syntax)
		}
		if len(list) != len(document.Policies) || len(list) != cedartext.Statements(text) {
			t.Fatalf("cedar-go reads %d policies, Parse %d, Statements %d", len(list), len(document.Policies), cedartext.Statements(text))
		}
		for i, p := range list {
			got, want := document.Policies[i], p.Position()
			if got.Pos.Offset != want.Offset || got.Pos.Line != want.Line || got.Pos.Column != want.Column {
				t.Fatalf("policy %d starts at %+v, cedar-go says %+v", i, got.Pos, want)
			}
			if len(got.Conditions) != len((*ast.Policy)(p.AST()).Conditions) {
				t.Fatalf("policy %d has %d conditions", i, len(got.Conditions))
			}
		}
	})
}
