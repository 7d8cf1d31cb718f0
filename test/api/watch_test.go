// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/observe"
)

// controller is what the operator runs.
type controller interface {
	SetupWithManager(mgr ctrl.Manager) error
}

// runControllers runs the fixture's controllers of calls, and more, as the
// operator does: by informers, for the fixture's namespace.
func (f *fixture) runControllers(more ...func(*controllers.Config) controller) {
	f.t.Helper()
	mgr, err := ctrl.NewManager(server.config, ctrl.Options{
		Scheme: server.scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{f.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	if err := observe.RegisterIndexes(f.ctx, mgr.GetFieldIndexer()); err != nil {
		f.t.Fatal(err)
	}
	shared := f.restarted()
	shared.Client = mgr.GetClient()
	var all []controller
	for _, one := range more {
		all = append(all, one(shared))
	}
	for _, c := range append(all,
		&controllers.ProposalReconciler{Config: shared}, &controllers.SessionReconciler{Config: shared},
		&controllers.BatchReconciler{Config: shared},
	) {
		if err := c.SetupWithManager(mgr); err != nil {
			f.t.Fatal(err)
		}
	}
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(f.ctx) }()
	f.t.Cleanup(func() {
		if err := <-stopped; err != nil && !errors.Is(err, f.ctx.Err()) {
			f.t.Errorf("the controllers ended: %v", err)
		}
	})
}

// await waits until a call is as it should be, woken by its changes.
func (f *fixture) await(p *v1alpha1.ToolProposal, limit time.Duration, want string) time.Duration {
	f.t.Helper()
	began := time.Now()
	w, err := server.admin.Watch(f.ctx, &v1alpha1.ToolProposalList{}, client.InNamespace(f.namespace))
	if err != nil {
		f.t.Fatal(err)
	}
	defer w.Stop()
	timeout := time.After(limit)
	for {
		select {
		case e := <-w.ResultChan():
			now, ok := e.Object.(*v1alpha1.ToolProposal)
			if ok && e.Type != watch.Deleted && now.UID == p.UID && outcome(now) == want {
				return time.Since(began)
			}
		case <-timeout:
			f.t.Fatalf("call %s is %s after %s, want %s", p.Spec.CallID, outcome(f.reload(p)), limit, want)
		}
	}
}

// Nothing but the watch wakes the controllers here: the calls' own timers are
// minutes away.
func TestSessionThatIsRevokedOrDeleted_StopsItsCallsWithinFiveSecondsAndIsRecorded(t *testing.T) {
	for reason, end := range map[string]func(*fixture){
		"Revoked": func(f *fixture) {
			f.changeSession("s", func(s *v1alpha1.AgentSessionSpec) { s.Revoked = true })
		},
		"Deleted": func(f *fixture) { f.mustDelete(f.getSession("s")) },
	} {
		t.Run(reason, func(t *testing.T) {
			f := newFixture(t)
			log := f.record()
			f.tool("restart")
			f.tool("change", humanApproval)
			f.policy("allow", permitAll)
			f.session("s")
			f.runControllers()
			waiting := f.made(f.inSession("s", "change", "1"))
			granted := f.made(f.inSession("s", "restart", "2"))
			f.await(waiting, time.Minute, "AwaitingApproval/AwaitingApproval")
			f.await(granted, time.Minute, "Dispatching/Granted")
			running := f.made(f.inSession("s", "restart", "3"))
			f.await(running, time.Minute, "Dispatching/Granted")
			for i := 0; len(f.jobs()) < 2; i++ {
				if i == 1000 {
					t.Fatal("granted calls got no Jobs")
				}
			}
			f.redeemed(f.reload(running))

			end(f)
			for _, tc := range []struct {
				call *v1alpha1.ToolProposal
				want string
			}{
				{running, "Cancelled/SessionInvalid"}, {granted, "Cancelled/SessionInvalid"}, {waiting, "Denied/SessionInvalid"},
			} {
				t.Logf("call %s was stopped after %s", tc.call.Spec.CallID, f.await(tc.call, 5*time.Second, tc.want).Round(time.Millisecond))
			}
			if _, err := (&controllers.SessionReconciler{Config: f.restarted()}).Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: f.namespace, Name: "s"}}); err != nil && !apierrors.IsConflict(err) {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{reason}, sessionChanges(log)); diff != "" {
				t.Errorf("records of the session (-want +got):\n%s", diff)
			}
		})
	}
}

// The session's own controller does not run here until it is told to.
func TestSessionThatIsDeleted_StaysUntilThatIsRecorded(t *testing.T) {
	f := newFixture(t)
	log := f.record()
	f.tool("restart")
	f.policy("allow", permitAll)
	f.session("s")
	if got := f.getSession("s").Finalizers; len(got) != 0 {
		t.Fatalf("a session that nobody looked at has finalizers %v", got)
	}
	p := f.step(f.made(f.inSession("s", "restart", "1")))
	if diff := cmp.Diff([]string{v1alpha1.FinalizerRecord}, f.getSession("s").Finalizers); diff != "" {
		t.Errorf("finalizers of a session that has a call (-want +got):\n%s", diff)
	}
	f.mustDelete(f.getSession("s"))
	log.fail = refuseAll
	r := &controllers.SessionReconciler{Config: f.shared}
	key := client.ObjectKey{Namespace: f.namespace, Name: "s"}
	if _, err := r.Reconcile(f.ctx, ctrl.Request{NamespacedName: key}); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("without the log: got %v, want %v", err, audit.ErrUnavailable)
	}
	f.getSession("s")
	err := f.as(f.bot()).Create(f.ctx, f.inSession("s", "restart", "2"))
	if got, want := refusalOf(err), "422 spec.sessionRef:SessionInvalid"; got != want {
		t.Errorf("a call in it: got %s, want %s", got, want)
	}
	log.fail = nil
	f.stepSession("s")
	f.stepSession("s")
	if err := server.admin.Get(f.ctx, key, &v1alpha1.AgentSession{}); !apierrors.IsNotFound(err) {
		t.Errorf("once it is recorded: got %v, want that it is gone", err)
	}
	if diff := cmp.Diff([]string{v1alpha1.ReasonDeleted}, sessionChanges(log)); diff != "" {
		t.Errorf("records of the session (-want +got):\n%s", diff)
	}
	if got, want := outcome(f.step(f.step(p))), "Cancelled/SessionInvalid"; got != want {
		t.Errorf("its call: got %s, want %s", got, want)
	}
}

// Its spec cannot be read any more, which must not keep it.
func TestSessionWhoseContextBecameUnreadable_CanBeDeleted(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	f.stepSession("s")
	t.Run("changed without admission", func(t *testing.T) {
		f.in(t).withoutAdmission()
		f.changeSession("s", func(s *v1alpha1.AgentSessionSpec) { s.Context = "{" })
	})
	f.mustDelete(f.getSession("s"))
	f.stepSession("s")
	if err := server.admin.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: "s"}, &v1alpha1.AgentSession{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want that it is gone", err)
	}
}

func sessionChanges(r *recorder) []string {
	seen := map[string]bool{}
	var out []string
	for _, record := range r.all() {
		if d, ok := record.Data.(audit.SessionChanged); ok && !seen[record.ID] {
			seen[record.ID] = true
			out = append(out, d.Reason)
		}
	}
	return out
}
