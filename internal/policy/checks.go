// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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

	verdicts    sync.Map // *Compiled to verdicts
	validations sync.Map // key to *validation
	// memo keeps what validation found across generations of tools, *statement
	// to *findings: it stays true while the types that it rests on stay the
	// same, so that a change of one manifest costs one validation of each
	// policy that can match it.
	memo *sync.Map
}

// forget drops what is known of policies that are no longer in force.
func (c *checks) forget(source *Compiled) {
	c.verdicts.Delete(source)
	for _, s := range source.statements {
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
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
}

// WithTools returns the set with the tools of a namespace known: all that have
// a valid contract there, and no others. Policies are checked against them.
func (s *Set) WithTools(namespace string, tools []Tool) *Set {
	next := &Set{limits: s.limits, engine: s.engine, parts: s.parts, checks: maps.Clone(s.checks)}
	if len(tools) == 0 {
		delete(next.checks, namespace)
		return next
	}
	next.checks[namespace] = newChecks(namespace, tools, s.checks[namespace])
	return next
}

// checksFor gives the checks that know exactly this tool, and its types there. A call may be decided
// on while the set does not yet know its tool, or knows an older contract; the
// policies are then checked against the tool as it is.
func (s *Set) checksFor(tool *Tool) (*checks, *toolTypes) {
	c, ok := s.checks[tool.Namespace]
	if !ok {
		c = newChecks(tool.Namespace, []Tool{*tool}, nil)
		return c, c.tools[tool.Name]
	}
	if t, ok := c.tools[tool.Name]; ok && t.tool.equal(tool) {
		return c, t
	}
	tools := make([]Tool, 0, len(c.tools)+1)
	for _, name := range c.names {
		if name != tool.Name {
			tools = append(tools, c.tools[name].tool)
		}
	}
	c = newChecks(tool.Namespace, append(tools, *tool), c)
	return c, c.tools[tool.Name]
}

// tool gives the types of a tool, from what is known if it is the same.
func (c *checks) tool(tool *Tool) *toolTypes {
	if t, ok := c.tools[tool.Name]; ok && t.tool.equal(tool) {
		return t
	}
	return newToolTypes(tool)
}

// verdicts are what validation found in the policies of one object, each worked
// out when somebody asks: a decision looks them all up at once.
type verdicts []atomic.Pointer[[]Problem]

func (c *checks) verdictsOf(source *Compiled) verdicts {
	known, ok := c.verdicts.Load(source)
	if !ok {
		known, _ = c.verdicts.LoadOrStore(source, make(verdicts, len(source.statements)))
	}
	return known.(verdicts)
}

// problems lists what validation found in a policy, first the errors.
func (c *checks) problems(s *statement) []Problem {
	return c.verdict(s, c.verdictsOf(s.source))
}

func (c *checks) verdict(s *statement, of verdicts) []Problem {
	place := &of[s.number]
	if known := place.Load(); known != nil {
		return *known
	}
	problems := c.validate(s)
	place.Store(&problems)
	return problems
}

// matching lists the actions, with at least one tool each, that the scope of a
// policy accepts.
func (c *checks) matching(s *statement) []*actionTypes {
	candidates := c.ordered
	if uids, ok := s.scope.action.fixed(); ok {
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

// Report is what is known of one object.
type Report struct {
	// Policies is how many policies the text holds; 0 while it is unreadable.
	Policies int
	// Problems are errors and warnings, in the order of the policies.
	Problems []Problem
}

// Report lists what is wrong with one object. A ClusterToolPolicy is checked
// against the tools of each namespace; that it names something unknown is only
// odd if no namespace knows it.
func (s *Set) Report(key Key) Report {
	var r Report
	for _, source := range s.part(key.Namespace).sources {
		if source.Key() != key {
			continue
		}
		r.Policies = len(source.statements)
		r.Problems = append(r.Problems, source.problems...)
		for _, one := range source.statements {
			r.Problems = append(r.Problems, s.review(key.Namespace, one)...)
		}
	}
	return r
}

func (s *Set) review(namespace string, one *statement) []Problem {
	if namespace != "" {
		return s.checksIn(namespace).problems(one)
	}
	var problems []Problem
	odd := map[string]int{}
	for _, namespace := range slices.Sorted(maps.Keys(s.checks)) {
		for _, p := range s.checks[namespace].problems(one) {
			if p.Severity == SeverityError {
				problems = append(problems, p)
				continue
			}
			// What a namespace would suggest instead is its own affair.
			p.Namespace = ""
			what, _, _ := strings.Cut(p.String(), suggestion)
			if odd[what]++; odd[what] == len(s.checks) {
				problems = append(problems, p)
			}
		}
	}
	return problems
}

// checksIn gives the checks of a namespace, which may have no tools.
func (s *Set) checksIn(namespace string) *checks {
	if c, ok := s.checks[namespace]; ok {
		return c
	}
	return newChecks(namespace, nil, nil)
}

// Problems lists what is wrong with the policies that apply in a namespace,
// against the tools there: everything that can deny a call in it.
func (s *Set) Problems(namespace string) []Problem {
	var all []Problem
	c := s.checksIn(namespace)
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
