// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/util/intstr"

// CommandTemplate describes one program start. There is no shell: each word
// of argv becomes one argument of the program, whatever an agent's value holds.
type CommandTemplate struct {
	// image that holds the program, by digest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`

	// argv are the words of the command. A placeholder {name} is replaced by
	// the value of an argument, a command default, a mapping or a conditional.
	// A word that is only a placeholder of a mapping or a conditional becomes
	// as many words as that has, or none. {{ and }} stand for braces.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=4096
	Argv []string `json:"argv"`

	// defaults are constants that argv may use as {name}.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Defaults []CommandDefault `json:"defaults,omitempty"`

	// mappings turn an argument's value into words of the manifest's own.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Mappings []CommandMapping `json:"mappings,omitempty"`

	// conditionals add words when a condition on the arguments holds.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Conditionals []CommandConditional `json:"conditionals,omitempty"`

	// env are the environment variables of the program. It has no others but
	// PATH and HOME.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Env []EnvironmentVariable `json:"env,omitempty"`

	// workingDir is the directory the program starts in. Defaults to /work, an
	// empty directory of its own.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	WorkingDir string `json:"workingDir,omitempty"`

	// allowShell accepts a shell as the program. A shell reads its arguments
	// as a program, so that an agent's value can become code.
	// +optional
	AllowShell bool `json:"allowShell,omitempty"`
}

// CommandDefault is a constant of the command.
type CommandDefault struct {
	// name used in argv.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// value that replaces the placeholder.
	// +required
	Value intstr.IntOrString `json:"value"`
}

// CommandMapping turns values of one argument into flags.
type CommandMapping struct {
	// name used in argv.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// argument whose value selects the flags.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Argument string `json:"argument"`
	// values lists the flags of each value. A value that is not listed is refused.
	// +required
	// +listType=map
	// +listMapKey=value
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Values []MappedValue `json:"values"`
}

// MappedValue is the flags of one value.
type MappedValue struct {
	// value of the argument.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
	// flags are words separated by blanks; quotes keep a word together.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	Flags string `json:"flags"`
}

// CommandConditional adds words when a condition holds.
type CommandConditional struct {
	// name used in argv.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// when compares arguments with constants: name == 'text', name != 'text',
	// joined by and.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	When string `json:"when"`
	// template is words separated by blanks, with placeholders as in argv;
	// quotes keep a word together. An agent's value is never split.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	Template string `json:"template"`
}

// EnvironmentVariable is one variable of the program's environment.
// +kubebuilder:validation:XValidation:rule="has(self.value) != has(self.secret)",message="set exactly one of value and secret"
type EnvironmentVariable struct {
	// name of the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`
	// value is a constant.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value *string `json:"value,omitempty"`
	// secret is the name of an entry of spec.secrets.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Secret string `json:"secret,omitempty"`
}

// HTTPTemplate describes one HTTP request. Redirects are not followed.
type HTTPTemplate struct {
	// method of the request, a constant.
	// +required
	// +kubebuilder:validation:Enum=GET;HEAD;POST;PUT;PATCH;DELETE;OPTIONS
	Method string `json:"method"`
	// url of the request with placeholders {name}, which are percent-encoded
	// for the part of the URL they stand in. Scheme and host cannot come from
	// a placeholder, unless the whole url is one placeholder of a
	// scope-checked argument of type url. Secrets cannot appear here.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	URL string `json:"url"`
	// headers of the request. Values may hold {name} and {_secret:name}.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Headers []HTTPHeader `json:"headers,omitempty"`
	// body of the request. In a JSON body a placeholder stands inside a
	// string, where a value is escaped, or in the place of a whole value.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Body string `json:"body,omitempty"`
	// successStatus lists the status codes that mean success. Defaults to
	// 200 to 299.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=100
	// +kubebuilder:validation:items:Maximum=599
	SuccessStatus []int32 `json:"successStatus,omitempty"`
	// caBundle holds PEM certificates that the server's certificate must be
	// signed by, instead of the system's.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
	// allowPrivate accepts addresses that are private, loopback or
	// link-local once the host name is resolved.
	// +optional
	AllowPrivate bool `json:"allowPrivate,omitempty"`
}

// HTTPHeader is one header of a request.
type HTTPHeader struct {
	// name of the header.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`
	// value of the header.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value"`
}

// MCPTemplate describes one call of a tool on an MCP server over streamable HTTP.
type MCPTemplate struct {
	// url of the server, a constant.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// tool is the name of the tool on the server.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Tool string `json:"tool"`
	// toolDigest is the SHA-256, in hex, of the tool's definition as the
	// server lists it. When the server's differs, the call fails before it
	// has an effect.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	ToolDigest string `json:"toolDigest"`
	// arguments of the server's tool. Without any, the call's arguments are
	// passed on under their own names.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Arguments []MCPArgument `json:"arguments,omitempty"`
	// headers of every request to the server. Values may hold {_secret:name}.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Headers []HTTPHeader `json:"headers,omitempty"`
	// caBundle holds PEM certificates that the server's certificate must be
	// signed by, instead of the system's.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
	// allowPrivate accepts addresses that are private, loopback or
	// link-local once the host name is resolved.
	// +optional
	AllowPrivate bool `json:"allowPrivate,omitempty"`
}

// MCPArgument maps one argument of the server's tool.
// +kubebuilder:validation:XValidation:rule="has(self.argument) != has(self.value)",message="set exactly one of argument and value"
type MCPArgument struct {
	// name of the argument on the server.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// argument of the call whose value is passed on with its JSON type.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Argument string `json:"argument,omitempty"`
	// value is a constant, JSON written as text.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value *string `json:"value,omitempty"`
}
