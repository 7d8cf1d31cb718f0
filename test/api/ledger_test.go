// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
)

func limitPending(n int32) func(*v1alpha1.AgentSessionSpec) {
	return func(s *v1alpha1.AgentSessionSpec) { s.Limits = &v1alpha1.SessionLimits{Pending: &n} }
}

func limitCalls(n int32) func(*v1alpha1.AgentSessionSpec) {
	return func(s *v1alpha1.AgentSessionSpec) { s.Limits = &v1alpha1.SessionLimits{Calls: &n} }
}

func limitTool(tool string, n int32) func(*v1alpha1.AgentSessionSpec) {
	return func(s *v1alpha1.AgentSessionSpec) {
		s.Limits = &v1alpha1.SessionLimits{PerTool: []v1alpha1.ToolLimit{{Tool: tool, Calls: n}}}
	}
}

func TestEarlierIteration_ThatWasAdmittedFirst_IsTakenUpFirst(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.policy("allow", permitAll)
	f.session("s")
	early := f.made(f.inSession("s", "restart", "1", iteration(1)))
	late := f.made(f.inSession("s", "restart", "2", iteration(2)))
	if p := f.step(late); p.Status.Phase != "" {
		t.Fatalf("the later iteration did not wait: %s", outcome(p))
	}
	for _, p := range []*v1alpha1.ToolProposal{early, late} {
		if got, want := outcome(f.step(p)), "Dispatching/Granted"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Every reconciler of the test stands for an operator of its own: none knows
// what the others do, or has done. All calls are created before the first is
// looked at, so that admission cannot keep them apart.
func TestSession_UnderAHundredParallelCreates_KeepsItsRules(t *testing.T) {
	const n, slots = 100, 16
	for name, tc := range map[string]struct {
		limit  func(*v1alpha1.AgentSessionSpec)
		callID func(int) string
		want   map[string]int
	}{
		"one call ID": {
			func(*v1alpha1.AgentSessionSpec) {}, func(int) string { return "the-same" },
			map[string]int{"Dispatching/Granted": 1, "Invalid/DuplicateCallID": n - 1},
		},
		"a budget of seven calls": {
			limitCalls(7), func(i int) string { return fmt.Sprint(i) },
			map[string]int{"Dispatching/Granted": 7, "Denied/BudgetExceeded": n - 7},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.tool("restart")
			f.policy("allow", permitAll)
			f.session("s", tc.limit)
			calls := make([]*v1alpha1.ToolProposal, n)
			c := f.as(f.bot())
			parallel(n, n, func(i int) {
				calls[i] = f.inSession("s", "restart", tc.callID(i))
				if err := c.Create(f.ctx, calls[i]); err != nil {
					t.Errorf("creating call %d: %v", i, err)
				}
			})
			if t.Failed() {
				t.FailNow()
			}
			parallel(n, slots, func(i int) { f.decideAfresh(calls[i]) })
			got := map[string]int{}
			for _, p := range calls {
				got[outcome(f.reload(p))]++
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if jobs := f.jobs(); len(jobs) != tc.want["Dispatching/Granted"] {
				t.Errorf("%d granted calls have %d Jobs", tc.want["Dispatching/Granted"], len(jobs))
			}
		})
	}
}

// parallel runs the function n times, slots at once.
func parallel(n, slots int, do func(i int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, slots)
	for i := range n {
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			do(i)
		})
	}
	wg.Wait()
}

// decideAfresh lets an operator that remembers nothing look at a call until it was
// granted or has ended.
func (f *fixture) decideAfresh(p *v1alpha1.ToolProposal) {
	operator := &controllers.ProposalReconciler{Config: f.restarted()}
	for range 200 {
		if _, err := operator.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); err != nil {
			f.t.Errorf("reconciling %s: %v", p.Name, err)
			return
		}
		if now := f.reload(p); now.Status.Phase.Terminal() || now.Status.Dispatch != nil {
			return
		}
	}
	f.t.Errorf("%s was not decided", p.Name)
}

// restarted is the operator after a restart: it has the API server's objects,
// the log and the policies, and remembers nothing.
func (f *fixture) restarted() *controllers.Config {
	c := f.shared
	return &controllers.Config{
		Client: c.Client, Live: c.Live, Keys: c.Keys, Contracts: c.Contracts, Policies: c.Policies, Journal: c.Journal,
		Behind: c.Behind, Events: c.Events, Epoch: c.Epoch, Drift: c.Drift, Now: c.Now, Retention: c.Retention, Settings: c.Settings,
		Tracer: c.Tracer,
	}
}

func TestCallID_IsNotUsedAgain(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.policy("allow", permitAll)
	f.session("s")
	second := f.made(f.inSession("s", "restart", "1"))
	first := f.step(f.made(f.inSession("s", "restart", "1")))
	if got, want := outcome(first), "Dispatching/Granted"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	t.Run("after a restart of the operator", func(t *testing.T) {
		f.proposals = &controllers.ProposalReconciler{Config: f.restarted()}
		if got, want := outcome(f.step(second)), "Invalid/DuplicateCallID"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("after the call was deleted", func(t *testing.T) {
		if err := server.admin.Delete(f.ctx, first); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := f.proposals.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(first)}); err != nil {
				t.Fatalf("letting go of the call: %v", err)
			}
		}
		err := f.as(f.bot()).Create(f.ctx, f.inSession("s", "restart", "1"))
		if got, want := refusalOf(err), "422 spec.callID:DuplicateCallID"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("but by another session it is", func(t *testing.T) {
		f.session("s2")
		if got, want := outcome(f.step(f.made(f.inSession("s2", "restart", "1")))), "Dispatching/Granted"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestLedger_ThatSomebodyElseWrote_CarriesNoCalls(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.policy("allow", permitAll)
	f.session("s")
	waiting := f.made(f.inSession("s", "restart", "2"))
	f.step(f.made(f.inSession("s", "restart", "1")))
	s := f.getSession("s")
	s.Status.Ledger.Claims = nil
	if err := server.admin.Status().Update(f.ctx, s); err != nil {
		t.Fatalf("forging the ledger: %v", err)
	}
	if got, want := outcome(f.step(waiting)), "Denied/LedgerTampered"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	err := f.as(f.bot()).Create(f.ctx, f.inSession("s", "restart", "1"))
	if got, want := refusalOf(err), "403 spec.sessionRef:LedgerTampered"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
