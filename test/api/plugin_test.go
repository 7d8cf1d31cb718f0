// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// forPeople is a fixture in which alice can look at calls and decide on them.
func forPeople(t *testing.T) (*fixture, func(stdin string, args ...string) (string, int)) {
	t.Helper()
	f := newFixture(t)
	f.approvalTool()
	f.grant(approver, rbacv1.PolicyRule{APIGroups: []string{"assent.dev"}, Resources: []string{"toolproposals", "toolmanifests", "approvalreceipts"}, Verbs: []string{"get", "list"}})
	return f, f.plugin()
}

func (f *fixture) receiptsOf(p *v1alpha1.ToolProposal) []v1alpha1.ApprovalReceiptSpec {
	f.t.Helper()
	var list v1alpha1.ApprovalReceiptList
	if err := server.admin.List(f.ctx, &list, client.InNamespace(f.namespace)); err != nil {
		f.t.Fatal(err)
	}
	var out []v1alpha1.ApprovalReceiptSpec
	for _, r := range list.Items {
		if r.Spec.ProposalRef.UID == p.UID {
			out = append(out, r.Spec)
		}
	}
	return out
}

func TestApprove_CountsOnlyWhatWasTypedFromTheScreen(t *testing.T) {
	f, run := forPeople(t)
	p := f.waiting()
	fingerprint := p.Spec.Prepared.Fingerprint
	const refused = "error: not approved: that is not how the fingerprint begins\n"
	for name, tc := range map[string]struct{ typed, want string }{
		"a yes":                        {"yes\n", refused},
		"one character too few":        {fingerprint[:7] + "\n", refused},
		"one character too many":       {fingerprint[:9] + "\n", refused},
		"the end of the fingerprint":   {fingerprint[56:] + "\n", refused},
		"an empty line":                {"\n", refused},
		"nothing, as in a script":      {"", "error: not approved: nothing was typed\n"},
		"a line that nobody completed": {"y", refused},
	} {
		out, code := run(tc.typed, "approve", p.Name, "--as", approver)
		if code != 2 || !strings.HasSuffix(out, tc.want) {
			t.Errorf("%s: exit code %d\n%s", name, code, out)
		}
	}
	if r := f.receiptsOf(p); r != nil {
		t.Fatalf("receipts were created: %v", r)
	}

	out, code := run(fingerprint[:8]+"\n", "approve", p.Name, "--as", approver, "--reason", "as agreed")
	receipts := f.receiptsOf(p)
	if code != 0 || len(receipts) != 1 {
		t.Fatalf("exit code %d, %d receipts\n%s", code, len(receipts), out)
	}
	for _, shown := range []string{"Call " + f.namespace + "/" + p.Name, `{"target":"web"}`, fingerprint, "approved by receipt receipt-"} {
		if !strings.Contains(out, shown) {
			t.Errorf("the screen does not show %q:\n%s", shown, out)
		}
	}
	r := receipts[0]
	got := []string{r.ProposalRef.Name, string(r.ProposalRef.UID), r.Fingerprint, string(r.Decision), r.Reason, r.Approver.Username}
	want := []string{p.Name, string(p.UID), fingerprint, "Approved", "as agreed", approver}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the receipt (-want +got):\n%s", diff)
	}
	f.wantOutcome(f.step(p), "Dispatching/Granted")
}

