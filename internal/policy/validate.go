// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"
)

// validation checks policies against the schema of one action.
type validation struct {
	validator *validate.Validator
}

// inapplicable is cedar-go's message for a scope that no action fits. Which
// names are unknown has been said by then.
const inapplicable = "unable to find an applicable action given the policy scope constraints"

// validate checks one policy against the tools that its scope accepts. Names
// that nothing defines are warnings: they can match nothing, and the manifest
// that defines them may be applied a moment later.
func (c *checks) validate(s *statement) []Problem {
	warnings := c.unknownWarnings(s, c.unknown(s.used))
	plain := len(warnings) == 0
	if s.permitsEverything() {
		warnings = append(warnings, c.problem(s, SeverityWarning,
			"this permits every call of every tool to everybody; narrow it, or annotate it with @permit_all if that is meant"))
	}
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
	return slices.Concat(c.remembered(s, actions, plain), warnings)
}

// permitsEverything says whether a policy is a permit without any limit that
// nobody said was meant.
func (s *statement) permitsEverything() bool {
	_, meant := s.policy.Annotations()["permit_all"]
	open := !s.scope.principal.narrow && !s.scope.action.narrow && !s.scope.resource.narrow
	return s.policy.Effect() == types.Permit && open && len(s.tree().Conditions) == 0 && !meant
}

// remembered gives what checkActions finds, or found for an earlier generation
// of tools with the same types.
func (c *checks) remembered(s *statement, actions []*actionTypes, plain bool) []Problem {
	parts := []string{c.namespace, strconv.FormatBool(plain)}
	for _, action := range actions {
		parts = append(parts, action.key)
	}
	key := digest("policyVerdict", parts)
	f := c.findingsOf(s)
	if problems, ok := f.verdict(key); ok {
		return problems
	}
	problems := c.checkActions(s, actions, plain)
	f.decide(key, problems)
	return problems
}

func (c *checks) findingsOf(s *statement) *findings {
	f, _ := c.memo.LoadOrStore(s, &findings{})
	return f.(*findings)
}

// checkActions validates a policy for one action after the other, and stops at
// the first that it does not fit: the validator's cost grows with the square of
// the mistakes, and one action is enough to be unhealthy.
func (c *checks) checkActions(s *statement, actions []*actionTypes, plain bool) []Problem {
	l := &locator{statement: s, actions: actions}
	applicable := false
	for _, action := range actions {
		messages := c.messages(s, action)
		if slices.Contains(messages, inapplicable) {
			continue
		}
		applicable = true
		if len(messages) > 0 {
			l.validation = c.validationFor(s, action)
			return c.word(l, messages)
		}
	}
	switch {
	case !plain: // what is unknown was said; what else is odd may follow from it
		return nil
	case !applicable:
		return []Problem{c.problem(s, SeverityWarning, "no call has such a principal, action and resource together, so that the policy matches nothing")}
	default:
		odd := c.oddities(l, func(action *actionTypes) *validation { return c.validationFor(s, action) })
		return append(odd, c.advice(l)...)
	}
}

// word says what is wrong, and where.
func (c *checks) word(l *locator, messages []string) []Problem {
	l.document, l.policy = l.statement.document()
	problems := make([]Problem, 0, len(messages))
	for _, message := range messages {
		p := c.problem(l.statement, SeverityError, plainTypes.Replace(message))
		if pos, hint, ok := l.locate(message); ok {
			p.Line, p.Column = pos.Line, pos.Column
			p.Message += hint
		}
		problems = append(problems, p)
	}
	slices.SortStableFunc(problems, byPlace)
	return problems
}

// messages validates a policy for one action, or remembers.
func (c *checks) messages(s *statement, action *actionTypes) []string {
	key := validationKey(s.source.source.SessionAttributes, action, action.besides(s.used))
	f := c.findingsOf(s)
	if messages, ok := f.get(action.uid, key); ok {
		return messages
	}
	messages := c.validationFor(s, action).check(s.tree())
	f.put(action.uid, finding{key: key, messages: messages}, len(c.actions))
	return messages
}

// findings is what validation found out about one policy: as a whole, and by
// action, so that a change of one tool does not cost a policy that matches all
// of them 500 validations.
type findings struct {
	mu       sync.Mutex
	key      string
	problems []Problem
	byAction map[types.EntityUID]finding
}

func (f *findings) verdict(key string) ([]Problem, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problems, f.key == key
}

func (f *findings) decide(key string, problems []Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.key, f.problems = key, problems
}

type finding struct {
	key      string
	messages []string
}

func (f *findings) get(uid types.EntityUID, key string) ([]string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.byAction[uid]
	return known.messages, ok && known.key == key
}

// put remembers a finding. Those about actions that are gone are dropped once
// they are the larger part.
func (f *findings) put(uid types.EntityUID, found finding, actions int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byAction == nil || len(f.byAction) > 2*actions {
		f.byAction = map[types.EntityUID]finding{}
	}
	f.byAction[uid] = found
}

func validationKey(attributes []SessionAttribute, action *actionTypes, others *otherNames) string {
	parts := []string{action.key}
	for _, a := range attributes {
		parts = append(parts, "session", a.Name, string(a.Type), strconv.FormatBool(a.Required))
	}
	for _, t := range others.types {
		parts = append(parts, "type", string(t))
	}
	for _, a := range others.actions {
		parts = append(parts, "action", a.String())
	}
	return digest("policyValidation", parts)
}

// validationFor gives the validation of one action, with what the policy
// declares and with the other names that it uses.
func (c *checks) validationFor(s *statement, action *actionTypes) *validation {
	attributes, others := s.source.source.SessionAttributes, action.besides(s.used)
	key := validationKey(attributes, action, others)
	v, ok := c.validations.Load(key)
	if !ok {
		v, _ = c.validations.LoadOrStore(key, &validation{
			validator: validate.New(newSchema(attributes, []*actionTypes{action}, others)),
		})
	}
	return v.(*validation)
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

func (c *checks) problem(s *statement, severity Severity, message string) Problem {
	pos := s.policy.Position()
	return Problem{
		Source: s.source.Key(), Namespace: c.namespace, Policy: s.id,
		Line: pos.Line, Column: pos.Column, Message: message, Severity: severity,
	}
}

// unknownWarnings words the names that nothing defines.
func (c *checks) unknownWarnings(s *statement, u *otherNames) []Problem {
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
