// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"

	"github.com/assent-dev/assent/internal/policy/cedartext"
)

// maxProbes bounds the validations that look for the place of a message.
const maxProbes = 256

// locator finds the place of a validator's message. cedar-go's syntax tree has
// no places, and its messages name none. The smallest part of the policy that
// still causes the message is the place: each part is validated on its own,
// behind the same scope and the same tests that guard it in the policy.
type locator struct {
	validation *validation
	statement  *statement
	actions    []*actionTypes // that the policy can match
	document   *cedartext.Document
	policy     *cedartext.Policy
	probes     int
}

// locate finds the first place of a message, and a hint to append to it.
func (l *locator) locate(message string) (cedartext.Position, string, bool) {
	for _, condition := range l.policy.Conditions {
		if l.causes(condition.Body, nil, message) {
			e := l.narrow(condition.Body, message)
			return l.place(e), l.hint(e, message), true
		}
	}
	// A condition can also be wrong as a whole: it is no truth value.
	for _, condition := range l.policy.Conditions {
		if messages, _ := l.probe(l.document.Source(condition.Body), nil); slices.Contains(messages, message) {
			return l.document.Pos(condition.Body), "", true
		}
	}
	return cedartext.Position{}, "", false
}

// narrow goes down to the smallest part that causes the message.
func (l *locator) narrow(e *cedartext.Expr, message string) *cedartext.Expr {
	var guards []string
	for {
		next := -1
		var local []string
		for i, kid := range e.Kids {
			if l.causes(kid, append(slices.Clone(guards), local...), message) {
				next = i
				break
			}
			if e.Op == "&&" || (e.Op == "if" && i == 0) {
				local = append(local, l.document.Source(kid))
			} else {
				local = nil
			}
		}
		if next < 0 {
			return e
		}
		guards = append(guards, local...)
		e = e.Kids[next]
	}
}

// causes says whether an expression, behind guards, causes a message.
func (l *locator) causes(e *cedartext.Expr, guards []string, message string) bool {
	source := l.document.Source(e)
	messages, _ := l.probe(fmt.Sprintf("(%s) == (%s)", source, source), guards)
	return slices.Contains(messages, message)
}

// probe validates a condition of our own in the scope of the policy; ok is
// false when that was not done.
func (l *locator) probe(condition string, guards []string) (messages []string, ok bool) {
	if l.probes++; l.probes > maxProbes {
		return nil, false
	}
	var text strings.Builder
	text.WriteString("permit (principal, action, resource) when { ")
	for _, guard := range guards {
		fmt.Fprintf(&text, "(%s) && ", guard)
	}
	fmt.Fprintf(&text, "(%s) };", condition)
	list, err := cedar.NewPolicyListFromBytes("probe", []byte(text.String()))
	if err != nil || len(list) != 1 {
		return nil, false
	}
	probe := *l.statement.tree()
	probe.Conditions = (*ast.Policy)(list[0].AST()).Conditions
	return l.validation.check(&probe), true
}

// place is the name of an attribute where one is read, and else the start.
func (l *locator) place(e *cedartext.Expr) cedartext.Position {
	if e.Op != "." {
		return l.document.Pos(e)
	}
	last := l.document.Tokens[e.Last]
	if last.Text == "]" {
		last = l.document.Tokens[e.Last-1]
	}
	return last.Pos
}

// hint tells what to do about a message.
func (l *locator) hint(e *cedartext.Expr, message string) string {
	switch {
	case e.Op != ".":
		return addressHint(message)
	case strings.HasPrefix(message, "unable to guarantee safety of access to optional attribute"):
		return fmt.Sprintf("; it can be absent, so test it first: %s has …", l.document.Source(e.Kids[0]))
	case strings.Contains(message, "not found"):
		return l.suggestAttribute(e)
	default:
		return ""
	}
}

// addressHint tells those who want to turn an argument into an address.
func addressHint(message string) string {
	if strings.Contains(message, "may not be called with non-literal expressions") {
		return "; context.invocation.argument_addresses holds addresses, and numbers are decimals already"
	}
	return ""
}

// suggestAttribute names the attributes that there are instead.
func (l *locator) suggestAttribute(e *cedartext.Expr) string {
	names := slices.Sorted(maps.Keys(l.attributes(e.Kids[0])))
	wanted := strings.Trim(l.document.Source(e)[len(l.document.Source(e.Kids[0])):], " .[]\"\n\t")
	if slices.Contains(names, types.String(wanted)) {
		if l.document.Source(e.Kids[0]) == "principal" {
			return "; only ServiceAccounts have it, so write \"principal is k8s::ServiceAccount\" in the scope"
		}
		return "; only some tools in scope have it, so test it with \"has\" first"
	}
	if likely := closest(types.String(wanted), names); likely != "" {
		return didYouMean(string(likely))
	}
	if len(names) == 0 {
		return "; it has no attributes that policies can read"
	}
	return fmt.Sprintf("; there are %s", commaSeparated(names))
}

// attributes collects the attributes of what a plain path such as
// context.invocation leads to, over all actions that the policy can match.
func (l *locator) attributes(e *cedartext.Expr) map[types.String]bool {
	var path []string
	for ; e.Op == "."; e = e.Kids[0] {
		text := l.document.Source(e)[len(l.document.Source(e.Kids[0])):]
		path = append(path, strings.Trim(text, " .[]\"\n\t"))
	}
	slices.Reverse(path)
	found := map[types.String]bool{}
	add := func(t resolved.IsType) {
		for _, name := range path {
			record, _ := t.(resolved.RecordType)
			t = record[types.String(name)].Type
		}
		record, _ := t.(resolved.RecordType)
		for name := range record {
			found[name] = true
		}
	}
	session := sessionType(l.statement.source.source.SessionAttributes)
	for _, a := range l.actions {
		applies := a.appliesTo(session)
		switch l.document.Source(e) {
		case "context":
			add(applies.Context)
		case "resource":
			addEntities(applies.Resources, add)
		case "principal":
			addEntities(applies.Principals, add)
		}
	}
	return found
}

func addEntities(names []types.EntityType, add func(resolved.IsType)) {
	for _, name := range names {
		add(entityAttributes(name))
	}
}
