// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// difference returns the path of the first place where the live object is not
// what it should be; empty when it is. Everything that is wanted must be there
// as it is wanted. What is there and not wanted must be what the API server
// fills in by itself, or what the chart leaves to the user.
func difference(want, live *unstructured.Unstructured) string {
	for _, key := range slices.Sorted(maps.Keys(union(want.Object, live.Object))) {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
			continue
		}
		if path := differs(want.Object[key], live.Object[key], key, key); path != "" {
			return path
		}
	}
	return ""
}

func union(a, b map[string]any) map[string]bool {
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return keys
}

// differs compares two values. member is the last name of the path.
func differs(want, live any, path, member string) string {
	var same bool
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if ok {
			return membersDiffer(w, l, path)
		}
	case []any:
		l, ok := live.([]any)
		if ok && len(w) == len(l) {
			return elementsDiffer(w, l, path, member)
		}
	case nil:
		same = live == nil || isDefault(member, live)
	default:
		same = apiequality.Semantic.DeepEqual(want, live) || isFree(member)
	}
	if same {
		return ""
	}
	return path
}

func membersDiffer(want, live map[string]any, path string) string {
	for _, key := range slices.Sorted(maps.Keys(union(want, live))) {
		if found := differs(want[key], live[key], path+"."+key, key); found != "" {
			return found
		}
	}
	return ""
}

func elementsDiffer(want, live []any, path, member string) string {
	for i := range want {
		if found := differs(want[i], live[i], fmt.Sprintf("%s[%d]", path, i), member); found != "" {
			return found
		}
	}
	return ""
}

// isDefault says that the API server adds this value where none is given, or
// that it changes nothing.
func isDefault(member string, live any) bool {
	switch v := live.(type) {
	case map[string]any:
		// An empty selector selects everything, and so does none.
		return len(v) == 0 || member == "conversion" && v["strategy"] == "None"
	case []any:
		return len(v) == 0
	case string:
		return slices.Contains(defaults[member], v) || isFree(member)
	case int64:
		return member == "port" && v == 443 || isFree(member)
	case bool:
		return !v
	}
	return false
}

// defaults are the texts that the API server fills in, by member.
var defaults = map[string][]string{
	"matchPolicy":        {"Equivalent"},
	"reinvocationPolicy": {"Never"},
	"scope":              {"*"},
	"failurePolicy":      {"Fail"},
}

// isFree names what the chart leaves to the user or the operator fills in
// itself. A wrong certificate or a short timeout makes kube-apiserver refuse,
// never accept.
func isFree(member string) bool { return member == "timeoutSeconds" || member == "caBundle" }
