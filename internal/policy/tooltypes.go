// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/assent-dev/assent/snapshot"
)

// toolTypes is a tool in Cedar's terms: made once per tool, used by each call.
type toolTypes struct {
	tool     Tool
	action   types.EntityUID
	resource types.EntityUID
	// problem says why the tool cannot be put before policies; empty if it can.
	problem string
	// arguments and mcp are in order of name.
	arguments []typedArgument
	mcp       *shape
	// contract is context.invocation.contract, the same for each call.
	contract types.Record
}

type typedArgument struct {
	name     string
	shape    *shape
	required bool
	address  bool
}

func newToolTypes(tool *Tool) *toolTypes {
	t := &toolTypes{tool: tool.clone(), arguments: make([]typedArgument, 0, len(tool.Arguments))}
	t.action, t.resource, t.problem = binding(tool)
	for i := range tool.Arguments {
		a := &tool.Arguments[i]
		t.arguments = append(t.arguments, typedArgument{
			name: a.Name, shape: argumentShape(a, tool.StringArguments), required: a.Required,
			address: a.Kind == "ip_address" || a.Kind == "cidr",
		})
	}
	slices.SortFunc(t.arguments, func(a, b typedArgument) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(t.arguments); i++ {
		if t.arguments[i].name == t.arguments[i-1].name {
			t.problem = "two arguments have the same name; name each argument once"
		}
	}
	t.mcp = mcpShape(tool)
	t.contract = types.NewRecord(types.RecordMap{
		"name": types.String(tool.Name), "version": types.String(tool.Version), "hash": types.String(tool.ContractHash),
	})
	return t
}

// mcpShape is the shape of the mapped arguments and of the constants beside them.
func mcpShape(tool *Tool) *shape {
	fields := make(map[string]field, len(tool.MCPArguments)+len(tool.MCPConstants))
	constants := &deriver{left: maxShapes}
	for _, c := range tool.MCPConstants {
		// A text that cannot be read is in no contract; it would stay open.
		if value, err := snapshot.DecodeText(c.JSON); err == nil {
			fields[c.Name] = constants.constant(value, maxShapeDepth)
		}
	}
	for i := range tool.MCPArguments {
		a := &tool.MCPArguments[i]
		fields[a.Name] = field{shape: argumentShape(a, tool.StringArguments), required: a.Required}
	}
	return &shape{kind: shapeRecord, fields: fields}
}

// binding gives action and resource of a tool. A resource type must not be one
// that means something else: a tool named like a user would otherwise become
// that user.
func binding(tool *Tool) (action, resource types.EntityUID, problem string) {
	name := types.String(tool.name())
	if tool.CedarResource == "" && tool.CedarAction == "" {
		return types.NewEntityUID(typeAction, "tool_call::"+name), types.NewEntityUID(typeTool, name), ""
	}
	resourceType, err := types.NewEntityType(tool.CedarResource)
	if err != nil || tool.CedarAction == "" {
		return action, resource, "cedar.resource is not a Cedar type name, or cedar.action is empty"
	}
	parts := strings.Split(tool.CedarResource, "::")
	if parts[0] == "k8s" || slices.Contains(parts, string(typeAction)) || slices.Contains(parts, "__cedar") {
		return action, resource, "cedar.resource must not use the names k8s, Action or __cedar; choose another type name"
	}
	action = types.NewEntityUID(resourceType+"::"+typeAction, types.String(tool.CedarAction))
	return action, types.NewEntityUID(resourceType, name), ""
}

// label names the tool in messages.
func (t *toolTypes) label() string { return t.tool.Namespace + "/" + t.tool.Name }

// attributes are those of the resource entity.
func (t *toolTypes) attributes(call *Call) types.Record {
	return types.NewRecord(types.RecordMap{
		"tool_name":        types.String(t.tool.name()),
		"version":          types.String(t.tool.Version),
		"contract_hash":    types.String(t.tool.ContractHash),
		"call_fingerprint": types.String(call.Fingerprint),
		"risk_tier":        types.String(t.tool.RiskTier),
		"namespace":        types.String(t.tool.Namespace),
	})
}

// prepared is a call of which all parts of context.invocation can be made
// without a further question.
type prepared struct {
	tool      *toolTypes
	call      *Call
	arguments argumentRecords
	// mcpArguments are those of an effect of kind mcp.
	mcpArguments types.Value
}

// prepare checks a call against its tool, with a fresh view of the arguments:
// every part of it, also those that no policy reads.
func (t *toolTypes) prepare(call *Call, view any) (*prepared, error) {
	tree, ok := view.(map[string]any)
	if !ok {
		return nil, t.refuse("", errNotObject)
	}
	parts := argumentRecords{values: make(types.RecordMap, len(tree))}
	known := 0
	for i := range t.arguments {
		a := &t.arguments[i]
		value, ok := tree[a.name]
		if ok {
			known++
		}
		if err := parts.add(a, value); err != nil {
			return nil, t.refuse(a.name, err)
		}
	}
	if known != len(tree) {
		return nil, t.refuse("", errSurplus)
	}
	mcpArguments, err := t.convertEffect(&call.Effect)
	if err != nil {
		return nil, t.refuse("", err)
	}
	return &prepared{tool: t, call: call, arguments: parts, mcpArguments: mcpArguments}, nil
}

// invocation builds context.invocation with the parts that policies read.
func (p *prepared) invocation(read reads) types.Record {
	values := make(types.RecordMap, 8)
	if read&readArguments != 0 {
		values["arguments"] = types.NewRecord(p.arguments.values)
	}
	if read&readArgumentJSON != 0 {
		values["argument_json"] = types.NewRecord(p.arguments.json)
	}
	if read&readArgumentLengths != 0 {
		values["argument_lengths"] = types.NewRecord(p.arguments.lengths)
	}
	if read&readArgumentAddresses != 0 {
		values["argument_addresses"] = types.NewRecord(p.arguments.addresses)
	}
	if read&readCanonical != 0 {
		values["args_canonical_json"] = types.String(p.call.ArgsCanonicalJSON)
	}
	if read&readContract != 0 {
		values["contract"] = p.tool.contract
	}
	if read&readResolved != 0 {
		values["resolved"] = resolvedRecord(&p.call.Effect, p.mcpArguments)
	}
	if read&readFingerprint != 0 {
		values["fingerprint"] = types.String(p.call.Fingerprint)
	}
	return types.NewRecord(values)
}

// refuse names the tool and, where it is a declared one, the argument.
func (t *toolTypes) refuse(argument string, err error) *refusal {
	if argument == "" {
		return &refusal{ReasonNotRepresentable, fmt.Sprintf("tool %s: %v", t.label(), err)}
	}
	return &refusal{ReasonNotRepresentable, fmt.Sprintf("tool %s, argument %s: %v", t.label(), argument, err)}
}

// argumentRecords are the four records about arguments. A set has no order and
// holds no value twice, so that policies get text and length of arrays as well.
type argumentRecords struct {
	values, json, lengths, addresses types.RecordMap
}

// add puts one declared argument into the records; null is how an absent one
// looks.
func (p *argumentRecords) add(a *typedArgument, v any) error {
	value, err := a.shape.value(v)
	if errors.Is(err, errAbsent) {
		if a.required {
			return errMissing
		}
		return nil
	}
	if err != nil {
		return err
	}
	name := types.String(a.name)
	p.values[name] = value
	if err := p.addAddress(a, name, v); err != nil {
		return err
	}
	if array, ok := v.([]any); ok {
		put(&p.lengths, name, types.Long(len(array)))
	}
	if a.shape.kind != shapeSet && a.shape.kind != shapeRecord {
		return nil
	}
	snap, err := snapshot.New(v)
	if err == nil {
		put(&p.json, name, types.String(snap.Canonical()))
	}
	return err
}

func (p *argumentRecords) addAddress(a *typedArgument, name types.String, v any) error {
	text, ok := v.(string)
	if !ok || !a.address {
		return nil
	}
	address, err := types.ParseIPAddr(text)
	if err != nil {
		return errAddress
	}
	put(&p.addresses, name, address)
	return nil
}

// put makes the map when there is something to put in: most tools need none.
func put(to *types.RecordMap, name types.String, value types.Value) {
	if *to == nil {
		*to = types.RecordMap{}
	}
	(*to)[name] = value
}
