// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Identity is an authenticated user as kube-apiserver reported it. It is
// always stamped by admission; what a client writes here is overwritten.
type Identity struct {
	// username of the user.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Username string `json:"username"`
	// uid of the user, where the authenticator knows one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	UID string `json:"uid,omitempty"`
	// groups of the user, sorted.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=1024
	Groups []string `json:"groups,omitempty"`
	// extra holds what the authenticator added, such as the Pod and node of a
	// ServiceAccount token, sorted by key.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=64
	Extra []IdentityExtra `json:"extra,omitempty"`
}

// IdentityExtra is one extra of an identity.
type IdentityExtra struct {
	// key of the extra.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
	// values of the extra.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=1024
	Values []string `json:"values"`
}

// Contract identifies the contract that a call was prepared against.
type Contract struct {
	// name of the ToolManifest.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// version of the contract.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version"`
	// hash is the SHA-256 over the whole resolved contract, in hex.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Hash string `json:"hash"`
}

// Effect is what happens when the call runs, completely resolved. Exactly one
// member is set.
type Effect struct {
	// command is a program start.
	// +optional
	Command *CommandCall `json:"command,omitempty"`
	// http is an HTTP request.
	// +optional
	HTTP *HTTPCall `json:"http,omitempty"`
	// mcp is a call of an MCP server's tool.
	// +optional
	MCP *MCPCall `json:"mcp,omitempty"`
}

// CommandCall is a resolved program start.
type CommandCall struct {
	// image that holds the program.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`
	// argv are the words, exactly as the program receives them.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=131072
	Argv []string `json:"argv"`
	// env are the environment variables of the program.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Env []ResolvedVariable `json:"env,omitempty"`
	// outputFile is the file below /work that is read as the output, in place
	// of the program's standard output.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	OutputFile string `json:"outputFile,omitempty"`
	// workingDir is the directory the program starts in.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	WorkingDir string `json:"workingDir"`
}

// ResolvedVariable is one environment variable: a constant, or a secret by
// reference.
type ResolvedVariable struct {
	// name of the variable.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// value is a constant of the manifest.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value *string `json:"value,omitempty"`
	// secret refers to a key of a Secret.
	// +optional
	Secret *ResolvedSecret `json:"secret,omitempty"`
}

// ResolvedSecret refers to one key of a Secret in the execution namespace.
type ResolvedSecret struct {
	// name that placeholders use.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// secretName is the name of the Secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
	// key inside the Secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
	// hosts that the secret may be sent to.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	Hosts []string `json:"hosts,omitempty"`
}

// HTTPCall is a resolved HTTP request. Secret placeholders are still
// placeholders here: the runner fills them in.
type HTTPCall struct {
	// method of the request.
	// +required
	// +kubebuilder:validation:MaxLength=16
	Method string `json:"method"`
	// url of the request.
	// +required
	// +kubebuilder:validation:MaxLength=131072
	URL string `json:"url"`
	// headers of the request.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Headers []ResolvedHeader `json:"headers,omitempty"`
	// body of the request.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Body string `json:"body,omitempty"`
	// successStatus lists the status codes that mean success; empty means 200 to 299.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	SuccessStatus []int32 `json:"successStatus,omitempty"`
	// caBundle holds the PEM certificates the server must be signed by.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
	// allowPrivate accepts private addresses.
	// +optional
	AllowPrivate bool `json:"allowPrivate,omitempty"`
	// secrets that the placeholders refer to.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Secrets []ResolvedSecret `json:"secrets,omitempty"`
}

// ResolvedHeader is one header of a request.
type ResolvedHeader struct {
	// name of the header.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// value of the header.
	// +required
	// +kubebuilder:validation:MaxLength=131072
	Value string `json:"value"`
}

// MCPCall is a resolved call of an MCP server's tool.
type MCPCall struct {
	// url of the server.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// tool is the name of the tool on the server.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Tool string `json:"tool"`
	// toolDigest is the SHA-256 of the tool's definition, in hex.
	// +required
	// +kubebuilder:validation:MaxLength=64
	ToolDigest string `json:"toolDigest"`
	// arguments is the canonical JSON text of the mapped arguments.
	// +required
	// +kubebuilder:validation:MaxLength=131072
	Arguments string `json:"arguments"`
	// headers of every request to the server.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Headers []ResolvedHeader `json:"headers,omitempty"`
	// caBundle holds the PEM certificates the server must be signed by.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
	// allowPrivate accepts private addresses.
	// +optional
	AllowPrivate bool `json:"allowPrivate,omitempty"`
	// secrets that the placeholders refer to.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Secrets []ResolvedSecret `json:"secrets,omitempty"`
}

// PreparedCall is the frozen call. It is always stamped by admission; what a
// client writes here is overwritten.
type PreparedCall struct {
	// argsCanonicalJson is the RFC 8785 text of the arguments after defaults,
	// normalisation and clamps. Every view of the arguments is a fresh decode
	// of this text.
	// +required
	// +kubebuilder:validation:MaxLength=65536
	ArgsCanonicalJSON string `json:"argsCanonicalJson"`
	// argsDigest is the SHA-256 of argsCanonicalJson, in hex.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	ArgsDigest string `json:"argsDigest"`
	// effect is what happens when the call runs.
	// +required
	Effect Effect `json:"effect"`
	// contract identifies the contract the call was prepared against.
	// +required
	Contract Contract `json:"contract"`
	// proposalHash binds agent, tool and arguments (RFC-0016).
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	ProposalHash string `json:"proposalHash"`
	// fingerprint binds proposalHash, namespace, contract and effect. It is
	// what a person approves.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Fingerprint string `json:"fingerprint"`
}
