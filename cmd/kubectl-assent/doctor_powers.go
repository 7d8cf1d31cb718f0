// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// reach says where a power matters.
type reach int

const (
	anywhere    reach = iota // granted in any way
	inTools                  // in namespaces with tools or their Jobs, or in all
	inOperator               // in the operator's namespace, or in all
	clusterwide              // only granted for the whole cluster
)

// power is something that only the operator, or nobody, should be able to do.
// Admission and the controllers cannot see who has it, or can see it only when
// it is too late.
type power struct {
	Name string
	// Why says what it undoes.
	Why string

	verbs     []string
	group     string
	resources []string
	// object is the one object that it is about, if only one is.
	object string
	reach  reach
}

const assentGroup = "assent.dev"

// powers are what doctor looks for. RBAC alone gives them; who holds the
// control plane, a node or etcd is out of reach for any tool.
var powers = []power{
	{"impersonate", "may propose and approve in the name of others: admission sees only the name", []string{"impersonate"}, "", []string{"users", "groups", "serviceaccounts"}, "", anywhere},
	// The second of the two verbs that this takes, impersonate-on, may bound it to
	// something harmless. Without the first there is none of it.
	{"impersonate within bounds", "may act in the name of others as far as they may impersonate on something: admission sees only the name", []string{"impersonate:user-info", "impersonate:serviceaccount", "impersonate:arbitrary-node", "impersonate:associated-node"}, "authentication.k8s.io", []string{"users", "serviceaccounts", "nodes"}, "", anywhere},
	{"approve certificates", "may make certificates in the name of anybody", []string{"update", "patch"}, "certificates.k8s.io", []string{"certificatesigningrequests/approval", "certificatesigningrequests/status"}, "", clusterwide},
	{"request tokens", "may propose and approve in the name of ServiceAccounts", []string{"create"}, "", []string{"serviceaccounts/token"}, "", anywhere},
	{"write status", "may write what only the operator should write; it is refused later, and the call is lost", []string{"update", "patch"}, assentGroup, []string{"toolproposals/status", "approvalreceipts/status", "toolmanifests/status", "agentsessions/status"}, "", anywhere},
	{"change calls", "may take the finalizer or the labels off a call", []string{"update", "patch"}, assentGroup, []string{"toolproposals", "approvalreceipts"}, "", anywhere},
	{"exec", "may run programs inside the Pod of a call, beside its secrets", []string{"create", "get"}, "", []string{"pods/exec", "pods/attach", "pods/portforward"}, "", inTools},
	{"change Pods", "may change the Pod of a call or add containers to it", []string{"update", "patch"}, "", []string{"pods", "pods/ephemeralcontainers", "pods/status"}, "", inTools},
	{"change Jobs", "may change or replace the Job of a call", []string{"update", "patch"}, "batch", []string{"jobs", "jobs/status"}, "", inTools},
	{"open the network", "may let the Pods of calls reach more than their manifests name", []string{"create", "update", "patch", "delete"}, "networking.k8s.io", []string{"networkpolicies"}, "", inTools},
	{"label namespaces", "may have calls run elsewhere, or open a namespace that is for calls only", []string{"update", "patch"}, "", []string{"namespaces"}, "", anywhere},
	{"reach nodes", "may run programs in any Pod without admission and audit", []string{"get", "create"}, "", []string{"nodes/proxy"}, "", clusterwide},
	{"read the signing key", "may seal any call and any receipt", []string{"get", "list", "watch"}, "", []string{"secrets"}, "assent-signing", inOperator},
	{"replace the signing key", "may seal any call and any receipt from then on", []string{"update", "patch", "delete"}, "", []string{"secrets"}, "assent-signing", inOperator},
	{"enter the operator", "may run programs beside the signing key", []string{"create", "get"}, "", []string{"pods/exec", "pods/attach", "pods/ephemeralcontainers"}, "", inOperator},
	{"run Pods beside the operator", "may mount the signing key", []string{"create"}, "", []string{"pods"}, "", inOperator},
	{"change admission webhooks", "may take admission away or put another in front of it", []string{"create", "update", "patch", "delete"}, "admissionregistration.k8s.io", []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}, "", clusterwide},
	{"change admission policies", "may take the second wall away", []string{"update", "patch", "delete"}, "admissionregistration.k8s.io", []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}, "", clusterwide},
	{"change the kinds", "may loosen what freezes calls and receipts", []string{"update", "patch", "delete"}, "apiextensions.k8s.io", []string{"customresourcedefinitions"}, "", clusterwide},
	{"grant more than they have", "may give themselves any of this", []string{"escalate", "bind"}, "rbac.authorization.k8s.io", []string{"clusterroles", "roles"}, "", anywhere},
}

