// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

const (
	// creators is how many create at the same time.
	creators = 32
	// round is how many calls and bare Jobs exist at once. Both are taken away
	// between rounds, so that what is measured is a steady state.
	round = 250
	// between is after how many calls the memory is looked at again.
	between = 2500
)

// BenchmarkThroughput compares how fast proposals become Jobs with how fast
// the same API server takes the same Jobs alone, in turns in one run. The
// controllers run as in the operator: by informers and a work queue, with the
// audit log on disk. Admission is not in the way; it has a benchmark of its own.
// What it takes from an object, an admission policy takes instead.
//
// A third turn makes the writes of a grant alone, by nobody who reads or decides
// anything: no operator that makes these writes could be faster.
//
// It reports the memory in use after every 2,500 calls and at the end.
func BenchmarkThroughput(b *testing.B) {
	w := newWorld(b, false)
	w.withoutManagers()
	template := w.firstJob()
	alone, forget := w.writesAlone(template)
	w.clear()
	w.serving.die()
	w.serving = nil
	made := w.controllers(b)
	var bare, writes, calls cost
	b.ResetTimer()
	for done := 0; done < b.N; done += round {
		n := min(round, b.N-done)
		bare.add(b, func() {
			spread(n, func(i int) error {
				j := template.DeepCopy()
				j.ObjectMeta = metav1.ObjectMeta{
					Name: fmt.Sprintf("bare-%d", done+i), Namespace: w.namespace, Labels: template.Labels, Annotations: template.Annotations,
				}
				return admin.Create(w.ctx, j)
			})
		})
		writes.add(b, func() { spread(n, alone) })
		calls.add(b, func() { w.untilDispatched(made, n) })
		b.StopTimer()
		w.clear()
		forget()
		if at := done + n; at%between == 0 || at == b.N {
			b.ReportMetric(heapInUse()/(1<<20), fmt.Sprintf("heap-MiB-at-%d", at))
		}
		b.StartTimer()
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/calls.took.Seconds(), "calls/s")
	b.ReportMetric(float64(b.N)/bare.took.Seconds(), "bare-jobs/s")
	b.ReportMetric(bare.took.Seconds()/calls.took.Seconds(), "of-bare")
	b.ReportMetric((bare.own+bare.server)/(calls.own+calls.server), "of-bare-cpu")
	b.ReportMetric(bare.took.Seconds()/writes.took.Seconds(), "writes-of-bare")
	b.ReportMetric((bare.own+bare.server)/(writes.own+writes.server), "writes-of-bare-cpu")
	b.ReportMetric(calls.own*1e3/float64(b.N), "own-ms/call")
	b.ReportMetric(calls.server*1e3/float64(b.N), "server-ms/call")
}

// withoutManagers has proposals created without managedFields, as admission
// does, and returns when that is so.
func (w *world) withoutManagers() {
	w.t.Helper()
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "managers-" + w.namespace},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{v1alpha1.GroupVersion.Version}, Resources: []string{"toolproposals"},
					},
				}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: `[JSONPatch{op: "add", path: "/metadata/managedFields", value: []}]`},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	for _, o := range []client.Object{policy, binding} {
		w.create(o)
		w.t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(w.ctx), o) })
	}
	for range 200 {
		p := w.sealed()
		if err := admin.Create(w.ctx, p, client.DryRunAll); err != nil {
			w.t.Fatal(err)
		}
		if len(p.ManagedFields) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // kube-apiserver takes up a policy in its own time
	}
	w.t.Fatal("the admission policy is not in force")
}

