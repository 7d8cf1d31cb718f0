// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package demo holds the tests of the demo's objects: without a cluster, they
// ask the same packages as the operator what each call of the demo will meet.
package demo

import (
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
)

const (
	namespace = "assent-demo"
	agent     = "system:serviceaccount:assent-demo:agent"
)

// documents reads a manifest file as the demo applies it.
func documents(t *testing.T, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("manifests", name))
	if err != nil {
		t.Fatal(err)
	}
	digest := "@sha256:" + strings.Repeat("c", 64)
	authority, err := json.Marshal(authorityPEM(t))
	if err != nil {
		t.Fatal(err)
	}
	text := os.Expand(string(data), func(variable string) string {
		values := map[string]string{
			"DEMO_SERVICE_IMAGE": "registry.example/assent/demo-ledger" + digest,
			"DEMO_TOOL_IMAGE":    "registry.example/assent/demo-ledgerctl" + digest,
			"DEMO_CA":            string(authority),
		}
		value, ok := values[variable]
		if !ok {
			t.Errorf("%s uses the variable %s, which the demo does not set", name, variable)
		}
		return value
	})
	return strings.Split(text, "\n---\n")
}

// authorityPEM is any certificate.
func authorityPEM(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func decode[T any](t *testing.T, document string) T {
	t.Helper()
	var object T
	if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return object
}

func contracts(t *testing.T) map[string]*contract.Contract {
	t.Helper()
	compiled := map[string]*contract.Contract{}
	for _, document := range slices.Concat(documents(t, "40-tools.yaml"), documents(t, "45-servers.yaml")) {
		manifest := decode[v1alpha1.ToolManifest](t, document)
		input, err := proposal.ContractInput(&manifest, proposal.Tools{}, "registry.example/assent/assent-runner@sha256:"+strings.Repeat("d", 64), false)
		if err != nil {
			t.Fatal(err)
		}
		c, err := contract.Compile(input)
		if err != nil {
			t.Fatalf("%s: %v", manifest.Name, err)
		}
		if problems := c.Problems(); len(problems) != 0 {
			t.Fatalf("%s: %v", manifest.Name, problems)
		}
		compiled[manifest.Name] = c
	}
	return compiled
}

func policies(t *testing.T, tools map[string]*contract.Contract) *policy.Set {
	t.Helper()
	files := documents(t, "50-policies.yaml")
	own := decode[v1alpha1.ToolPolicy](t, files[0])
	cluster := decode[v1alpha1.ClusterToolPolicy](t, files[1])
	sources := []policy.Source{
		proposal.PolicySource(own.Namespace, own.Name, own.Spec),
		proposal.PolicySource("", cluster.Name, cluster.Spec),
	}
	var compiled []*policy.Compiled
	for _, source := range sources {
		c, problems := policy.Compile(source, policy.DefaultLimits())
		if len(problems) != 0 {
			t.Fatalf("%s: %v", source.Name, problems)
		}
		compiled = append(compiled, c)
	}
	set, err := policy.NewSet(policy.DefaultLimits(), compiled...)
	if err != nil {
		t.Fatal(err)
	}
	views := make([]policy.Tool, 0, len(tools))
	for _, c := range tools {
		views = append(views, proposal.PolicyTool(namespace, c))
	}
	set = set.WithTools(namespace, views)
	for _, source := range sources {
		for _, problem := range set.Report(source.Key()).Problems {
			t.Errorf("policy problem: %+v", problem)
		}
	}
	return set
}

func TestDemo_CallsMeetTheAnswersItPromises(t *testing.T) {
	tools := contracts(t)
	set := policies(t, tools)
	for name, tc := range map[string]struct {
		tool, arguments string
		approved        bool
		want            policy.Answer
		reason          policy.Reason
		does            string
	}{
		"a restart of a low-risk service runs": {
			"restart-service", `{"service":"web"}`, false, policy.Allow, policy.ReasonPermitted,
			"/ledgerctl record --service http://ledger.assent-demo.svc:8080 --kind restart --target web",
		},
		"a restart of payments waits": {
			"restart-service", `{"service":"payments"}`, false, policy.NeedsApproval, policy.ReasonApprovalRequired,
			"/ledgerctl record --service http://ledger.assent-demo.svc:8080 --kind restart --target payments",
		},
		"a change of scale waits": {
			"scale-service", `{"service":"web","replicas":3}`, false, policy.NeedsApproval, policy.ReasonApprovalRequired,
			"/ledgerctl record --service http://ledger.assent-demo.svc:8080 --kind scale --target web --set replicas=3",
		},
		"a change of scale runs once it is approved": {
			"scale-service", `{"service":"web","replicas":3}`, true, policy.Allow, policy.ReasonPermitted,
			"/ledgerctl record --service http://ledger.assent-demo.svc:8080 --kind scale --target web --set replicas=3",
		},
		"a deletion is denied though the namespace permits it": {
			"delete-database", `{"database":"orders"}`, false, policy.Deny, policy.ReasonForbidden,
			"/ledgerctl record --service http://ledger.assent-demo.svc:8080 --kind delete --target orders",
		},
		"a deletion is denied even when it is approved": {
			"delete-database", `{"database":"orders"}`, true, policy.Deny, policy.ReasonForbidden,
			"/ledgerctl record --service http://ledger.assent-demo.svc:8080 --kind delete --target orders",
		},
		"an announcement is sent at once": {
			"announce", `{"service":"web","text":"back again"}`, false, policy.Allow, policy.ReasonPermitted,
			`POST https://ledger.assent-demo.svc:8443/services/web/announcements {"text": "back again"}`,
		},
		"a release is written down at once": {
			"release", `{"version":"1.4.2","service":"web"}`, false, policy.Allow, policy.ReasonPermitted,
			`https://ledger.assent-demo.svc:8443/mcp release {"service":"web","version":"1.4.2"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := tools[tc.tool]
			prepared, err := c.Prepare(agent, tc.arguments)
			if err != nil {
				t.Fatal(err)
			}
			if got := does(prepared.Effect); got != tc.does {
				t.Errorf("the call does %s, want %s", got, tc.does)
			}
			call := policy.Call{
				Tool:              proposal.PolicyTool(namespace, c),
				Principal:         policy.Principal{Username: agent},
				ArgsCanonicalJSON: prepared.ArgsCanonicalJSON,
				Fingerprint:       prepared.Fingerprint,
				Effect:            proposal.EffectView(prepared.Effect),
				Approved:          tc.approved,
			}
			if tc.approved {
				call.ApprovedFingerprint = prepared.Fingerprint
			}
			decision := set.Decide(call, policy.Options{})
			if decision.Answer != tc.want || decision.Reason != tc.reason || len(decision.Errors) != 0 {
				t.Errorf("%s %s %v, want %s %s", decision.Answer, decision.Reason, decision.Errors, tc.want, tc.reason)
			}
			if tc.reason == policy.ReasonForbidden {
				if diff := cmp.Diff([]string{"/no-deleted-databases#0"}, decision.Policies); diff != "" {
					t.Errorf("policies (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// does is the part of an effect that the arguments decide on.
func does(e contract.Effect) string {
	switch {
	case e.HTTP != nil:
		return e.HTTP.Method + " " + e.HTTP.URL + " " + e.HTTP.Body
	case e.MCP != nil:
		return e.MCP.URL + " " + e.MCP.Tool + " " + e.MCP.Arguments
	default:
		return strings.Join(e.Command.Argv, " ")
	}
}

func TestDemo_LedgerIsAllowedInItsOwnNamespace(t *testing.T) {
	labels := decode[corev1.Namespace](t, documents(t, "10-namespace.yaml")[0]).Labels
	if labels[api.EnforceLevelLabel] != string(api.LevelRestricted) {
		t.Errorf("the namespace enforces %q, want restricted", labels[api.EnforceLevelLabel])
	}
	deployment := decode[appsv1.Deployment](t, documents(t, "20-ledger.yaml")[0])
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
		if !result.Allowed {
			t.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
}

// TestDemo_ToolsReachTheLedgerOnly compares what the manifests let calls reach
// with where the ledger is.
func TestDemo_ToolsReachTheLedgerOnly(t *testing.T) {
	files := documents(t, "20-ledger.yaml")
	deployment := decode[appsv1.Deployment](t, files[0])
	service := decode[corev1.Service](t, files[1])
	port := map[string]int32{}
	for _, p := range deployment.Spec.Template.Spec.Containers[0].Ports {
		port[p.Name] = p.ContainerPort
	}
	if diff := cmp.Diff(deployment.Spec.Template.Labels, service.Spec.Selector); diff != "" {
		t.Errorf("the Service selects other Pods (-pods +service):\n%s", diff)
	}
	for name, c := range contracts(t) {
		scheme := "https"
		if c.EffectKind() == contract.EffectCommand {
			scheme = "http"
		}
		want := []contract.EgressRule{{
			Namespace: deployment.Namespace, PodLabels: deployment.Spec.Template.Labels, Ports: []int32{port[scheme]},
		}}
		if diff := cmp.Diff(want, c.ExecutionSpec().Egress); diff != "" {
			t.Errorf("%s: egress (-want +got):\n%s", name, diff)
		}
	}
}

func TestDemo_AgentCannotApprove(t *testing.T) {
	granted := map[string][]string{}
	for _, document := range documents(t, "30-people.yaml") {
		if !strings.Contains(document, "kind: RoleBinding") {
			continue
		}
		binding := decode[rbacv1.RoleBinding](t, document)
		for _, subject := range binding.Subjects {
			granted[subject.Name] = append(granted[subject.Name], binding.RoleRef.Name)
		}
	}
	want := map[string][]string{
		"agent": {"assent-agent"},
		"alice": {"assent-approver", "approve-services"},
		"bob":   {"assent-agent", "assent-approver", "approve-services"},
	}
	if diff := cmp.Diff(want, granted); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
}
