// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
)

// bot is an agent that makes calls in this fixture only, so that what other
// tests leave open does not count against it.
func (f *fixture) bot() string { return "system:serviceaccount:" + f.namespace + ":bot" }

// session creates a session of the agent for an hour.
func (f *fixture) session(name string, change ...func(*v1alpha1.AgentSessionSpec)) *v1alpha1.AgentSession {
	f.t.Helper()
	s := &v1alpha1.AgentSession{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec:       v1alpha1.AgentSessionSpec{Principal: f.bot(), ExpiresAt: metav1.NewTime(f.clock.Now().Add(time.Hour))},
	}
	for _, c := range change {
		c(&s.Spec)
	}
	f.allow(f.bot(), "toolproposals")
	f.create(s)
	return s
}

// inSession is a call in a session that was not created yet.
func (f *fixture) inSession(session, tool, callID string, change ...func(*v1alpha1.ToolProposalSpec)) *v1alpha1.ToolProposal {
	p := f.newProposal(tool, `{"target":"web"}`)
	p.Spec.SessionRef, p.Spec.CallID = &v1alpha1.SessionReference{Name: session}, callID
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

func iteration(n int64) func(*v1alpha1.ToolProposalSpec) {
	return func(s *v1alpha1.ToolProposalSpec) { s.Iteration = &n }
}

// made creates a call as the agent.
func (f *fixture) made(p *v1alpha1.ToolProposal) *v1alpha1.ToolProposal {
	f.t.Helper()
	if err := f.as(f.bot()).Create(f.ctx, p); err != nil {
		f.t.Fatalf("creating call %s: %v", p.Spec.CallID, err)
	}
	return p
}

func (f *fixture) changeSession(name string, change func(*v1alpha1.AgentSessionSpec)) {
	f.t.Helper()
	s := &v1alpha1.AgentSession{}
	if err := server.admin.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, s); err != nil {
		f.t.Fatal(err)
	}
	change(&s.Spec)
	if err := server.admin.Update(f.ctx, s); err != nil {
		f.t.Fatalf("changing the session: %v", err)
	}
}

func (f *fixture) getSession(name string) *v1alpha1.AgentSession {
	f.t.Helper()
	s := &v1alpha1.AgentSession{}
	if err := server.admin.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, s); err != nil {
		f.t.Fatal(err)
	}
	return s
}

// stepSession lets the controller look at a session once.
func (f *fixture) stepSession(name string) {
	f.t.Helper()
	r := &controllers.SessionReconciler{Config: f.shared}
	if _, err := r.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: f.namespace, Name: name}}); err != nil {
		f.t.Fatalf("reconciling session %s: %v", name, err)
	}
}

// setClock sets the controllers' clock so far ahead of the real one.
func (f *fixture) setClock(ahead time.Duration) {
	f.clock.mu.Lock()
	defer f.clock.mu.Unlock()
	f.clock.offset = ahead
}

func humanApproval(m *v1alpha1.ToolManifest) { m.Spec.HumanApproval = true }

