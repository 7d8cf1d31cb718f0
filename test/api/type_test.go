// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"
)

func TestArgumentType_SaysReadyOrWhichFieldIsWrong(t *testing.T) {
	f := newFixture(t)
	for name, row := range map[string]struct {
		specs       map[string]string // the first letter's is looked at
		want, field string
	}{
		"a built-in type that is narrowed": {map[string]string{"a": `{base: string, pattern: "[a-z]+"}`}, "True/Ready", "can be used"},
		"a base that is not there":         {map[string]string{"a": `{base: b}`}, "False/MissingReference", "ArgumentType/a: spec.base"},
		"each based on the other":          {map[string]string{"a": `{base: b}`, "b": `{base: a}`}, "False/TypeCycle", "a -> b -> a"},
		"no room between the bounds of two": {
			map[string]string{"a": `{base: b, min: 5}`, "b": `{base: integer, max: 3}`}, "False/InvalidArgument", "ArgumentType/a: spec",
		},
		"a constraint that the built-in type does not have": {
			map[string]string{"a": `{base: b, schemes: [https]}`, "b": `{base: integer}`}, "False/InvalidArgument", "ArgumentType/a: spec.schemes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			for n, spec := range row.specs {
				o := f.argumentType(n, spec)
				f.create(o)
				defer f.mustDelete(o)
			}
			f.wantReady(f.argumentType("a", row.specs["a"]), row.want, row.field)
		})
	}
}

func TestArgumentType_ThatNothingCanMend_IsRefused(t *testing.T) {
	f := newFixture(t)
	for name, row := range map[string]struct{ name, spec, want string }{
		"based on itself":           {"loop", `{base: loop}`, "TypeCycle"},
		"the name of a built-in":    {"string", `{base: integer}`, "InvalidArgument"},
		"an expression that is not": {"odd", `{base: string, pattern: "["}`, "InvalidArgument"},
		"bounds the wrong way":      {"odd", `{base: integer, min: 3, max: 1}`, "InvalidArgument"},
		"a bound for a text":        {"odd", `{base: string, min: 3}`, "InvalidArgument"},
		"a schema for a text":       {"odd", `{base: string, schema: "{}"}`, "InvalidArgument"},
		"a schema from elsewhere":   {"odd", `{base: object, schema: '{"$ref":"https://example.com/s"}'}`, "InvalidArgument"},
	} {
		t.Run(name, func(t *testing.T) {
			err := server.admin.Create(f.ctx, f.argumentType(row.name, row.spec))
			if got := refusalOf(err); !strings.HasPrefix(got, "422 ArgumentType/"+row.name+": ") || !strings.HasSuffix(got, ":"+row.want) {
				t.Errorf("got %s, want 422 with %s (%v)", got, row.want, err)
			}
		})
	}
}

func TestArgumentType_OfAnUnknownBase_IsStored(t *testing.T) {
	f := newFixture(t)
	if err := server.admin.Create(f.ctx, f.argumentType("later", `{base: unknown, maxLength: 8}`)); err != nil {
		t.Errorf("the base may come later: %v", err)
	}
}
