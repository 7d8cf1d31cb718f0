// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
	"github.com/assent-dev/assent/internal/policy"
)

// requestFor is what wakes the controller of policies for a namespace, or with
// an empty name for the cluster's.
func requestFor(namespace string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: "policies"}}
}

func (f *fixture) newPolicy(name, text string) *v1alpha1.ToolPolicy {
	return &v1alpha1.ToolPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}, Spec: v1alpha1.PolicySpec{Cedar: text}}
}

// clusterPolicy creates a policy of the cluster for as long as the test runs.
// Other tests see it, too, so that its text must be about the fixture alone.
func (f *fixture) clusterPolicy(name, text string) *v1alpha1.ClusterToolPolicy {
	f.t.Helper()
	p := &v1alpha1.ClusterToolPolicy{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-" + name}, Spec: v1alpha1.PolicySpec{Cedar: text}}
	f.create(p)
	ctx := noCancel(f.ctx)
	f.t.Cleanup(func() {
		if err := client.IgnoreNotFound(server.admin.Delete(ctx, p)); err != nil {
			f.t.Errorf("deleting the cluster policy: %v", err)
		}
	})
	return p
}

// second is another namespace under the same operator.
func (f *fixture) second() *fixture {
	f.t.Helper()
	g := newFixture(f.t)
	g.shared, g.proposals, g.policies = f.shared, f.proposals, f.policies
	return g
}

// caller is a requester of the fixture's own: admission counts the open calls
// of a requester over all namespaces, and those of these tests stay open.
func (f *fixture) caller() client.Client {
	f.t.Helper()
	return f.as("system:serviceaccount:"+f.namespace+":caller", "system:masters")
}

// wantCall proposes a call, lets the controller look at it once, and compares
// how it stands then.
func (f *fixture) wantCall(tool, want string) *v1alpha1.ToolProposal {
	f.t.Helper()
	p := f.newProposal(tool, web)
	if err := f.caller().Create(f.ctx, p); err != nil {
		f.t.Fatalf("proposing a call of %s: %v", tool, err)
	}
	p = f.step(p)
	if got := outcome(p); got != want {
		f.t.Errorf("a call of %s: got %s, want %s: %s", tool, got, want, jsonOf(f.t, p.Status))
	}
	return p
}

const granted = "Dispatching/Granted"

func TestPolicyWithATypo_DeniesTheCallsItCouldMatchAndNoOthersUntilFixed(t *testing.T) {
	f := newFixture(t)
	recorder := record.NewFakeRecorder(8)
	f.shared.Events = &controllers.Events{Recorder: recorder}
	read := f.metrics(func() map[v1alpha1.Phase]int { return nil }, func() string { return "" })
	f.tool("restart")
	f.tool("other")
	f.policy("allow", permitAll)
	p := f.newPolicy("guard", "forbid (principal, action, resource == Tool::\"restart\")\nwhen { context.invocation.arguments.tarjet == \"db\" };")
	f.create(p)
	f.wantReady(p, "False/ValidationFailed", `line 2, column 37: `)
	if _, message := f.ready(p); !strings.Contains(message, "target") {
		t.Errorf("the message does not name what was meant: %s", message)
	}
	if got := p.Status.Problems; len(got) != 1 || got[0].Line != 2 || got[0].Column != 37 || got[0].Policy != f.namespace+"/guard#0" {
		t.Errorf("got problems %v", got)
	}
	call := f.wantCall("restart", "Denied/PolicyUnhealthy")
	id := f.namespace + "/guard#0"
	if d := call.Status.Decision; d == nil || d.Answer != "Deny" || d.Reason != "PolicyUnhealthy" || len(d.Policies) != 1 || d.Policies[0] != id {
		t.Errorf("the decision does not name %s: %s", id, jsonOf(t, d))
	}
	if c := meta.FindStatusCondition(call.Status.Conditions, v1alpha1.ConditionDecided); c == nil || c.Status != metav1.ConditionTrue ||
		c.Reason != "PolicyUnhealthy" || !strings.Contains(c.Message, id) {
		t.Errorf("the condition does not name reason and policy: %s", jsonOf(t, c))
	}
	if event := <-recorder.Events; !strings.HasPrefix(event, "Warning PolicyUnhealthy ") || !strings.Contains(event, id) {
		t.Errorf("the Event does not name reason and policy: %s", event)
	}
	counted := "assent_policy_decisions_total{answer=Deny,policy=" + id + ",reason=PolicyUnhealthy} 1"
	for _, want := range []string{"assent_decisions_total{answer=Deny,effect=command,reason=PolicyUnhealthy} 1", counted} {
		if got := strings.Join(read(), "\n"); !strings.Contains(got, want) {
			t.Errorf("the metrics lack %s:\n%s", want, got)
		}
	}
	f.wantCall("other", granted)

	p.Spec.Cedar = strings.Replace(p.Spec.Cedar, "tarjet", "target", 1)
	f.mustUpdate(p)
	f.wantReady(p, "True/Ready", "in force")
	f.wantCall("restart", granted)
	if got, want := outcome(f.step(f.propose("restart", `{"target":"db"}`))), "Denied/Forbidden"; got != want {
		t.Errorf("what the mended policy forbids: got %s, want %s", got, want)
	}
	if got := strings.Join(read(), "\n"); !strings.Contains(got, counted) {
		t.Errorf("the metrics lack %s:\n%s", counted, got)
	}
	f.mustDelete(p)
	f.reloadPolicies()
	if got := strings.Join(read(), "\n"); strings.Contains(got, id) {
		t.Errorf("the metrics still have a policy that is gone:\n%s", got)
	}
}

func TestPolicyForAToolThatDoesNotExistYet_IsReadyWithAWarningAndCheckedOnceItDoes(t *testing.T) {
	f := newFixture(t)
	f.running()
	p := f.newPolicy("restarts", `permit (principal, action, resource == Tool::"restart") when { context.invocation.arguments.target == "web" };`)
	f.create(p)
	f.becomes(p, "True/Ready")
	if _, message := f.ready(p); len(p.Status.Warnings) == 0 || !strings.Contains(message, "(yet)") {
		t.Errorf("nothing says that there is no such tool: %s, %s", message, jsonOf(t, p.Status.Warnings))
	}
	m := f.tool("restart", func(m *v1alpha1.ToolManifest) {
		m.Spec.Arguments[0].Name, m.Spec.Command.Argv[2] = "host", "{host}"
	})
	f.becomes(p, "False/ValidationFailed")
	f.mustDelete(m)
	f.becomes(p, "True/Ready")
	f.tool("restart")
	f.until("the warning goes", func() bool {
		ready, _ := f.ready(p)
		return ready == "True/Ready" && len(p.Status.Warnings) == 0
	})
	f.wantCall("restart", granted)
}

func TestClusterPolicy_ForbidsWhatNoNamespaceCanPermit(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	p := f.clusterPolicy("never", fmt.Sprintf(`forbid (principal, action, resource) when { resource.namespace == %q };`, f.namespace))
	f.policy("allow", permitAll+` permit (principal, action, resource == Tool::"restart");`)
	f.wantReady(p, "True/Ready", "")
	call := f.wantCall("restart", "Denied/Forbidden")
	if got, want := call.Status.Decision.Policies, "/"+p.Name+"#0"; len(got) != 1 || got[0] != want {
		t.Errorf("got policies %v, want %s", got, want)
	}
	f.mustDelete(p)
	f.lookAt(&v1alpha1.ToolPolicy{ObjectMeta: metav1.ObjectMeta{Name: "allow", Namespace: f.namespace}})
	if _, err := f.policies.Reconcile(f.ctx, requestFor("")); err != nil {
		t.Fatal(err)
	}
	f.wantCall("restart", granted)
}

func TestClusterPolicy_IsUnhealthyOnlyWhereItDoesNotFit(t *testing.T) {
	f := newFixture(t)
	g := f.second()
	for _, one := range []*fixture{f, g} {
		one.policy("allow", permitAll)
	}
	guarded := "restart-" + f.namespace // no other namespace has it
	f.tool(guarded)
	g.tool(guarded, func(m *v1alpha1.ToolManifest) {
		m.Spec.Arguments[0].Name, m.Spec.Command.Argv[2] = "host", "{host}"
	})
	g.tool("other")
	p := f.clusterPolicy("guard", fmt.Sprintf(`forbid (principal, action, resource == Tool::%q) when { context.invocation.arguments.target == "db" };`, guarded))
	f.reloadPolicies()
	g.reloadPolicies()
	f.wantReady(p, "False/ValidationFailed", "(tools of namespace "+g.namespace+")")
	for _, problem := range p.Status.Problems {
		if problem.Namespace != g.namespace {
			t.Errorf("it is unhealthy in %s as well: %s", problem.Namespace, problem.Message)
		}
	}
	f.wantCall(guarded, granted)
	if got, want := outcome(g.step(g.propose(guarded, `{"host":"web"}`))), "Denied/PolicyUnhealthy"; got != want {
		t.Errorf("where it does not fit: got %s, want %s", got, want)
	}
	g.wantCall("other", granted)
}

func TestPolicyText_ThatGotPastAdmissionUnread_DeniesEveryCallOfItsSet(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.tool("other")
	f.policy("allow", permitAll)
	calls := []*v1alpha1.ToolProposal{f.propose("restart", web), f.propose("other", web), f.propose("restart", web)}
	f.withoutAdmission()
	for name, text := range map[string]string{
		"syntax":   `permit (principal, action, resource == Tool::"elsewhere"`,
		"template": `permit (principal == ?principal, action, resource);`,
		"nesting":  "permit (principal, action, resource) when { " + repeat("(", 65) + "true" + repeat(")", 65) + " };",
		"nothing":  "// nothing at all",
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			p := f.newPolicy(name, text)
			f.create(p)
			f.wantReady(p, "False/SyntaxError", "")
			f.mustDelete(p)
		})
	}
	broken := f.newPolicy("broken", `permit (principal, action, resource == Tool::"elsewhere"`)
	f.create(broken)
	f.wantReady(broken, "False/SyntaxError", "line 1")
	for _, call := range calls[:2] {
		got := f.step(call)
		f.wantOutcome(got, "Denied/PolicyUnhealthy")
		if len(got.Status.Decision.Errors) != 1 || !strings.Contains(got.Status.Message, f.namespace+"/broken") {
			t.Errorf("nothing names the policy: %s", jsonOf(t, got.Status))
		}
	}
	f.mustDelete(broken)
	f.reloadPolicies()
	f.wantOutcome(f.step(calls[2]), granted)
}

