// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/schema"
	"github.com/cedar-policy/cedar-go/x/exp/schema/ast"
	"github.com/cedar-policy/cedar-go/x/exp/schema/resolved"
)

// Schema gives the Cedar schema of the tools of a namespace, as text: what
// policies may read, for each action. Where tools share an action, it is what
// they have in common, and what only some have is optional. attributes are
// those that policies declare for sessions.
//
// The error says which tool has no Cedar form, or which names exclude each
// other in one schema.
func Schema(namespace string, tools []Tool, attributes []SessionAttribute) (string, error) {
	c := newChecks(namespace, tools, nil)
	for _, name := range c.names {
		if t := c.tools[name]; t.problem != "" {
			return "", fmt.Errorf("tool %s: %s", t.label(), t.problem)
		}
	}
	var notes strings.Builder
	for _, action := range c.ordered {
		for _, name := range action.conflicts {
			fmt.Fprintf(&notes, "// %s: argument %s is left out, because tools that share the action give it different types.\n", action.uid, name)
		}
	}
	s := schema.NewSchemaFromAST(declarations(newSchema(attributes, c.ordered, &otherNames{})))
	text, err := s.MarshalCedar()
	_, clash := s.Resolve()
	if err = errors.Join(err, clash); err != nil {
		return "", fmt.Errorf("the names in cedar.resource exclude each other: %w", err)
	}
	return fmt.Sprintf("// What policies may read for the tools of namespace %s.\n%s\n%s\n", namespace, notes.String(), text), nil
}

// newSchema builds the schema of some actions, with other names that a policy
// uses: they can match nothing here, but so the rest of the policy can be
// checked.
//
// It is built in the form that the validator reads. The way through a text
// would refuse names that Cedar keeps apart and its schema syntax cannot, such
// as Fetch beside Tool::Fetch.
func newSchema(attributes []SessionAttribute, actions []*actionTypes, others *otherNames) *resolved.Schema {
	s := &resolved.Schema{
		Namespaces: map[types.Path]resolved.Namespace{},
		Entities:   map[types.EntityType]resolved.Entity{typeGroup: {Name: typeGroup}},
		Enums:      map[types.EntityType]resolved.Enum{},
		Actions:    map[types.EntityUID]resolved.Action{},
	}
	for _, name := range []types.EntityType{typeUser, typeServiceAccount} {
		s.Entities[name] = resolved.Entity{Name: name, ParentTypes: []types.EntityType{typeGroup}, Shape: entityAttributes(name)}
	}
	session := sessionType(attributes)
	for _, a := range actions {
		for _, resource := range a.resources {
			s.Entities[resource] = resolved.Entity{Name: resource, Shape: entityAttributes(resource)}
		}
		s.Actions[a.uid] = resolved.Action{Entity: types.Entity{UID: a.uid}, AppliesTo: a.appliesTo(session)}
	}
	for _, name := range others.types {
		s.Entities[name] = resolved.Entity{Name: name}
	}
	for _, uid := range others.actions {
		s.Actions[uid] = resolved.Action{Entity: types.Entity{UID: uid}}
	}
	return s
}

// entityAttributes are the attributes of a principal, or else of a tool.
func entityAttributes(name types.EntityType) resolved.RecordType {
	switch name {
	case typeUser:
		return required(resolved.StringType{}, "name")
	case typeServiceAccount:
		return required(resolved.StringType{}, "name", "namespace")
	default:
		return required(resolved.StringType{}, "tool_name", "version", "contract_hash", "call_fingerprint", "risk_tier", "namespace")
	}
}

func (a *actionTypes) appliesTo(session resolved.RecordType) *resolved.AppliesTo {
	return &resolved.AppliesTo{
		Principals: []types.EntityType{typeUser, typeServiceAccount},
		Resources:  a.resources,
		Context: resolved.RecordType{
			"invocation":           {Type: a.invocationType()},
			"session":              {Type: session, Optional: true},
			"has_human_approval":   {Type: resolved.BoolType{}},
			"approved_fingerprint": {Type: resolved.StringType{}},
		},
	}
}

