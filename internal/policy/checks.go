// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

// checks is the validation of policies against the tools of one namespace.
type checks struct {
	tools map[string]*toolTypes
}

// WithTools returns the set with the tools of a namespace known.
func (s *Set) WithTools(namespace string, tools []Tool) *Set {
	c := &checks{tools: map[string]*toolTypes{}}
	for i := range tools {
		c.tools[tools[i].Name] = newToolTypes(&tools[i])
	}
	next := &Set{limits: s.limits, parts: s.parts, checks: map[string]*checks{}}
	for k, v := range s.checks {
		next.checks[k] = v
	}
	next.checks[namespace] = c
	return next
}

func (s *Set) checksFor(tool *Tool) *checks {
	if c, ok := s.checks[tool.Namespace]; ok {
		return c
	}
	return &checks{}
}

func (c *checks) tool(tool *Tool) *toolTypes {
	if t, ok := c.tools[tool.Name]; ok && t.tool.equal(tool) {
		return t
	}
	return newToolTypes(tool)
}

func (c *checks) problems(*statement) []Problem { return nil }
