// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
)

// unrepresentable says why a JSON value has no Cedar value. The texts are
// constant: no value, and no key of a value, gets into an error.
type unrepresentable string

// Error gives the reason.
func (u unrepresentable) Error() string { return string(u) }

const (
	errFraction unrepresentable = "a number has more than four digits behind the point, which Cedar's decimal cannot hold; round it, or declare the argument as text"
	errRange    unrepresentable = "a number is outside the range of its Cedar type; send a smaller one, or declare the argument as text"
	errWhole    unrepresentable = "a whole number has a fraction; send a whole number"
	errType     unrepresentable = "a value does not have the type that the contract declares; prepare the call again"
	errNull     unrepresentable = "an array holds null, which Cedar has no value for; leave the element out"
	errAddress  unrepresentable = "an address cannot be read by Cedar; write it in its plain form"
	errMissing  unrepresentable = "the call lacks an argument that the contract always sets; prepare the call again"
	errSurplus  unrepresentable = "the call has an argument that the contract does not declare; prepare the call again"
	// errAbsent is how null looks: not as a value, and not as a mistake.
	errAbsent    unrepresentable = "the value is null"
	errNotObject unrepresentable = "the text is not a JSON object"
	errTooLong   unrepresentable = "the text is too long"
	errNotUTF8   unrepresentable = "a word of the effect is not UTF-8, which no JSON text can hold"
)

// value turns a decoded JSON value into a Cedar value of the shape. It is built
// from typed constructors only: cedar-go's JSON reader would turn an object
// {"__entity": …} into an entity of the sender's choice. The error is
// errAbsent for null, which is how an absent attribute is written.
func (s *shape) value(v any) (types.Value, error) {
	switch v := v.(type) {
	case nil:
		return nil, errAbsent
	case string:
		return s.text(v)
	case bool:
		if s.kind != shapeBool && s.kind != shapeOpen {
			return nil, errType
		}
		return types.Boolean(v), nil
	case float64:
		return s.number(v)
	case []any:
		return s.set(v)
	case map[string]any:
		return s.record(v)
	default:
		return nil, errType
	}
}

func (s *shape) text(v string) (types.Value, error) {
	if s.kind != shapeString && s.kind != shapeOpen {
		return nil, errType
	}
	return types.String(v), nil
}

func (s *shape) number(v float64) (types.Value, error) {
	switch {
	case s.kind == shapeLong:
		return long(v)
	case s.kind == shapeDecimal:
		return decimal(v)
	case s.kind != shapeOpen:
		return nil, errType
	case v == math.Trunc(v):
		return long(v)
	default:
		return decimal(v)
	}
}

// long converts a whole number. The bounds are exact as float64: -2^63 fits
// into a Long, 2^63 does not.
func long(v float64) (types.Value, error) {
	switch {
	case v != math.Trunc(v):
		return nil, errWhole
	case v < math.MinInt64 || v >= -math.MinInt64:
		return nil, errRange
	}
	return types.Long(int64(v)), nil
}

// decimal converts a number whose shortest decimal text has at most four digits
// behind the point. The shortest text is what the canonical JSON holds; the
// exact binary value is nobody's business.
func decimal(v float64) (types.Value, error) {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	_, fraction, ok := strings.Cut(text, ".")
	if !ok {
		text += ".0"
	}
	if len(fraction) > 4 {
		return nil, errFraction
	}
	d, err := types.ParseDecimal(text)
	if err != nil {
		return nil, errRange
	}
	return d, nil
}

func (s *shape) set(v []any) (types.Value, error) {
	elem := &shape{}
	switch s.kind {
	case shapeSet:
		elem = s.elem
	case shapeOpen:
	default:
		return nil, errType
	}
	values := make([]types.Value, 0, len(v))
	for _, one := range v {
		value, err := elem.value(one)
		if errors.Is(err, errAbsent) {
			return nil, errNull
		}
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return types.NewSet(values...), nil
}

func (s *shape) record(v map[string]any) (types.Value, error) {
	if s.kind != shapeRecord && s.kind != shapeOpen {
		return nil, errType
	}
	values := make(types.RecordMap, len(v))
	for name, one := range v {
		member := &shape{}
		if f, ok := s.fields[name]; ok {
			member = f.shape
		}
		value, err := member.value(one)
		switch {
		case err == nil:
			values[types.String(name)] = value
		case !errors.Is(err, errAbsent):
			return nil, err
		}
	}
	for name, f := range s.fields {
		if _, ok := values[types.String(name)]; f.required && !ok {
			return nil, errMissing
		}
	}
	return types.NewRecord(values), nil
}
