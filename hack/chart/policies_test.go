// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func TestAdmissionPolicies_DenyAndFailClosedAndTrustTheOperatorOnly(t *testing.T) {
	o := render(t)
	if len(o.policies) != 5 {
		t.Errorf("%d policies, want 5", len(o.policies))
	}
	for name, p := range o.policies {
		if p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy != admissionregistrationv1.Fail || len(p.Spec.MatchConditions) != 0 {
			t.Errorf("%s does not fail closed", name)
		}
		b := o.policyBindings[name]
		if b.Spec.PolicyName != name || b.Spec.MatchResources != nil || !slices.Equal(b.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{"Deny"}) {
			t.Errorf("%s is not bound to deny everywhere: %+v", name, b.Spec)
		}
		text := fmt.Sprint(p.Spec)
		if strings.Contains(text, "system:serviceaccount:system:") {
			t.Errorf("%s trusts a ServiceAccount of another namespace", name)
		}
		if strings.Contains(text, ":assent'") && !strings.Contains(text, "'system:serviceaccount:"+namespace+":assent'") {
			t.Errorf("%s does not name the operator", name)
		}
		for _, rule := range p.Spec.MatchConstraints.ResourceRules {
			if slices.Contains(rule.Operations, admissionregistrationv1.Delete) {
				t.Errorf("%s can keep somebody from cleaning up", name)
			}
		}
	}
}

func TestAdmissionPolicies_CanBeLeftOutAndTheOperatorIsTold(t *testing.T) {
	o := render(t, "admissionPolicies.enabled=false")
	if len(o.policies)+len(o.policyBindings) != 0 {
		t.Errorf("%d policies are installed", len(o.policies))
	}
	if !slices.Contains(o.deployment.Spec.Template.Spec.Containers[0].Args, "--admission-policies=false") {
		t.Error("the operator expects policies that are not installed")
	}
}

func TestIdentities_ReachTheOperator(t *testing.T) {
	o := render(t, `identities.regexp=oidc:(.+)`, "identities.map.root-alice=alice")
	args := o.deployment.Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{"--identity-regexp=oidc:(.+)", "--identity-map-file=/etc/assent/people.yaml"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is missing in %v", want, args)
		}
	}
	if diff := cmp.Diff("root-alice: alice", strings.TrimSpace(o.configMaps["assent-identities"].Data["people.yaml"])); diff != "" {
		t.Errorf("people (-want +got):\n%s", diff)
	}
	if len(render(t).configMaps) != 0 {
		t.Error("a ConfigMap is installed without any names in it")
	}
}
