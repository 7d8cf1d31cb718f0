// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/job"
)

// BenchmarkTimeToResult compares how long a call takes from its proposal to
// its end with how long a bare Job takes whose only container does the same by
// itself. Calls and Jobs take turns, so that both see the same machine. A bare
// Job has ended when its status says so, or, for whoever watches Pods instead,
// when that of its Pod does.
func BenchmarkTimeToResult(b *testing.B) {
	for name, prepare := range map[string]func(*fixture) (tool string, same bareContainer){
		"command": func(f *fixture) (string, bareContainer) {
			f.probe("print", "print")
			return "print", bareContainer{image: "e2e-probe", command: []string{"/probe", "print", "hello"}}
		},
		"http": func(f *fixture) (string, bareContainer) {
			s := f.server()
			f.onServer("announce", s, announcing(s))
			return "announce", bareContainer{image: "e2e-caller", command: []string{"/caller", "http", s.announce, `{"text": "hello"}`}, env: caller(s)}
		},
		"mcp": func(f *fixture) (string, bareContainer) {
			s := f.server()
			f.onServer("release", s, f.releasing(s))
			return "release", bareContainer{image: "e2e-caller", command: []string{"/caller", "mcp", s.mcp, "release", `{"service":"web","version":"hello"}`}, env: caller(s)}
		},
	} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b)
			tool, same := prepare(f)
			c := f.watching()
			// The first of each makes what later ones share.
			_, template := f.timedCall(c, tool)
			bare := same.job(template)
			f.timedJob(c, bare)
			var calls, jobs, pods []time.Duration
			for b.Loop() {
				took, _ := f.timedCall(c, tool)
				pod, job := f.timedJob(c, bare)
				calls, jobs, pods = append(calls, took), append(jobs, job), append(pods, pod)
			}
			b.ReportMetric(median(calls).Seconds(), "call-s")
			b.ReportMetric(median(jobs).Seconds(), "bare-s")
			b.ReportMetric(median(pods).Seconds(), "bare-pod-s")
			b.ReportMetric(median(calls).Seconds()/median(jobs).Seconds(), "x-bare")
			b.ReportMetric(median(calls).Seconds()/median(pods).Seconds(), "x-bare-pod")
		})
	}
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}

func (f *fixture) watching() client.WithWatch {
	f.t.Helper()
	c, err := client.NewWithWatch(installed.config, client.Options{Scheme: installed.scheme})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// timedCall runs one call, and returns how long it took and its Job.
func (f *fixture) timedCall(c client.WithWatch, tool string) (time.Duration, *batchv1.Job) {
	f.t.Helper()
	began := time.Now()
	p := f.propose(tool, "hello")
	f.follow(c, &v1alpha1.ToolProposalList{}, named(p), func(o client.Object) bool {
		p = o.(*v1alpha1.ToolProposal)
		return p.Status.Phase.Terminal()
	})
	took := time.Since(began)
	if got, want := outcome(p), "Succeeded/Succeeded"; got != want {
		f.t.Fatalf("got %s, want %s: %s", got, want, p.Status.Message)
	}
	j := &batchv1.Job{}
	if err := installed.admin.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: p.Status.Dispatch.JobName}, j); err != nil {
		f.t.Fatal(err)
	}
	return took, j
}

// timedJob runs one bare Job, and returns how long it took until its Pod and
// until the Job itself was reported to have ended.
func (f *fixture) timedJob(c client.WithWatch, like *batchv1.Job) (pod, job time.Duration) {
	f.t.Helper()
	j := like.DeepCopy()
	began := time.Now()
	f.create(j)
	f.follow(c, &corev1.PodList{}, client.MatchingLabels{batchv1.JobNameLabel: j.Name}, func(o client.Object) bool {
		phase := o.(*corev1.Pod).Status.Phase
		return phase == corev1.PodSucceeded || phase == corev1.PodFailed
	})
	pod = time.Since(began)
	f.follow(c, &batchv1.JobList{}, named(j), func(o client.Object) bool {
		j = o.(*batchv1.Job)
		return ended(j, batchv1.JobComplete) || ended(j, batchv1.JobFailed)
	})
	job = time.Since(began)
	if !ended(j, batchv1.JobComplete) {
		f.t.Fatalf("the bare Job failed: %+v", j.Status)
	}
	return pod, job
}

func named(o client.Object) client.MatchingFields {
	return client.MatchingFields{metav1.ObjectNameField: o.GetName()}
}

func ended(j *batchv1.Job, how batchv1.JobConditionType) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == how && c.Status == corev1.ConditionTrue
	})
}

// follow watches the one object that is selected until it is as wanted.
func (f *fixture) follow(c client.WithWatch, list client.ObjectList, one client.ListOption, done func(client.Object) bool) {
	f.t.Helper()
	w, err := c.Watch(f.ctx, list, client.InNamespace(f.namespace), one)
	if err != nil {
		f.t.Fatal(err)
	}
	defer w.Stop()
	limit := time.After(patience)
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error || event.Type == watch.Deleted {
				f.t.Fatalf("the watch of %v ended: %v", one, event.Object)
			}
			if done(event.Object.(client.Object)) {
				return
			}
		case <-limit:
			f.t.Fatalf("waited %s for %v", patience, one)
		}
	}
}

// bareContainer is what does the work of a call without Assent.
type bareContainer struct {
	image   string
	command []string
	env     []corev1.EnvVar
}

func caller(s server) []corev1.EnvVar {
	return []corev1.EnvVar{{Name: "CA", Value: s.authority}, {Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "ledger"}, Key: "token"},
	}}}
}

// job is the Job of a call without what Assent adds to it: sizes, user and
// everything else about its container stay the same.
func (c bareContainer) job(like *batchv1.Job) *batchv1.Job {
	pod := like.Spec.Template.Spec.DeepCopy()
	pod.InitContainers, pod.Volumes, pod.HostAliases = nil, nil, nil
	i := slices.IndexFunc(pod.Containers, func(k corev1.Container) bool { return k.Name == job.ContainerName })
	container := &pod.Containers[i]
	container.Image, container.Command, container.Env, container.VolumeMounts = installed.images[c.image], c.command, c.env, nil
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "bare-", Namespace: like.Namespace},
		Spec: batchv1.JobSpec{
			BackoffLimit: like.Spec.BackoffLimit, PodReplacementPolicy: like.Spec.PodReplacementPolicy,
			Template: corev1.PodTemplateSpec{Spec: *pod},
		},
	}
}
