// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/internal/contract/scope"
)

// Input is a manifest with everything it may refer to.
type Input struct {
	// Name and Namespace of the ToolManifest.
	Name, Namespace string
	// Manifest is its spec.
	Manifest Manifest
	// Types are all ArgumentTypes of the namespace by name. Those that the
	// manifest does not reach are not looked at.
	Types map[string]ArgumentType
	// Scopes are all ToolScopes of the namespace by name.
	Scopes map[string]Scope
	// RunnerImage is the image of the runner, by digest. It is part of the
	// contract: another runner may do something else with the same effect.
	RunnerImage string
	// AllowImageTags accepts command images without a digest.
	AllowImageTags bool
}

// Contract is a compiled manifest. It is immutable and safe for concurrent use.
type Contract struct {
	name, namespace string
	// manifest has what is asked for after compilation and is not compiled.
	manifest   Manifest
	effectKind string
	args       []*argument
	// order has the positions of the arguments in the order of canonical text.
	order    []int
	plan     plan
	scope    *scope.Scope
	problems CompileErrors
	hash     string
	output   outputPlan
	// needsRaw says that the effect uses parts of the canonical arguments.
	needsRaw bool
}

// Compile checks a manifest and everything it refers to. The error is a
// [CompileErrors] with all that is wrong.
//
// A missing or ambiguous ToolScope is no error: the contract exists and has a
// hash, [Contract.Problems] reports it, and [Contract.Prepare] refuses every
// call at stage scope.
func Compile(in Input) (*Contract, error) {
	r := newResolver(in.Types)
	m, err := in.Manifest.clone()
	if err != nil {
		r.add(ReasonInvalidManifest, "spec", "cannot be hashed: %v", err)
		return nil, r.err()
	}
	m = m.withDefaults()
	r.checkManifest(in, m)
	c := &Contract{name: in.Name, namespace: in.Namespace, manifest: m.uncompiled(), effectKind: effectKind(m)}
	args, index := r.arguments(m)
	c.args = args
	scopeName, s := r.selectScope(c, in)
	r.checkDefaultsInScope(c)
	c.plan = r.effect(m, args, index, in.AllowImageTags)
	c.output = r.output(m.Output, c.effectKind)
	if err := r.err(); err != nil {
		return nil, err
	}
	for _, a := range c.args {
		c.needsRaw = c.needsRaw || a.isStructure()
	}
	c.needsRaw = c.needsRaw || m.MCP != nil
	hash, err := contractHash(resolved{
		name: in.Name, manifest: m, types: r.used, scopeName: scopeName, scope: s, runnerImage: in.RunnerImage,
	})
	if err != nil {
		r.add(ReasonInvalidManifest, "spec", "cannot be hashed: %v", err)
		return nil, r.err()
	}
	c.hash = hash
	c.order = canonicalOrder(c.args)
	return c, nil
}

// canonicalOrder returns the positions of arguments in the order that members
// have in canonical text.
func canonicalOrder(args []*argument) []int {
	order := make([]int, len(args))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return compareUTF16(args[i].name, args[j].name) })
	return order
}

// arguments compiles the declared arguments. Positions stay those of the
// manifest; an argument with a problem is nil.
func (r *resolver) arguments(m Manifest) ([]*argument, map[string]int) {
	index := make(map[string]int, len(m.Arguments))
	args := make([]*argument, 0, len(m.Arguments))
	if len(m.Arguments) > MaxArguments {
		r.add(ReasonInvalidArgument, "spec.arguments", "are more than %d", MaxArguments)
	}
	for i, declared := range m.Arguments {
		field := fmt.Sprintf("spec.arguments[%d]", i)
		if !isName(declared.Name) {
			r.add(ReasonInvalidArgument, field+".name", "is not a name of letters, digits and underscores")
		}
		if _, twice := index[declared.Name]; twice {
			r.add(ReasonInvalidArgument, field+".name", "occurs twice")
		}
		index[declared.Name] = i
		args = append(args, r.argument(field, declared, m.ArgumentEncoding == EncodingString))
	}
	return args, index
}

