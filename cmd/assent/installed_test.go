// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInstalled_IsEverythingThatEnforcesTheRules(t *testing.T) {
	kinds := func(policies bool) map[string]int {
		objects, err := installed("platform", policies)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]int{}
		for _, o := range objects {
			out[o.GetKind()]++
			text := fmt.Sprint(o.Object)
			for _, marker := range []string{"webhook-service", "system:serviceaccount:system:", "namespace:system"} {
				if strings.Contains(text, marker) {
					t.Errorf("%s %s has the marker %s", o.GetKind(), o.GetName(), marker)
				}
			}
		}
		return out
	}
	want := map[string]int{
		"ClusterRole": 1, "ClusterRoleBinding": 1, "CustomResourceDefinition": 8, "MutatingWebhookConfiguration": 1,
		"ValidatingWebhookConfiguration": 1, "ValidatingAdmissionPolicy": 5, "ValidatingAdmissionPolicyBinding": 5,
	}
	if diff := cmp.Diff(want, kinds(true)); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if got := kinds(false); got["ValidatingAdmissionPolicy"]+got["ValidatingAdmissionPolicyBinding"] != 0 {
		t.Errorf("policies that are not installed are expected: %v", got)
	}
}

// What the operator compares it must be allowed to read.
func TestInstalled_MayBeReadByTheOperator(t *testing.T) {
	objects, err := installed("platform", true)
	if err != nil {
		t.Fatal(err)
	}
	var rules []any
	for _, o := range objects {
		if o.GetKind() == "ClusterRole" {
			rules, _ = o.Object["rules"].([]any)
		}
	}
	for _, o := range objects {
		resource := strings.ToLower(o.GetKind()) + "s"
		if strings.HasSuffix(o.GetKind(), "Policy") {
			resource = strings.TrimSuffix(resource, "ys") + "ies"
		}
		allowed := slices.ContainsFunc(rules, func(r any) bool {
			rule := r.(map[string]any)
			names, limited := rule["resourceNames"].([]any)
			return slices.Contains(rule["resources"].([]any), any(resource)) && slices.Contains(rule["verbs"].([]any), any("get")) &&
				(!limited || slices.Contains(names, any(o.GetName())))
		})
		if !allowed {
			t.Errorf("the operator may not read %s %s", resource, o.GetName())
		}
	}
}
