// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/assent-dev/assent/snapshot"
)

// draft2020 is the only dialect that is accepted.
const draft2020 = "https://json-schema.org/draft/2020-12/schema"

// schemaURL is the base of references inside a schema. Nothing is ever loaded
// from it or from anywhere else.
const schemaURL = "https://assent.dev/schema"

// offline refuses to load documents. Schemas come from people who may write
// manifests, and the operator must not fetch what they like.
type offline struct{}

var errRemoteReference = errors.New("refers to another document")

func (offline) Load(string) (any, error) { return nil, errRemoteReference }

// schema compiles a JSON Schema for an argument or an output.
func (r *resolver) schema(reason CompileReason, field, text string) *jsonschema.Schema {
	if known := r.schemas[text]; known != nil {
		return known
	}
	s, problem := compileSchema(text)
	if problem != "" {
		r.add(reason, field, "%s", problem)
		return nil
	}
	r.schemas[text] = s
	return s
}

// compileSchema reads a schema within limits: its size, no other dialect, no
// other document, no pattern that backtracks (the engine is RE2), and a bound on
// the work per value. It returns what is wrong otherwise.
func compileSchema(text string) (*jsonschema.Schema, string) {
	if len(text) > MaxSchemaBytes {
		return nil, "the JSON Schema is too long"
	}
	tree, err := snapshot.DecodeText(text)
	if err != nil {
		return nil, "the JSON Schema is not a JSON text: " + err.Error()
	}
	if doc, ok := tree.(map[string]any); ok {
		if dialect, set := doc["$schema"]; set && dialect != draft2020 {
			return nil, "the JSON Schema is of another dialect; use " + draft2020
		}
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(offline{})
	_ = c.AddResource(schemaURL, tree) // fails for a second document of the same URL only
	s, err := c.Compile(schemaURL)
	if _, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return nil, "the JSON Schema refers to another document; put the definition into $defs"
	}
	if err != nil {
		return nil, "the JSON Schema is not valid: " + oneLine(err)
	}
	m := measure{known: map[*jsonschema.Schema]int{}}
	if m.cost(s); m.problem != "" {
		return nil, m.problem
	}
	return s, ""
}

// oneLine makes an error of the schema library fit into a condition.
func oneLine(err error) string {
	const most = 300
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// measure computes how many schemas a value meets at most when every reference
// is followed. Without recursion that is a finite number, and the work for a
// value is at most that number times the value's size.
type measure struct {
	known   map[*jsonschema.Schema]int
	problem string
}

// inProgress marks schemas whose cost is being computed.
const inProgress = -1

func (m *measure) cost(s *jsonschema.Schema) int {
	if s == nil || m.problem != "" {
		return 0
	}
	switch known := m.known[s]; {
	case known == inProgress:
		m.problem = "the JSON Schema refers to itself; describe nested values to a fixed depth"
		return 0
	case known > 0:
		return known
	}
	if s.DynamicRef != nil || s.ID != "" {
		m.problem = "the JSON Schema uses $dynamicRef or $id; use $ref to a definition in $defs"
		return 0
	}
	m.known[s] = inProgress
	sum := 1
	for _, child := range children(s) {
		sum = min(sum+m.cost(child), MaxSchemaCost+1)
	}
	m.known[s] = sum
	if sum > MaxSchemaCost && m.problem == "" {
		m.problem = "the JSON Schema is too expensive: with every reference followed it has too many parts"
	}
	return sum
}

// children are the schemas that a schema applies to a value or to its parts.
func children(s *jsonschema.Schema) []*jsonschema.Schema {
	list := []*jsonschema.Schema{
		s.Ref, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties,
		s.Contains, s.Items2020, s.UnevaluatedItems,
	}
	list = append(append(append(append(list, s.AllOf...), s.AnyOf...), s.OneOf...), s.PrefixItems...)
	for _, child := range s.Properties {
		list = append(list, child)
	}
	for _, child := range s.PatternProperties {
		list = append(list, child)
	}
	for _, child := range s.DependentSchemas {
		list = append(list, child)
	}
	if child, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		list = append(list, child)
	}
	return list
}
