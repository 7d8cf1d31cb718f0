// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"
	"slices"
	"sync"

	"github.com/cedar-policy/cedar-go/types"
)

// checks is the validation of policies against the tools of one namespace. The
// tools never change; verdicts are worked out when somebody asks, and kept.
type checks struct {
	namespace     string
	tools         map[string]*toolTypes
	names         []string // of tools, sorted
	actions       map[types.EntityUID]*actionTypes
	ordered       []*actionTypes // by key of actions
	resources     map[types.EntityUID]bool
	resourceTypes map[types.EntityType]bool

	verdicts   sync.Map // *statement to []Problem
	validators sync.Map // key to *validation
	// memo keeps what validation found across generations of tools, *statement
	// to finding: a verdict stays true while the types that it rests on stay
	// the same, so that a change of one manifest costs the policies that
	// mention it.
	memo *sync.Map
}

type finding struct {
	key      string
	problems []Problem
}

// forget drops what is known of policies that are no longer in force.
func (c *checks) forget(statements []*statement) {
	for _, s := range statements {
		c.verdicts.Delete(s)
		c.memo.Delete(s)
	}
}

// newChecks makes the checks of a namespace; before is what was known there
// until now, or nil.
func newChecks(namespace string, tools []Tool, before *checks) *checks {
	c := &checks{
		namespace: namespace, tools: map[string]*toolTypes{}, actions: map[types.EntityUID]*actionTypes{},
		resources: map[types.EntityUID]bool{}, resourceTypes: map[types.EntityType]bool{},
		memo: &sync.Map{},
	}
	if before == nil {
		before = &checks{}
	} else {
		c.memo = before.memo
	}
	byAction := map[types.EntityUID][]*toolTypes{}
	for i := range tools {
		c.tools[tools[i].Name] = before.tool(&tools[i])
	}
	c.names = slices.Sorted(maps.Keys(c.tools))
	for _, name := range c.names {
		if t := c.tools[name]; t.problem == "" {
			byAction[t.action] = append(byAction[t.action], t)
			c.resources[t.resource] = true
			c.resourceTypes[t.resource.Type] = true
		}
	}
	for uid, sharing := range byAction {
		if old := before.actions[uid]; old != nil && slices.Equal(old.tools, sharing) {
			c.actions[uid] = old
		} else {
			c.actions[uid] = newActionTypes(uid, sharing)
		}
	}
	c.ordered = slices.SortedFunc(maps.Values(c.actions), func(a, b *actionTypes) int {
		return compareUID(a.uid, b.uid)
	})
	return c
}

func compareUID(a, b types.EntityUID) int {
	if a.Type != b.Type {
		return compare(a.Type, b.Type)
	}
	return compare(a.ID, b.ID)
}

// WithTools returns the set with the tools of a namespace known: all that have
// a valid contract there, and no others. Policies are checked against them.
func (s *Set) WithTools(namespace string, tools []Tool) *Set {
	next := &Set{limits: s.limits, parts: s.parts, checks: maps.Clone(s.checks)}
	if len(tools) == 0 {
		delete(next.checks, namespace)
		return next
	}
	next.checks[namespace] = newChecks(namespace, tools, s.checks[namespace])
	return next
}

// checksFor gives the checks that know exactly this tool. A call may be decided
// on while the set does not yet know its tool, or knows an older contract; the
// policies are then checked against the tool as it is.
func (s *Set) checksFor(tool *Tool) *checks {
	c, ok := s.checks[tool.Namespace]
	if !ok {
		return newChecks(tool.Namespace, []Tool{*tool}, nil)
	}
	if t, ok := c.tools[tool.Name]; ok && t.tool.equal(tool) {
		return c
	}
	tools := make([]Tool, 0, len(c.tools)+1)
	for _, name := range c.names {
		if name != tool.Name {
			tools = append(tools, c.tools[name].tool)
		}
	}
	return newChecks(tool.Namespace, append(tools, *tool), c)
}

// tool gives the types of a tool, from what is known if it is the same.
func (c *checks) tool(tool *Tool) *toolTypes {
	if t, ok := c.tools[tool.Name]; ok && t.tool.equal(tool) {
		return t
	}
	return newToolTypes(tool)
}

// problems lists what validation found in a policy, first the errors.
func (c *checks) problems(s *statement) []Problem {
	if known, ok := c.verdicts.Load(s); ok {
		return known.([]Problem)
	}
	problems := c.validate(s)
	c.verdicts.Store(s, problems)
	return problems
}

// matching lists the actions, with at least one tool each, that the scope of a
// policy accepts.
func (c *checks) matching(s *statement) []*actionTypes {
	candidates := c.ordered
	if uids, fixed := s.scope.action.single(); fixed {
		candidates = nil
		for _, uid := range uids {
			if a := c.actions[uid]; a != nil {
				candidates = append(candidates, a)
			}
		}
	}
	var found []*actionTypes
	for _, a := range candidates {
		if s.scope.action.accepts(a.uid, zeroParents) && slices.ContainsFunc(a.tools, func(t *toolTypes) bool {
			return s.scope.resource.accepts(t.resource, zeroParents)
		}) {
			found = append(found, a)
		}
	}
	return found
}

// Review lists what is wrong with one object, errors and warnings. A
// ClusterToolPolicy is checked against the tools of each namespace; that it
// names something unknown is only odd if no namespace knows it.
func (s *Set) Review(key Key) (errors, warnings []Problem) {
	i := slices.IndexFunc(s.part(key.Namespace).sources, func(c *Compiled) bool { return c.Key() == key })
	if i < 0 {
		return nil, nil
	}
	source := s.part(key.Namespace).sources[i]
	if source.Broken() {
		return slices.Clone(source.problems), nil
	}
	for _, one := range source.statements {
		bad, odd := s.reviewStatement(key, one)
		errors, warnings = append(errors, bad...), append(warnings, odd...)
	}
	return errors, warnings
}

func (s *Set) reviewStatement(key Key, one *statement) (errors, warnings []Problem) {
	if key.Namespace != "" {
		c, ok := s.checks[key.Namespace]
		if !ok {
			c = newChecks(key.Namespace, nil, nil)
		}
		return split(c.problems(one))
	}
	odd := map[string]int{}
	for _, namespace := range slices.Sorted(maps.Keys(s.checks)) {
		bad, warned := split(s.checks[namespace].problems(one))
		errors = append(errors, bad...)
		for _, p := range warned {
			p.Namespace = ""
			if odd[p.String()]++; odd[p.String()] == len(s.checks) {
				warnings = append(warnings, p)
			}
		}
	}
	return errors, warnings
}

func split(problems []Problem) (errors, warnings []Problem) {
	for _, p := range problems {
		if p.Severity == SeverityError {
			errors = append(errors, p)
		} else {
			warnings = append(warnings, p)
		}
	}
	return errors, warnings
}

// Problems lists what is wrong with the policies that apply in a namespace,
// against the tools there: everything that can deny a call in it.
func (s *Set) Problems(namespace string) []Problem {
	var all []Problem
	c, ok := s.checks[namespace]
	if !ok {
		c = newChecks(namespace, nil, nil)
	}
	for _, p := range s.partsFor(namespace) {
		for _, source := range p.sources {
			all = append(all, source.problems...)
			for _, one := range source.statements {
				all = append(all, c.problems(one)...)
			}
		}
	}
	return all
}