func TestSession_TrustedContextReachesPolicies(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.create(&v1alpha1.ToolPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: f.namespace},
		Spec: v1alpha1.PolicySpec{
			Cedar:             `permit (principal, action, resource) when { context has session && context.session.environment == "production" };`,
			SessionAttributes: []v1alpha1.SessionAttribute{{Name: "environment", Type: "String", Required: true}},
		},
	})
	f.reloadPolicies()
	with := func(context string) func(*v1alpha1.AgentSessionSpec) {
		return func(s *v1alpha1.AgentSessionSpec) { s.Context = context }
	}
	f.session("production", with(`{"environment":"production"}`))
	f.session("test", with(`{"environment":"test"}`))
	f.session("wrong-type", with(`{"environment":7}`))
	f.session("empty")
	for name, tc := range map[string]struct{ session, want string }{
		"the value that the policy asks for": {"production", "Dispatching/Granted"},
		"another value":                      {"test", "Denied/NoPolicyPermits"},
		"a value of another type":            {"wrong-type", "Denied/ContextInvalid"},
		"no context":                         {"empty", "Denied/ContextInvalid"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(f.step(f.made(f.inSession(tc.session, "restart", "1")))); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	t.Run("without a session", func(t *testing.T) {
		p := f.newProposal("restart", `{"target":"web"}`)
		if got, want := outcome(f.step(f.made(p))), "Denied/NoPolicyPermits"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestSession_ContextThatCannotBeRead_IsRefused(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.policy("allow", permitAll)
	atLimit := `{"a":"` + strings.Repeat("x", 16<<10-8) + `"}`
	contexts := map[string]struct{ context, want string }{
		"duplicate key":            {`{"a":1,"a":2}`, "422 spec.context:ContextInvalid"},
		"not JSON":                 {`{"a":`, "422 spec.context:ContextInvalid"},
		"not an object":            {`[1]`, "422 spec.context:ContextInvalid"},
		"more than 16 KiB":         {atLimit[:len(atLimit)-2] + `x"}`, "422 spec.context:FieldValueTooLong <nil>:FieldValueInvalid"},
		"more bytes than 16 KiB":   {`{"a":"` + strings.Repeat("é", 10<<10) + `"}`, "422 spec.context:ContextInvalid"},
		"exactly 16 KiB":           {atLimit, "accepted"},
		"a number that would lose": {`{"a":9007199254740993}`, "422 spec.context:ContextInvalid"},
	}
	create := func(context string) (*v1alpha1.AgentSession, error) {
		s := &v1alpha1.AgentSession{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "s-", Namespace: f.namespace},
			Spec:       v1alpha1.AgentSessionSpec{Principal: f.bot(), ExpiresAt: metav1.NewTime(time.Now().Add(time.Hour)), Context: context},
		}
		return s, server.admin.Create(f.ctx, s)
	}
	for name, tc := range contexts {
		t.Run(name, func(t *testing.T) {
			if _, err := create(tc.context); refusalOf(err) != tc.want {
				t.Errorf("got %s, want %s", refusalOf(err), tc.want)
			}
		})
	}
	var unread []*v1alpha1.AgentSession
	t.Run("stored without admission", func(t *testing.T) {
		inner := &fixture{t: t, ctx: t.Context(), namespace: f.namespace}
		inner.withoutAdmission()
		for _, tc := range contexts {
			if s, err := create(tc.context); err == nil && tc.want != "accepted" {
				unread = append(unread, s)
			}
		}
	})
	f.allow(f.bot(), "toolproposals")
	if len(unread) == 0 {
		t.Fatal("no session with an unreadable context was stored")
	}
	for _, s := range unread {
		err := f.as(f.bot()).Create(f.ctx, f.inSession(s.Name, "restart", "1"))
		if got, want := refusalOf(err), "422 spec.sessionRef:SessionInvalid"; got != want {
			t.Errorf("a call in it: got %s, want %s", got, want)
		}
	}
}

func TestSession_CarriesCallsOfItsPrincipalInItsLifeOnly(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.session("others", func(s *v1alpha1.AgentSessionSpec) { s.Principal = other })
	f.session("revoked", func(s *v1alpha1.AgentSessionSpec) { s.Revoked = true })
	f.session("expired", func(s *v1alpha1.AgentSessionSpec) { s.ExpiresAt = metav1.NewTime(f.clock.Now().Add(-time.Second)) })
	f.session("good")
	for name, tc := range map[string]struct{ session, callID, want string }{
		"of another principal": {"others", "1", "422 spec.sessionRef:SessionInvalid"},
		"revoked":              {"revoked", "1", "422 spec.sessionRef:SessionInvalid"},
		"expired":              {"expired", "1", "422 spec.sessionRef:SessionInvalid"},
		"missing":              {"missing", "1", "422 spec.sessionRef:SessionInvalid"},
		"an empty call ID":     {"good", "", "422 spec.callID:EmptyCallID"},
		"good":                 {"good", "1", "accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refusalOf(f.as(f.bot()).Create(f.ctx, f.inSession(tc.session, "restart", tc.callID))); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSessionLimits_AreEnforcedAtAdmission(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.tool("other")
	f.policy("allow", permitAll)
	for name, tc := range map[string]struct {
		limit func(*v1alpha1.AgentSessionSpec)
		made  func(session string)
		call  func(session string) *v1alpha1.ToolProposal
		want  string
	}{
		"a call beyond the budget": {
			limitCalls(1), func(s string) { f.step(f.made(f.inSession(s, "restart", "1"))) },
			func(s string) *v1alpha1.ToolProposal { return f.inSession(s, "restart", "2") }, "403 spec.sessionRef:BudgetExceeded",
		},
		"a tool beyond its budget": {
			limitTool("restart", 1), func(s string) { f.step(f.made(f.inSession(s, "restart", "1"))) },
			func(s string) *v1alpha1.ToolProposal { return f.inSession(s, "restart", "2") }, "403 spec.sessionRef:BudgetExceeded",
		},
		"another tool than the one that is used up": {
			limitTool("restart", 1), func(s string) { f.step(f.made(f.inSession(s, "restart", "1"))) },
			func(s string) *v1alpha1.ToolProposal { return f.inSession(s, "other", "2") }, "accepted",
		},
		"an iteration before the last": {
			func(*v1alpha1.AgentSessionSpec) {}, func(s string) { f.step(f.made(f.inSession(s, "restart", "1", iteration(2)))) },
			func(s string) *v1alpha1.ToolProposal { return f.inSession(s, "restart", "2", iteration(1)) }, "422 spec.iteration:IterationBackwards",
		},
		"a call ID that was used": {
			func(*v1alpha1.AgentSessionSpec) {}, func(s string) { f.step(f.made(f.inSession(s, "restart", "1"))) },
			func(s string) *v1alpha1.ToolProposal { return f.inSession(s, "restart", "1") }, "422 spec.callID:DuplicateCallID",
		},
		"a call ID that was used by another kind of call": {
			func(*v1alpha1.AgentSessionSpec) {}, func(s string) { f.step(f.made(f.inSession(s, "restart", "1"))) },
			func(s string) *v1alpha1.ToolProposal { return f.inSession(s, "other", "1") }, "422 spec.callID:DuplicateCallID",
		},
	} {
		t.Run(name, func(t *testing.T) {
			session := strings.ReplaceAll(name, " ", "-")
			session = strings.ToLower(session)
			f.session(session, tc.limit)
			tc.made(session)
			if got := refusalOf(f.as(f.bot()).Create(f.ctx, tc.call(session))); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// Calls that are created at the same moment all pass admission: it is the
// ledger that keeps them apart.
func TestSessionLimits_AreEnforcedByTheController(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.tool("change", humanApproval)
	f.policy("allow", permitAll)
	for name, tc := range map[string]struct {
		limit func(*v1alpha1.AgentSessionSpec)
		tool  string
		first func(*v1alpha1.ToolProposalSpec)
		then  func(*v1alpha1.ToolProposalSpec)
		want  [2]string
	}{
		"calls":           {limit: limitCalls(1), tool: "restart", want: [2]string{"Dispatching/Granted", "Denied/BudgetExceeded"}},
		"no calls at all": {limit: limitCalls(0), tool: "restart", want: [2]string{"403", "403"}},
		"calls of a tool": {limit: limitTool("restart", 1), tool: "restart", want: [2]string{"Dispatching/Granted", "Denied/BudgetExceeded"}},
		"open calls":      {limit: limitPending(1), tool: "change", want: [2]string{"AwaitingApproval/AwaitingApproval", "403"}},
		"a later iteration first": {
			limit: func(*v1alpha1.AgentSessionSpec) {}, tool: "restart", first: iteration(2), then: iteration(1),
			want: [2]string{"Dispatching/Granted", "Invalid/IterationBackwards"},
		},
		"one iteration": {
			limit: func(*v1alpha1.AgentSessionSpec) {}, tool: "restart", first: iteration(1), then: iteration(1),
			want: [2]string{"Dispatching/Granted", "Dispatching/Granted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			session := strings.ReplaceAll(name, " ", "-")
			f.session(session, tc.limit)
			var got [2]string
			var calls []*v1alpha1.ToolProposal
			for i, change := range []func(*v1alpha1.ToolProposalSpec){tc.first, tc.then} {
				p := f.inSession(session, tc.tool, fmt.Sprint(i))
				if change != nil {
					change(&p.Spec)
				}
				if err := f.as(f.bot()).Create(f.ctx, p); err != nil {
					got[i] = refusalOf(err)[:3]
					continue
				}
				calls = append(calls, p)
			}
			for i, p := range calls {
				got[i] = outcome(f.step(p))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
		})
	}
}

// endings are the ways in which a session stops carrying its calls.
func (f *fixture) endings() map[string]func(session string) {
	return map[string]func(string){
		"revoked": func(s string) { f.changeSession(s, func(spec *v1alpha1.AgentSessionSpec) { spec.Revoked = true }) },
		"deleted": func(s string) {
			if err := server.admin.Delete(f.ctx, f.getSession(s)); err != nil {
				f.t.Fatal(err)
			}
		},
		"context changed": func(s string) {
			f.changeSession(s, func(spec *v1alpha1.AgentSessionSpec) { spec.Context = `{"a":"b"}` })
		},
		"extended": func(s string) {
			f.changeSession(s, func(spec *v1alpha1.AgentSessionSpec) {
				spec.ExpiresAt = metav1.NewTime(spec.ExpiresAt.Add(time.Hour))
			})
		},
		"created anew": func(s string) {
			old := f.getSession(s)
			if err := server.admin.Delete(f.ctx, old); err != nil {
				f.t.Fatal(err)
			}
			f.stepSession(s)
			f.create(&v1alpha1.AgentSession{ObjectMeta: metav1.ObjectMeta{Name: s, Namespace: f.namespace}, Spec: old.Spec})
		},
		"expired": func(string) { f.setClock(2 * time.Hour) },
	}
}

func TestSessionThatEnds_VoidsOpenCallsAndCancelsDispatchedOnes(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.tool("change", func(m *v1alpha1.ToolManifest) {
		humanApproval(m)
		m.Spec.Approval = &v1alpha1.ApprovalRules{Timeout: &metav1.Duration{Duration: 24 * time.Hour}}
	})
	f.policy("allow", permitAll)
	for name, end := range f.endings() {
		t.Run(name, func(t *testing.T) {
			session := strings.ReplaceAll(name, " ", "-")
			f.setClock(0)
			f.session(session)
			fresh := f.made(f.inSession(session, "restart", "0"))
			waiting := f.step(f.made(f.inSession(session, "change", "1")))
			granted := f.step(f.made(f.inSession(session, "restart", "2")))
			running := f.redeemed(f.step(f.made(f.inSession(session, "restart", "3"))))
			end(session)
			for _, tc := range []struct {
				what string
				call *v1alpha1.ToolProposal
				want string
			}{
				{"one that was not looked at", fresh, "Denied/SessionInvalid"},
				{"one that waits for approval", waiting, "Denied/SessionInvalid"},
				{"one that was granted", granted, "Cancelled/SessionInvalid"},
				{"one that runs", running, "Cancelled/SessionInvalid"},
			} {
				if got := outcome(f.step(f.step(tc.call))); got != tc.want {
					t.Errorf("%s: got %s, want %s", tc.what, got, tc.want)
				}
			}
			if jobs := f.jobs(); len(jobs) != 0 {
				t.Errorf("%d Jobs are left of a session that ended", len(jobs))
			}
		})
	}
}

// redeemed is a call that a runner has fetched, as the execution endpoint
// writes it.
func (f *fixture) redeemed(p *v1alpha1.ToolProposal) *v1alpha1.ToolProposal {
	f.t.Helper()
	p = p.DeepCopy()
	p.Status.Phase, p.Status.Reason = v1alpha1.PhaseRunning, v1alpha1.ReasonRedeemed
	for _, j := range f.jobs() {
		if j.Name == p.Status.Dispatch.JobName {
			p.Status.Dispatch.JobUID = j.UID
		}
	}
	p.Status.RedeemedBy = &v1alpha1.Redemption{
		PodName: "pod", PodUID: "00000000-0000-0000-0000-000000000001", NonceDigest: repeat("0", 64), TicketDigest: repeat("1", 64),
		Time: metav1.NewTime(f.clock.Now().Truncate(time.Second)),
	}
	if err := server.admin.Status().Update(f.ctx, p); err != nil {
		f.t.Fatalf("redeeming: %v", err)
	}
	return p
}