// A person's decision is about the call, not about the policies, and does not
// outlive them.
func TestForbid_AfterTheApproval_DeniesAndConsumesNothing(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	p := f.waiting()
	receipt := f.decide(p, v1alpha1.ReceiptApproved, approver)
	f.create(f.newPolicy("late", `forbid (principal, action, resource);`))

	// The forbid is stored and not yet in force: nothing may rest on the older
	// policies any more.
	f.wantOutcome(f.step(p), "AwaitingApproval/AwaitingApproval")
	f.reloadPolicies()
	p = f.step(p)
	f.wantOutcome(p, "Denied/PolicyChanged")
	id := f.namespace + "/late#0"
	if d := p.Status.Decision; d.Answer != "Deny" || d.Reason != "Forbidden" || len(d.Policies) != 1 || d.Policies[0] != id {
		t.Errorf("the decision does not name %s: %s", id, jsonOf(t, d))
	}
	if !strings.Contains(p.Status.Message, id) {
		t.Errorf("the message does not name %s: %s", id, p.Status.Message)
	}
	f.step(p)
	if got := f.verdict(receipt); strings.Contains(got, "Consumed=True") {
		t.Errorf("the receipt was consumed: %s", got)
	}
	if n := len(f.jobs()); n != 0 {
		t.Errorf("there are %d Jobs", n)
	}
}

