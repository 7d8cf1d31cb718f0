// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"
	"slices"
)

// shapeKind is how a JSON value becomes a Cedar value.
type shapeKind int

const (
	// shapeOpen is a value whose type the contract does not fix: it is
	// converted by what it is, and the Cedar schema does not mention it, so that
	// no policy that passes validation reads it.
	shapeOpen shapeKind = iota
	shapeString
	shapeLong
	shapeDecimal
	shapeBool
	shapeSet
	shapeRecord
)

// shape is the static type of a JSON value.
type shape struct {
	kind   shapeKind
	elem   *shape           // of a set
	fields map[string]field // of a record
}

type field struct {
	shape    *shape
	required bool
}

// Limits of what is typed statically. The validator's cost doubles with each
// level of optional attributes, and references can unfold without end; what
// lies beyond is open.
const (
	maxShapeDepth = 8
	maxShapes     = 1024
)

// argumentShape gives the shape of a declared argument.
func argumentShape(a *Argument, asText bool) *shape {
	if asText {
		return textShape
	}
	switch a.Kind {
	case "integer", "port":
		return longShape
	case "number":
		return decimalShape
	case "boolean":
		return boolShape
	case "object", "array":
		return schemaShape(a.Kind, a.Schema)
	default:
		return textShape
	}
}

// The shapes without parts. Shapes are never changed, so that all arguments can
// share them.
var (
	textShape    = &shape{kind: shapeString}
	longShape    = &shape{kind: shapeLong}
	decimalShape = &shape{kind: shapeDecimal}
	boolShape    = &shape{kind: shapeBool}
)

// schemaShape derives a shape from a JSON Schema 2020-12. It takes from the
// schema only what every valid value satisfies: type, properties, required,
// items, const, enum, allOf and local $ref. All other keywords narrow further,
// so that ignoring them is safe.
func schemaShape(kind string, schema any) *shape {
	d := &deriver{root: schema, left: maxShapes}
	s, _ := d.shape(schema, maxShapeDepth)
	if want := map[string]shapeKind{"object": shapeRecord, "array": shapeSet}[kind]; s.kind != want {
		// The schema does not say so, but the argument's type does.
		s = d.bare(want)
	}
	return s
}

// deriver walks over one JSON Schema.
type deriver struct {
	root any
	left int
}

// bare is an object or an array of which nothing more is known.
func (d *deriver) bare(kind shapeKind) *shape {
	if kind == shapeRecord {
		return &shape{kind: shapeRecord, fields: map[string]field{}}
	}
	return &shape{kind: shapeSet, elem: &shape{}}
}

// shape derives the shape of a schema, and whether a value may be null.
func (d *deriver) shape(schema any, depth int) (s *shape, nullable bool) {
	d.left--
	node := d.resolve(schema)
	if node == nil || d.left <= 0 || depth <= 0 {
		return &shape{}, true
	}
	s, nullable = d.own(node, depth)
	all, _ := node["allOf"].([]any)
	for _, one := range all {
		other, otherNullable := d.shape(one, depth-1)
		s, nullable = both(s, other), nullable && otherNullable
	}
	return s, nullable
}

// own derives what the schema's own keywords say.
func (d *deriver) own(node map[string]any, depth int) (s *shape, nullable bool) {
	name, nullable := schemaType(node)
	switch name {
	case "string":
		return &shape{kind: shapeString}, nullable
	case "integer":
		return &shape{kind: shapeLong}, nullable
	case "number":
		return &shape{kind: shapeDecimal}, nullable
	case "boolean":
		return &shape{kind: shapeBool}, nullable
	case "array":
		return &shape{kind: shapeSet, elem: d.elem(node, depth)}, nullable
	case "object":
		return d.record(node, depth), nullable
	default:
		return &shape{}, true
	}
}

// elem derives the shape of the elements. Elements that differ by position, or
// that may be null, have none.
func (d *deriver) elem(node map[string]any, depth int) *shape {
	items, ok := node["items"]
	if !ok || node["prefixItems"] != nil {
		return &shape{}
	}
	elem, nullable := d.shape(items, depth-1)
	if nullable {
		return &shape{}
	}
	return elem
}

// both is the shape of values that have two shapes.
func both(a, b *shape) *shape {
	switch {
	case a.kind == shapeOpen:
		return b
	case b.kind == shapeOpen:
		return a
	case isNumber(a) && isNumber(b) && a.kind != b.kind:
		return &shape{kind: shapeLong} // a whole number is both
	case a.kind != b.kind:
		return &shape{}
	case a.kind == shapeSet:
		return &shape{kind: shapeSet, elem: both(a.elem, b.elem)}
	case a.kind == shapeRecord:
		return &shape{kind: shapeRecord, fields: bothFields(a.fields, b.fields)}
	default:
		return a
	}
}

func isNumber(s *shape) bool { return s.kind == shapeLong || s.kind == shapeDecimal }

func bothFields(a, b map[string]field) map[string]field {
	fields := maps.Clone(a)
	for name, f := range b {
		if other, ok := fields[name]; ok {
			f = field{shape: both(f.shape, other.shape), required: f.required || other.required}
		}
		fields[name] = f
	}
	return fields
}

func (d *deriver) record(node map[string]any, depth int) *shape {
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	fields := make(map[string]field, len(properties))
	// In order, so that the same definitions are left open each time.
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		s, nullable := d.shape(properties[name], depth-1)
		fields[name] = field{shape: s, required: !nullable && slices.Contains(required, any(name))}
	}
	return &shape{kind: shapeRecord, fields: fields}
}

// resolve follows local references; depth and count of shapes bound cycles of
// objects, and this loop bounds references to references.
func (d *deriver) resolve(schema any) map[string]any {
	for range maxShapeDepth {
		node, ok := schema.(map[string]any)
		if !ok {
			return nil
		}
		ref, ok := node["$ref"].(string)
		if !ok {
			return node
		}
		if schema = lookup(d.root, ref); schema == nil {
			return nil
		}
	}
	return nil
}

// schemaType gives the one type that every valid value has, besides null.
func schemaType(node map[string]any) (name string, nullable bool) {
	switch t := node["type"].(type) {
	case string:
		return t, t == "null"
	case []any:
		for _, one := range t {
			switch text, _ := one.(string); {
			case text == "null":
				nullable = true
			case name == "":
				name = text
			default:
				return "", true
			}
		}
		return name, nullable
	}
	values, ok := node["enum"].([]any)
	if constant, has := node["const"]; has {
		values, ok = []any{constant}, true
	}
	if !ok {
		return "", true
	}
	return commonType(values)
}

// commonType gives the type of all values of an enum, besides null.
func commonType(values []any) (name string, nullable bool) {
	for _, value := range values {
		one := ""
		switch value.(type) {
		case nil:
			nullable = true
			continue
		case string:
			one = "string"
		case bool:
			one = "boolean"
		default:
			return "", true
		}
		if name != "" && name != one {
			return "", true
		}
		name = one
	}
	return name, nullable
}
