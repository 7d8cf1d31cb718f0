// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// declared reads the documents that controller-gen wrote.
func declared(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimPrefix(string(data), "---\n"), "\n---\n")
}

func TestOperator_HasThePermissionsThatAreDeclaredAndNoOthers(t *testing.T) {
	o := render(t)
	documents := declared(t, "config/rbac/role.yaml")
	var clusterRole rbacv1.ClusterRole
	var role rbacv1.Role
	strict(t, []byte(documents[0]), &clusterRole)
	strict(t, []byte(documents[1]), &role)
	if diff := cmp.Diff(clusterRole.Rules, o.clusterRoles["assent"].Rules); diff != "" {
		t.Errorf("ClusterRole (-declared +installed):\n%s", diff)
	}
	if diff := cmp.Diff(role.Rules, o.roles["assent"].Rules); diff != "" {
		t.Errorf("Role (-declared +installed):\n%s", diff)
	}
	operator := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "assent", Namespace: namespace}}
	if diff := cmp.Diff(operator, o.clusterBinding.Subjects); diff != "" || o.clusterBinding.RoleRef.Name != "assent" {
		t.Errorf("ClusterRoleBinding to %s (-want +got):\n%s", o.clusterBinding.RoleRef.Name, diff)
	}
	if diff := cmp.Diff(operator, o.binding.Subjects); diff != "" || o.binding.RoleRef.Name != "assent" {
		t.Errorf("RoleBinding to %s (-want +got):\n%s", o.binding.RoleRef.Name, diff)
	}
}

// TestOperator_CannotReachWhatItDoesNotNeed names what would make the operator
// a cluster administrator in disguise.
func TestOperator_CannotReachWhatItDoesNotNeed(t *testing.T) {
	o := render(t)
	for _, rule := range o.clusterRoles["assent"].Rules {
		for _, never := range []string{"*", "secrets", "configmaps", "serviceaccounts/token", "pods/exec", "pods/log", "pods/attach", "pods/ephemeralcontainers", "nodes", "toolproposals/*"} {
			if slices.Contains(rule.Resources, never) {
				t.Errorf("cluster-wide access to %s: %v", never, rule)
			}
		}
		for _, never := range []string{"*", "impersonate", "bind", "escalate", "approve", "deletecollection"} {
			if slices.Contains(rule.Verbs, never) {
				t.Errorf("cluster-wide verb %s: %v", never, rule)
			}
		}
		if slices.Contains(rule.APIGroups, "admissionregistration.k8s.io") && writes(rule) && !slices.Equal(rule.ResourceNames, []string{"assent"}) {
			t.Errorf("writes webhook configurations of others: %v", rule)
		}
		if slices.Contains(rule.APIGroups, "assent.dev") && slices.Contains(rule.Verbs, "create") {
			t.Errorf("creates calls, receipts or rules itself: %v", rule)
		}
		if slices.Contains(rule.Resources, "serviceaccounts") && !slices.Equal(rule.Verbs, []string{"get"}) {
			t.Errorf("does more with ServiceAccounts than to tell one from another: %v", rule)
		}
		if slices.Contains(rule.Resources, "pods") && slices.Contains(rule.Verbs, "create") {
			t.Errorf("creates Pods without a Job: %v", rule)
		}
	}
}

func writes(rule rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb != "get" && verb != "list" && verb != "watch" })
}

