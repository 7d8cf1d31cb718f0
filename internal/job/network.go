// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
)

// DefaultDenyName is the name of the policy that closes a namespace's calls.
const DefaultDenyName = "assent-default-deny"

// egressNamePrefix begins the names of the policies that open the network.
const egressNamePrefix = "assent-egress-"

// linkLocal ranges hold what only the node itself should reach, above all the
// metadata services of clouds, which hand out the node's credentials.
var linkLocal = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::/32"),
}

// EgressLabel is the value of LabelEgress on the Pods of calls with these
// settings of a manifest. An error names the setting that makes no policy.
func (s Settings) EgressLabel(execution contract.Execution) (string, error) {
	egress, err := Input{Endpoint: s.Endpoint, Execution: execution}.egress()
	if err != nil {
		return "", err
	}
	return egressLabel(egress)
}

// EgressOf is the value of LabelEgress on the Pods that a live policy opens the
// network for; empty when the policy is none that [NetworkPolicies] makes.
func EgressOf(live *networkingv1.NetworkPolicy) string {
	label := live.Spec.PodSelector.MatchLabels[v1alpha1.LabelEgress]
	if label == "" || live.Name != egressNamePrefix+label {
		return ""
	}
	return label
}

// IsEgressName says whether a policy of this name may be one that opens the
// network for calls.
func IsEgressName(name string) bool { return strings.HasPrefix(name, egressNamePrefix) }

// DefaultDeny closes all Pods of calls in a namespace: nothing reaches them
// and they reach nothing. What a call needs is opened for it alone.
func DefaultDeny(namespace string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		TypeMeta:   networkPolicyType(),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: DefaultDenyName},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelRun: RunLabelValue}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		},
	}
}

// NetworkPolicies returns the namespace's [DefaultDeny] and the policy of the
// call's Pod: the execution service, the manifest's egress, and the cluster's
// name servers if the manifest allows them. Both must exist before the Job.
//
// The second one belongs to no call: all that may reach the same share it, by
// a name and a label that are made of what it says. What one Pod may reach
// therefore never changes under it, and a call needs no policy of its own.
func NetworkPolicies(in Input) ([]*networkingv1.NetworkPolicy, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if in.Endpoint.Namespace == "" || len(in.Endpoint.PodLabels) == 0 || in.Endpoint.Port <= 0 {
		return nil, fmt.Errorf("building a NetworkPolicy: endpoint.namespace, podLabels and port must be set")
	}
	egress, err := in.egress()
	if err != nil {
		return nil, err
	}
	label, err := egressLabel(egress)
	if err != nil {
		return nil, err
	}
	open := &networkingv1.NetworkPolicy{
		TypeMeta:   networkPolicyType(),
		ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: egressNamePrefix + label},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{
				v1alpha1.LabelRun:    RunLabelValue,
				v1alpha1.LabelEgress: label,
			}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress:      egress,
		},
	}
	return []*networkingv1.NetworkPolicy{DefaultDeny(in.Namespace), open}, nil
}

// egress is what the call's Pod may reach.
func (in Input) egress() ([]networkingv1.NetworkPolicyEgressRule, error) {
	rules := []networkingv1.NetworkPolicyEgressRule{{
		To:    []networkingv1.NetworkPolicyPeer{pods(in.Endpoint.Namespace, in.Endpoint.PodLabels)},
		Ports: tcp(in.Endpoint.Port),
	}}
	for i, rule := range in.Execution.Egress {
		peer, err := peerOf(rule)
		if err != nil {
			return nil, fmt.Errorf("building a NetworkPolicy: execution.egress[%d]: %w", i, err)
		}
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{
			To: []networkingv1.NetworkPolicyPeer{peer}, Ports: tcp(rule.Ports...),
		})
	}
	if in.Execution.AllowDNS {
		rules = append(rules, in.dns())
	}
	return rules, nil
}

// egressLabel is the value of LabelEgress for a set of rules.
func egressLabel(rules []networkingv1.NetworkPolicyEgressRule) (string, error) {
	text, err := json.Marshal(rules)
	if err != nil {
		return "", fmt.Errorf("encoding egress rules: %w", err)
	}
	sum := sha256.Sum256(append([]byte("assent.dev/egress/v1\n"), text...))
	return hex.EncodeToString(sum[:20]), nil
}

func networkPolicyType() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}
}

// peerOf is one destination. A rule that names none would mean all.
func peerOf(rule contract.EgressRule) (networkingv1.NetworkPolicyPeer, error) {
	var none networkingv1.NetworkPolicyPeer
	switch {
	case len(rule.Ports) == 0:
		return none, fmt.Errorf("ports must not be empty")
	case (rule.CIDR == "") == (rule.Namespace == ""):
		return none, fmt.Errorf("exactly one of cidr and namespace must be set")
	case rule.Namespace != "":
		return pods(rule.Namespace, rule.PodLabels), nil
	case len(rule.PodLabels) > 0:
		return none, fmt.Errorf("podLabels go with namespace")
	}
	prefix, err := netip.ParsePrefix(rule.CIDR)
	if err != nil {
		return none, fmt.Errorf("cidr must be an address range such as 192.0.2.0/24")
	}
	return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{
		CIDR: prefix.Masked().String(), Except: excepted(prefix),
	}}, nil
}

// excepted takes link-local addresses out of a range that only happens to
// contain them. A range that lies within them was meant.
func excepted(prefix netip.Prefix) []string {
	var out []string
	for _, l := range linkLocal {
		if prefix.Overlaps(l) && prefix.Bits() < l.Bits() {
			out = append(out, l.String())
		}
	}
	return out
}

func pods(namespace string, labels map[string]string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
	}
}

func tcp(ports ...int32) []networkingv1.NetworkPolicyPort {
	return portsOf(corev1.ProtocolTCP, ports...)
}

func portsOf(protocol corev1.Protocol, numbers ...int32) []networkingv1.NetworkPolicyPort {
	var out []networkingv1.NetworkPolicyPort
	for _, n := range numbers {
		out = append(out, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(n))})
	}
	return out
}

func (in Input) dns() networkingv1.NetworkPolicyEgressRule {
	to := in.DNS
	if len(to) == 0 {
		to = []networkingv1.NetworkPolicyPeer{pods("kube-system", map[string]string{"k8s-app": "kube-dns"})}
	}
	return networkingv1.NetworkPolicyEgressRule{
		To:    to,
		Ports: append(portsOf(corev1.ProtocolUDP, 53), portsOf(corev1.ProtocolTCP, 53)...),
	}
}
