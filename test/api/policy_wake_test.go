// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
)

// runPolicies adds the controller of policies, which wakes calls.
func runPolicies(c *controllers.Config) controller {
	c.Wake = &controllers.Wake{}
	p := &controllers.PolicyReconciler{Config: c}
	c.Behind = p.Behind
	return p
}

// Nothing but the change of a policy wakes the calls here: their own timers are
// minutes away.
func TestPolicyThatChanges_IsFeltByWaitingCallsSoon(t *testing.T) {
	const asked = "AwaitingApproval/AwaitingApproval"
	f := newFixture(t)
	f.tool("restart")
	f.tool("other")
	f.tool("third")
	f.policy("allow", `permit (principal, action, resource) when { context.has_human_approval };`)
	f.runControllers(runPolicies)
	call := func(tool string) *v1alpha1.ToolProposal {
		p := f.propose(tool, web)
		f.await(p, time.Minute, asked)
		return p
	}
	denied, permitted, byCluster := call("restart"), call("other"), call("third")
	within := func(p *v1alpha1.ToolProposal, want string) {
		t.Helper()
		t.Logf("%s after %s", want, f.await(p, 10*time.Second, want).Round(time.Millisecond))
	}

	f.create(f.newPolicy("never", `forbid (principal, action, resource == Tool::"restart");`))
	within(denied, "Denied/Forbidden")
	f.create(f.newPolicy("always", `permit (principal, action, resource == Tool::"other");`))
	within(permitted, granted)

	f.clusterPolicy("never", fmt.Sprintf(`forbid (principal, action, resource) when { resource.namespace == %q };`, f.namespace))
	within(byCluster, "Denied/Forbidden")
}

// Whoever applies the same files again, or restarts the informers, wakes nobody.
func TestPolicyThatIsAppliedAgain_WakesNoCall(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	p := f.waiting()
	queue := f.woken()
	f.reloadPolicies()
	allow := &v1alpha1.ToolPolicy{}
	if err := server.admin.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: "allow"}, allow); err != nil {
		t.Fatal(err)
	}
	allow.Labels = map[string]string{"applied": "again"}
	f.mustUpdate(allow)
	f.reloadPolicies()
	if got := queue.names(); len(got) != 0 {
		t.Errorf("woken: %v", got)
	}
	f.create(f.newPolicy("more", `forbid (principal, action, resource == Tool::"elsewhere");`))
	f.reloadPolicies()
	if got := queue.names(); len(got) != 1 || got[0] != p.Name {
		t.Errorf("woken: %v, want %s", got, p.Name)
	}
}

func TestPolicyOfANamespace_WakesNoCallOfAnother(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	g := f.second()
	g.approvalTool()
	f.waiting()
	there := g.waiting()
	queue := f.woken()
	g.create(g.newPolicy("more", `forbid (principal, action, resource == Tool::"elsewhere");`))
	g.reloadPolicies()
	if got := queue.names(); len(got) != 1 || got[0] != there.Name {
		t.Errorf("woken: %v, want %s", got, there.Name)
	}
}
