// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package clad

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/assent-dev/assent/internal/contract"
)

// Namespace in which imported objects are checked. Nothing depends on it.
const checkNamespace = "default"

// converter converts one manifest.
type converter struct {
	*reader
	types   map[string]contract.ArgumentType
	scope   *Named[contract.Scope]
	options Options

	file file
	meta toml.MetaData
	// names are the arguments in their order.
	names []string
	out   contract.Manifest
}

// convert returns the manifest, or nil with errors recorded.
func (c *converter) convert(text []byte) *Named[contract.Manifest] {
	var ok bool
	if c.meta, ok = c.decode(text, &c.file); !ok {
		return nil
	}
	c.out.ArgumentEncoding = contract.EncodingString
	c.convertTool()
	c.convertArguments()
	c.convertEffect()
	c.convertOutput()
	name := objectName(c.file.Tool.Name)
	if len(c.errors) == 0 {
		c.check(name)
	}
	return &Named[contract.Manifest]{Name: name, Spec: c.out}
}

// check compiles the result. A missing scope is none of this file's business.
func (c *converter) check(name string) {
	in := contract.Input{Name: name, Namespace: checkNamespace, Manifest: c.out, Types: c.types}
	if c.scope != nil {
		in.Scopes = map[string]contract.Scope{c.scope.Name: c.scope.Spec}
	}
	compiled, err := contract.Compile(in)
	if err == nil {
		c.pointToScope(compiled)
		return
	}
	var list contract.CompileErrors
	errors.As(err, &list)
	for _, e := range list {
		c.fail(c.key(e.Field), "%s (%s of the result)", e.Message, e.Field)
	}
}

// pointToScope names the imported scope where the tool needs one.
func (c *converter) pointToScope(compiled *contract.Contract) {
	needed := slices.ContainsFunc(compiled.Arguments(), func(a contract.ArgumentInfo) bool { return a.ScopeChecked })
	switch {
	case needed && c.scope != nil:
		c.out.ScopeRef = &contract.ScopeReference{Name: c.scope.Name}
	case needed:
		c.note("args", "has scope-checked arguments; calls are refused until the namespace has a ToolScope")
	}
}

// key translates a field of the result into the key that it came from, as far
// as that is one of the file's.
func (c *converter) key(field string) string {
	for i, name := range c.names {
		if rest, ok := strings.CutPrefix(field, "spec.arguments["+itoa(i)+"]"); ok {
			return "args." + name + strings.ReplaceAll(rest, "scopeCheck", "scope_check")
		}
	}
	i := slices.IndexFunc(sources, func(s origin) bool { return strings.HasPrefix(field, s.field) })
	return sources[i].key
}

// origin says which key the fields of the result that begin with field come
// from.
type origin struct{ field, key string }

// sources are the origins, longer ones first and one for everything else last.
var sources = []origin{
	{"spec.http.body", "http.body_template"},
	{"spec.http.url", "http.url"},
	{"spec.http", "http"},
	{"spec.command", "command"},
	{"spec.mcp", "mcp"},
	{"spec.output", "output"},
	{"spec.cedar", "tool.cedar"},
	{"spec.riskTier", "tool.risk_tier"},
	{"spec.version", "tool.version"},
	{"spec.toolName", "tool.name"},
	{"metadata.name", "tool.name"},
	{"spec.secrets", "http"},
	{"ArgumentType", "types"},
	{"ToolScope", "scope"},
	{"", ""},
}

// convertTool converts [tool].
func (c *converter) convertTool() {
	t := c.file.Tool
	if t.Name == "" {
		c.fail("tool.name", "is missing")
	}
	if t.Version == "" {
		c.fail("tool.version", "is missing")
	}
	if t.Mode != "" && t.Mode != "oneshot" {
		c.fail("tool.mode", "is %q, which keeps a program running between calls; make each interaction a tool of its own", t.Mode)
	}
	if t.Dispatch != "" && t.Dispatch != "exec" {
		c.fail("tool.dispatch", "is %q, which runs nothing; give the tool a command, a request or an MCP call", t.Dispatch)
	}
	c.convertEvidence(t.Evidence)
	c.out.Version, c.out.Description, c.out.HumanApproval = t.Version, t.Description, t.HumanApproval
	c.out.RiskTier = cmp.Or(t.RiskTier, "low") // ToolClad's default
	if objectName(t.Name) != t.Name {
		c.out.ToolName = t.Name
	}
	if t.Cedar != nil {
		c.out.Cedar = &contract.CedarBinding{Resource: t.Cedar.Resource, Action: t.Cedar.Action}
	}
	c.convertTimeout(t.Timeout)
}

// convertEvidence looks at [tool.evidence], of which everything happens anyway
// or not at all.
func (c *converter) convertEvidence(e *evidence) {
	if e == nil {
		return
	}
	if e.Hash != "" && e.Hash != "sha256" {
		c.fail("tool.evidence.hash", "is %q; the record of a call always has the SHA-256 of its output", e.Hash)
	}
	if e.OutputDir != "" {
		c.note("tool.evidence.output_dir", "is not used: the output's digest is in the audit log, and its beginning in the call's status")
	}
}

