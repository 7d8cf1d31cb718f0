// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/eval"
)

// parsed decodes JSON as encoding/json does: maps, slices, float64.
func parsed(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestValue_FollowsTheDeclaredType(t *testing.T) {
	t.Parallel()
	object := `{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},"b":{"type":"number"},"c":{"type":["string","null"]}}}`
	tests := map[string]struct {
		kind, schema, json string
		want               string // Cedar text, or nothing
		err                error
	}{
		"a text":                           {"string", "", `"a\"b"`, `"a\"b"`, nil},
		"a text that looks like a number":  {"string", "", `"5"`, `"5"`, nil},
		"a url is text":                    {"url", "", `"https://x/"`, `"https://x/"`, nil},
		"a number where text is declared":  {"string", "", `5`, "", errType},
		"a whole number":                   {"integer", "", `-5`, "-5", nil},
		"a port":                           {"port", "", `443`, "443", nil},
		"the smallest Long":                {"integer", "", `-9223372036854775808`, "-9223372036854775808", nil},
		"beyond the largest Long":          {"integer", "", `9223372036854775808`, "", errRange},
		"below the smallest Long":          {"integer", "", `-9223372036854777856`, "", errRange},
		"a fraction for a whole number":    {"integer", "", `5.5`, "", errWhole},
		"a text for a whole number":        {"integer", "", `"5"`, "", errType},
		"a number with one digit":          {"number", "", `0.5`, `decimal("0.5")`, nil},
		"a number with four digits":        {"number", "", `-1.2345`, `decimal("-1.2345")`, nil},
		"a number with five digits":        {"number", "", `1.23456`, "", errFraction},
		"a whole number as number":         {"number", "", `7`, `decimal("7.0")`, nil},
		"the largest exact decimal":        {"number", "", `900000000000000`, `decimal("900000000000000.0")`, nil},
		"beyond the largest decimal":       {"number", "", `922337203685478`, "", errRange},
		"a truth value":                    {"boolean", "", `true`, "true", nil},
		"a text for a truth value":         {"boolean", "", `"true"`, "", errType},
		"a truth value for a text":         {"string", "", `true`, "", errType},
		"null is absent":                   {"string", "", `null`, "", errAbsent},
		"an object":                        {"object", object, `{"a":1,"b":2,"c":"x"}`, `{"a":1, "b":decimal("2.0"), "c":"x"}`, nil},
		"null in an object is absent":      {"object", object, `{"a":1,"c":null}`, `{"a":1}`, nil},
		"a required member that is absent": {"object", object, `{"b":1}`, "", errMissing},
		"a member of another type":         {"object", object, `{"a":"1"}`, "", errType},
		"members that nothing declares":    {"object", object, `{"a":1,"x":[true,1.5,"y",{"z":2}]}`, `{"a":1, "x":[true, decimal("1.5"), "y", {"z":2}]}`, nil},
		"an array for an object":           {"object", object, `[1]`, "", errType},
		"an object for an array":           {"array", "", `{"a":1}`, "", errType},
		"an array of numbers":              {"array", `{"type":"array","items":{"type":"number"}}`, `[1]`, `[decimal("1.0")]`, nil},
		"an array of anything":             {"array", "", `[1]`, "[1]", nil},
		"an array drops repetitions":       {"array", "", `[1,1]`, "[1]", nil},
		"null in an array":                 {"array", "", `[null]`, "", errNull},
		"an unfit element":                 {"array", `{"type":"array","items":{"type":"string"}}`, `["a",1]`, "", errType},
		"an object without a schema":       {"object", "", `{"__entity":{"id":"a","type":"B"}}`, `{"__entity":{"id":"a", "type":"B"}}`, nil},
		"an extension written as JSON":     {"object", "", `{"__extn":{"arg":"1.0","fn":"decimal"}}`, `{"__extn":{"arg":"1.0", "fn":"decimal"}}`, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := Argument{Kind: tc.kind}
			if tc.schema != "" {
				a.Schema = parsed(t, tc.schema)
			}
			got, err := argumentShape(&a, false).value(parsed(t, tc.json))
			if !errors.Is(err, tc.err) {
				t.Fatalf("error = %v, want %v", err, tc.err)
			}
			if want := cedarValue(t, tc.want); (got == nil) != (want == nil) || (got != nil && !got.Equal(want)) {
				t.Errorf("value = %v, want %s", got, tc.want)
			}
		})
	}
}

