// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/assent-dev/assent/internal/policy/cedartext"
)

// neverHere is an attribute that no schema declares.
const neverHere = "context.assent_never_declared"

// oddities warns about conditions that are sound and pointless: they cannot
// hold for any tool in scope, or ask for an attribute that no tool has.
func (c *checks) oddities(l *locator, validationFor func(*actionTypes) *validation) []Problem {
	tree := l.statement.tree()
	if len(tree.Conditions) == 0 {
		return nil
	}
	l.document, l.policy = l.statement.document()
	var warnings []Problem
	for _, condition := range l.policy.Conditions {
		for _, e := range withOp(condition.Body, "has") {
			if name, ok := l.pointless(e); ok {
				warnings = append(warnings, c.at(l, e, fmt.Sprintf("no tool in scope has the attribute %s, so that this test is always false", name)))
			}
		}
	}
	if len(warnings) > 0 {
		return warnings
	}
	for _, condition := range l.policy.Conditions {
		if l.impossible(condition, validationFor) {
			warnings = append(warnings, c.at(l, condition.Body, "the condition cannot hold for any tool in scope, so that the policy never applies"))
		}
	}
	return warnings
}

func (c *checks) at(l *locator, e *cedartext.Expr, message string) Problem {
	p := c.problem(l.statement, SeverityWarning, message)
	pos := l.document.Pos(e)
	p.Line, p.Column = pos.Line, pos.Column
	return p
}

// pointless says whether "has" asks a plain path for an attribute that is not
// there for any action in scope.
func (l *locator) pointless(e *cedartext.Expr) (string, bool) {
	known := l.attributes(e.Kids[0])
	name := l.tested(e)
	if len(known) == 0 {
		return "", false
	}
	for one := range known {
		if string(one) == name {
			return "", false
		}
	}
	return name, true
}

// impossible says whether a condition is false for each tool in scope. Where
// the validator knows that a test is false it does not look at what hangs on
// it, so that a mistake put there goes unnoticed.
func (l *locator) impossible(c cedartext.Condition, validationFor func(*actionTypes) *validation) bool {
	test := "if (%s) then " + neverHere + " == 1 else true"
	if c.Unless {
		test = "if !(%s) then " + neverHere + " == 1 else true"
	}
	for _, action := range l.actions {
		l.validation = validationFor(action)
		if messages, ok := l.probe(fmt.Sprintf(test, l.document.Source(c.Body)), nil); !ok || len(messages) > 0 {
			return false
		}
	}
	return true
}