func TestAgentRole_CanAskAndWaitOnly(t *testing.T) {
	want := []rbacv1.PolicyRule{{
		APIGroups: []string{"assent.dev"}, Resources: []string{"toolproposals"}, Verbs: []string{"create", "get", "list", "watch"},
	}}
	if diff := cmp.Diff(want, render(t).clusterRoles["assent-agent"].Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// TestRoles_SeparateAskingApprovingAndRuling lists which kinds each role may
// write: no role may write two of them that check each other.
func TestRoles_SeparateAskingApprovingAndRuling(t *testing.T) {
	want := map[string][]string{
		"assent-agent":    {"toolproposals"},
		"assent-approver": {"approvalreceipts"},
		"assent-harness":  {"agentsessions"},
		"assent-editor":   {"argumenttypes", "toolmanifests", "toolpolicies", "toolscopes"},
		"assent-viewer":   nil,
	}
	got := map[string][]string{}
	for name, role := range render(t).clusterRoles {
		if name == "assent" {
			continue
		}
		got[name] = nil
		for _, rule := range role.Rules {
			if writes(rule) {
				got[name] = append(got[name], rule.Resources...)
			}
		}
		slices.Sort(got[name])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds written (-want +got):\n%s", diff)
	}
}

// What a call rests on can be asked about by whoever may see it, and the
// policies of the cluster are a part of that (simulate --from-cluster).
func TestViewerRole_SeesEveryKindAndWritesNone(t *testing.T) {
	documents, err := filepath.Glob(filepath.Join(root, "config", "crd", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, path := range documents {
		_, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".yaml"), "_")
		kinds = append(kinds, plural)
	}
	rules := render(t).clusterRoles["assent-viewer"].Rules
	if len(rules) != 1 {
		t.Fatalf("%d rules, want 1", len(rules))
	}
	slices.Sort(kinds)
	slices.Sort(rules[0].Resources)
	want := rbacv1.PolicyRule{APIGroups: []string{"assent.dev"}, Resources: kinds, Verbs: []string{"get", "list", "watch"}}
	if diff := cmp.Diff(want, rules[0]); diff != "" {
		t.Errorf("rule (-want +got):\n%s", diff)
	}
}

func TestRoles_AggregateOnlyWhatIsAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		settings []string
		want     map[string]string
	}{
		"by default":             {nil, map[string]string{"assent-viewer": "view"}},
		"with nothing":           {[]string{"rbac.aggregateToView=false"}, map[string]string{}},
		"with the editors' role": {[]string{"rbac.aggregateToAdmin=true"}, map[string]string{"assent-viewer": "view", "assent-editor": "admin"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for role, object := range render(t, tc.settings...).clusterRoles {
				for label := range object.Labels {
					if target, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); ok {
						got[role] = target
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("aggregation (-want +got):\n%s", diff)
			}
		})
	}
}

// hook is what both kinds of webhook have in common.
type hook struct {
	name       string
	client     admissionregistrationv1.WebhookClientConfig
	rules      []admissionregistrationv1.RuleWithOperations
	failure    *admissionregistrationv1.FailurePolicyType
	match      *admissionregistrationv1.MatchPolicyType
	effects    *admissionregistrationv1.SideEffectClass
	timeout    *int32
	selective  bool
	conditions int
}

func hooks(o *objects) []hook {
	var all []hook
	for _, w := range o.mutating.Webhooks {
		all = append(all, hook{
			w.Name, w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.SideEffects, w.TimeoutSeconds,
			w.NamespaceSelector != nil || w.ObjectSelector != nil, len(w.MatchConditions),
		})
	}
	for _, w := range o.validating.Webhooks {
		all = append(all, hook{
			w.Name, w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.SideEffects, w.TimeoutSeconds,
			w.NamespaceSelector != nil || w.ObjectSelector != nil, len(w.MatchConditions),
		})
	}
	return all
}

func TestWebhooks_FailClosedAndExemptNobody(t *testing.T) {
	o := render(t, "webhook.timeoutSeconds=7")
	for _, h := range hooks(o) {
		if h.failure == nil || *h.failure != admissionregistrationv1.Fail {
			t.Errorf("%s: failurePolicy %v", h.name, h.failure)
		}
		if h.match == nil || *h.match != admissionregistrationv1.Equivalent {
			t.Errorf("%s: matchPolicy %v", h.name, h.match)
		}
		if h.effects == nil || *h.effects != admissionregistrationv1.SideEffectClassNone {
			t.Errorf("%s: sideEffects %v", h.name, h.effects)
		}
		if h.timeout == nil || *h.timeout != 7 {
			t.Errorf("%s: timeoutSeconds %v, want 7", h.name, h.timeout)
		}
		if h.selective || h.conditions != 0 {
			t.Errorf("%s: it exempts somebody by selector or condition", h.name)
		}
		if len(h.client.CABundle) != 0 {
			t.Errorf("%s: caBundle is set, so that an upgrade would overwrite the operator's", h.name)
		}
		service := h.client.Service
		if service == nil || service.Namespace != namespace || o.services[service.Name].Spec.Ports[0].Port != *service.Port {
			t.Errorf("%s: it calls %+v", h.name, service)
		}
		for _, rule := range h.rules {
			if slices.Contains(rule.Operations, admissionregistrationv1.Delete) || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) {
				t.Errorf("%s: an outage would keep people from cleaning up: %v", h.name, rule.Operations)
			}
		}
	}
}

// kinds reads the plural names of all CRDs.
func kinds(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "config/crd/*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no CRDs in config/crd: %v", err)
	}
	var plurals []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(data, &crd); err != nil {
			t.Fatal(err)
		}
		plurals = append(plurals, crd.Spec.Names.Plural)
	}
	slices.Sort(plurals)
	return plurals
}

func TestWebhooks_CoverEveryKind(t *testing.T) {
	o := render(t)
	covered := map[string][]string{}
	for _, h := range hooks(o) {
		configuration := "validating"
		if strings.Contains(h.name, ".mutate.") {
			configuration = "mutating"
		}
		for _, rule := range h.rules {
			var operations []string
			for _, operation := range rule.Operations {
				operations = append(operations, string(operation))
			}
			slices.Sort(operations)
			for _, resource := range rule.Resources {
				covered[resource] = append(covered[resource], configuration+" "+strings.Join(operations, ","))
			}
		}
	}
	want := map[string][]string{}
	for _, kind := range kinds(t) {
		if kind == "toolproposals" || kind == "approvalreceipts" {
			// Their specs are frozen by their kinds.
			want[kind] = []string{"mutating CREATE", "validating CREATE"}
			continue
		}
		want[kind] = append(want[kind], "validating CREATE,UPDATE")
	}
	if diff := cmp.Diff(want, covered); diff != "" {
		t.Errorf("webhooks by kind (-want +got):\n%s", diff)
	}
}

func TestKinds_AreInstalledAsGeneratedAndKept(t *testing.T) {
	out, err := helm(t, "template", "assent-crds", crdChart)
	if err != nil {
		t.Fatal(err)
	}
	installed := map[string]map[string]any{}
	for document := range strings.SplitSeq(out, "\n---\n") {
		var crd map[string]any
		if err := yaml.Unmarshal([]byte(document), &crd); err != nil {
			t.Fatal(err)
		}
		metadata, _ := crd["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		name, _ := metadata["name"].(string)
		if annotations["helm.sh/resource-policy"] != "keep" {
			t.Errorf("Helm would delete %s, and with it every object of the kind", name)
		}
		delete(annotations, "helm.sh/resource-policy")
		installed[name] = crd
	}
	for _, kind := range kinds(t) {
		name := kind + ".assent.dev"
		data, err := os.ReadFile(filepath.Join(root, "config/crd", "assent.dev_"+kind+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := yaml.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, installed[name]); diff != "" {
			t.Errorf("%s (-generated +installed):\n%s", name, diff)
		}
		delete(installed, name)
	}
	for name := range installed {
		t.Errorf("%s is installed but not generated", name)
	}
}
