// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"reflect"
	"slices"
)

// Effect kinds.
const (
	EffectCommand = "command"
	EffectHTTP    = "http"
	EffectMCP     = "mcp"
)

// Tool is what policies know of a tool. Everything in it comes from the
// contract, nothing from a call.
type Tool struct {
	// Namespace and Name of the ToolManifest.
	Namespace, Name string
	// ToolName is what policies call the tool; Name when it is empty.
	ToolName string
	// Version, ContractHash and RiskTier of the contract.
	Version, ContractHash, RiskTier string
	// CedarResource and CedarAction are the tool's binding, both or neither.
	CedarResource, CedarAction string
	// HumanApproval demands a person's approval of every allowed call.
	HumanApproval bool
	// Arguments the tool takes.
	Arguments []Argument
	// StringArguments says that every argument is written as JSON text, as
	// argumentEncoding String has it. Policies then see text, too.
	StringArguments bool
	// EffectKind is command, http or mcp.
	EffectKind string
	// MCPArguments are the arguments of the server's tool, under the names
	// they have there. They stand in context.invocation.resolved.mcp_arguments.
	MCPArguments []Argument
	// MCPConstants are those of them that are the same in every call.
	MCPConstants []Constant
}

// Constant is one value that the contract itself gives.
type Constant struct {
	// Name in the JSON object.
	Name string
	// JSON is the value's text. It has the type that the value has, also where
	// StringArguments makes text of every argument.
	JSON string
}

// Argument is one declared argument.
type Argument struct {
	// Name in the JSON object.
	Name string
	// Kind is the built-in type that the declared type ends in. integer and
	// port become Long, number decimal, boolean Bool, object and array what
	// Schema says; every other kind is text. ip_address and cidr exist as
	// Cedar addresses besides.
	Kind string
	// Required says that every prepared call has the argument: it is required
	// or has a default.
	Required bool
	// Schema is the decoded JSON Schema of kind object or array, or nil. It is
	// read, and never changed.
	Schema any
}

// name is what policies call the tool.
func (t *Tool) name() string {
	if t.ToolName != "" {
		return t.ToolName
	}
	return t.Name
}

// equal says whether two tools mean the same to every policy.
func (t *Tool) equal(o *Tool) bool {
	return t.facts() == o.facts() &&
		slices.EqualFunc(t.Arguments, o.Arguments, sameArgument) &&
		slices.EqualFunc(t.MCPArguments, o.MCPArguments, sameArgument) &&
		slices.Equal(t.MCPConstants, o.MCPConstants)
}

// toolFacts is everything of a tool but its arguments.
type toolFacts struct {
	texts [9]string
	flags [2]bool
}

func (t *Tool) facts() toolFacts {
	return toolFacts{
		texts: [9]string{
			t.Namespace, t.Name, t.ToolName, t.Version, t.ContractHash, t.RiskTier,
			t.CedarResource, t.CedarAction, t.EffectKind,
		},
		flags: [2]bool{t.HumanApproval, t.StringArguments},
	}
}

func sameArgument(a, b Argument) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.Required == b.Required &&
		(a.Schema == nil && b.Schema == nil || reflect.DeepEqual(a.Schema, b.Schema))
}

// clone copies the tool, so that nobody else can change it.
func (t *Tool) clone() Tool {
	c := *t
	c.Arguments = slices.Clone(t.Arguments)
	c.MCPArguments = slices.Clone(t.MCPArguments)
	c.MCPConstants = slices.Clone(t.MCPConstants)
	return c
}

// Principal is the authenticated requester of a call.
type Principal struct {
	Username string
	Groups   []string
}

// EffectView is the resolved effect as policies see it. Only the members of the
// kind's own group are set.
type EffectView struct {
	// Kind is command, http or mcp.
	Kind string

	// Argv, Image, WorkingDir, EnvNames belong to command.
	Argv       []string
	Image      string
	WorkingDir string
	EnvNames   []string

	// HTTPURL, HTTPMethod, HTTPHost (without port, in lower case) and HTTPBody
	// belong to http.
	HTTPURL, HTTPMethod, HTTPHost, HTTPBody string

	// MCPServer (its URL), MCPTool and MCPArgumentsJSON (canonical text)
	// belong to mcp.
	MCPServer, MCPTool, MCPArgumentsJSON string

	// SecretNames are the short names of the secrets that the effect uses.
	SecretNames []string
}

// Call is one prepared call, with everything that a decision may rest on.
type Call struct {
	// Tool is the tool as its contract describes it.
	Tool Tool
	// Principal asks.
	Principal Principal
	// ArgsCanonicalJSON is the frozen text of the arguments; Fingerprint is
	// what a person approves.
	ArgsCanonicalJSON string
	Fingerprint       string
	// Effect is what happens when the call runs.
	Effect EffectView
	// HasSession says that the call belongs to a session, and SessionContext is
	// the session's trusted context, JSON text; empty means an empty object.
	HasSession     bool
	SessionContext string
	// Approved says that valid receipts satisfy the tool's approval rules, for
	// exactly ApprovedFingerprint. Only receipts may set them.
	Approved            bool
	ApprovedFingerprint string
}
