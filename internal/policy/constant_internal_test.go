// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/google/go-cmp/cmp"
)

func TestConstant_HasTheTypeThatItsValueHas(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"a text":                          {`"x"`, "{c: String}"},
		"a whole number":                  {`3`, "{c: Long}"},
		"a whole number with a point":     {`3.0`, "{c: Long}"},
		"a fraction":                      {`1.5`, "{c: decimal}"},
		"a truth value":                   {`false`, "{c: Bool}"},
		"null is absent":                  {`null`, "{c?: open}"},
		"elements of one type":            {`["a","b"]`, "{c: Set<String>}"},
		"elements of two types":           {`["a",1,"b"]`, "{c: Set<open>}"},
		"no elements":                     {`[]`, "{c: Set<open>}"},
		"records that differ":             {`[{"a":1},{"a":2,"b":"x"},{"a":"y"}]`, "{c: Set<{a: open, b?: String}>}"},
		"members":                         {`{"a":{"b":[true]},"n":null}`, "{c: {a: {b: Set<Bool>}, n?: open}}"},
		"what is nested beyond the limit": {strings.Repeat(`{"a":`, 9) + `1` + strings.Repeat("}", 9), "{c: " + strings.Repeat("{a: ", 8) + "open" + strings.Repeat("}", 9)},
		"what is no JSON":                 {`{`, "{}"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := &Tool{EffectKind: EffectMCP, MCPConstants: []Constant{{Name: "c", JSON: tc.text}}}
			if got := describe(mcpShape(tool)); got != tc.want {
				t.Errorf("shape = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestConstant_BoundsWhatIsTyped(t *testing.T) {
	t.Parallel()
	tool := &Tool{EffectKind: EffectMCP, MCPConstants: []Constant{{Name: "c", JSON: "[" + strings.Repeat(`{"a":1},`, maxShapes) + `{"a":1}]`}}}
	if got, want := describe(mcpShape(tool)), "{c: Set<open>}"; got != want {
		t.Errorf("shape = %s, want %s", got, want)
	}
}

// A constant keeps its type where every argument is text.
func TestConstant_KeepsItsTypeBesideTextArguments(t *testing.T) {
	t.Parallel()
	tool := &Tool{
		Namespace: "team", Name: "t", EffectKind: EffectMCP, StringArguments: true,
		MCPArguments: []Argument{{Name: "n", Kind: "integer", Required: true}}, MCPConstants: []Constant{{Name: "c", JSON: "5"}},
	}
	got, err := newToolTypes(tool).mcpArguments(`{"c":5,"n":"5"}`)
	if err != nil {
		t.Fatal(err)
	}
	want := types.NewRecord(types.RecordMap{"c": types.Long(5), "n": types.String("5")})
	if !want.Equal(got) {
		t.Errorf("arguments %v, want %v", got, want)
	}
}

func TestTool_WithAnotherConstantIsAnotherTool(t *testing.T) {
	t.Parallel()
	one := &Tool{MCPConstants: []Constant{{Name: "c", JSON: "1"}}}
	other := &Tool{MCPConstants: []Constant{{Name: "c", JSON: "2"}}}
	copied := one.clone()
	if one.equal(other) || !one.equal(&copied) {
		t.Error("constants do not count when tools are compared")
	}
	one.MCPConstants[0].JSON = "3"
	if diff := cmp.Diff("1", copied.MCPConstants[0].JSON); diff != "" {
		t.Errorf("the copy changed with its original (-want +got):\n%s", diff)
	}
}
