// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/policy"
)

// PolicySource maps a policy object. A cluster policy has no namespace.
func PolicySource(namespace, name string, spec v1alpha1.PolicySpec) policy.Source {
	s := policy.Source{Namespace: namespace, Name: name, Text: spec.Cedar}
	for _, a := range spec.SessionAttributes {
		s.SessionAttributes = append(s.SessionAttributes, policy.SessionAttribute{
			Name: a.Name, Type: policy.AttributeType(a.Type), Required: a.Required,
		})
	}
	return s
}

// PolicyTool is a contract as policies see it.
func PolicyTool(namespace string, c *contract.Contract) policy.Tool {
	t := policy.Tool{
		Namespace: namespace, Name: c.Name(), ToolName: c.ToolName(), Version: c.Version(),
		ContractHash: c.Hash(), RiskTier: c.RiskTier(), HumanApproval: c.HumanApproval(),
		EffectKind: c.EffectKind(), StringArguments: c.ArgumentEncoding() == contract.EncodingString,
	}
	if resource, action, ok := c.Cedar(); ok {
		t.CedarResource, t.CedarAction = resource, action
	}
	byName := map[string]contract.ArgumentInfo{}
	for _, a := range c.Arguments() {
		byName[a.Name] = a
		t.Arguments = append(t.Arguments, policyArgument(a.Name, a))
	}
	if mapped, isMCP := c.MCPArguments(); isMCP {
		t.MCPArguments, t.MCPConstants = mcpArguments(mapped, byName, t.Arguments)
	}
	return t
}

// mcpArguments are the arguments of the server's tool under its own names, and
// what the contract itself says there.
func mcpArguments(mapped []contract.MCPArgument, byName map[string]contract.ArgumentInfo, own []policy.Argument) (arguments []policy.Argument, constants []policy.Constant) {
	if len(mapped) == 0 {
		return own, nil
	}
	for _, a := range mapped {
		if a.Value != nil {
			constants = append(constants, policy.Constant{Name: a.Name, JSON: *a.Value})
		} else if info, ok := byName[a.Argument]; ok {
			arguments = append(arguments, policyArgument(a.Name, info))
		}
	}
	return arguments, constants
}

func policyArgument(name string, a contract.ArgumentInfo) policy.Argument {
	return policy.Argument{Name: name, Kind: a.Kind, Required: a.Required || a.HasDefault, Schema: a.Schema}
}

// PolicyCall is a prepared call as policies see it, without approval. The
// session is nil where the call names none.
func PolicyCall(c *contract.Contract, p *v1alpha1.ToolProposal, session *v1alpha1.AgentSession) (policy.Call, error) {
	effect, err := Effect(p.Spec.Prepared.Effect)
	if err != nil {
		return policy.Call{}, fmt.Errorf("reading the effect of %s/%s: %w", p.Namespace, p.Name, err)
	}
	call := policy.Call{
		Tool:              PolicyTool(p.Namespace, c),
		Principal:         policy.Principal{Username: p.Spec.Requester.Username, Groups: p.Spec.Requester.Groups},
		ArgsCanonicalJSON: p.Spec.Prepared.ArgsCanonicalJSON,
		Fingerprint:       p.Spec.Prepared.Fingerprint,
		Effect:            EffectView(effect),
		HasSession:        session != nil,
	}
	if session != nil {
		call.SessionContext = session.Spec.Context
	}
	return call, nil
}

// EffectView is an effect as policies see it.
func EffectView(e contract.Effect) policy.EffectView {
	switch {
	case e.Command != nil:
		return commandView(e.Command)
	case e.HTTP != nil:
		return httpView(e.HTTP)
	case e.MCP != nil:
		return policy.EffectView{
			Kind: policy.EffectMCP, MCPServer: e.MCP.URL, MCPTool: e.MCP.Tool,
			MCPArgumentsJSON: e.MCP.Arguments, SecretNames: secretNames(e.MCP.Secrets),
		}
	}
	return policy.EffectView{}
}

func commandView(c *contract.CommandCall) policy.EffectView {
	v := policy.EffectView{Kind: policy.EffectCommand, Argv: c.Argv, Image: c.Image, WorkingDir: c.WorkingDir}
	for _, variable := range c.Env {
		v.EnvNames = append(v.EnvNames, variable.Name)
		if variable.Secret != nil {
			v.SecretNames = append(v.SecretNames, variable.Secret.Name)
		}
	}
	return v
}

func httpView(h *contract.HTTPCall) policy.EffectView {
	v := policy.EffectView{
		Kind: policy.EffectHTTP, HTTPURL: h.URL, HTTPMethod: h.Method, HTTPBody: h.Body,
		SecretNames: secretNames(h.Secrets),
	}
	// Preparation made the URL; one that does not parse has no host to permit.
	if u, err := url.Parse(h.URL); err == nil {
		v.HTTPHost = strings.ToLower(u.Hostname())
	}
	return v
}

func secretNames(secrets []contract.ResolvedSecret) []string {
	var names []string
	for _, s := range secrets {
		names = append(names, s.Name)
	}
	return names
}
