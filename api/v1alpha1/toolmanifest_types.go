// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RiskTier is the platform team's judgement of a tool. Policies read it as
// resource.risk_tier.
// +kubebuilder:validation:Enum=low;medium;high;critical
type RiskTier string

// The risk tiers.
const (
	RiskLow      RiskTier = "low"
	RiskMedium   RiskTier = "medium"
	RiskHigh     RiskTier = "high"
	RiskCritical RiskTier = "critical"
)

// ArgumentEncoding says how arguments are written in JSON.
// +kubebuilder:validation:Enum=Typed;String
type ArgumentEncoding string

const (
	// EncodingTyped writes integers and numbers as JSON numbers, booleans as
	// JSON booleans. The text "5" is accepted for an integer and becomes 5.
	EncodingTyped ArgumentEncoding = "Typed"
	// EncodingString writes every argument as JSON text, as ToolClad does.
	EncodingString ArgumentEncoding = "String"
)

// Argument is one argument of a tool.
type Argument struct {
	// name of the argument in the call's JSON object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`

	// type is a built-in type (string, integer, number, boolean, port, enum,
	// url, path, ip_address, cidr, scope_target, duration, regex_match,
	// msf_options, credential_file, object, array) or the name of an
	// ArgumentType in the namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Type string `json:"type"`

	// description tells the agent what to put here.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`

	// required refuses a call without this argument. An argument that is
	// neither required nor has a default is absent from the call.
	// +optional
	Required bool `json:"required,omitempty"`

	// default is used when the argument is absent. It is checked like a value
	// of the agent's, when the manifest is compiled. For booleans, numbers
	// with a fraction, objects and arrays it is JSON written as text.
	// +optional
	Default *intstr.IntOrString `json:"default,omitempty"`

	ArgumentConstraints `json:",inline"`
}

// ApprovalRequirement is one group of people of whom some must approve.
type ApprovalRequirement struct {
	// group is a group of the approver's authenticated identity.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// count is how many different people of the group must approve.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	Count int32 `json:"count"`
}

// ApprovalRules says who must approve a call, and how long things wait.
type ApprovalRules struct {
	// timeout is how long a proposal waits for approval before it is Expired.
	// Defaults to 1h.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// receiptLifetime is how long a receipt counts after it was created.
	// Defaults to 15m; the operator's cluster maximum is an upper bound.
	// +optional
	ReceiptLifetime *metav1.Duration `json:"receiptLifetime,omitempty"`

	// requirements must all hold, with different people: one person counts
	// for one requirement only. Without any, one approver is enough. At most 16
	// people can approve one call, so that they cannot demand more in all.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.map(r, r.count).sum() <= 16",message="the counts must not be more than 16 in all, because only 16 receipts of a call can count"
	// +listType=map
	// +listMapKey=group
	// +kubebuilder:validation:MaxItems=8
	Requirements []ApprovalRequirement `json:"requirements,omitempty"`

	// allowServiceAccounts lets ServiceAccounts approve. They cannot otherwise.
	// +optional
	AllowServiceAccounts bool `json:"allowServiceAccounts,omitempty"`
}

// CedarBinding names the Cedar resource type and action of the tool.
type CedarBinding struct {
	// resource is the entity type of the tool, such as Tool::Fetch.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)*$`
	Resource string `json:"resource"`
	// action is the action's ID inside the resource type's namespace: with
	// resource Tool::Fetch and action execute, policies speak of
	// Tool::Fetch::Action::"execute".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Action string `json:"action"`
}

// SecretReference makes one key of a Secret available under a short name. The
// Secret lives in the namespace that the call's Job runs in; a call never
// names a Secret itself.
type SecretReference struct {
	// name that command.env and placeholders {_secret:name} use.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`
	// secretName is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
	// key inside the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
	// hosts are the only hosts that an HTTP or MCP effect may send this
	// secret to. Required for them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	Hosts []string `json:"hosts,omitempty"`
}

// OutputFormat is how a tool's output is read.
// +kubebuilder:validation:Enum=text;json;jsonl;csv;xml
type OutputFormat string

// The output formats.
const (
	OutputText  OutputFormat = "text"
	OutputJSON  OutputFormat = "json"
	OutputJSONL OutputFormat = "jsonl"
	OutputCSV   OutputFormat = "csv"
	OutputXML   OutputFormat = "xml"
)

