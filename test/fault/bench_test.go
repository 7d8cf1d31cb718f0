// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// creators is how many create at the same time.
const creators = 32

// BenchmarkThroughput compares how fast calls become Jobs with how fast the
// same API server takes the same Jobs alone, in one run. The audit log is in
// memory here: what a durable one costs is its own benchmark's.
func BenchmarkThroughput(b *testing.B) {
	w := newWorld(b, false)
	template := w.firstJob()
	bare := spread(b.N, func(i int) error {
		j := template.DeepCopy()
		j.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("bare-%d", i), Namespace: w.namespace}
		return admin.Create(w.ctx, j)
	})
	o := w.operator(false)
	b.ResetTimer()
	calls := spread(b.N, func(int) error { return o.step(client.ObjectKeyFromObject(w.propose())) })
	b.ReportMetric(float64(b.N)/calls.Seconds(), "calls/s")
	b.ReportMetric(float64(b.N)/bare.Seconds(), "bare-jobs/s")
	b.ReportMetric(bare.Seconds()/calls.Seconds(), "of-bare")
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

// spread does something n times by all creators and returns how long it took.
func spread(n int, do func(int) error) time.Duration {
	var all sync.WaitGroup
	begun := time.Now()
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
	return time.Since(begun)
}
