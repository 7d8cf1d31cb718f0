// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"reflect"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestRules_ClassifyEveryFieldThatAPodOfOursCanHave fails when a new version
// of the Kubernetes API adds a field, until somebody has decided about it.
func TestRules_ClassifyEveryFieldThatAPodOfOursCanHave(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	visit(t, reflect.TypeFor[corev1.PodSpec](), seen)
	visit(t, reflect.TypeFor[batchv1.JobSpec](), seen)
	for name := range rules {
		if !seen[name] {
			t.Errorf("rules has a table for %s, which no Pod of ours contains", name)
		}
	}
}

func visit(t *testing.T, typ reflect.Type, seen map[string]bool) {
	t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[resource.Quantity]() || seen[typ.Name()] {
		return
	}
	seen[typ.Name()] = true
	table, ok := rules[typ.Name()]
	if !ok {
		t.Errorf("there is no table of rules for %s", typ.Name())
		return
	}
	fields := map[string]bool{}
	for field := range typ.Fields() {
		fields[field.Name] = true
		r, ok := table[field.Name]
		if !ok {
			t.Errorf("%s.%s has no rule: is it always empty, set by Build, or set by Kubernetes?", typ.Name(), field.Name)
		}
		if r == same {
			visit(t, field.Type, seen)
		}
	}
	for name := range table {
		if !fields[name] {
			t.Errorf("%s.%s has a rule and does not exist", typ.Name(), name)
		}
	}
}

// TestComparison_RefusesAFieldWithoutARule stands for a field of a future API.
func TestComparison_RefusesAFieldWithoutARule(t *testing.T) {
	t.Parallel()
	type Unheard struct {
		Known  string `json:"known"`
		Future *int   `json:"future,omitempty"`
	}
	var c comparison
	one := 1
	c.structureOf("spec", &Unheard{}, &Unheard{Future: &one})
	if len(c.differences) != 1 || c.differences[0] != "spec.future: is set and is not a field that this version knows" {
		t.Errorf("differences = %q", c.differences)
	}
}
