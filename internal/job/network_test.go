// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/job"
)

func policies(t *testing.T, in job.Input) (deny, call *networkingv1.NetworkPolicy) {
	t.Helper()
	got, err := job.NetworkPolicies(in)
	if err != nil {
		t.Fatalf("NetworkPolicies: %v", err)
	}
	if len(got) != 2 {
		t.Fatalf("%d policies, want the namespace's and the call's", len(got))
	}
	return got[0], got[1]
}

func TestNetworkPolicies_OpenExactlyWhatTheManifestSays(t *testing.T) {
	t.Parallel()
	in := commandInput()
	in.Execution.AllowDNS = true
	in.Execution.Egress = []contract.EgressRule{
		{CIDR: "192.0.2.7/24", Ports: []int32{443, 8443}},
		{Namespace: "tickets", PodLabels: map[string]string{"app": "tickets"}, Ports: []int32{80}},
		{Namespace: "whole", Ports: []int32{80}},
	}
	deny, call := policies(t, in)
	golden(t, "default-deny.yaml", deny)
	golden(t, "call-policy.yaml", call)
}

func TestNetworkPolicies_OpenTheExecutionServiceAloneByDefault(t *testing.T) {
	t.Parallel()
	_, call := policies(t, commandInput())
	if len(call.Spec.Egress) != 1 {
		t.Fatalf("%d egress rules, want 1", len(call.Spec.Egress))
	}
	rule := call.Spec.Egress[0]
	if got := rule.To[0].PodSelector.MatchLabels["app.kubernetes.io/name"]; got != "assent" || rule.Ports[0].Port.IntValue() != 8443 {
		t.Errorf("the rule is for %q port %v", got, rule.Ports[0].Port)
	}
}

func TestNetworkPolicies_SelectThePodsThatMayReachTheSameAndNoOther(t *testing.T) {
	t.Parallel()
	in := commandInput()
	same := commandInput()
	same.Proposal.UID, same.Proposal.Name = "another", "another"
	other := commandInput()
	other.Execution.Egress = []contract.EgressRule{{CIDR: "192.0.2.0/24", Ports: []int32{443}}}
	deny, call := policies(t, in)
	if _, shared := policies(t, same); !cmp.Equal(shared, call) {
		t.Errorf("two calls that may reach the same have two policies:\n%s", cmp.Diff(call, shared))
	}
	if _, wider := policies(t, other); wider.Name == call.Name {
		t.Error("two calls that may reach different things have one policy")
	}
	mine, others := mustBuild(t, in).Spec.Template.Labels, mustBuild(t, other).Spec.Template.Labels
	for name, tc := range map[string]struct {
		policy *networkingv1.NetworkPolicy
		pod    map[string]string
		want   bool
	}{
		"default deny selects this call": {deny, mine, true},
		"default deny selects any call":  {deny, others, true},
		"default deny leaves others be":  {deny, map[string]string{"app": "x"}, false},
		"the call's policy selects it":   {call, mine, true},
		"and a call of the same reach":   {call, mustBuild(t, same).Spec.Template.Labels, true},
		"and no other call":              {call, others, false},
	} {
		selector, err := metav1.LabelSelectorAsSelector(&tc.policy.Spec.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		if got := selector.Matches(labels.Set(tc.pod)); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if deny.Namespace != in.Namespace || call.Namespace != in.Namespace {
		t.Errorf("policies are in %q and %q", deny.Namespace, call.Namespace)
	}
}

func TestNetworkPolicies_KeepLinkLocalOutOfWiderRanges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cidr string
		want []string
	}{
		"everything in IPv4":             {"0.0.0.0/0", []string{"169.254.0.0/16"}},
		"everything in IPv6":             {"::/0", []string{"fe80::/10", "fd00:ec2::/32"}},
		"a range around link-local":      {"169.0.0.0/8", []string{"169.254.0.0/16"}},
		"link-local itself was meant":    {"169.254.0.0/16", nil},
		"one link-local address":         {"169.254.1.1/32", nil},
		"a range that has nothing of it": {"192.0.2.0/24", nil},
	} {
		in := commandInput()
		in.Execution.Egress = []contract.EgressRule{{CIDR: tc.cidr, Ports: []int32{443}}}
		_, call := policies(t, in)
		if diff := cmp.Diff(tc.want, call.Spec.Egress[1].To[0].IPBlock.Except); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNetworkPolicies_AskTheNameServersThatTheOperatorNames(t *testing.T) {
	t.Parallel()
	in := commandInput()
	in.Execution.AllowDNS = true
	in.DNS = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "172.31.250.1/32"}}}
	_, call := policies(t, in)
	if diff := cmp.Diff(in.DNS, call.Spec.Egress[1].To); diff != "" {
		t.Error(diff)
	}
}

