// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

// The structs of this file have the JSON form of the specs of the same name in
// api/v1alpha1, where every field is described.

// Manifest is the spec of a ToolManifest.
type Manifest struct {
	Version          string            `json:"version"`
	ToolName         string            `json:"toolName,omitzero"`
	Description      string            `json:"description,omitzero"`
	RiskTier         string            `json:"riskTier,omitzero"`
	Arguments        []Argument        `json:"arguments,omitempty"`
	ArgumentEncoding string            `json:"argumentEncoding,omitzero"`
	ScopeRef         *ScopeReference   `json:"scopeRef,omitzero"`
	HumanApproval    bool              `json:"humanApproval,omitzero"`
	Approval         *ApprovalRules    `json:"approval,omitzero"`
	Cedar            *CedarBinding     `json:"cedar,omitzero"`
	Command          *CommandTemplate  `json:"command,omitzero"`
	HTTP             *HTTPTemplate     `json:"http,omitzero"`
	MCP              *MCPTemplate      `json:"mcp,omitzero"`
	Secrets          []SecretReference `json:"secrets,omitempty"`
	Output           *Output           `json:"output,omitzero"`
	Execution        *Execution        `json:"execution,omitzero"`
}

// Argument is one argument of a tool.
type Argument struct {
	Name        string       `json:"name"`
	Type        string       `json:"type"`
	Description string       `json:"description,omitzero"`
	Required    bool         `json:"required,omitzero"`
	Default     *IntOrString `json:"default,omitzero"`

	ArgumentConstraints `json:",inline"`
}

// ArgumentConstraints narrows what a value may be.
type ArgumentConstraints struct {
	Allowed          []string     `json:"allowed,omitempty"`
	Pattern          string       `json:"pattern,omitzero"`
	Min              *IntOrString `json:"min,omitzero"`
	Max              *IntOrString `json:"max,omitzero"`
	Clamp            bool         `json:"clamp,omitzero"`
	Schemes          []string     `json:"schemes,omitempty"`
	ScopeCheck       bool         `json:"scopeCheck,omitzero"`
	MaxLength        *int32       `json:"maxLength,omitzero"`
	AllowLeadingDash bool         `json:"allowLeadingDash,omitzero"`
	Sensitive        bool         `json:"sensitive,omitzero"`
	Schema           string       `json:"schema,omitzero"`
}

// ArgumentType is the spec of an ArgumentType.
type ArgumentType struct {
	Base        string `json:"base"`
	Description string `json:"description,omitzero"`

	ArgumentConstraints `json:",inline"`
}