// Output says what a tool returns.
type Output struct {
	// format says how to read the output. Defaults to text.
	// +optional
	Format OutputFormat `json:"format,omitempty"`
	// schema is a JSON Schema 2020-12 document, as text, that the output must
	// satisfy, otherwise the call fails. With format text the value checked is
	// an object with the member raw_output.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Schema string `json:"schema,omitempty"`
	// file is the file that the program writes its result to, an absolute path
	// below /work, which belongs to the call alone. It is read instead of the
	// standard output, once the program has ended with exit code 0; a call whose
	// program leaves no such file fails. Symbolic links are not followed. For
	// command only.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^/work(/[A-Za-z0-9._-]+)+$`
	File string `json:"file,omitempty"`
	// sensitive keeps the output out of status and audit records, which then
	// hold its digest and length. Format and schema are checked all the same.
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`
}

// ScopeReference names a ToolScope.
type ScopeReference struct {
	// name of the ToolScope in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ToolManifestSpec is the contract of a tool: what may be asked and exactly
// what then happens.
// +kubebuilder:validation:XValidation:rule="[has(self.command), has(self.http), has(self.mcp)].exists_one(x, x)",message="exactly one of command, http and mcp must be set"
type ToolManifestSpec struct {
	// version of the contract, for people. A call binds to the contract's
	// hash, so that an edit under the same version is another contract.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version"`

	// toolName is the tool's name for policies, where it differs from the
	// object's name (imported tools keep their underscores here).
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.-]*$`
	ToolName string `json:"toolName,omitempty"`

	// description tells the agent what the tool does.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`

	// riskTier is the platform team's judgement. Defaults to medium.
	// +optional
	RiskTier RiskTier `json:"riskTier,omitempty"`

	// arguments are all the arguments there are: any other is refused.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Arguments []Argument `json:"arguments,omitempty"`

	// argumentEncoding says how arguments are written. Defaults to Typed.
	// +optional
	ArgumentEncoding ArgumentEncoding `json:"argumentEncoding,omitempty"`

	// scopeRef names the ToolScope of scope-checked arguments. Without it the
	// namespace's only ToolScope is used; none, or several, is an error.
	// +optional
	ScopeRef *ScopeReference `json:"scopeRef,omitempty"`

	// humanApproval demands a person's approval whatever the policy says.
	// +optional
	HumanApproval bool `json:"humanApproval,omitempty"`

	// approval says who must approve and how long things wait.
	// +optional
	Approval *ApprovalRules `json:"approval,omitempty"`

	// cedar names the Cedar resource type and action. Without it policies
	// speak of Action::"tool_call::NAME" and Tool::"NAME".
	// +optional
	Cedar *CedarBinding `json:"cedar,omitempty"`

	// command runs a program.
	// +optional
	Command *CommandTemplate `json:"command,omitempty"`
	// http sends one HTTP request.
	// +optional
	HTTP *HTTPTemplate `json:"http,omitempty"`
	// mcp calls one tool of an MCP server.
	// +optional
	MCP *MCPTemplate `json:"mcp,omitempty"`

	// secrets are the secrets that the effect may use.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Secrets []SecretReference `json:"secrets,omitempty"`

	// output says what the tool returns.
	// +optional
	Output *Output `json:"output,omitempty"`

	// execution bounds the Job.
	// +optional
	Execution *Execution `json:"execution,omitempty"`
}

// ToolManifestStatus says whether the tool can be called.
type ToolManifestStatus struct {
	// conditions hold Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation that conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// effect is the kind of the effect: command, http or mcp.
	// +optional
	Effect string `json:"effect,omitempty"`
	// contractHash is the SHA-256 of the whole resolved contract, in hex.
	// +optional
	ContractHash string `json:"contractHash,omitempty"`
	// approval says in short who must approve: policy, or the requirements.
	// +optional
	Approval string `json:"approval,omitempty"`
}

// ToolManifest is the contract of one tool.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tm,categories=assent
// +kubebuilder:printcolumn:name="Effect",type=string,JSONPath=`.status.effect`
// +kubebuilder:printcolumn:name="Approval",type=string,JSONPath=`.status.approval`
// +kubebuilder:printcolumn:name="Risk",type=string,JSONPath=`.spec.riskTier`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ToolManifest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is what every Kubernetes object has.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the contract.
	// +required
	Spec ToolManifestSpec `json:"spec"`
	// status says whether the tool can be called.
	// +optional
	Status ToolManifestStatus `json:"status,omitempty"`
}

// ToolManifestList is a list of ToolManifest.
// +kubebuilder:object:root=true
type ToolManifestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ToolManifest `json:"items"`
}
