// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
)

// actionTypes is an action with what policies may read when it is asked for:
// the union over the tools that share it.
type actionTypes struct {
	uid       types.EntityUID
	tools     []*toolTypes
	resources []types.EntityType
	// conflicts are arguments that the tools give different types.
	conflicts []string
	// key changes whenever a type changes.
	key string
}

func newActionTypes(uid types.EntityUID, tools []*toolTypes) *actionTypes {
	a := &actionTypes{uid: uid, tools: tools}
	for _, t := range tools {
		a.resources = appendNew(a.resources, t.resource.Type)
	}
	slices.Sort(a.resources)
	a.conflicts = a.findConflicts()
	parts := []string{uid.String(), commaSeparated(a.resources), commaSeparated(a.conflicts)}
	for _, t := range tools {
		parts = append(parts, t.advised())
	}
	a.key = digest("policyAction", appendType(parts, a.invocationType()))
	return a
}

// invocationType is the type of context.invocation. It is made when a policy is
// validated, since the types of a thousand tools take more memory than the rest
// of what is known of them.
func (a *actionTypes) invocationType() resolved.RecordType {
	text := resolved.Attribute{Type: resolved.StringType{}}
	values, jsons, lengths, addresses := resolved.RecordType{}, resolved.RecordType{}, resolved.RecordType{}, resolved.RecordType{}
	noAddress := a.noAddresses()
	for name, f := range a.arguments() {
		key := types.String(name)
		if t, ok := f.shape.cedarType(); ok {
			values[key] = resolved.Attribute{Type: t, Optional: !f.required}
		}
		if f.shape.kind == shapeSet || f.shape.kind == shapeRecord {
			jsons[key] = resolved.Attribute{Type: resolved.StringType{}, Optional: !f.required}
		}
		if f.shape.kind == shapeSet {
			lengths[key] = resolved.Attribute{Type: resolved.LongType{}, Optional: !f.required}
		}
		if !noAddress[name] {
			addresses[key] = resolved.Attribute{Type: resolved.ExtensionType("ipaddr"), Optional: !f.required}
		}
	}
	return resolved.RecordType{
		"arguments":           {Type: values},
		"argument_json":       {Type: jsons},
		"argument_lengths":    {Type: lengths},
		"argument_addresses":  {Type: addresses},
		"args_canonical_json": text,
		"contract":            {Type: resolved.RecordType{"name": text, "version": text, "hash": text}},
		"resolved":            {Type: a.resolvedType()},
		"fingerprint":         text,
	}
}

// arguments is the union of the tools' arguments. Those with different types
// become open.
func (a *actionTypes) arguments() map[string]field {
	union := toolFields(a.tools[0])
	for _, t := range a.tools[1:] {
		union = unionFields(union, toolFields(t))
	}
	return union
}

// findConflicts lists the arguments that are open because the tools give them
// different types.
func (a *actionTypes) findConflicts() []string {
	var conflicts []string
	union := a.arguments()
	for _, name := range slices.Sorted(maps.Keys(union)) {
		if _, ok := union[name].shape.cedarType(); !ok && a.typedBySome(name) {
			conflicts = append(conflicts, name)
		}
	}
	return conflicts
}

// typedBySome says whether a tool gives the argument a type.
func (a *actionTypes) typedBySome(name string) bool {
	return slices.ContainsFunc(a.tools, func(t *toolTypes) bool {
		return slices.ContainsFunc(t.arguments, func(argument typedArgument) bool {
			_, typed := argument.shape.cedarType()
			return typed && argument.name == name
		})
	})
}

func toolFields(t *toolTypes) map[string]field {
	fields := make(map[string]field, len(t.arguments))
	for _, a := range t.arguments {
		fields[a.name] = field{shape: a.shape, required: a.required}
	}
	return fields
}

// noAddresses are the arguments that a tool takes as something else than an
// address.
func (a *actionTypes) noAddresses() map[string]bool {
	others := map[string]bool{}
	for _, t := range a.tools {
		for _, argument := range t.arguments {
			if !argument.address {
				others[argument.name] = true
			}
		}
	}
	return others
}

