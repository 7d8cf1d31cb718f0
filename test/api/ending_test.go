// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// pass lets the controller look once at a call that may be gone afterwards.
func (f *fixture) pass(p *v1alpha1.ToolProposal) {
	f.t.Helper()
	if _, err := f.proposals.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); err != nil {
		f.t.Fatalf("reconciling %s: %v", p.Name, err)
	}
}

func (f *fixture) exists(o client.Object) bool {
	f.t.Helper()
	err := server.admin.Get(f.ctx, client.ObjectKeyFromObject(o), o)
	if err != nil && !apierrors.IsNotFound(err) {
		f.t.Fatal(err)
	}
	return err == nil
}

// removePod ends a Pod as the kubelet does when its Job is deleted.
func (f *fixture) removePod(pod *corev1.Pod) {
	f.t.Helper()
	if err := server.admin.Delete(f.ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		f.t.Fatal(err)
	}
}

// Each row is a way in which somebody calls a call off.
func cancellations() map[string]struct {
	do   func(*fixture, *v1alpha1.ToolProposal)
	want string
} {
	return map[string]struct {
		do   func(*fixture, *v1alpha1.ToolProposal)
		want string
	}{
		"a receipt that denies it": {func(f *fixture, p *v1alpha1.ToolProposal) {
			r := newReceipt(p)
			r.Spec.Decision = v1alpha1.ReceiptDenied
			if err := f.as(approver).Create(f.ctx, r); err != nil {
				f.t.Fatalf("denying: %v", err)
			}
		}, "Cancelled/DeniedByApprover"},
		"its session is revoked": {func(f *fixture, p *v1alpha1.ToolProposal) {
			s := &v1alpha1.AgentSession{}
			if err := server.admin.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: p.Spec.SessionRef.Name}, s); err != nil {
				f.t.Fatal(err)
			}
			s.Spec.Revoked = true
			f.mustUpdate(s)
		}, "Cancelled/SessionInvalid"},
		"its session is deleted": {func(f *fixture, p *v1alpha1.ToolProposal) {
			f.mustDelete(&v1alpha1.AgentSession{ObjectMeta: metav1.ObjectMeta{Name: p.Spec.SessionRef.Name, Namespace: f.namespace}})
		}, "Cancelled/SessionInvalid"},
	}
}

// sessionCall is a granted call in a session of its own.
func (f *fixture) sessionCall() *v1alpha1.ToolProposal {
	f.t.Helper()
	s := &v1alpha1.AgentSession{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "session-", Namespace: f.namespace},
		Spec:       v1alpha1.AgentSessionSpec{Principal: agent, ExpiresAt: metav1.NewTime(f.clock.Now().Add(time.Hour))},
	}
	f.create(s)
	p := f.newProposal("restart", web)
	p.Spec.SessionRef = &v1alpha1.SessionReference{Name: s.Name}
	if err := f.as(agent).Create(f.ctx, p); err != nil {
		f.t.Fatalf("proposing: %v", err)
	}
	p = f.step(p)
	if got, want := outcome(p), "Dispatching/Granted"; got != want {
		f.t.Fatalf("got %s, want %s: %s", got, want, p.Status.Message)
	}
	return p
}

func TestCall_ThatIsCalledOffBeforeItStarts_NeverStarts(t *testing.T) {
	f := callFixture(t)
	for name, tc := range cancellations() {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			p := f.sessionCall()
			r := f.runnerFor(p)
			tc.do(f, p)
			p = f.step(p)
			if got := outcome(p); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if status, _ := r.redeem(); status != http.StatusConflict {
				t.Errorf("its runner got %d, want 409", status)
			}
			if f.exists(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: p.Status.Dispatch.JobName}}) {
				t.Error("its Job is still there")
			}
		})
	}
}