// writesAlone returns what makes the writes of one more call that is allowed,
// where no controller looks (the proposal, its grant and its Job), and what
// deletes them all.
func (w *world) writesAlone(template *batchv1.Job) (write func(int) error, forget func()) {
	w.t.Helper()
	var calls v1alpha1.ToolProposalList
	if err := admin.List(w.ctx, &calls, client.InNamespace(w.namespace)); err != nil || len(calls.Items) != 1 {
		w.t.Fatalf("want one call, got %d: %v", len(calls.Items), err)
	}
	granted := calls.Items[0].Status
	elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "writes-"}}
	if err := admin.Create(w.ctx, elsewhere); err != nil {
		w.t.Fatal(err)
	}
	write = func(int) error {
		p := w.sealed()
		p.Namespace, p.Finalizers = elsewhere.Name, nil
		if err := admin.Create(w.ctx, p); err != nil {
			return err
		}
		p.Status = *granted.DeepCopy()
		if err := admin.Status().Update(w.ctx, p); err != nil {
			return err
		}
		j := template.DeepCopy()
		j.ObjectMeta = metav1.ObjectMeta{
			GenerateName: "bare-", Namespace: elsewhere.Name, Labels: template.Labels, Annotations: template.Annotations,
		}
		return admin.Create(w.ctx, j)
	}
	forget = func() {
		in := client.InNamespace(elsewhere.Name)
		for _, kind := range []client.Object{&v1alpha1.ToolProposal{}, &batchv1.Job{}} {
			if err := admin.DeleteAllOf(w.ctx, kind, in, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	return write, forget
}

// cost is what something took: real time, and the processor time, in seconds,
// of this process and of the API server. On a machine that is busy otherwise,
// processor time says more.
type cost struct {
	took        time.Duration
	own, server float64
}

func (c *cost) add(b *testing.B, do func()) {
	b.Helper()
	own, server, begun := processorTime(), serverTime(b), time.Now()
	do()
	c.took += time.Since(begun)
	c.own += processorTime() - own
	c.server += serverTime(b) - server
}

// untilDispatched creates calls and waits until each has its Job.
func (w *world) untilDispatched(made *atomic.Int64, n int) {
	w.t.Helper()
	want := made.Load() + int64(n)
	begun := time.Now()
	spread(n, func(int) error { return admin.Create(w.ctx, w.sealed()) })
	for made.Load() < want {
		if time.Since(begun) > 10*time.Minute {
			w.t.Fatalf("%d Jobs of %d after %s", n-int(want-made.Load()), n, time.Since(begun))
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // controllers work in real time
	}
}

// clear deletes all calls and Jobs. Calls are ended by whoever runs.
func (w *world) clear() {
	w.t.Helper()
	w.deleteAll(&v1alpha1.ToolProposalList{}, func() {
		if w.serving == nil {
			return
		}
		for _, key := range w.keys() {
			_ = w.serving.step(key)
		}
	})
	w.deleteAll(&batchv1.JobList{}, func() {})
}

// deleteAll deletes what a list finds and waits until it is gone.
func (w *world) deleteAll(list client.ObjectList, meanwhile func()) {
	w.t.Helper()
	for begun := time.Now(); time.Since(begun) < 5*time.Minute; {
		if err := admin.List(w.ctx, list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(items) == 0 {
			return
		}
		spread(len(items), func(i int) error {
			o, ok := items[i].(client.Object)
			if !ok || o.GetDeletionTimestamp() != nil {
				return nil
			}
			return client.IgnoreNotFound(admin.Delete(w.ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		})
		meanwhile()
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // objects go in the time of the API server
	}
	w.t.Fatalf("some of %T are not gone", list)
}

// firstJob runs a first call, which makes what later ones share, and returns
// its Job as a template.
func (w *world) firstJob() *batchv1.Job {
	w.t.Helper()
	if err := w.operator(false).step(client.ObjectKeyFromObject(w.propose())); err != nil {
		w.t.Fatal(err)
	}
	var jobs batchv1.JobList
	if err := admin.List(w.ctx, &jobs, client.InNamespace(w.namespace)); err != nil || len(jobs.Items) != 1 {
		w.t.Fatalf("want one Job, got %d: %v", len(jobs.Items), err)
	}
	j := jobs.Items[0].DeepCopy()
	j.Spec.Selector, j.Spec.Template.Labels = nil, nil
	j.Status = batchv1.JobStatus{}
	return j
}

// spread does something n times by all creators.
func spread(n int, do func(int) error) {
	var all sync.WaitGroup
	for c := range creators {
		all.Go(func() {
			for i := c; i < n; i += creators {
				if err := do(i); err != nil {
					panic(err)
				}
			}
		})
	}
	all.Wait()
}

// processorTime is what this process, creators and controllers, has used, in
// seconds.
func processorTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// heapInUse is what a collection leaves, in bytes.
func heapInUse() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