// Scope is the spec of a ToolScope.
type Scope struct {
	Targets []string `json:"targets,omitempty"`
	Domains []string `json:"domains,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
}

// ScopeReference names a ToolScope.
type ScopeReference struct {
	Name string `json:"name"`
}

// ApprovalRequirement is one group of people of whom some must approve.
type ApprovalRequirement struct {
	Group string `json:"group"`
	Count int32  `json:"count"`
}

// ApprovalRules says who must approve, and how long things wait.
type ApprovalRules struct {
	Timeout              *Duration             `json:"timeout,omitzero"`
	ReceiptLifetime      *Duration             `json:"receiptLifetime,omitzero"`
	Requirements         []ApprovalRequirement `json:"requirements,omitempty"`
	AllowServiceAccounts bool                  `json:"allowServiceAccounts,omitzero"`
}

// CedarBinding names the Cedar resource type and action.
type CedarBinding struct {
	Resource string `json:"resource"`
	Action   string `json:"action"`
}

// CommandTemplate describes one program start.
type CommandTemplate struct {
	Image        string                `json:"image"`
	Argv         []string              `json:"argv,omitempty"`
	Defaults     []CommandDefault      `json:"defaults,omitempty"`
	Mappings     []CommandMapping      `json:"mappings,omitempty"`
	Conditionals []CommandConditional  `json:"conditionals,omitempty"`
	Env          []EnvironmentVariable `json:"env,omitempty"`
	WorkingDir   string                `json:"workingDir,omitzero"`
	AllowShell   bool                  `json:"allowShell,omitzero"`
}

// CommandDefault is a constant of the command.
type CommandDefault struct {
	Name  string      `json:"name"`
	Value IntOrString `json:"value"`
}

// CommandMapping turns values of one argument into flags.
type CommandMapping struct {
	Name     string        `json:"name"`
	Argument string        `json:"argument"`
	Values   []MappedValue `json:"values,omitempty"`
}

// MappedValue is the flags of one value.
type MappedValue struct {
	Value string `json:"value"`
	Flags string `json:"flags"`
}

// CommandConditional adds words when a condition holds.
type CommandConditional struct {
	Name     string `json:"name"`
	When     string `json:"when"`
	Template string `json:"template"`
}

// EnvironmentVariable is one variable of the program's environment.
type EnvironmentVariable struct {
	Name   string  `json:"name"`
	Value  *string `json:"value,omitzero"`
	Secret string  `json:"secret,omitzero"`
}

// HTTPTemplate describes one HTTP request.
type HTTPTemplate struct {
	Method        string       `json:"method"`
	URL           string       `json:"url"`
	Headers       []HTTPHeader `json:"headers,omitempty"`
	Body          string       `json:"body,omitzero"`
	SuccessStatus []int32      `json:"successStatus,omitempty"`
	CABundle      string       `json:"caBundle,omitzero"`
	AllowPrivate  bool         `json:"allowPrivate,omitzero"`
}

// HTTPHeader is one header of a request.
type HTTPHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// MCPTemplate describes one call of a tool on an MCP server.
type MCPTemplate struct {
	URL          string        `json:"url"`
	Tool         string        `json:"tool"`
	ToolDigest   string        `json:"toolDigest"`
	Arguments    []MCPArgument `json:"arguments,omitempty"`
	Headers      []HTTPHeader  `json:"headers,omitempty"`
	CABundle     string        `json:"caBundle,omitzero"`
	AllowPrivate bool          `json:"allowPrivate,omitzero"`
}

// MCPArgument maps one argument of the server's tool.
type MCPArgument struct {
	Name     string  `json:"name"`
	Argument string  `json:"argument,omitzero"`
	Value    *string `json:"value,omitzero"`
}

// SecretReference makes one key of a Secret available under a short name.
type SecretReference struct {
	Name       string   `json:"name"`
	SecretName string   `json:"secretName"`
	Key        string   `json:"key"`
	Hosts      []string `json:"hosts,omitempty"`
}

// Output says what a tool returns.
type Output struct {
	Format    string `json:"format,omitzero"`
	Schema    string `json:"schema,omitzero"`
	File      string `json:"file,omitzero"`
	Sensitive bool   `json:"sensitive,omitzero"`
}

// EgressRule is one destination that the call's Pod may reach.
type EgressRule struct {
	CIDR      string            `json:"cidr,omitzero"`
	Namespace string            `json:"namespace,omitzero"`
	PodLabels map[string]string `json:"podLabels,omitempty"`
	Ports     []int32           `json:"ports,omitempty"`
}

// Execution bounds the Job that runs a call.
type Execution struct {
	Timeout                 *Duration    `json:"timeout,omitzero"`
	CPU                     string       `json:"cpu,omitzero"`
	Memory                  string       `json:"memory,omitzero"`
	EphemeralStorage        string       `json:"ephemeralStorage,omitzero"`
	RuntimeClassName        string       `json:"runtimeClassName,omitzero"`
	ServiceAccountName      string       `json:"serviceAccountName,omitzero"`
	Egress                  []EgressRule `json:"egress,omitempty"`
	AllowDNS                bool         `json:"allowDNS,omitzero"`
	RequireIsolation        bool         `json:"requireIsolation,omitzero"`
	TTLSecondsAfterFinished *int32       `json:"ttlSecondsAfterFinished,omitzero"`
}