// cedarValue gives the value of a Cedar expression; nil for an empty text.
func cedarValue(t *testing.T, text string) types.Value {
	t.Helper()
	if text == "" {
		return nil
	}
	list, err := cedar.NewPolicyListFromBytes("value", []byte("permit (principal, action, resource) when { "+text+" };"))
	if err != nil {
		t.Fatal(err)
	}
	value, err := eval.Eval((*ast.Policy)(list[0].AST()).Conditions[0].Body, eval.Env{})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestValue_RefusesGoValuesOutsideJSON(t *testing.T) {
	t.Parallel()
	if _, err := (&shape{}).value(int64(1)); !errors.Is(err, errType) {
		t.Errorf("error = %v, want %v", err, errType)
	}
	if _, err := long(math.Inf(1)); !errors.Is(err, errRange) {
		t.Errorf("infinity: %v, want %v", err, errRange)
	}
}

func TestUnrepresentable_IsItsOwnMessage(t *testing.T) {
	t.Parallel()
	if got := errTooLong.Error(); got != "the text is too long" {
		t.Errorf("Error() = %q", got)
	}
}

// describe writes a shape for comparison.
func describe(s *shape) string {
	switch s.kind {
	case shapeString:
		return "String"
	case shapeLong:
		return "Long"
	case shapeDecimal:
		return "decimal"
	case shapeBool:
		return "Bool"
	case shapeSet:
		return "Set<" + describe(s.elem) + ">"
	case shapeRecord:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(s.fields)) {
			mark := "?"
			if s.fields[name].required {
				mark = ""
			}
			parts = append(parts, name+mark+": "+describe(s.fields[name].shape))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return "open"
	}
}

func TestSchemaShape_TakesOnlyWhatAlwaysHolds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ kind, schema, want string }{
		"nothing, as object":               {"object", `{}`, "{}"},
		"nothing, as array":                {"array", `true`, "Set<open>"},
		"another type than the argument's": {"array", `{"type":"object"}`, "Set<open>"},
		"members": {
			"object", `{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"boolean"},"c":{}}}`,
			"{a: String, b?: Bool, c?: open}",
		},
		"null makes optional":       {"object", `{"type":"object","required":["a"],"properties":{"a":{"type":["integer","null"]}}}`, "{a?: Long}"},
		"two types are open":        {"object", `{"type":"object","properties":{"a":{"type":["integer","string"]}}}`, "{a?: open}"},
		"only null is open":         {"object", `{"type":"object","properties":{"a":{"type":"null"}}}`, "{a?: open}"},
		"no type is open":           {"object", `{"type":"object","properties":{"a":{"minLength":1}}}`, "{a?: open}"},
		"an enum of texts":          {"object", `{"type":"object","required":["a"],"properties":{"a":{"enum":["x","y"]}}}`, "{a: String}"},
		"an enum with null":         {"object", `{"type":"object","required":["a"],"properties":{"a":{"enum":["x",null]}}}`, "{a?: String}"},
		"an enum of two types":      {"object", `{"type":"object","properties":{"a":{"enum":["x",true]}}}`, "{a?: open}"},
		"an enum of numbers":        {"object", `{"type":"object","properties":{"a":{"enum":[1,2]}}}`, "{a?: open}"},
		"a constant":                {"object", `{"type":"object","required":["a"],"properties":{"a":{"const":true}}}`, "{a: Bool}"},
		"elements":                  {"array", `{"type":"array","items":{"type":"string"}}`, "Set<String>"},
		"elements that may be null": {"array", `{"type":"array","items":{"type":["string","null"]}}`, "Set<open>"},
		"elements by position":      {"array", `{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"string"}}`, "Set<open>"},
		"references":                {"array", `{"$defs":{"x/y":{"$ref":"#/$defs/z"},"z":{"type":"number"}},"type":"array","items":{"$ref":"#/$defs/x~1y"}}`, "Set<decimal>"},
		"a reference to the whole": {
			"object", `{"type":"object","properties":{"a":{"$ref":"#"}}}`,
			"{a?: {a?: {a?: {a?: {a?: {a?: {a?: {a?: open}}}}}}}}",
		},
		"a reference to nothing":     {"array", `{"type":"array","items":{"$ref":"#/$defs/x"}}`, "Set<open>"},
		"a reference through a text": {"array", `{"a":"b","type":"array","items":{"$ref":"#/a/b"}}`, "Set<open>"},
		"a reference to elsewhere":   {"array", `{"type":"array","items":{"$ref":"https://example.com/"}}`, "Set<open>"},
		"a reference by anchor":      {"array", `{"type":"array","items":{"$ref":"#x"}}`, "Set<open>"},
		"references in a circle":     {"array", `{"$defs":{"a":{"$ref":"#/$defs/a"}},"type":"array","items":{"$ref":"#/$defs/a"}}`, "Set<open>"},
		"all of several": {
			"object", `{"allOf":[{"type":"object","required":["a"],"properties":{"a":{"type":"number"},"b":{"type":"string"}}},{"properties":{"z":{"type":"string"}}},{"type":"object","properties":{"a":{"type":"integer"},"c":{"type":"array"}}}]}`,
			"{a: Long, b?: String, c?: Set<open>}",
		},
		"all of a type and a wider one":     {"object", `{"type":"object","properties":{"a":{"type":"integer","allOf":[{"type":"number"}]}}}`, "{a?: Long}"},
		"all of two types":                  {"object", `{"type":"object","properties":{"a":{"type":"integer","allOf":[{"type":"string"}]}}}`, "{a?: open}"},
		"all of one type twice":             {"object", `{"type":"object","properties":{"a":{"type":"string","allOf":[{"type":"string"}]}}}`, "{a?: String}"},
		"all of two arrays":                 {"array", `{"type":"array","allOf":[{"type":"array","items":{"type":"string"}}]}`, "Set<String>"},
		"all of something that may be null": {"object", `{"type":"object","required":["a"],"properties":{"a":{"type":["string","null"],"allOf":[{"type":"string"}]}}}`, "{a: String}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := describe(schemaShape(tc.kind, parsed(t, tc.schema))); got != tc.want {
				t.Errorf("shape = %s, want %s", got, tc.want)
			}
		})
	}
}

// A schema of 16 KiB can unfold to more than any memory holds.
func TestSchemaShape_BoundsWhatReferencesUnfoldTo(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"type":"object","$ref":"#/$defs/d0","$defs":{`)
	for level := range 8 {
		fmt.Fprintf(&b, `"d%d":{"type":"object","properties":{`, level)
		for i := range 50 {
			fmt.Fprintf(&b, `"p%d":{"$ref":"#/$defs/d%d"},`, i, level+1)
		}
		b.WriteString(`"p":{}}},`)
	}
	b.WriteString(`"d8":{"type":"string"}}}`)
	schema := parsed(t, b.String())
	first := describe(schemaShape("object", schema))
	if got := strings.Count(first, ":"); got > 60*maxShapes {
		t.Errorf("the shape has %d members", got)
	}
	for range 3 {
		if describe(schemaShape("object", schema)) != first {
			t.Fatal("the same schema has two shapes")
		}
	}
}