func TestCall_ThatIsCalledOffWhileItRuns_IsStoppedFirst(t *testing.T) {
	f := callFixture(t)
	for name, tc := range cancellations() {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			p := f.sessionCall()
			r := f.runnerFor(p)
			r.mustRedeem()
			tc.do(f, p)
			p = f.step(p)
			if f.exists(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: p.Status.Dispatch.JobName}}) {
				t.Error("its Job is still there")
			}
			if p = f.step(p); p.Status.Phase.Terminal() {
				t.Fatalf("it ended as %s while its Pod runs", outcome(p))
			}
			f.removePod(r.pod)
			if got := outcome(f.step(p)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// What the runner says when it is stopped is worth more than that it was.
func TestReport_OfACallThatIsBeingStopped_Counts(t *testing.T) {
	f := callFixture(t)
	p := f.sessionCall()
	r := f.runnerFor(p)
	key := r.mustRedeem()
	cancellations()["its session is revoked"].do(f, p)
	p = f.step(p)
	if status := r.deliver(key, r.report()); status != http.StatusOK {
		t.Fatalf("got %d, want 200", status)
	}
	if got, want := outcome(f.step(p)), "Succeeded/Succeeded"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestProposal_ThatIsDeleted_GoesWhenNothingRunsAnyMore(t *testing.T) {
	t.Run("before it was granted", func(t *testing.T) {
		f := callFixture(t)
		p := f.propose("restart", web)
		f.mustDelete(p)
		f.pass(p)
		f.pass(p)
		if f.exists(p.DeepCopy()) {
			t.Errorf("it is still there: %s", outcome(f.reload(p)))
		}
		if n := len(f.jobs()); n != 0 {
			t.Errorf("it has %d Jobs", n)
		}
	})
	t.Run("while it waits for people", func(t *testing.T) {
		f := callFixture(t, func(m *v1alpha1.ToolManifest) { m.Spec.HumanApproval = true })
		p := f.step(f.propose("restart", web))
		other := f.step(f.propose("restart", web))
		receipt, ofOther := f.decide(p, v1alpha1.ReceiptApproved, approver), f.decide(other, v1alpha1.ReceiptApproved, approver)
		f.mustDelete(p)
		f.pass(p)
		f.pass(p)
		if f.exists(p.DeepCopy()) {
			t.Errorf("it is still there: %s", outcome(f.reload(p)))
		}
		if f.exists(receipt) || !f.exists(ofOther) {
			t.Error("want its receipt gone, and that of another call still there")
		}
	})
	t.Run("before it was redeemed", func(t *testing.T) {
		f := callFixture(t)
		p, j := f.dispatched("restart", web)
		f.mustDelete(p)
		f.pass(p)
		f.pass(p)
		if f.exists(p.DeepCopy()) || f.exists(j) {
			t.Error("proposal or Job is still there")
		}
	})
	t.Run("while it runs", func(t *testing.T) {
		f := callFixture(t)
		p, j := f.dispatched("restart", web)
		r := f.runnerFor(p)
		r.mustRedeem()
		f.mustDelete(p)
		f.pass(p)
		if f.exists(j) {
			t.Error("its Job is still there")
		}
		if f.pass(p); !f.exists(p.DeepCopy()) {
			t.Fatal("the proposal is gone while its Pod runs")
		}
		f.removePod(r.pod)
		f.pass(p)
		f.pass(p)
		if f.exists(p.DeepCopy()) {
			t.Errorf("it is still there: %s", outcome(f.reload(p)))
		}
	})
}

func TestRetention_RemovesProposalReceiptsAndJobTogether(t *testing.T) {
	const kept = 100 * time.Second
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ToolManifest)
		kept   time.Duration
	}{
		"as the manifest says": {func(m *v1alpha1.ToolManifest) {
			m.Spec.Execution = &v1alpha1.Execution{TTLSecondsAfterFinished: new(int32(kept / time.Second))}
		}, kept},
		"as the operator says": {func(*v1alpha1.ToolManifest) {}, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f := callFixture(t, func(m *v1alpha1.ToolManifest) { m.Spec.HumanApproval = true }, tc.change)
			p := f.step(f.propose("restart", web))
			receipt := newReceipt(p)
			if err := f.as(approver).Create(f.ctx, receipt); err != nil {
				t.Fatal(err)
			}
			p = f.step(p)
			r := f.runnerFor(p)
			if status := r.deliver(r.mustRedeem(), r.report()); status != http.StatusOK {
				t.Fatalf("got %d, want 200", status)
			}
			p = f.step(p)
			if got, want := outcome(p), "Succeeded/Succeeded"; got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			j := f.jobOf(p)
			f.clock.advance(tc.kept - 10*time.Second)
			f.pass(p)
			if !f.exists(p.DeepCopy()) || !f.exists(receipt) || !f.exists(j) {
				t.Fatal("something is gone too early")
			}
			f.clock.advance(20 * time.Second)
			for range 3 {
				f.pass(p)
			}
			for what, o := range map[string]client.Object{"proposal": p.DeepCopy(), "receipt": receipt, "Job": j} {
				if f.exists(o) {
					t.Errorf("the %s is still there", what)
				}
			}
		})
	}
}

// The phase is what anybody with the right to a status can write there.
func TestEndedPhase_ThatSomebodyElseWrote_DoesNotStopTheController(t *testing.T) {
	f := callFixture(t)
	p := f.propose("restart", web)
	p.Status.Phase = v1alpha1.PhaseSucceeded
	f.mustWriteStatus(p)
	f.pass(p)
	if n := len(f.jobs()); n != 0 {
		t.Errorf("it has %d Jobs", n)
	}
}
