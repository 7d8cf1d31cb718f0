// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import "slices"

// Kinds of effects.
const (
	EffectCommand = "command"
	EffectHTTP    = "http"
	EffectMCP     = "mcp"
)

// Effect is what happens when a call runs, completely resolved. Exactly one
// member is set. It has the JSON form of Effect in api/v1alpha1.
type Effect struct {
	Command *CommandCall `json:"command,omitzero"`
	HTTP    *HTTPCall    `json:"http,omitzero"`
	MCP     *MCPCall     `json:"mcp,omitzero"`
}

// CommandCall is a resolved program start.
type CommandCall struct {
	Image      string             `json:"image"`
	Argv       []string           `json:"argv"`
	Env        []ResolvedVariable `json:"env,omitempty"`
	OutputFile string             `json:"outputFile,omitzero"`
	WorkingDir string             `json:"workingDir"`
}

// ResolvedVariable is one environment variable: a constant or a secret.
type ResolvedVariable struct {
	Name   string          `json:"name"`
	Value  *string         `json:"value,omitzero"`
	Secret *ResolvedSecret `json:"secret,omitzero"`
}

// ResolvedSecret refers to one key of a Secret in the execution namespace.
type ResolvedSecret struct {
	Name       string   `json:"name"`
	SecretName string   `json:"secretName"`
	Key        string   `json:"key"`
	Hosts      []string `json:"hosts,omitempty"`
}

// HTTPCall is a resolved HTTP request. In header values and in the body,
// {_secret:NAME} is the place of the secret of that name, and the only place
// where that text can occur; the runner fills it in.
type HTTPCall struct {
	Method        string           `json:"method"`
	URL           string           `json:"url"`
	Headers       []ResolvedHeader `json:"headers,omitempty"`
	Body          string           `json:"body,omitzero"`
	SuccessStatus []int32          `json:"successStatus,omitempty"`
	CABundle      string           `json:"caBundle,omitzero"`
	AllowPrivate  bool             `json:"allowPrivate,omitzero"`
	Secrets       []ResolvedSecret `json:"secrets,omitempty"`
}

// ResolvedHeader is one header of a request.
type ResolvedHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// MCPCall is a resolved call of an MCP server's tool. Arguments is canonical
// JSON text, in which nothing is a placeholder; header values may hold
// {_secret:NAME} as in [HTTPCall].
type MCPCall struct {
	URL          string           `json:"url"`
	Tool         string           `json:"tool"`
	ToolDigest   string           `json:"toolDigest"`
	Arguments    string           `json:"arguments"`
	Headers      []ResolvedHeader `json:"headers,omitempty"`
	CABundle     string           `json:"caBundle,omitzero"`
	AllowPrivate bool             `json:"allowPrivate,omitzero"`
	Secrets      []ResolvedSecret `json:"secrets,omitempty"`
}

// Kind returns which member is set: [EffectCommand], [EffectHTTP] or
// [EffectMCP], or nothing when not exactly one is.
func (e Effect) Kind() string {
	kind, count := "", 0
	if e.Command != nil {
		kind, count = EffectCommand, count+1
	}
	if e.HTTP != nil {
		kind, count = EffectHTTP, count+1
	}
	if e.MCP != nil {
		kind, count = EffectMCP, count+1
	}
	if count != 1 {
		return ""
	}
	return kind
}

// detach copies what a plan shares between calls, so that whoever changes a
// prepared effect changes no other call. The call itself was made for this one
// effect.
func (e Effect) detach() {
	switch {
	case e.Command != nil:
		env := slices.Clone(e.Command.Env)
		for i, v := range env {
			env[i].Value, env[i].Secret = clonePointer(v.Value), clonePointer(v.Secret)
		}
		e.Command.Env = env
	case e.HTTP != nil:
		e.HTTP.SuccessStatus = slices.Clone(e.HTTP.SuccessStatus)
		e.HTTP.Secrets = cloneSecrets(e.HTTP.Secrets)
	case e.MCP != nil:
		e.MCP.Headers = slices.Clone(e.MCP.Headers)
		e.MCP.Secrets = cloneSecrets(e.MCP.Secrets)
	}
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func cloneSecrets(secrets []ResolvedSecret) []ResolvedSecret {
	out := slices.Clone(secrets)
	for i, s := range out {
		out[i].Hosts = slices.Clone(s.Hosts)
	}
	return out
}
