// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// comparison collects the paths at which a live object differs. Paths name
// fields and positions; values stay out, because a difference is reported to
// whoever may read the proposal.
type comparison struct {
	differences []string
	// runtimeClass says that the Pod asks for a runtime class.
	runtimeClass bool
}

func (c *comparison) differ(path, what string) {
	c.differences = append(c.differences, path+": "+what)
}

// podSpec compares by the table of rules.
func (c *comparison) podSpec(path string, want, live *corev1.PodSpec) {
	c.runtimeClass = want.RuntimeClassName != nil
	c.structureOf(path, want, live)
}

// structureOf compares what two pointers of one type point to.
func (c *comparison) structureOf(path string, want, live any) {
	c.structure(path, reflect.ValueOf(want).Elem(), reflect.ValueOf(live).Elem())
}

func (c *comparison) structure(path string, want, live reflect.Value) {
	table := rules[want.Type().Name()]
	for i := range want.NumField() {
		field := want.Type().Field(i)
		at := path
		if name := jsonName(field); name != "" {
			at += "." + name
		}
		c.field(at, table[field.Name], want.Field(i), live.Field(i))
	}
}

func (c *comparison) field(path string, r rule, want, live reflect.Value) {
	switch r {
	case same:
		c.value(path, want, live)
	case assigned:
	case absent:
		if !empty(live) {
			c.differ(path, "is set")
		}
	case pullPolicyRule, pullSecretsRule, tolerationsRule, runtimeClassRule, resizePolicyRule:
		c.addition(path, r, want, live)
	default:
		// A field nobody has thought about yet.
		if !empty(live) {
			c.differ(path, "is set and is not a field that this version knows")
		}
	}
}

// addition compares a field to which Kubernetes adds.
func (c *comparison) addition(path string, r rule, want, live reflect.Value) {
	switch r {
	case pullPolicyRule:
		c.pullPolicy(path, live)
	case pullSecretsRule:
		c.pullSecrets(path, want, live)
	case tolerationsRule:
		c.tolerations(path, live)
	case resizePolicyRule:
		c.resizePolicy(path, live)
	case runtimeClassRule:
		if !c.runtimeClass && !empty(live) {
			c.differ(path, "is set though the Pod has no runtime class")
		}
	case same, absent, assigned:
	}
}

// value compares two values of one type, structures by their own rules.
func (c *comparison) value(path string, want, live reflect.Value) {
	if q, ok := reflect.TypeAssert[resource.Quantity](want); ok {
		if other, _ := reflect.TypeAssert[resource.Quantity](live); q.Cmp(other) != 0 {
			c.differ(path, "differs")
		}
		return
	}
	switch want.Kind() {
	case reflect.Pointer:
		c.pointer(path, want, live)
	case reflect.Struct:
		c.structure(path, want, live)
	case reflect.Slice:
		c.list(path, want, live)
	case reflect.Map:
		c.mapping(path, want, live)
	default:
		if want.Interface() != live.Interface() {
			c.differ(path, "differs")
		}
	}
}

func (c *comparison) pointer(path string, want, live reflect.Value) {
	switch {
	case want.IsNil() && live.IsNil():
	case want.IsNil():
		c.differ(path, "is set")
	case live.IsNil():
		c.differ(path, "is missing")
	default:
		c.value(path, want.Elem(), live.Elem())
	}
}

// list compares in order: the order of containers, mounts and variables has a
// meaning.
func (c *comparison) list(path string, want, live reflect.Value) {
	if want.Len() != live.Len() {
		c.differ(path, fmt.Sprintf("has %d entries instead of %d", live.Len(), want.Len()))
		return
	}
	for i := range want.Len() {
		c.value(fmt.Sprintf("%s[%d]", path, i), want.Index(i), live.Index(i))
	}
}

func (c *comparison) mapping(path string, want, live reflect.Value) {
	if want.Len() != live.Len() {
		c.differ(path, fmt.Sprintf("has %d entries instead of %d", live.Len(), want.Len()))
		return
	}
	for _, key := range want.MapKeys() {
		other := live.MapIndex(key)
		if !other.IsValid() {
			c.differ(path, "has other keys")
			return
		}
		c.value(fmt.Sprintf("%s[%s]", path, key.String()), want.MapIndex(key), other)
	}
}

func (c *comparison) pullPolicy(path string, live reflect.Value) {
	switch corev1.PullPolicy(live.String()) {
	case corev1.PullIfNotPresent, corev1.PullAlways:
	default:
		c.differ(path, "differs")
	}
}

func (c *comparison) pullSecrets(path string, want, live reflect.Value) {
	got, _ := reflect.TypeAssert[[]corev1.LocalObjectReference](live)
	needed, _ := reflect.TypeAssert[[]corev1.LocalObjectReference](want)
	for _, n := range needed {
		if !slices.Contains(got, n) {
			c.differ(path, "lacks an entry")
		}
	}
}

func (c *comparison) tolerations(path string, live reflect.Value) {
	got, _ := reflect.TypeAssert[[]corev1.Toleration](live)
	for i, t := range got {
		if !c.runtimeClass && !strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			c.differ(fmt.Sprintf("%s[%d]", path, i), "is not one that Kubernetes adds")
		}
	}
}

func (c *comparison) resizePolicy(path string, live reflect.Value) {
	got, _ := reflect.TypeAssert[[]corev1.ContainerResizePolicy](live)
	for i, p := range got {
		if p.RestartPolicy != corev1.NotRequired {
			c.differ(fmt.Sprintf("%s[%d]", path, i), "would restart the container")
		}
	}
}

// empty is the zero value, or a list or map without entries.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// labelsAndAnnotations compares metadata: everything built must be there with
// its value, and nothing else but what is allowed.
func (c *comparison) labelsAndAnnotations(path string, want, live map[string]string, allowed func(key, value string) bool) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, ok := live[key]; !ok || value != want[key] {
			c.differ(path+"["+key+"]", "is missing or differs")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(live)) {
		if _, ours := want[key]; !ours && !allowed(key, live[key]) {
			c.differ(path+"["+key+"]", "is not expected")
		}
	}
}