func TestNetworkPolicies_RefuseRulesThatWouldMeanEverything(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*job.Input)
		want   string
	}{
		"no destination":       {func(in *job.Input) { in.Execution.Egress[0].CIDR = "" }, "egress[0]: exactly one of cidr and namespace"},
		"both":                 {func(in *job.Input) { in.Execution.Egress[0].Namespace = "x" }, "egress[0]: exactly one of cidr and namespace"},
		"no ports":             {func(in *job.Input) { in.Execution.Egress[0].Ports = nil }, "egress[0]: ports must not be empty"},
		"labels with a range":  {func(in *job.Input) { in.Execution.Egress[0].PodLabels = map[string]string{"a": "b"} }, "egress[0]: podLabels"},
		"not a range":          {func(in *job.Input) { in.Execution.Egress[0].CIDR = "example.com" }, "egress[0]: cidr must be"},
		"no endpoint to open":  {func(in *job.Input) { in.Endpoint.PodLabels = nil }, "endpoint.namespace, podLabels and port"},
		"an input without Job": {func(in *job.Input) { in.SealID = "" }, "sealID must be set"},
	} {
		in := commandInput()
		in.Execution.Egress = []contract.EgressRule{{CIDR: "192.0.2.0/24", Ports: []int32{443}}}
		tc.change(&in)
		if _, err := job.NetworkPolicies(in); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestEgressLabel_IsThatOfTheCallsPolicyAndPod(t *testing.T) {
	t.Parallel()
	in := commandInput()
	in.Execution.AllowDNS = true
	in.Execution.Egress = []contract.EgressRule{{CIDR: "192.0.2.0/24", Ports: []int32{443}}}
	deny, call := policies(t, in)
	got, err := job.Settings{Endpoint: in.Endpoint}.EgressLabel(in.Execution)
	if err != nil {
		t.Fatal(err)
	}
	if want := mustBuild(t, in).Spec.Template.Labels[v1alpha1.LabelEgress]; got != want || got == "" {
		t.Errorf("the label is %q, that of the Pod %q", got, want)
	}
	renamed, wide := call.DeepCopy(), call.DeepCopy()
	renamed.Name = "mine"
	wide.Spec.PodSelector = metav1.LabelSelector{}
	for name, tc := range map[string]struct {
		policy *networkingv1.NetworkPolicy
		want   string
	}{
		"the call's policy":                    {call, got},
		"the namespace's":                      {deny, ""},
		"one of another name":                  {renamed, ""},
		"one of this name for all of the Pods": {wide, ""},
	} {
		if label := job.EgressOf(tc.policy); label != tc.want {
			t.Errorf("%s: opens the network for %q, want %q", name, label, tc.want)
		}
	}
	if !job.IsEgressName(call.Name) || job.IsEgressName(deny.Name) {
		t.Error("the names are not told apart")
	}
	in.Execution.Egress[0].Ports = nil
	if _, err := (job.Settings{Endpoint: in.Endpoint}).EgressLabel(in.Execution); err == nil || !strings.Contains(err.Error(), "execution.egress[0]: ports must not be empty") {
		t.Errorf("a rule without ports: got %v", err)
	}
}
