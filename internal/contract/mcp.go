// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/snapshot"
)

// mcpPlan is a compiled call of an MCP server's tool.
type mcpPlan struct {
	call MCPCall
	// fields are the members of the arguments in canonical order; nil when the
	// arguments of the call are passed on.
	fields []mcpField
	mapped bool
}

// mcpField is one member: a constant in canonical form, or a value.
type mcpField struct {
	// name is quoted already, without the quotes.
	name string
	text string
	arg  int
}

// render resolves the call.
func (p *mcpPlan) render(v *values) (Effect, string, *snapshot.Error) {
	call := p.call
	call.Arguments = v.canonical
	if p.mapped {
		o := openObject(nil)
		for _, f := range p.fields {
			switch {
			case f.arg == constant:
				o.raw(f.name, f.text)
			case v.list[f.arg].present:
				o.raw(f.name, v.list[f.arg].raw)
			}
		}
		call.Arguments = string(o.close())
	}
	e := Effect{MCP: &call}
	return e, v.workspace.effect(e), nil
}

var hexDigest = regexp.MustCompile(`\A[0-9a-f]{64}\z`)

// mcp compiles a call of an MCP server.
func (e *effectCompiler) mcp(t *MCPTemplate) plan {
	const field = "spec.mcp"
	u, why := parseURL(t.URL)
	switch {
	case why != "":
		e.add(ReasonInvalidEffect, field+".url", "cannot be used: %s", adviceFor(why))
	case u.scheme != "https" && u.scheme != "http":
		e.add(ReasonInvalidEffect, field+".url", "must be of the scheme https or http")
	}
	if t.Tool == "" || strings.IndexByte(t.Tool, 0) >= 0 {
		e.add(ReasonInvalidEffect, field+".tool", "must be the name of a tool of the server")
	}
	if !hexDigest.MatchString(t.ToolDigest) {
		e.add(ReasonInvalidEffect, field+".toolDigest", "must be a SHA-256 in lower-case hexadecimal")
	}
	e.checkCABundle(field, t.CABundle)
	headers, _ := renderHeaders(e.headers(field+".headers", t.Headers, false), &values{})
	p := &mcpPlan{mapped: len(t.Arguments) > 0, call: MCPCall{
		URL: u.String(), Tool: t.Tool, ToolDigest: t.ToolDigest, Headers: headers,
		CABundle: t.CABundle, AllowPrivate: t.AllowPrivate,
	}}
	p.fields = e.mcpFields(field+".arguments", t.Arguments)
	if !p.mapped {
		for i := range e.usedArgs {
			e.usedArgs[i] = true
		}
	}
	host := ""
	if why == "" {
		host = u.target.String()
	}
	p.call.Secrets = e.httpSecrets(host)
	return p
}

func (e *effectCompiler) mcpFields(field string, arguments []MCPArgument) []mcpField {
	seen := map[string]bool{}
	var out []mcpField
	for i, m := range arguments {
		at := fmt.Sprintf("%s[%d]", field, i)
		f := mcpField{name: m.Name, arg: constant}
		switch {
		case m.Name == "" || seen[m.Name]:
			e.add(ReasonInvalidEffect, at+".name", "is empty or occurs twice")
		case (m.Value == nil) == (m.Argument == ""):
			e.add(ReasonInvalidEffect, at, "set exactly one of argument and value")
		case m.Value != nil:
			f.text = e.constantJSON(at+".value", *m.Value)
		default:
			f.arg, _ = e.argument(at+".argument", m.Argument)
		}
		seen[m.Name] = true
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b mcpField) int { return compareUTF16(a.name, b.name) })
	for i := range out {
		out[i].name = string(appendInString(nil, out[i].name))
	}
	return out
}

// constantJSON returns the canonical text of a constant.
func (e *effectCompiler) constantJSON(field, text string) string {
	tree, err := snapshot.DecodeText(text)
	if err == nil {
		var s *snapshot.Snapshot
		if s, err = snapshot.New(tree); err == nil {
			return s.Canonical()
		}
	}
	e.add(ReasonInvalidEffect, field, "is not a JSON text: %v", err)
	return ""
}