// selectScope finds the scope of the contract: the one that scopeRef names, or
// the only one there is. Without scope-checked arguments and without a scopeRef
// the contract has none.
func (r *resolver) selectScope(c *Contract, in Input) (string, *Scope) {
	ref := in.Manifest.ScopeRef
	needed := slices.ContainsFunc(c.args, func(a *argument) bool { return a != nil && a.scoped })
	if !needed && ref == nil {
		return "", nil
	}
	var missing problems
	name := ""
	switch {
	case ref != nil:
		name = ref.Name
	case len(in.Scopes) > 1:
		missing.add(ReasonScopeAmbiguous, "spec.scopeRef", "there are %d ToolScopes in the namespace; name one", len(in.Scopes))
	default:
		for only := range in.Scopes {
			name = only
		}
	}
	spec, known := in.Scopes[name]
	if !known && len(missing.list) == 0 {
		missing.add(ReasonScopeMissing, "spec.scopeRef",
			"there is no ToolScope for the scope-checked arguments, and no scope never means everything; create one")
	}
	if c.problems = missing.list; c.problems != nil {
		return "", nil
	}
	c.scope = r.scope(name, spec)
	return name, &spec
}

func (r *resolver) scope(name string, spec Scope) *scope.Scope {
	compiled, wrong := scope.Compile(scope.Spec(spec))
	for _, p := range wrong {
		r.add(ReasonInvalidScope, "ToolScope/"+name+": spec."+p.Field, "%s", p.Message)
	}
	return compiled
}

// checkDefaultsInScope holds defaults to the scope, like values of the agent's.
func (r *resolver) checkDefaultsInScope(c *Contract) {
	for i, a := range c.args {
		if c.scope == nil || a == nil || !a.scoped || a.fallback == nil {
			continue
		}
		if why := a.checkScope(c.scope, templateText(a.fallback)); why != "" {
			r.add(ReasonInvalidArgument, fmt.Sprintf("spec.arguments[%d].default", i), "is not in the scope: %s", why)
		}
	}
}

// effect compiles the effect that the manifest has.
func (r *resolver) effect(m Manifest, args []*argument, index map[string]int, allowTags bool) plan {
	e := &effectCompiler{
		problems: &r.problems, args: args, index: index, usedArgs: make([]bool, len(args)),
		secrets: m.Secrets, usedSecrets: make([]bool, len(m.Secrets)), allowTags: allowTags,
	}
	var p plan
	switch effectKind(m) {
	case EffectCommand:
		p = e.command(m.Command, m.Output.File)
	case EffectHTTP:
		p = e.http(m.HTTP)
	case EffectMCP:
		p = e.mcp(m.MCP)
	default:
		r.add(ReasonInvalidEffect, "spec", "exactly one of command, http and mcp must be set")
		return nil
	}
	e.checkUsed()
	return p
}

// effectKind returns which effect a manifest has, or nothing unless it is
// exactly one.
func effectKind(m Manifest) string {
	var e Effect
	if m.Command != nil {
		e.Command = &CommandCall{}
	}
	if m.HTTP != nil {
		e.HTTP = &HTTPCall{}
	}
	if m.MCP != nil {
		e.MCP = &MCPCall{}
	}
	return e.Kind()
}

// CheckType checks one ArgumentType with those it is based on, as the Ready
// condition of the type needs it. It returns nil or a [CompileErrors].
func CheckType(name string, types map[string]ArgumentType) error {
	r := newResolver(types)
	field := "ArgumentType/" + name + ": "
	if kindOf(name) != nil {
		r.add(ReasonInvalidArgument, field+"metadata.name", "is the name of a built-in type, which would be used instead; choose another")
		return r.err()
	}
	r.argument(field+"spec", Argument{Name: "value", Type: name}, false)
	return r.err()
}

// CheckScope checks one ToolScope. It returns nil or a [CompileErrors].
func CheckScope(name string, s Scope) error {
	r := newResolver(nil)
	r.scope(name, s)
	return r.err()
}
