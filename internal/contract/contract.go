// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"maps"
	"slices"
	"time"
)

// Problems are the reasons why a contract exists and its calls are refused:
// [ReasonScopeMissing] or [ReasonScopeAmbiguous]. A manifest with problems is
// not Ready.
func (c *Contract) Problems() []CompileError {
	var out []CompileError
	for _, p := range c.problems {
		out = append(out, *p)
	}
	return out
}

// Hash is the SHA-256 in hexadecimal over the whole resolved contract.
func (c *Contract) Hash() string { return c.hash }

// Name is the name of the ToolManifest.
func (c *Contract) Name() string { return c.name }

// Namespace is the namespace of the ToolManifest.
func (c *Contract) Namespace() string { return c.namespace }

// Version is spec.version.
func (c *Contract) Version() string { return c.manifest.Version }

// ToolName is the tool's name for policies: spec.toolName, or else [Contract.Name].
func (c *Contract) ToolName() string {
	if c.manifest.ToolName != "" {
		return c.manifest.ToolName
	}
	return c.name
}

// Description tells agents what the tool does.
func (c *Contract) Description() string { return c.manifest.Description }

// RiskTier is low, medium, high or critical.
func (c *Contract) RiskTier() string { return c.manifest.RiskTier }

// HumanApproval says that a person must approve whatever the policy says.
func (c *Contract) HumanApproval() bool { return c.manifest.HumanApproval }

// EffectKind is [EffectCommand], [EffectHTTP] or [EffectMCP].
func (c *Contract) EffectKind() string { return c.effectKind }

// ArgumentEncoding is [EncodingTyped] or [EncodingString].
func (c *Contract) ArgumentEncoding() string { return c.manifest.ArgumentEncoding }

// MCPArguments is how the arguments of the server's tool are mapped, and whether
// the effect is of the kind mcp. Without a mapping the arguments of the call are
// passed on under their own names.
func (c *Contract) MCPArguments() (mapped []MCPArgument, isMCP bool) {
	if c.manifest.MCP == nil {
		return nil, false
	}
	mapped = slices.Clone(c.manifest.MCP.Arguments)
	for i, a := range mapped {
		mapped[i].Value = clonePointer(a.Value)
	}
	return mapped, true
}

// Arguments describes the arguments in the order of the manifest.
func (c *Contract) Arguments() []ArgumentInfo {
	out := make([]ArgumentInfo, len(c.args))
	for i, a := range c.args {
		out[i] = a.info()
	}
	return out
}

// Cedar returns entity type and action ID, or false when the manifest names
// none and the conventional ones hold.
func (c *Contract) Cedar() (resource, action string, ok bool) {
	if c.manifest.Cedar == nil {
		return "", "", false
	}
	return c.manifest.Cedar.Resource, c.manifest.Cedar.Action, true
}

// ApprovalSettings says who must approve and how long things wait.
type ApprovalSettings struct {
	Timeout              time.Duration
	ReceiptLifetime      time.Duration
	Requirements         []ApprovalRequirement
	AllowServiceAccounts bool
}

// Approval returns the approval rules with their defaults.
func (c *Contract) Approval() ApprovalSettings {
	a := c.manifest.Approval
	return ApprovalSettings{
		Timeout: time.Duration(*a.Timeout), ReceiptLifetime: time.Duration(*a.ReceiptLifetime),
		Requirements: slices.Clone(a.Requirements), AllowServiceAccounts: a.AllowServiceAccounts,
	}
}

// ExecutionSettings bounds the Job of a call.
type ExecutionSettings struct {
	Timeout time.Duration
	// CPU, Memory and EphemeralStorage are Kubernetes quantities.
	CPU, Memory, EphemeralStorage string
	RuntimeClassName              string
	ServiceAccountName            string
	Egress                        []EgressRule
	AllowDNS                      bool
	RequireIsolation              bool
	// TTLSecondsAfterFinished is nil where the operator's setting holds.
	TTLSecondsAfterFinished *int32
}

// Execution returns the bounds of the Job with their defaults.
func (c *Contract) Execution() ExecutionSettings {
	x := c.ExecutionSpec()
	return ExecutionSettings{
		Timeout: time.Duration(*x.Timeout), CPU: x.CPU, Memory: x.Memory, EphemeralStorage: x.EphemeralStorage,
		RuntimeClassName: x.RuntimeClassName, ServiceAccountName: x.ServiceAccountName, Egress: x.Egress,
		AllowDNS: x.AllowDNS, RequireIsolation: x.RequireIsolation, TTLSecondsAfterFinished: x.TTLSecondsAfterFinished,
	}
}

// ExecutionSpec returns spec.execution with its defaults written out. It is a
// copy.
func (c *Contract) ExecutionSpec() Execution {
	x := *c.manifest.Execution
	x.Timeout, x.TTLSecondsAfterFinished = clonePointer(x.Timeout), clonePointer(x.TTLSecondsAfterFinished)
	x.Egress = slices.Clone(x.Egress)
	for i, e := range x.Egress {
		x.Egress[i].PodLabels, x.Egress[i].Ports = maps.Clone(e.PodLabels), slices.Clone(e.Ports)
	}
	return x
}

// Output returns what the tool returns, with its defaults.
func (c *Contract) Output() Output { return *c.manifest.Output }