// finding is one subject that has one power.
type finding struct {
	Power     string `json:"power"`
	Why       string `json:"why"`
	Subject   string `json:"subject"`
	Namespace string `json:"namespace,omitempty"`
	Binding   string `json:"binding"`
	Role      string `json:"role"`
	// Expected marks the cluster's own components and administrators, and the
	// operator itself.
	Expected bool `json:"expected,omitempty"`
}

// access is the RBAC of a cluster as far as it matters here.
type access struct {
	clusterRoles        []rbacv1.ClusterRole
	roles               []rbacv1.Role
	clusterRoleBindings []rbacv1.ClusterRoleBinding
	roleBindings        []rbacv1.RoleBinding
	// operator is the namespace of the operator, tools those with tools in
	// them or with Jobs of their calls.
	operator string
	tools    map[string]bool
}

// grant is one binding with the rules that it gives.
type grant struct {
	namespace, binding, role string
	subjects                 []rbacv1.Subject
	rules                    []rbacv1.PolicyRule
}

func (a *access) grants() []grant {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, r := range a.clusterRoles {
		rules["ClusterRole/"+r.Name] = r.Rules
	}
	for _, r := range a.roles {
		rules["Role/"+r.Namespace+"/"+r.Name] = r.Rules
	}
	var out []grant
	for _, b := range a.clusterRoleBindings {
		out = append(out, grant{"", "ClusterRoleBinding/" + b.Name, b.RoleRef.Name, b.Subjects, rules["ClusterRole/"+b.RoleRef.Name]})
	}
	for _, b := range a.roleBindings {
		role := "ClusterRole/" + b.RoleRef.Name
		if b.RoleRef.Kind == "Role" {
			role = "Role/" + b.Namespace + "/" + b.RoleRef.Name
		}
		out = append(out, grant{b.Namespace, "RoleBinding/" + b.Name, b.RoleRef.Name, b.Subjects, rules[role]})
	}
	return out
}

// findings lists who has which power, in a fixed order.
func (a *access) findings() []finding {
	var out []finding
	for _, g := range a.grants() {
		for _, p := range powers {
			if !a.reaches(p, g.namespace) || !slices.ContainsFunc(g.rules, p.givenBy) {
				continue
			}
			for _, s := range g.subjects {
				out = append(out, finding{
					Power: p.Name, Why: p.Why, Subject: subjectName(s, g.namespace), Namespace: g.namespace,
					Binding: g.binding, Role: g.role, Expected: a.expected(s, g.namespace),
				})
			}
		}
	}
	order := map[string]int{}
	for i, p := range powers {
		order[p.Name] = i
	}
	slices.SortFunc(out, func(x, y finding) int {
		return cmp.Or(cmp.Compare(order[x.Power], order[y.Power]), cmp.Compare(x.Subject, y.Subject), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Binding, y.Binding))
	})
	return slices.Compact(out)
}

func (a *access) reaches(p power, namespace string) bool {
	switch {
	case namespace == "", p.reach == anywhere:
		return true
	case p.reach == inTools:
		return a.tools[namespace]
	case p.reach == inOperator:
		return namespace == a.operator
	}
	return false
}

// givenBy follows the matching of RBAC: "*" is everything, "*/sub" one
// subresource of everything.
func (p power) givenBy(rule rbacv1.PolicyRule) bool {
	group := slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.APIGroups, p.group)
	verb := slices.Contains(rule.Verbs, "*") || slices.ContainsFunc(p.verbs, func(v string) bool { return slices.Contains(rule.Verbs, v) })
	object := len(rule.ResourceNames) == 0 || p.object == "" || slices.Contains(rule.ResourceNames, p.object)
	return group && verb && object && slices.ContainsFunc(p.resources, func(r string) bool { return resourceMatches(rule.Resources, r) })
}

func resourceMatches(given []string, wanted string) bool {
	_, sub, isSub := strings.Cut(wanted, "/")
	for _, r := range given {
		if r == "*" || r == wanted || isSub && r == "*/"+sub {
			return true
		}
	}
	return false
}

func subjectName(s rbacv1.Subject, namespace string) string {
	if s.Kind == rbacv1.ServiceAccountKind {
		return "ServiceAccount " + cmp.Or(s.Namespace, namespace) + "/" + s.Name
	}
	return s.Kind + " " + s.Name
}

// expected are those that no cluster is without: its own components, whose
// names begin with "system:", and the operator.
func (a *access) expected(s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		ns := cmp.Or(s.Namespace, namespace)
		return ns == "kube-system" || ns == a.operator && s.Name == "assent"
	case rbacv1.GroupKind:
		return strings.HasPrefix(s.Name, "system:") && s.Name != "system:authenticated" && s.Name != "system:unauthenticated" &&
			!strings.HasPrefix(s.Name, "system:serviceaccounts")
	default:
		return strings.HasPrefix(s.Name, "system:kube-") || strings.HasPrefix(s.Name, "system:serviceaccount:kube-system:")
	}
}