func TestForbid_OfApprovedCalls_IsNeverAskedOfPeople(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	f.policy("never", `forbid (principal, action, resource) when { context.has_human_approval };`)
	p := f.propose("change", web)
	p = f.step(p)
	f.wantOutcome(p, "Denied/Forbidden")
	err := f.as(approver).Create(f.ctx, newReceipt(p))
	if got, want := refusalOf(err), "422 spec.proposalRef:NotAwaitingApproval"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Each row changes the policies on the API server without telling the operator.
func TestCommit_WaitsWhileThePoliciesInForceAreNotThoseOfTheServer(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"a policy was created": func(f *fixture) { f.create(f.newPolicy("new", `forbid (principal, action, resource);`)) },
		"a cluster policy was created": func(f *fixture) {
			f.clusterPolicy("new", fmt.Sprintf(`forbid (principal, action, resource) when { resource.namespace == %q };`, f.namespace))
		},
		"a policy was edited": func(f *fixture) {
			p := &v1alpha1.ToolPolicy{}
			if err := server.admin.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: "allow"}, p); err != nil {
				f.t.Fatal(err)
			}
			p.Spec.Cedar += ` forbid (principal, action, resource);`
			f.mustUpdate(p)
		},
		"the policy was replaced by another of its name": func(f *fixture) {
			f.mustDelete(f.newPolicy("allow", ""))
			f.create(f.newPolicy("allow", `forbid (principal, action, resource);`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.tool("restart")
			f.policy("allow", permitAll)
			p := f.propose("restart", web)
			change(f)
			if got := f.step(p); got.Status.Phase.Terminal() || got.Status.Dispatch != nil {
				t.Fatalf("it did not wait: %s", outcome(got))
			}
			f.reloadPolicies()
			if _, err := f.policies.Reconcile(f.ctx, requestFor("")); err != nil {
				t.Fatal(err)
			}
			f.wantOutcome(f.step(p), "Denied/Forbidden")
			if n := len(f.jobs()); n != 0 {
				t.Errorf("there are %d Jobs", n)
			}
		})
	}
}

