// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/policy"
)

// The policies are sound and permit or forbid what they say; what they say is
// less than it looks like. payTool may be called without rate and urgent.
func TestReport_WarnsOfConditionsThatDoLessThanTheySay(t *testing.T) {
	t.Parallel()
	const (
		rate    = `context.invocation.arguments has rate && context.invocation.arguments.rate.greaterThan(decimal("1.0"))`
		leftOut = "this forbids no call that leaves rate out; say what is allowed in its place: unless { context.invocation.arguments has rate && … }, or annotate the policy with @when_present if that is meant"
		path    = "the pattern also matches paths with .. in them; give the argument to the type path, or annotate the policy with @raw_text if its text cannot be such a path"
	)
	tests := map[string]struct {
		text string
		want []string
	}{
		"a forbid of an argument that may be absent":   {"forbid " + payScope + " when { " + rate + " };", []string{"line 1, column 88: " + leftOut}},
		"the same in parentheses and on several lines": {"forbid " + payScope + "\nwhen { (context\n.invocation . arguments has rate) && true };", []string{"line 2, column 9: " + leftOut}},
		"the same with a name in quotation marks":      {"forbid " + payScope + ` when { context.invocation.arguments has "rate" };`, []string{"line 1, column 88: " + leftOut}},
		"the same, meant":                              {"@when_present forbid " + payScope + " when { " + rate + " };", nil},
		"the same as unless":                           {"forbid " + payScope + " unless { " + rate + " };", nil},
		"the same as an alternative":                   {"forbid " + payScope + " when { context.has_human_approval || (" + rate + ") };", nil},
		"a permit of an argument that may be absent":   {"permit " + payScope + " when { " + rate + " };", nil},
		"a forbid of an argument that is always there": {"forbid " + payScope + " when { context.invocation.arguments has to && context.invocation.arguments.to == \"x\" };", nil},
		"a forbid that tests for a session":            {"forbid " + payScope + " when { context has session };", nil},

		"a pattern of paths for a text":   {"permit " + payScope + ` when { context.invocation.arguments.to like "/safe/*" };`, []string{"line 1, column 88: " + path}},
		"the same inside a condition":     {"permit " + payScope + ` when { context.has_human_approval || !(context.invocation.arguments.to like "/safe/*") };`, []string{"line 1, column 120: " + path}},
		"such a pattern, meant":           {"@raw_text permit " + payScope + ` when { context.invocation.arguments.to like "/safe/*" };`, nil},
		"a pattern without an open end":   {"permit " + payScope + ` when { context.invocation.arguments.to like "/safe/a" };`, nil},
		"a pattern of something else":     {"permit " + payScope + ` when { context.invocation.arguments.to like "DE-*" };`, nil},
		"a pattern for another text":      {"permit " + payScope + ` when { context.invocation.fingerprint like "/safe/*" };`, nil},
		"a pattern for what is no string": {`permit (principal, action, resource is Tool::Fetch) when { context.invocation.arguments.url like "/safe/*" };`, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range report(t, tc.text).Problems {
				if p.Severity != policy.SeverityWarning {
					t.Errorf("not a warning: %v", p)
				}
				got = append(got, fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// What is remembered of a policy must not outlive the argument that it is about.
func TestReport_ForgetsAdviceOnceTheArgumentIsAnother(t *testing.T) {
	t.Parallel()
	c := compiled(t, "team", "p", "permit "+payScope+` when { context.invocation.arguments.to like "/safe/*" };`)
	set := mustSet(t, policy.Limits{}, c)
	for _, step := range []struct {
		kind string
		want int
	}{{"string", 1}, {"path", 0}, {"string", 1}} {
		tool := payTool()
		tool.Arguments[0].Kind = step.kind
		set = set.WithTools("team", []policy.Tool{tool})
		if got := set.Report(c.Key()).Problems; len(got) != step.want {
			t.Errorf("with an argument of type %s: %v, want %d warnings", step.kind, lines(got), step.want)
		}
	}
}