func TestCancel_WithdrawsOneCall(t *testing.T) {
	f, run := forPeople(t)
	forbidden := f.waiting()
	out, code := run("", "cancel", forbidden.Name, "--as", approver)
	if want := fmt.Sprintf("error: toolproposals.assent.dev %q is forbidden: ", forbidden.Name); code != 2 || !strings.HasPrefix(out, want) {
		t.Errorf("without the verb delete: exit code %d\n%s", code, out)
	}
	f.wantOutcome(f.step(forbidden), "AwaitingApproval/AwaitingApproval")

	f.grant(approver, rbacv1.PolicyRule{APIGroups: []string{"assent.dev"}, Resources: []string{"toolproposals"}, Verbs: []string{"delete"}})
	waiting := f.waiting()
	if out, code := run("", "cancel", waiting.Name, "--as", approver); code != 0 || out != waiting.Name+" is being cancelled\n" {
		t.Errorf("a waiting call: exit code %d\n%s", code, out)
	}
	f.pass(waiting)
	f.pass(waiting)
	if f.exists(waiting.DeepCopy()) {
		t.Error("the call is still there")
	}
	if out, code := run("", "cancel", waiting.Name, "--as", approver); code != 1 || !strings.HasSuffix(out, "not found\n") {
		t.Errorf("a call that is gone: exit code %d\n%s", code, out)
	}

	f.decide(forbidden, v1alpha1.ReceiptDenied, approver)
	f.wantOutcome(f.step(forbidden), "Denied/DeniedByApprover")
	const ended = "error: the call has ended already: Denied/DeniedByApprover\n"
	if out, code := run("", "cancel", forbidden.Name, "--as", approver); code != 2 || out != ended {
		t.Errorf("a call that has ended: exit code %d\n%s", code, out)
	}
}

// finding is what doctor prints of one power that somebody has.
type finding struct {
	Power     string `json:"power"`
	Subject   string `json:"subject"`
	Namespace string `json:"namespace"`
	Binding   string `json:"binding"`
	Role      string `json:"role"`
}

type diagnosis struct {
	Missing  []string  `json:"missing"`
	Findings []finding `json:"findings"`
}

func TestDoctor_NamesWhoCouldGetAroundTheCluster(t *testing.T) {
	f, run := forPeople(t)
	diagnose := func(text string) (d diagnosis) {
		t.Helper()
		begin, end := strings.Index(text, "{"), strings.LastIndex(text, "}")
		if begin < 0 || json.Unmarshal([]byte(text[begin:end+1]), &d) != nil {
			t.Fatalf("not a diagnosis:\n%s", text)
		}
		return d
	}
	here := func(d diagnosis) []finding {
		return slices.DeleteFunc(d.Findings, func(x finding) bool { return x.Subject != "User eve-"+f.namespace })
	}

	out, code := run("", "doctor", "-o", "json")
	before := diagnose(out)
	if len(before.Missing) != 0 || len(here(before)) != 0 || (code == 0) != (len(before.Findings) == 0) {
		t.Fatalf("before: exit code %d\n%s", code, out)
	}

	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "doctor-" + f.namespace},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{approver}, Verbs: []string{"impersonate"}},
			{APIGroups: []string{"assent.dev"}, Resources: []string{"*/status"}, Verbs: []string{"patch"}},
		},
	}
	f.create(role)
	t.Cleanup(func() { _ = server.admin.Delete(noCancel(t.Context()), role) })
	f.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "eve", Namespace: f.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "eve-" + f.namespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	})
	out, code = run("", "doctor", "-o", "json")
	want := []finding{
		{"impersonate", "User eve-" + f.namespace, f.namespace, "RoleBinding/eve", role.Name},
		{"write status", "User eve-" + f.namespace, f.namespace, "RoleBinding/eve", role.Name},
	}
	if diff := cmp.Diff(want, here(diagnose(out))); diff != "" || code != 2 || !strings.HasSuffix(out, "error: somebody could get around Assent\n") {
		t.Errorf("exit code %d (-want +got):\n%s%s", code, diff, out)
	}
	text, code := run("", "doctor")
	line := fmt.Sprintf("User eve-%s in %s by RoleBinding/eve of %s\n", f.namespace, f.namespace, role.Name)
	if code != 2 || strings.Count(text, line) != 2 {
		t.Errorf("exit code %d, without twice %q:\n%s", code, line, text)
	}

	f.withoutAdmission()
	out, code = run("", "doctor", "-o", "json")
	missing := []string{"MutatingWebhookConfiguration assent", "ValidatingWebhookConfiguration assent"}
	if diff := cmp.Diff(missing, diagnose(out).Missing); diff != "" || code != 2 || !strings.HasSuffix(out, "error: some of Assent's admission is missing\n") {
		t.Errorf("without webhooks: exit code %d (-want +got):\n%s%s", code, diff, out)
	}
}
