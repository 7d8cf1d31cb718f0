// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"
	"math"
	"slices"
)

// constant gives the shape of a value that is the same in every call. The
// value itself says what it is, so that policies can read all of it but what
// has no one type: null, and elements that differ from each other.
func (d *deriver) constant(value any, depth int) field {
	d.left--
	if value == nil || d.left <= 0 || depth <= 0 {
		return field{shape: &shape{}, required: value != nil}
	}
	s := &shape{}
	switch value := value.(type) {
	case string:
		s.kind = shapeString
	case bool:
		s.kind = shapeBool
	case float64:
		s.kind = shapeDecimal
		if value == math.Trunc(value) {
			s.kind = shapeLong
		}
	case []any:
		s = &shape{kind: shapeSet, elem: d.elements(value, depth)}
	case map[string]any:
		s = &shape{kind: shapeRecord, fields: make(map[string]field, len(value))}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			s.fields[name] = d.constant(value[name], depth-1)
		}
	}
	return field{shape: s, required: true}
}

// elements is the shape that all elements of a constant array have.
func (d *deriver) elements(list []any, depth int) *shape {
	elem := &shape{}
	for i, one := range list {
		f := d.constant(one, depth-1)
		if i == 0 {
			elem = f.shape
		} else {
			elem = unionShape(elem, f.shape)
		}
	}
	return elem
}
