// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"
)

// validation checks policies against one schema.
type validation struct {
	schema    *resolved.Schema
	validator *validate.Validator
}

// inapplicable is cedar-go's message for a scope that no action fits. Which
// names are unknown has been said by then.
const inapplicable = "unable to find an applicable action given the policy scope constraints"

// validate checks one policy against the tools that its scope accepts. Names
// that nothing defines are warnings: they can match nothing, and the manifest
// that defines them may be applied a moment later.
func (c *checks) validate(s *statement) []Problem {
	unknown := c.unknown(s.usedNames())
	warnings := c.unknownWarnings(s, unknown)
	actions := c.matching(s)
	if len(actions) == 0 {
		if len(warnings) == 0 {
			warnings = append(warnings, c.problem(s, SeverityWarning, "no tool matches the scope of the policy (yet)"))
		}
		return warnings
	}
	if problems := append(c.conflictProblems(s, actions), c.approvalProblems(s)...); len(problems) > 0 {
		return append(problems, warnings...)
	}
	return append(c.memoized(s, actions, unknown), warnings...)
}

// memoized validates, or takes the finding of an earlier generation of tools
// with the same types.
func (c *checks) memoized(s *statement, actions []*actionTypes, unknown *unknownNames) []Problem {
	key := validationKey(s.source.source.SessionAttributes, actions, unknown)
	if known, ok := c.memo.Load(s); ok && known.(finding).key == key {
		return known.(finding).problems
	}
	v, ok := c.validators.Load(key)
	if !ok {
		v, _ = c.validators.LoadOrStore(key, newValidation(s.source.source.SessionAttributes, actions, unknown))
	}
	problems := c.run(v.(*validation), s, unknown)
	c.memo.Store(s, finding{key: key, problems: problems})
	return problems
}

func validationKey(attributes []SessionAttribute, actions []*actionTypes, unknown *unknownNames) string {
	var parts []string
	for _, a := range attributes {
		parts = append(parts, fmt.Sprintf("session %s %s %t", a.Name, a.Type, a.Required))
	}
	for _, a := range actions {
		parts = append(parts, a.key)
	}
	for _, t := range unknown.types {
		parts = append(parts, "type "+string(t))
	}
	for _, a := range unknown.actions {
		parts = append(parts, "action "+a.String())
	}
	return digest("policyValidation", parts)
}

func newValidation(attributes []SessionAttribute, actions []*actionTypes, unknown *unknownNames) *validation {
	s := newSchema(attributes, actions, unknown)
	return &validation{schema: s, validator: validate.New(s)}
}

// check validates a policy and gives the messages, each once and in order: the
// validator walks over maps.
func (v *validation) check(p *ast.Policy) (messages []string) {
	// The validator is marked experimental; a panic must not end the process,
	// and a policy that it cannot judge is not healthy.
	defer func() {
		if recover() != nil {
			messages = []string{"the validation panicked; report this with the text of the policy"}
		}
	}()
	for _, err := range flatten(v.validator.Policy("", p)) {
		messages = appendNew(messages, err.Error())
	}
	slices.Sort(messages)
	return messages
}

// flatten gives the errors inside joined errors.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, flatten(one)...)
	}
	return all
}

// run validates one policy and words the problems.
func (c *checks) run(v *validation, s *statement, unknown *unknownNames) []Problem {
	messages := v.check(s.tree())
	l := newLocator(v, s)
	var problems []Problem
	for _, group := range grouped(messages) {
		p := c.problem(s, SeverityError, group.words())
		if pos, hint, ok := l.locate(group.message); ok {
			p.Line, p.Column = pos.Line, pos.Column
			p.Message += hint
		}
		problems = append(problems, p)
	}
	slices.SortStableFunc(problems, byPlace)
	switch {
	case len(problems) > 0:
		return problems
	case slices.Contains(messages, inapplicable):
		if len(unknown.types)+len(unknown.actions) > 0 {
			return nil
		}
		return []Problem{c.problem(s, SeverityWarning, "no call has such a principal, action and resource together, so that the policy matches nothing")}
	default:
		return c.oddities(l, unknown)
	}
}

func (c *checks) problem(s *statement, severity Severity, message string) Problem {
	pos := s.policy.Position()
	return Problem{
		Source: s.source.Key(), Namespace: c.namespace, Policy: s.id,
		Line: pos.Line, Column: pos.Column, Message: message, Severity: severity,
	}
}

// unknownWarnings words the names that nothing defines.
func (c *checks) unknownWarnings(s *statement, u *unknownNames) []Problem {
	if len(u.types)+len(u.actions)+len(u.tools) == 0 {
		return nil
	}
	var warnings []Problem
	document, policy := s.document()
	warn := func(path types.EntityType, id types.String, format string, args ...any) {
		p := c.problem(s, SeverityWarning, fmt.Sprintf(format, args...))
		if pos, ok := document.FindName(policy, string(path), string(id)); ok {
			p.Line, p.Column = pos.Line, pos.Column
		}
		warnings = append(warnings, p)
	}
	for _, t := range u.types {
		warn(t, "", "no tool has the entity type %s (yet), so that it matches nothing%s", t, c.suggestType(t))
	}
	for _, a := range u.actions {
		warn(a.Type, a.ID, "no tool has the action %s (yet), so that it matches nothing%s", a, c.suggestAction(a))
	}
	for _, t := range u.tools {
		warn(t.Type, t.ID, "there is no tool %s (yet), so that it matches nothing%s", t, c.suggestTool(t))
	}
	slices.SortStableFunc(warnings, byPlace)
	return warnings
}

func byPlace(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// conflictProblems refuses to read an argument whose type depends on the tool:
// Cedar has no type for it, and "has" would be checked as if it were absent.
func (c *checks) conflictProblems(s *statement, actions []*actionTypes) []Problem {
	var problems []Problem
	for _, a := range actions {
		for _, name := range a.conflicts {
			if has, reads := s.uses(types.String(name)); has || reads {
				problems = append(problems, c.problem(s, SeverityError, fmt.Sprintf(
					"the tools that share %s give argument %s different types; narrow them to one type, or give the tools actions of their own", a.uid, name)))
			}
		}
	}
	return problems
}

// approvalProblems refuses to ask whether the context has a fact about
// approval. It always has; a policy that only asks would take each call for an
// approved one.
func (c *checks) approvalProblems(s *statement) []Problem {
	var problems []Problem
	for _, name := range []types.String{"has_human_approval", "approved_fingerprint"} {
		if has, reads := s.uses(name); has && !reads {
			problems = append(problems, c.problem(s, SeverityError, fmt.Sprintf(
				"context always has %s, approved or not; read its value instead", name)))
		}
	}
	return problems
}

// uses says whether a condition asks for an attribute, and whether it reads it.
func (s *statement) uses(name types.String) (has, reads bool) {
	for _, condition := range s.tree().Conditions {
		ast.Inspect(ast.NewNode(condition.Body), func(n ast.IsNode) bool {
			switch n := n.(type) {
			case ast.NodeTypeAccess:
				reads = reads || n.Value == name
			case ast.NodeTypeHas:
				has = has || n.Value == name
			default: // asks for no attribute
			}
			return true
		})
	}
	return has, reads
}

// commaSeparated joins names for a message.
func commaSeparated[T ~string](names []T) string {
	quoted := make([]string, 0, len(names))
	for _, name := range names {
		quoted = append(quoted, string(name))
	}
	return strings.Join(quoted, ", ")
}
