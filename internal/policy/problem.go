// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
)

// Severity says what a problem does.
type Severity string

const (
	// SeverityError denies calls: all of the set's for a text that does not
	// parse, and those that the policy's scope could match otherwise.
	SeverityError Severity = "Error"
	// SeverityWarning denies nothing.
	SeverityWarning Severity = "Warning"
)

// Problem is one thing that is wrong with a policy text. Messages may quote the
// text; no argument of a call takes part in them.
type Problem struct {
	// Source is the object that holds the text.
	Source Key
	// Namespace whose tools the text was checked against; empty for syntax.
	Namespace string
	// Policy is the ID of the policy, namespace/name#index; empty for syntax.
	Policy string
	// Line of the text and Column of the line, from 1; 0 when not known.
	Line, Column int
	// Message says what is wrong and what to change.
	Message string
	// Severity says what the problem does.
	Severity Severity
}

// String gives the problem on one line.
func (p Problem) String() string {
	var b strings.Builder
	name := p.Policy
	if name == "" {
		name = p.Source.String()
	}
	b.WriteString(name)
	if p.Line > 0 {
		fmt.Fprintf(&b, " line %d, column %d", p.Line, p.Column)
	}
	b.WriteString(": ")
	b.WriteString(p.Message)
	if p.Namespace != "" {
		fmt.Fprintf(&b, " (tools of namespace %s)", p.Namespace)
	}
	return b.String()
}

// advice gives place and message, without the name.
func (p Problem) advice() string {
	if p.Line == 0 {
		return p.Message
	}
	return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message)
}

// Key names a ToolPolicy, or a ClusterToolPolicy when Namespace is empty.
type Key struct{ Namespace, Name string }

// String gives "namespace/name", or "/name" for a ClusterToolPolicy.
func (k Key) String() string { return k.Namespace + "/" + k.Name }
