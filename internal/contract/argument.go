// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/assent-dev/assent/internal/contract/scope"
	"github.com/assent-dev/assent/snapshot"
)

// argument is a compiled argument: its type with every link of the chain
// folded into one set of constraints. It is immutable.
type argument struct {
	name string
	kind string
	spec *kindSpec
	// asText is true under the encoding String.
	asText    bool
	required  bool
	sensitive bool
	dash      bool
	scoped    bool

	// allowed are lists that each must contain the value.
	allowed   []map[string]bool
	patterns  []*pattern
	bounds    bounds
	schemes   []string
	maxLength int
	schemas   []*jsonschema.Schema
	// schemaText are the documents of schemas, for the tool definition.
	schemaText []string

	// fallback is the checked value of an absent argument, or nil. For objects
	// and arrays it is their text: a tree belongs to one call.
	fallback any
	// description is for people and for tool definitions.
	description string
}

// defaultValue returns the value of an absent argument, or nil.
func (a *argument) defaultValue() any {
	if a.fallback == nil || !a.isStructure() {
		return a.fallback
	}
	tree, _ := snapshot.DecodeText(a.fallback.(string)) // read when it was compiled
	return tree
}

// isStructure reports whether values are objects or arrays.
func (a *argument) isStructure() bool { return a.spec.json == jsonObject || a.spec.json == jsonArray }

// accept checks one value and returns the value that is hashed, decided on and
// run. Accepting its own result gives the same result.
func (a *argument) accept(v any) (any, refusal) {
	if v == nil {
		return nil, ReasonNullArgument
	}
	switch a.spec.json {
	case jsonInteger:
		f, why := a.acceptInteger(v)
		return a.acceptedNumber(v, f, why)
	case jsonNumber:
		f, why := a.acceptNumber(v)
		return a.acceptedNumber(v, f, why)
	case jsonBoolean:
		return a.acceptBoolean(v)
	case jsonObject:
		tree, ok := v.(map[string]any)
		return a.acceptStructure(tree, ok)
	case jsonArray:
		list, ok := v.([]any)
		return a.acceptStructure(list, ok)
	default:
		return a.acceptText(v)
	}
}

// acceptedNumber gives a number the form that the encoding asks for. Where
// nothing changes it returns v itself, which saves an allocation.
func (a *argument) acceptedNumber(v any, f float64, why refusal) (any, refusal) {
	if why != "" {
		return nil, why
	}
	if f == 0 {
		f = 0 // a clamp at zero may have left a negative one
	}
	text := ""
	if a.asText || a.allowed != nil {
		text = formatNumber(f)
	}
	if !a.isAllowed(text) {
		return nil, ReasonNotAllowed
	}
	switch {
	case a.asText:
		return text, ""
	case v == f:
		return v, ""
	default:
		return f, ""
	}
}

func (a *argument) acceptBoolean(v any) (any, refusal) {
	if _, ok := v.(bool); ok && !a.asText {
		return v, ""
	}
	text, ok := v.(string)
	switch {
	case !ok:
		return nil, ReasonWrongType
	case text != "true" && text != "false":
		return nil, ReasonNotAllowed
	case a.asText:
		return text, ""
	default:
		return text == "true", ""
	}
}

// acceptStructure checks an object or an array against its schemas.
func (a *argument) acceptStructure(structure any, ok bool) (any, refusal) {
	if !ok {
		return nil, ReasonWrongType
	}
	for _, s := range a.schemas {
		if s.Validate(structure) != nil {
			return nil, ReasonSchemaViolation
		}
	}
	return structure, ""
}

// acceptText checks a value of a type that is a JSON string.
func (a *argument) acceptText(v any) (any, refusal) {
	sent, ok := v.(string)
	if !ok {
		return nil, ReasonWrongType
	}
	return a.acceptString(sent)
}

// acceptString checks a text and returns the one spelling of it.
func (a *argument) acceptString(sent string) (string, refusal) {
	if len(sent) > a.maxLength {
		return "", ReasonTextTooLong
	}
	text, why := a.spec.normalise(a, sent)
	switch {
	case why != "":
		return "", why
	case text == "" && a.required:
		return "", ReasonEmptyValue
	case !a.isAllowed(text):
		return "", ReasonNotAllowed
	}
	for _, p := range a.patterns {
		if !p.matches(text) {
			return "", ReasonPatternMismatch
		}
	}
	return text, ""
}

// isAllowed reports whether every list of allowed values has the text.
func (a *argument) isAllowed(text string) bool {
	for _, list := range a.allowed {
		if !list[text] {
			return false
		}
	}
	return true
}

// checkScope decides whether an accepted value lies in the scope.
func (a *argument) checkScope(s *scope.Scope, text string) refusal {
	var t scope.Target
	var why scope.Reason
	if a.kind == KindURL {
		u, _ := parseURL(text) // accepted before, so that it parses
		t = u.target
	} else if t, why = scope.ParseTarget(text); why != "" {
		return ReasonNotATarget
	}
	return refusal(s.Check(t))
}

// templateText is the form of a scalar in templates. That of a structure, its
// canonical text, is known only once the call has one.
func templateText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return formatNumber(v)
	default:
		return ""
	}
}

// ArgumentInfo describes one argument to those who build policies, forms and
// tool definitions from a contract.
type ArgumentInfo struct {
	// Name of the argument.
	Name string
	// Kind is the built-in type at the end of the chain, one of [Kinds].
	Kind string
	// ValueKind is the built-in type whose JSON form values have: Kind, or
	// string under the encoding String.
	ValueKind string
	// Description for people and agents.
	Description string
	// Required arguments, and those with a default, are in every call.
	Required bool
	// HasDefault says that an absent argument gets a value.
	HasDefault bool
	// Sensitive values appear in records by digest only.
	Sensitive bool
	// ScopeChecked values lie in the scope.
	ScopeChecked bool
	// Schema is the decoded JSON Schema of an object or array; an allOf of
	// several when links of the chain each have one. Nil for other kinds.
	Schema any
}

func (a *argument) info() ArgumentInfo {
	valueKind := a.kind
	if a.asText {
		valueKind = KindString
	}
	return ArgumentInfo{
		Name: a.name, Kind: a.kind, ValueKind: valueKind, Description: a.description,
		Required: a.required, HasDefault: a.fallback != nil, Sensitive: a.sensitive,
		ScopeChecked: a.scoped, Schema: a.schemaDocument(),
	}
}

// schemaDocument is one document for all schemas of the chain.
func (a *argument) schemaDocument() any {
	switch all := a.schemaDocuments(); len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	default:
		return map[string]any{"allOf": all}
	}
}

// schemaDocuments decodes the schemas afresh for each caller.
func (a *argument) schemaDocuments() []any {
	var all []any
	for _, text := range a.schemaText {
		tree, _ := snapshot.DecodeText(text) // read when it was compiled
		all = append(all, tree)
	}
	return all
}
