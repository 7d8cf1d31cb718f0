// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
)

// members maps each JSON member of a type, at any depth, to the JSON type of
// its value. Two types with the same members carry each other's text.
func members(t *testing.T, typ reflect.Type) map[string]string {
	t.Helper()
	out := map[string]string{}
	describe(t, out, typ, "")
	return out
}

func describe(t *testing.T, out map[string]string, typ reflect.Type, path string) {
	t.Helper()
	switch typ {
	case reflect.TypeFor[metav1.Duration](), reflect.TypeFor[contract.Duration]():
		out[path] = "duration"
		return
	case reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[contract.IntOrString]():
		out[path] = "integer or string"
		return
	}
	switch typ.Kind() {
	case reflect.Pointer:
		describe(t, out, typ.Elem(), path)
	case reflect.Slice:
		describe(t, out, typ.Elem(), path+"[]")
	case reflect.Map:
		describe(t, out, typ.Elem(), path+"{}")
	case reflect.Struct:
		for f := range fields(typ) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" && strings.Contains(options, "inline") {
				describe(t, out, f.Type, path)
				continue
			}
			if name == "" {
				t.Errorf("%s.%s has no name in JSON", typ, f.Name)
			}
			describe(t, out, f.Type, path+"."+name)
		}
	default:
		out[path] = typ.Kind().String()
	}
}

func fields(typ reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for field := range typ.Fields() {
			if !yield(field) {
				return
			}
		}
	}
}

func TestContract_HasTheMembersOfTheAPI(t *testing.T) {
	for name, tc := range map[string]struct {
		api, domain reflect.Type
		atLeast     int
	}{
		"ToolManifest": {reflect.TypeFor[v1alpha1.ToolManifestSpec](), reflect.TypeFor[contract.Manifest](), 60},
		"ArgumentType": {reflect.TypeFor[v1alpha1.ArgumentTypeSpec](), reflect.TypeFor[contract.ArgumentType](), 10},
		"ToolScope":    {reflect.TypeFor[v1alpha1.ToolScopeSpec](), reflect.TypeFor[contract.Scope](), 3},
		"effect":       {reflect.TypeFor[v1alpha1.Effect](), reflect.TypeFor[contract.Effect](), 25},
	} {
		t.Run(name, func(t *testing.T) {
			api, domain := members(t, tc.api), members(t, tc.domain)
			if diff := cmp.Diff(api, domain); diff != "" {
				t.Errorf("members (-api +contract):\n%s", diff)
			}
			if len(api) < tc.atLeast {
				t.Errorf("only %d members were found: %v", len(api), slices.Sorted(maps.Keys(api)))
			}
		})
	}
}
