// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// accessWith is a cluster in which somebody has one rule, everywhere or in a namespace.
func accessWith(namespace string, rule rbacv1.PolicyRule, subjects ...rbacv1.Subject) *access {
	a := &access{operator: "assent-system", tools: map[string]bool{"agents": true}}
	ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}
	a.clusterRoles = []rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{rule}}}
	if namespace == "" {
		a.clusterRoleBindings = []rbacv1.ClusterRoleBinding{{ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: ref, Subjects: subjects}}
	} else {
		a.roleBindings = []rbacv1.RoleBinding{{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: namespace}, RoleRef: ref, Subjects: subjects}}
	}
	return a
}

var mallory = rbacv1.Subject{Kind: "User", Name: "mallory"}

func rbacRule(group, resources, verbs string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Fields(resources), Verbs: strings.Fields(verbs), ResourceNames: names}
}

func TestDoctor_FindsWhoHasWhichPower(t *testing.T) {
	for name, tc := range map[string]struct {
		access *access
		want   []string
	}{
		"impersonation of one user":        {accessWith("", rbacRule("", "users", "impersonate", "alice"), mallory), []string{"impersonate"}},
		"of a group in a namespace":        {accessWith("x", rbacRule("", "groups", "impersonate"), mallory), []string{"impersonate"}},
		"impersonation by its newer verbs": {accessWith("", rbacRule("authentication.k8s.io", "users", "impersonate:user-info", "alice"), mallory), []string{"impersonate within bounds"}},
		"of an account by those":           {accessWith("x", rbacRule("authentication.k8s.io", "serviceaccounts", "impersonate:serviceaccount"), mallory), []string{"impersonate within bounds"}},
		"only what it is good for":         {accessWith("", rbacRule("assent.dev", "approvalreceipts", "impersonate-on:user-info:create"), mallory), nil},
		"approval of certificates":         {accessWith("", rbacRule("certificates.k8s.io", "certificatesigningrequests/approval", "update"), mallory), []string{"approve certificates"}},
		"network policies beside tools":    {accessWith("agents", rbacRule("networking.k8s.io", "networkpolicies", "create"), mallory), []string{"open the network"}},
		"network policies elsewhere":       {accessWith("web", rbacRule("networking.k8s.io", "networkpolicies", "delete"), mallory), nil},
		"labels of a namespace":            {accessWith("agents", rbacRule("", "namespaces", "patch"), mallory), []string{"label namespaces"}},
		"tokens of ServiceAccounts":        {accessWith("x", rbacRule("", "serviceaccounts/token", "create"), mallory), []string{"request tokens"}},
		"any status":                       {accessWith("agents", rbacRule("*", "*/status", "patch"), mallory), []string{"write status", "change Pods", "change Jobs"}},
		"our status":                       {accessWith("agents", rbacRule("assent.dev", "toolproposals/status", "update"), mallory), []string{"write status"}},
		"labels of calls":                  {accessWith("agents", rbacRule("assent.dev", "toolproposals", "patch"), mallory), []string{"change calls"}},
		"exec beside tools":                {accessWith("agents", rbacRule("", "pods/exec", "create"), mallory), []string{"exec"}},
		"exec elsewhere":                   {accessWith("web", rbacRule("", "pods/exec", "create"), mallory), nil},
		"exec beside the operator":         {accessWith("assent-system", rbacRule("", "pods/exec", "create"), mallory), []string{"enter the operator"}},
		"the proxy of nodes":               {accessWith("", rbacRule("", "nodes/proxy", "get"), mallory), []string{"reach nodes"}},
		"secrets of the operator":          {accessWith("assent-system", rbacRule("", "secrets", "get"), mallory), []string{"read the signing key"}},
		"the signing key by name":          {accessWith("assent-system", rbacRule("", "secrets", "get", "assent-signing"), mallory), []string{"read the signing key"}},
		"another Secret by name":           {accessWith("assent-system", rbacRule("", "secrets", "get", "other"), mallory), nil},
		"secrets elsewhere":                {accessWith("agents", rbacRule("", "secrets", "get"), mallory), nil},
		"webhooks":                         {accessWith("", rbacRule("admissionregistration.k8s.io", "validatingwebhookconfigurations", "delete"), mallory), []string{"change admission webhooks"}},
		"policies of admission":            {accessWith("", rbacRule("admissionregistration.k8s.io", "validatingadmissionpolicies", "update"), mallory), []string{"change admission policies"}},
		"kinds":                            {accessWith("", rbacRule("apiextensions.k8s.io", "customresourcedefinitions", "patch"), mallory), []string{"change the kinds"}},
		"bind":                             {accessWith("x", rbacRule("rbac.authorization.k8s.io", "roles", "bind"), mallory), []string{"grant more than they have"}},
		"what every agent may":             {accessWith("agents", rbacRule("assent.dev", "toolproposals", "create get list watch"), mallory), nil},
		"what every approver may":          {accessWith("agents", rbacRule("assent.dev", "toolmanifests", "approve"), mallory), nil},
		"a group outside of the list":      {accessWith("", rbacRule("example.com", "users", "impersonate"), mallory), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range tc.access.findings() {
				if f.Subject != "User mallory" || f.Expected {
					t.Errorf("finding %+v", f)
				}
				got = append(got, f.Power)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("powers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDoctor_FindsEveryPowerOfAnAdministrator(t *testing.T) {
	got := accessWith("", rbacRule("*", "*", "*"), mallory).findings()
	if len(got) != len(powers) {
		t.Errorf("%d powers, want all %d", len(got), len(powers))
	}
	roles := accessWith("agents", rbacv1.PolicyRule{})
	roles.roleBindings = []rbacv1.RoleBinding{{
		ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "agents"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "own"}, Subjects: []rbacv1.Subject{mallory},
	}}
	roles.roles = []rbacv1.Role{{ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: "agents"}, Rules: []rbacv1.PolicyRule{rbacRule("batch", "jobs", "update")}}}
	if got := roles.findings(); len(got) != 1 || got[0].Power != "change Jobs" {
		t.Errorf("a Role of the namespace: %+v", got)
	}
}

func TestDoctor_ExpectsTheClusterItselfAndTheOperator(t *testing.T) {
	for subject, want := range map[rbacv1.Subject]bool{
		{Kind: "Group", Name: "system:masters"}:                                    true,
		{Kind: "Group", Name: "system:nodes"}:                                      true,
		{Kind: "Group", Name: "system:authenticated"}:                              false,
		{Kind: "Group", Name: "system:unauthenticated"}:                            false,
		{Kind: "Group", Name: "system:serviceaccounts:agents"}:                     false,
		{Kind: "Group", Name: "sre"}:                                               false,
		{Kind: "User", Name: "system:kube-controller-manager"}:                     true,
		{Kind: "User", Name: "system:admin"}:                                       false,
		{Kind: "User", Name: "system:serviceaccount:agents:bot"}:                   false,
		{Kind: "ServiceAccount", Namespace: "kube-system", Name: "job-controller"}: true,
		{Kind: "ServiceAccount", Namespace: "assent-system", Name: "assent"}:       true,
		{Kind: "ServiceAccount", Namespace: "assent-system", Name: "other"}:        false,
		{Kind: "ServiceAccount", Namespace: "agents", Name: "assent"}:              false,
	} {
		d := diagnosis{Findings: accessWith("", rbacRule("", "users", "impersonate"), subject).findings()}
		if len(d.Findings) != 1 || d.Findings[0].Expected != want {
			t.Errorf("%v: %+v, want expected %v", subject, d.Findings, want)
		}
		var exit *ExitError
		if refused := errors.As(d.verdict(), &exit) && exit.Code == exitRefused; refused == want {
			t.Errorf("%v: exit code 2 is %v", subject, refused)
		}
	}
}

func TestDoctor_NamesWhoAndHow(t *testing.T) {
	var b strings.Builder
	d := diagnosis{Missing: []string{"MutatingWebhookConfiguration assent"}, Findings: accessWith("agents", rbacRule("", "pods/exec", "create"), rbacv1.Subject{Kind: "ServiceAccount", Name: "bot"}).findings()}
	if err := d.print(&b); err != nil {
		t.Fatal(err)
	}
	want := `MISSING MutatingWebhookConfiguration assent

exec: may run programs inside the Pod of a call, beside its secrets
  who       ServiceAccount agents/bot in agents by RoleBinding/b of r
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("diagnosis (-want +got):\n%s", diff)
	}
	if d.verdict() == nil {
		t.Error("something missing passes")
	}
	if (diagnosis{}).verdict() != nil {
		t.Error("nothing found is refused")
	}
}