func (c *converter) convertTimeout(timeout *int64) {
	seconds := int64(60) // ToolClad's default
	if timeout != nil {
		seconds = *timeout
	}
	const most = int64(contract.MaxTimeout / time.Second)
	if seconds < 1 || seconds > most {
		c.fail("tool.timeout_seconds", "must lie between 1 and %d", most)
		seconds = 60
	}
	d := contract.Duration(time.Duration(seconds) * time.Second)
	c.out.Execution = &contract.Execution{Timeout: &d}
}

// convertArguments converts [args.*], by position and then in the order of the
// file.
func (c *converter) convertArguments() {
	for _, key := range c.meta.Keys() {
		if len(key) == 2 && key[0] == "args" && !slices.Contains(c.names, key[1]) {
			c.names = append(c.names, key[1])
		}
	}
	slices.SortStableFunc(c.names, func(a, b string) int { return cmp.Compare(c.file.Args[a].Position, c.file.Args[b].Position) })
	for _, name := range c.names {
		a := c.file.Args[name]
		key := "args." + name
		converted := contract.Argument{
			Name: name, Type: c.typeName(key+".type", cmp.Or(a.Type, contract.KindString)), Description: a.Description, Required: a.Required,
			Default: c.scalar(key+".default", c.defaultOf(name)),
		}
		if _, custom := c.types[converted.Type]; !custom && !slices.Contains(contract.Kinds(), converted.Type) {
			c.fail(key+".type", "is %q, which is no built-in type; give the project's types with --types", a.Type)
		}
		converted.ArgumentConstraints = c.constraints(key, converted.Type, a.constraints)
		c.out.Arguments = append(c.out.Arguments, converted)
	}
}

// defaultOf is an argument's default, or else that of the command.
func (c *converter) defaultOf(name string) any {
	if v := c.file.Args[name].Default; v != nil || c.file.Command == nil {
		return v
	}
	return c.file.Command.Defaults[name]
}

// convertEffect converts the one backend that there is.
func (c *converter) convertEffect() {
	f := c.file
	if f.Session != nil {
		c.fail("session", "keeps a program running between calls, which has no counterpart; make each interaction a tool of its own")
	}
	if f.Browser != nil {
		c.fail("browser", "drives a browser, which has no counterpart; call an HTTP API or an MCP server instead")
	}
	if f.Session != nil || f.Browser != nil {
		return
	}
	switch {
	case count(f.Command != nil, f.HTTP != nil, f.MCP != nil) != 1:
		c.fail("", "must have exactly one of [command], [http] and [mcp]")
	case f.Command != nil:
		c.convertCommand(f.Command)
	case f.HTTP != nil:
		c.convertRequest(f.HTTP)
	default:
		c.convertMCP(f.MCP)
	}
}

func count(facts ...bool) int {
	n := 0
	for _, f := range facts {
		if f {
			n++
		}
	}
	return n
}

// parsers are ToolClad's own parsers and the formats they read.
var parsers = map[string]string{
	"builtin:text": contract.FormatText, "builtin:json": contract.FormatJSON, "builtin:jsonl": contract.FormatJSONL,
	"builtin:csv": contract.FormatCSV, "builtin:xml": contract.FormatXML,
}

// convertOutput converts [output].
func (c *converter) convertOutput() {
	o := c.file.Output
	if o == nil {
		return
	}
	if c.out.Output == nil { // the command may have an output file
		c.out.Output = &contract.Output{}
	}
	c.out.Output.Format = cmp.Or(o.Format, contract.FormatText)
	if o.Parser != "" {
		format, known := parsers[o.Parser]
		if !known {
			c.fail("output.parser", "is a program of its own, which has no counterpart; let the tool print text, json, jsonl, csv or xml")
		}
		c.out.Output.Format = format
	}
	if len(o.Schema) > 0 {
		text, err := json.Marshal(o.Schema)
		if err != nil {
			c.fail("output.schema", "is not JSON: %v", err)
		}
		c.out.Output.Schema = string(text)
	}
}

// convertMCP converts [mcp].
func (c *converter) convertMCP(m *mcp) {
	url := m.Server
	if !strings.Contains(url, "://") {
		url = c.options.MCPServers[m.Server]
	}
	if url == "" {
		c.fail("mcp.server", "names a connection of the runtime; give its URL with --mcp-server %s=https://…", m.Server)
	}
	pinned := c.options.MCPToolDigests[m.Tool]
	if pinned == "" {
		c.fail("mcp.tool", "has no digest of the tool's definition; give it with --mcp-tool-digest %s=SHA256", m.Tool)
	}
	c.out.MCP = &contract.MCPTemplate{URL: url, Tool: m.Tool, ToolDigest: pinned}
	if len(m.FieldMap) == 0 {
		return // the call's arguments are passed on under their own names
	}
	for _, name := range slices.Sorted(maps.Keys(m.FieldMap)) {
		if c.file.Args[name] == nil {
			c.fail("mcp.field_map."+name, "is not an argument")
		}
	}
	for _, name := range c.names {
		c.out.MCP.Arguments = append(c.out.MCP.Arguments, contract.MCPArgument{Name: cmp.Or(m.FieldMap[name], name), Argument: name})
	}
}
