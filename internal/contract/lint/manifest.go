// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"net/netip"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/snapshot"
)

// manifest is a manifest that is being looked at.
type manifest struct {
	*linter
	contract.Manifest
	args map[string]resolved
}

// resolved is an argument with what its chain of types says.
type resolved struct {
	kind                    string
	scoped, dash, sensitive bool
	patterned, listed       bool
	allowed                 []string
}

// isFreeText reports whether the agent writes what it likes.
func (r resolved) isFreeText() bool {
	return r.kind == contract.KindString && !r.patterned && !r.listed && !r.scoped
}

// resolve follows the types of all arguments and marks what they use.
func (m *manifest) resolve() {
	m.args = map[string]resolved{}
	scoped := false
	for _, a := range m.Arguments {
		r := resolved{}
		r.add(a.ArgumentConstraints)
		name := a.Type
		for range contract.MaxTypeDepth + 1 {
			t, custom := m.namespace.Types[name]
			if !custom || slices.Contains(contract.Kinds(), name) {
				break
			}
			m.usedTypes[name] = true
			r.add(t.ArgumentConstraints)
			name = t.Base
		}
		r.kind = name
		r.scoped = r.scoped || name == contract.KindScopeTarget
		scoped = scoped || r.scoped
		m.args[a.Name] = r
	}
	switch {
	case m.ScopeRef != nil:
		m.usedScopes[m.ScopeRef.Name] = true
	case scoped:
		for name := range m.namespace.Scopes {
			m.usedScopes[name] = true
		}
	}
}

func (r *resolved) add(c contract.ArgumentConstraints) {
	r.scoped = r.scoped || c.ScopeCheck
	r.dash = r.dash || c.AllowLeadingDash
	r.sensitive = r.sensitive || c.Sensitive
	r.patterned = r.patterned || c.Pattern != ""
	r.listed = r.listed || c.Allowed != nil
	if r.allowed == nil {
		r.allowed = c.Allowed
	}
}

// secretWords occur in names of arguments that hold secrets.
var secretWords = []string{"password", "passwd", "secret", "token", "api_key", "apikey", "credential", "private_key"}

func (m *manifest) checkArguments() {
	for i, a := range m.Arguments {
		field := fmt.Sprintf("spec.arguments[%d]", i)
		r := m.args[a.Name]
		m.checkPattern(field+".pattern", a.Pattern)
		m.checkSchema(field+".schema", a.Schema, true)
		if a.Required && a.Default != nil {
			m.find(ruleRequiredDefault, field+".required", "the argument %s is required and has a default", a.Name)
		}
		switch r.kind {
		case contract.KindURL, contract.KindIPAddress, contract.KindCIDR:
			if !r.scoped {
				m.find(ruleNoScopeCheck, field, "the argument %s of the type %s has no scopeCheck", a.Name, r.kind)
			}
		}
		named := slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(strings.ToLower(a.Name), w) })
		if named && !r.sensitive && r.kind != contract.KindCredentialFile {
			m.find(ruleSensitive, field+".name", "the argument %s is not sensitive", a.Name)
		}
	}
}

// checkGovernance looks at who decides, and at what the tool may return.
func (m *manifest) checkGovernance() {
	if m.isRisky() && !m.needsPeople() {
		m.find(ruleRisk, "spec.riskTier", "the tool is %s and nobody has to approve its calls; set humanApproval", m.RiskTier)
	}
	if m.HumanApproval && m.Approval != nil && m.Approval.AllowServiceAccounts {
		m.find(ruleRobotApproval, "spec.approval.allowServiceAccounts", "ServiceAccounts may approve")
	}
	if o := m.Output; o != nil {
		m.checkSchema("spec.output.schema", o.Schema, false)
		if o.Format != "" && o.Format != contract.FormatText && o.Schema == "" {
			m.find(ruleOutputSchema, "spec.output.format", "the output is %s and has no schema", o.Format)
		}
	}
}

func (m *manifest) isRisky() bool { return m.RiskTier == "high" || m.RiskTier == "critical" }

// needsPeople reports whether the manifest itself demands approval.
func (m *manifest) needsPeople() bool {
	return m.HumanApproval || m.Approval != nil && len(m.Approval.Requirements) > 0
}

// checkNetwork looks at what the Pod may reach and be.
func (m *manifest) checkNetwork() {
	if m.Execution == nil {
		return
	}
	for i, e := range m.Execution.Egress {
		if isWideRange(e.CIDR) {
			m.find(ruleWideEgress, fmt.Sprintf("spec.execution.egress[%d].cidr", i), "the range %s is very large", e.CIDR)
		}
	}
	if name := m.Execution.ServiceAccountName; name != "" {
		m.find(ruleClusterIdentity, "spec.execution.serviceAccountName", "the tool runs as the ServiceAccount %s", name)
	}
}

// isWideRange reports whether a range is larger than any organisation's.
func isWideRange(text string) bool {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return false
	}
	if p.Addr().Is4() {
		return p.Bits() < 8
	}
	return p.Bits() < 16
}

// checkPattern looks for patterns whose author expected a search.
func (l *linter) checkPattern(field, text string) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil || text == "" {
		return
	}
	if hasFlags(parsed) {
		l.find(ruleMultiline, field, "the pattern uses the flag m or s")
	}
	parts := []*syntax.Regexp{parsed}
	if parsed.Op == syntax.OpConcat {
		parts = parsed.Sub
	}
	first, last := parts[0], parts[len(parts)-1]
	begins, ends := first.Op == syntax.OpBeginText, last.Op == syntax.OpEndText
	switch {
	case begins != ends:
		l.find(ruleUnanchored, field, "the pattern is anchored at one end only, although the whole value has to match")
	case len(parts) > 1 && (isAnything(first) || isAnything(last)):
		l.find(ruleUnanchored, field, "the pattern begins or ends with something that matches anything")
	}
}

// isAnything reports whether a part of a pattern is .* or .+.
func isAnything(r *syntax.Regexp) bool {
	return (r.Op == syntax.OpStar || r.Op == syntax.OpPlus) &&
		(r.Sub[0].Op == syntax.OpAnyChar || r.Sub[0].Op == syntax.OpAnyCharNotNL)
}

// hasFlags reports whether any part of a pattern has lines or line ends in it
// that come from a flag.
func hasFlags(r *syntax.Regexp) bool {
	if r.Op == syntax.OpBeginLine || r.Op == syntax.OpEndLine || r.Op == syntax.OpAnyChar {
		return true
	}
	return slices.ContainsFunc(r.Sub, hasFlags)
}

// checkSchema looks into a JSON Schema. Only of values that agents send it
// matters whether objects are closed.
func (l *linter) checkSchema(field, text string, fromAgents bool) {
	tree, err := snapshot.DecodeText(text)
	if err != nil {
		return // absent, or found by the compiler
	}
	l.walkSchema(field, tree, fromAgents)
}

// walkSchema visits every object of a schema. A property that is called format
// looks like the keyword only when its value is a text, which no schema is.
func (l *linter) walkSchema(field string, node any, fromAgents bool) {
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			l.walkSchema(field, child, fromAgents)
		}
	case map[string]any:
		if name, ok := node["format"].(string); ok {
			l.find(ruleFormat, field, "the format %s is not checked", name)
		}
		_, closed := node["additionalProperties"]
		_, evaluated := node["unevaluatedProperties"]
		if _, described := node["properties"].(map[string]any); described && fromAgents && !closed && !evaluated {
			l.find(ruleOpenObject, field, "an object accepts members that are not described")
		}
		for _, child := range node {
			l.walkSchema(field, child, fromAgents)
		}
	}
}
