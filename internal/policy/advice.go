// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/assent-dev/assent/internal/policy/cedartext"
)

const argumentsPath = "context.invocation.arguments"

// Annotations that say that what advice warns about is meant.
const (
	meantWhenPresent types.AnnotationKey = "when_present"
	meantRawText     types.AnnotationKey = "raw_text"
)

// advice warns about conditions that do less than they seem to say: a forbid
// that a call escapes by leaving an argument out, and a pattern for paths that
// also matches what leads out of the folder.
func (c *checks) advice(l *locator) []Problem {
	if len(l.statement.tree().Conditions) == 0 {
		return nil
	}
	annotations := l.statement.policy.Annotations()
	_, present := annotations[meantWhenPresent]
	_, raw := annotations[meantRawText]
	var warnings []Problem
	for _, condition := range l.policy.Conditions {
		if l.statement.policy.Effect() == types.Forbid && !condition.Unless && !present {
			warnings = append(warnings, c.escapes(l, condition.Body)...)
		}
		if !raw {
			warnings = append(warnings, c.rawPaths(l, condition.Body)...)
		}
	}
	return warnings
}

// escapes finds tests for arguments that a call may leave out.
func (c *checks) escapes(l *locator, condition *cedartext.Expr) []Problem {
	var warnings []Problem
	for _, e := range condition.Conjuncts() {
		for e.Op == "()" {
			e = e.Kids[0]
		}
		if e.Op != "has" || l.path(e.Kids[0]) != argumentsPath {
			continue
		}
		if name := l.tested(e); l.anyArgument(name, func(a *Argument) bool { return !a.Required }) {
			warnings = append(warnings, c.at(l, e, fmt.Sprintf(
				"this forbids no call that leaves %s out; say what is allowed in its place: unless { %s has %s && … }, or annotate the policy with @%s if that is meant",
				name, argumentsPath, name, meantWhenPresent)))
		}
	}
	return warnings
}

// rawPaths finds patterns of paths for texts that nothing keeps ".." out of.
func (c *checks) rawPaths(l *locator, condition *cedartext.Expr) []Problem {
	var warnings []Problem
	for _, e := range withOp(condition, "like") {
		name, ok := strings.CutPrefix(l.path(e.Kids[0]), argumentsPath+".")
		pattern := l.behind(e, "like")
		if !ok || !strings.HasPrefix(pattern, `"/`) || !strings.Contains(pattern, "*") {
			continue
		}
		if l.anyArgument(name, func(a *Argument) bool { return a.Kind == "string" }) {
			warnings = append(warnings, c.at(l, e, fmt.Sprintf(
				"the pattern also matches paths with .. in them; give the argument %s the type path, or annotate the policy with @%s if its text cannot be such a path",
				name, meantRawText)))
		}
	}
	return warnings
}

// anyArgument says whether a tool that the policy can match has such an argument.
func (l *locator) anyArgument(name string, such func(*Argument) bool) bool {
	for _, action := range l.actions {
		for _, t := range action.tools {
			for i := range t.tool.Arguments {
				if a := &t.tool.Arguments[i]; a.Name == name && such(a) {
					return true
				}
			}
		}
	}
	return false
}

// advised is what advice reads of a tool's arguments beside their types, for
// what is remembered of policies to depend on.
func (t *toolTypes) advised() string {
	var b strings.Builder
	for i := range t.tool.Arguments {
		a := &t.tool.Arguments[i]
		fmt.Fprintf(&b, "%s %s %t,", a.Name, a.Kind, a.Required)
	}
	return b.String()
}

// path is the text of an expression without blanks.
func (l *locator) path(e *cedartext.Expr) string {
	return strings.Join(strings.Fields(l.document.Source(e)), "")
}

// behind is what stands behind the operator of a relation.
func (l *locator) behind(e *cedartext.Expr, operator string) string {
	rest := l.document.Source(e)[len(l.document.Source(e.Kids[0])):]
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest), operator))
}

// tested is the first attribute that "has" asks for.
func (l *locator) tested(e *cedartext.Expr) string {
	name, _, _ := strings.Cut(strings.Trim(l.behind(e, "has"), " \"\n\t"), ".")
	return name
}

// withOp lists the parts of an expression that do something.
func withOp(e *cedartext.Expr, op string) []*cedartext.Expr {
	var all []*cedartext.Expr
	if e.Op == op {
		all = append(all, e)
	}
	for _, kid := range e.Kids {
		all = append(all, withOp(kid, op)...)
	}
	return all
}