// required is a record of attributes that are always there, all of one type.
func required(t resolved.IsType, names ...types.String) resolved.RecordType {
	record := make(resolved.RecordType, len(names))
	for _, name := range names {
		record[name] = resolved.Attribute{Type: t}
	}
	return record
}

// sessionType is the type of context.session for the attributes declared.
func sessionType(attributes []SessionAttribute) resolved.RecordType {
	record := make(resolved.RecordType, len(attributes))
	for _, a := range attributes {
		var t resolved.IsType = resolved.StringType{}
		switch a.Type {
		case AttributeLong:
			t = resolved.LongType{}
		case AttributeBoolean:
			t = resolved.BoolType{}
		case AttributeStrings:
			t = resolved.SetType{Element: resolved.StringType{}}
		case AttributeString:
		}
		record[types.String(a.Name)] = resolved.Attribute{Type: t, Optional: !a.Required}
	}
	return record
}

// declarations turns a schema into what can be written as text.
func declarations(s *resolved.Schema) *ast.Schema {
	out := &ast.Schema{Namespaces: ast.Namespaces{}}
	for name, e := range s.Entities {
		var shape ast.RecordType
		if len(e.Shape) > 0 {
			shape, _ = declaredType(e.Shape).(ast.RecordType)
		}
		within(out, name, func(n *ast.Namespace, last string) {
			if n.Entities == nil {
				n.Entities = ast.Entities{}
			}
			n.Entities[ast.Ident(last)] = ast.Entity{ParentTypes: references(e.ParentTypes), Shape: shape}
		})
	}
	for uid, a := range s.Actions {
		context := declaredType(a.AppliesTo.Context)
		within(out, uid.Type, func(n *ast.Namespace, _ string) {
			if n.Actions == nil {
				n.Actions = ast.Actions{}
			}
			n.Actions[uid.ID] = ast.Action{AppliesTo: &ast.AppliesTo{
				Principals: references(a.AppliesTo.Principals), Resources: references(a.AppliesTo.Resources), Context: context,
			}}
		})
	}
	return out
}

// within changes the namespace that a path lies in; change also gets the last
// name of the path.
func within(s *ast.Schema, path types.EntityType, change func(n *ast.Namespace, last string)) {
	namespace, last := splitPath(string(path))
	if namespace == "" {
		top := ast.Namespace{Entities: s.Entities, Actions: s.Actions}
		change(&top, last)
		s.Entities, s.Actions = top.Entities, top.Actions
		return
	}
	n := s.Namespaces[types.Path(namespace)]
	change(&n, last)
	s.Namespaces[types.Path(namespace)] = n
}

func splitPath(path string) (namespace, name string) {
	if i := strings.LastIndex(path, "::"); i >= 0 {
		return path[:i], path[i+2:]
	}
	return "", path
}

func references(names []types.EntityType) []ast.EntityTypeRef {
	refs := make([]ast.EntityTypeRef, 0, len(names))
	for _, name := range names {
		refs = append(refs, ast.EntityType(name))
	}
	return refs
}

// declaredType turns a type of the validator into one that can be written.
func declaredType(t resolved.IsType) ast.IsType {
	switch t := t.(type) {
	case resolved.LongType:
		return ast.Long()
	case resolved.BoolType:
		return ast.Bool()
	case resolved.ExtensionType:
		return ast.ExtensionType(t)
	case resolved.SetType:
		return ast.Set(declaredType(t.Element))
	case resolved.RecordType:
		record := make(ast.RecordType, len(t))
		for name, a := range t {
			record[name] = ast.Attribute{Type: declaredType(a.Type), Optional: a.Optional}
		}
		return record
	default:
		return ast.String()
	}
}
