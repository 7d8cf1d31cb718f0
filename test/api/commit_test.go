// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"net/http"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/proposal"
)

var errCrash = errors.New("the process ends here")

// crashBeforeJob lets the operator end after the grant and before the Job, and
// returns the granted call. The operator that comes after is whole again.
func (f *fixture) crashBeforeJob(p *v1alpha1.ToolProposal) *v1alpha1.ToolProposal {
	f.t.Helper()
	whole := f.shared.Client
	f.shared.Client = interceptor.NewClient(server.admin, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, isJob := o.(*batchv1.Job); isJob {
				return errCrash
			}
			return c.Create(ctx, o, opts...)
		},
	})
	_, err := f.proposals.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)})
	f.shared.Client = whole
	if !errors.Is(err, errCrash) {
		f.t.Fatalf("got %v, want a crash before the Job", err)
	}
	p = f.reload(p)
	if got, want := outcome(p), "Dispatching/Granted"; got != want {
		f.t.Fatalf("got %s, want %s", got, want)
	}
	return p
}

func TestCommit_AfterACrashBeforeTheJob_CreatesExactlyThatJob(t *testing.T) {
	f := callFixture(t)
	p := f.crashBeforeJob(f.propose("restart", web))
	if n := len(f.jobs()); n != 0 {
		t.Fatalf("there are %d Jobs already", n)
	}
	grant := *p.Status.Dispatch
	p = f.step(f.step(p))
	jobs := f.jobs()
	if len(jobs) != 1 || jobs[0].Name != grant.JobName || jobs[0].Annotations[v1alpha1.AnnotationTemplateHash] != grant.TemplateHash {
		t.Fatalf("want exactly the granted Job, got %d", len(jobs))
	}
	if p.Status.Dispatch.Seal != grant.Seal {
		t.Error("the call was granted a second time")
	}
	f.runnerFor(p).mustRedeem()
}

// Each row makes the granted Job one that cannot be built any more. Another
// one than was decided on is never created instead.
func TestCommit_WhenTheGrantedJobCannotBeBuiltAnyMore_HasNeverStarted(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"the contract changed": func(f *fixture) {
			f.editTool("restart", func(m *v1alpha1.ToolManifest) { m.Spec.Version = "2" })
		},
		"the tool is gone": func(f *fixture) {
			f.mustDelete(&v1alpha1.ToolManifest{ObjectMeta: metav1.ObjectMeta{Name: "restart", Namespace: f.namespace}})
		},
		"the operator has another endpoint": func(f *fixture) {
			before := f.shared.Settings
			f.shared.Settings = func() job.Settings {
				s := before()
				s.Endpoint.URL = "https://elsewhere:8443"
				return s
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := callFixture(t)
			p := f.crashBeforeJob(f.propose("restart", web))
			change(f)
			if got, want := outcome(f.step(p)), "Failed/NeverStarted"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if n := len(f.jobs()); n != 0 {
				t.Errorf("there are %d Jobs", n)
			}
		})
	}
}

// The name of a Job can be computed by whoever reads the seal.
func TestJob_ThatSomebodyElseCreatedUnderOurName_IsNeverAdopted(t *testing.T) {
	f := callFixture(t)
	other := f.jobTemplateOf(f.propose("restart", `{"target":"db"}`))
	for name, forge := range map[string]func(expected, forged *batchv1.Job){
		"as it is":             func(*batchv1.Job, *batchv1.Job) {},
		"with our labels":      func(e, forged *batchv1.Job) { forged.Labels = e.Labels },
		"with our annotations": func(e, forged *batchv1.Job) { forged.Labels, forged.Annotations = e.Labels, e.Annotations },
		"with another call's owner": func(e, forged *batchv1.Job) {
			forged.Labels, forged.Annotations, forged.OwnerReferences = e.Labels, e.Annotations, other.OwnerReferences
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			p := f.propose("restart", web)
			expected := f.jobTemplateOf(p)
			forged := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: expected.Name, Namespace: expected.Namespace}, Spec: *expected.Spec.DeepCopy()}
			forge(expected, forged)
			f.create(forged)
			pod := f.startPod(forged)
			p = f.step(p)
			if status, _ := f.runnerIn(p, pod).redeem(); status != http.StatusConflict {
				t.Errorf("its Pod asked for the call and got %d, want 409", status)
			}
			if got, want := outcome(f.step(p)), "Failed/NameSquatted"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			after := &batchv1.Job{}
			if err := server.admin.Get(f.ctx, client.ObjectKeyFromObject(forged), after); err != nil || after.UID != forged.UID || after.DeletionTimestamp != nil {
				t.Errorf("the other Job was touched: %v", err)
			}
		})
	}
}