func TestPolicies_BeyondTheLimit_PermitNothing(t *testing.T) {
	f := newFixture(t)
	const limit = 3
	f.policies.Limits.Objects = limit
	f.tool("restart")
	f.create(f.newPolicy("allow", permitAll))
	for i := range limit - 1 {
		f.create(f.newPolicy(fmt.Sprintf("p%d", i), `permit (principal, action, resource == Tool::"elsewhere");`))
	}
	f.reloadPolicies()
	f.wantCall("restart", granted)
	last := f.newPolicy("one-too-many", permitAll)
	f.create(last)
	f.wantReady(last, "False/LimitExceeded", "4 policy objects where 3 are the limit")
	f.wantCall("restart", "Denied/PolicySetTooLarge")
	f.mustDelete(last)
	f.reloadPolicies()
	f.wantCall("restart", granted)
}

// What a decision names is bounded where it is stored: a status or an Event
// that the API server refuses would keep the call from ever ending.
func TestDecision_OfVeryManyPolicies_IsStored(t *testing.T) {
	f := newFixture(t)
	recorder := record.NewFakeRecorder(8)
	f.shared.Events = &controllers.Events{Recorder: recorder}
	f.tool("restart")
	f.policy("many", repeat("forbid (principal, action, resource);", 700))
	call := f.wantCall("restart", "Denied/Forbidden")
	if got := len(call.Status.Decision.Policies); got != 256 {
		t.Errorf("the status names %d policies, want 256", got)
	}
	if event := <-recorder.Events; len(event) > len("Warning Forbidden ")+1024 || !strings.HasSuffix(event, "…") {
		t.Errorf("the Event has %d bytes", len(event))
	}
}

// With an engine that takes every permit to hold, a permit would be worth nothing.
func TestBrokenEngine_PermitsNothingAndSaysSo(t *testing.T) {
	f := newFixture(t)
	f.shared.Policies = &policy.Store{Engine: func(cedar.PolicyIterator, types.EntityGetter, cedar.Request) (cedar.Decision, cedar.Diagnostic) {
		return cedar.Allow, cedar.Diagnostic{Reasons: []cedar.DiagnosticReason{{PolicyID: "any"}}}
	}}
	f.tool("restart")
	f.policy("allow", permitAll)
	call := f.wantCall("restart", "Denied/PolicySelfTestFailed")
	if d := call.Status.Decision; d == nil || d.Answer != "Deny" || !strings.Contains(call.Status.Message, "self-test of the policy engine") {
		t.Errorf("nothing says what is wrong: %s", jsonOf(t, call.Status))
	}
	if n := len(f.jobs()); n != 0 {
		t.Errorf("there are %d Jobs", n)
	}
}
