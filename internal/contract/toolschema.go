// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"math"
	"slices"

	"github.com/assent-dev/assent/snapshot"
)

// InputSchema returns a JSON Schema 2020-12 of the arguments, for an LLM's tool
// definition. It is a description: every value that [Contract.Prepare] accepts
// satisfies it except those that a clamp moves, and Prepare refuses more than
// it can say, such as targets outside the scope. Each call returns a new tree.
func (c *Contract) InputSchema() map[string]any {
	properties := map[string]any{}
	required := []any{}
	for _, a := range c.args {
		properties[a.name] = a.jsonSchema()
		if a.required && a.fallback == nil {
			required = append(required, a.name)
		}
	}
	return map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}
}

// OutputSchema returns the decoded JSON Schema of the output, or nil when the
// manifest has none.
func (c *Contract) OutputSchema() any {
	if c.manifest.Output.Schema == "" {
		return nil
	}
	tree, _ := snapshot.DecodeText(c.manifest.Output.Schema) // read when it was compiled
	return tree
}

// jsonSchema describes the values of one argument.
func (a *argument) jsonSchema() map[string]any {
	s := map[string]any{}
	switch {
	case a.isStructure():
		s["type"], s["allOf"] = string(a.spec.json), a.schemaDocuments()
	case a.asText:
		a.describeText(s)
	case a.spec.json == jsonString:
		a.describeText(s)
	case a.spec.json == jsonBoolean:
		s["type"] = string(jsonBoolean)
	default:
		s["type"] = string(a.spec.json)
		a.describeBounds(s)
	}
	if a.description != "" {
		s["description"] = a.description
	}
	if v := a.defaultValue(); v != nil {
		s["default"] = v
	}
	return s
}

// textPatterns are the grammars of values that are texts under the encoding
// String, in the common subset of RE2 and ECMA-262.
var textPatterns = map[jsonType]string{
	jsonInteger: `^-?(0|[1-9][0-9]*)$`,
	jsonNumber:  `^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`,
	jsonBoolean: `^(true|false)$`,
}

func (a *argument) describeText(s map[string]any) {
	s["type"] = string(jsonString)
	var patterns []string
	if p := textPatterns[a.spec.json]; p != "" {
		patterns = append(patterns, p)
	}
	for _, p := range a.patterns {
		patterns = append(patterns, "^(?:"+p.text+")$")
	}
	switch len(patterns) {
	case 0:
	case 1:
		s["pattern"] = patterns[0]
	default:
		var all []any
		for _, p := range patterns {
			all = append(all, map[string]any{"pattern": p})
		}
		s["allOf"] = all
	}
	if a.spec.format != "" {
		s["format"] = a.spec.format
	}
	if a.required {
		s["minLength"] = 1
	}
	if a.maxLength < MaxTextBytes {
		s["maxLength"] = a.maxLength // characters are never more than bytes
	}
	a.describeAllowed(s)
}

// describeAllowed lists the values that every list has.
func (a *argument) describeAllowed(s map[string]any) {
	if a.allowed == nil {
		return
	}
	var names []string
	for text := range a.allowed[0] {
		if a.isAllowed(text) {
			names = append(names, text)
		}
	}
	slices.Sort(names)
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	s["enum"] = list
}

func (a *argument) describeBounds(s map[string]any) {
	if !math.IsInf(a.bounds.min, 0) {
		s["minimum"] = a.bounds.min
	}
	if !math.IsInf(a.bounds.max, 0) {
		s["maximum"] = a.bounds.max
	}
}