// jobTemplateOf is the Job that the commit point would create for a call.
func (f *fixture) jobTemplateOf(p *v1alpha1.ToolProposal) *batchv1.Job {
	f.t.Helper()
	seal, err := proposal.VerifySeal(server.keys, p)
	if err != nil {
		f.t.Fatal(err)
	}
	effect, err := proposal.Effect(p.Spec.Prepared.Effect)
	if err != nil {
		f.t.Fatal(err)
	}
	m := &v1alpha1.ToolManifest{}
	if err := server.admin.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: p.Spec.Tool}, m); err != nil {
		f.t.Fatal(err)
	}
	c, err := server.contracts.Compile(m, proposal.Tools{})
	if err != nil {
		f.t.Fatal(err)
	}
	in, err := f.shared.Settings().Input(p, seal.SealID, effect, c.ExecutionSpec(), f.namespace)
	if err != nil {
		f.t.Fatal(err)
	}
	j, err := job.Build(in)
	if err != nil {
		f.t.Fatal(err)
	}
	return j
}

// A Job can be paused and its bounds can be moved by whoever may edit Jobs.
// None of it gives anybody a second run.
func TestJob_ThatSomebodyEdits_NeverRunsTheCallTwice(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	first := f.runnerFor(p)
	key := first.mustRedeem()

	j := f.jobOf(p)
	j.Spec.Suspend = new(true)
	f.mustUpdate(j)
	f.removePod(first.pod)
	j.Spec.Suspend, j.Spec.Parallelism = new(false), new(int32(5))
	f.mustUpdate(j)
	for range 5 {
		if status, _ := f.runnerFor(p).redeem(); status != http.StatusConflict {
			t.Errorf("a further Pod got %d, want 409", status)
		}
	}
	if status, _ := first.redeem(); status != http.StatusUnauthorized {
		t.Errorf("the token of a Pod that is gone got %d, want 401", status)
	}
	if status := first.deliver(key, first.report()); status != http.StatusUnauthorized {
		t.Errorf("a report by a Pod that is gone got %d, want 401", status)
	}
	f.clock.advance(f.shared.Settings().StartTimeout)
	if got, want := outcome(f.step(p)), "Indeterminate/ResultLost"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What the kubelet and the Job controller report can be forged by whoever may
// write those statuses. It is a hint about time and never an outcome.
func TestForgedStatus_OfJobAndPod_IsNoOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		redeem bool
		want   string
	}{
		"before the call was redeemed": {false, "Failed/NeverStarted"},
		"after the call was redeemed":  {true, "Indeterminate/ResultLost"},
	} {
		t.Run(name, func(t *testing.T) {
			f := callFixture(t)
			p, j := f.dispatched("restart", web)
			r := f.runnerFor(p)
			if tc.redeem {
				r.mustRedeem()
			}
			f.completeJob(f.jobOf(p))
			if got := f.step(p); got.Status.Phase.Terminal() {
				t.Fatalf("a Job that claims success while its Pod runs ended the call as %s", outcome(got))
			}
			f.succeedPod(r.pod)
			f.clock.advance(f.shared.Settings().StartTimeout)
			p = f.step(p)
			if got := outcome(p); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if p.Status.Result != nil {
				t.Errorf("the call of Job %s has a result that nobody reported", j.Name)
			}
		})
	}
}

func (f *fixture) completeJob(j *batchv1.Job) {
	f.t.Helper()
	now := metav1.Now()
	j.Status.StartTime, j.Status.CompletionTime, j.Status.Succeeded = &now, &now, 1
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now, Message: "Succeeded",
		})
	}
	f.mustWriteStatus(j)
}

func (f *fixture) succeedPod(pod *corev1.Pod) {
	f.t.Helper()
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.Message = `{"exit":0,"reason":"Succeeded"}`
	f.mustWriteStatus(pod)
}

func TestRunner_ThatNeverReports_LeavesTheCallIndeterminate(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	r := f.runnerFor(p)
	key := r.mustRedeem()
	if got, want := outcome(f.step(p)), "Running/Redeemed"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	f.clock.advance(f.shared.Settings().StartTimeout)
	p = f.step(p)
	if got, want := outcome(p), "Indeterminate/ResultLost"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	for range 3 {
		f.step(p)
	}
	if n := len(f.liveJobs()); n != 0 {
		t.Errorf("the call has %d Jobs after it was given up", n)
	}
	if status := r.deliver(key, r.report()); status != http.StatusConflict {
		t.Errorf("a late report got %d, want 409", status)
	}
}

// liveJobs are the Jobs that are not being deleted.
func (f *fixture) liveJobs() []batchv1.Job {
	f.t.Helper()
	var out []batchv1.Job
	for _, j := range f.jobs() {
		if j.DeletionTimestamp == nil {
			out = append(out, j)
		}
	}
	return out
}

// A response that was lost after the request was sent says nothing about what
// the server did with it.
func TestResult_ThatSaysTheEffectIsUnknown_IsIndeterminate(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	r := f.runnerFor(p)
	status := r.deliver(r.mustRedeem(), r.report(func(x *attest.Result) {
		x.Outcome, x.Reason, x.ExitCode = attest.OutcomeFailed, "ResponseLost", nil
	}))
	if status != http.StatusOK {
		t.Fatalf("got %d, want 200", status)
	}
	if got, want := outcome(f.step(p)), "Indeterminate/ResponseLost"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