// resolvedType is the type of context.invocation.resolved. The vocabulary is
// always declared, so that "has" of another kind's attribute is no surprise.
func (a *actionTypes) resolvedType() resolved.RecordType {
	kinds := map[string]bool{}
	mcp := &shape{kind: shapeRecord}
	first := true
	for _, t := range a.tools {
		kinds[t.tool.EffectKind] = true
		switch {
		case t.tool.EffectKind != EffectMCP:
		case first:
			mcp, first = t.mcp, false
		default:
			mcp = unionShape(mcp, t.mcp)
		}
	}
	text, list := resolved.IsType(resolved.StringType{}), resolved.IsType(resolved.SetType{Element: resolved.StringType{}})
	arguments, _ := mcp.cedarType()
	record := resolved.RecordType{"kind": {Type: text}, "secret_names": {Type: list}}
	add := func(kind string, t resolved.IsType, names ...types.String) {
		for _, name := range names {
			record[name] = resolved.Attribute{Type: t, Optional: len(kinds) > 1 || !kinds[kind]}
		}
	}
	add(EffectCommand, list, "argv", "env_names")
	add(EffectCommand, text, "argv_json", "image", "working_dir")
	add(EffectHTTP, text, "http_url", "http_method", "http_host", "http_body")
	add(EffectMCP, text, "mcp_server", "mcp_tool", "mcp_arguments_json")
	add(EffectMCP, arguments, "mcp_arguments")
	return record
}

// unionShape is the type that values of both types have; open if there is none.
func unionShape(a, b *shape) *shape {
	if a.kind != b.kind {
		return &shape{}
	}
	switch a.kind {
	case shapeSet:
		return &shape{kind: shapeSet, elem: unionShape(a.elem, b.elem)}
	case shapeRecord:
		return &shape{kind: shapeRecord, fields: unionFields(a.fields, b.fields)}
	default:
		return a
	}
}

func unionFields(a, b map[string]field) map[string]field {
	union := make(map[string]field, len(a)+len(b))
	for name, f := range a {
		other, ok := b[name]
		if ok {
			union[name] = field{shape: unionShape(f.shape, other.shape), required: f.required && other.required}
		} else {
			union[name] = field{shape: f.shape}
		}
	}
	for name, f := range b {
		if _, ok := a[name]; !ok {
			union[name] = field{shape: f.shape}
		}
	}
	return union
}

// cedarType is the static type, if there is one.
func (s *shape) cedarType() (resolved.IsType, bool) {
	switch s.kind {
	case shapeString:
		return resolved.StringType{}, true
	case shapeLong:
		return resolved.LongType{}, true
	case shapeDecimal:
		return resolved.ExtensionType("decimal"), true
	case shapeBool:
		return resolved.BoolType{}, true
	case shapeSet:
		elem, ok := s.elem.cedarType()
		return resolved.SetType{Element: elem}, ok
	case shapeRecord:
		record := resolved.RecordType{}
		for name, f := range s.fields {
			if t, ok := f.shape.cedarType(); ok {
				record[types.String(name)] = resolved.Attribute{Type: t, Optional: !f.required}
			}
		}
		return record, true
	default:
		return nil, false
	}
}

// appendType appends a text for a type, the same for the same type only.
func appendType(parts []string, t resolved.IsType) []string {
	switch t := t.(type) {
	case resolved.SetType:
		return append(appendType(append(parts, "set"), t.Element), "end")
	case resolved.RecordType:
		parts = append(parts, "record")
		for _, name := range slices.Sorted(maps.Keys(t)) {
			parts = append(parts, string(name), strconv.FormatBool(t[name].Optional))
			parts = appendType(parts, t[name].Type)
		}
		return append(parts, "end")
	default:
		return append(parts, fmt.Sprintf("%T %v", t, t))
	}
}
