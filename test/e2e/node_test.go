// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// A node agent that is away does not end what runs on its node: the runner
// reports by itself.
func TestKubelet_ThatStopsDuringARun_ChangesNothingAboutTheCall(t *testing.T) {
	onDevelopmentCluster(t)
	for name, stop := range map[string]func(*fixture){
		"it hangs": func(f *fixture) {
			f.disturb("pause", "kubelet")
			f.t.Cleanup(func() { f.disturb("resume", "kubelet") })
		},
		"it is killed and comes back": func(f *fixture) { f.disturb("restart", "kubelet") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			p, _ := f.slowCall("5")
			stop(f)
			p = f.wantOneRedemption(p)
			if got, want := outcome(p), "Succeeded/Succeeded"; got != want || p.Status.Result.Output != "slept\n" {
				t.Errorf("got %s, want %s: %s", got, want, p.Status.Message)
			}
		})
	}
}

// A call that its node did not start in time is over: when the node agent is
// back, it starts no Pod for it.
func TestKubelet_ThatHangsBeforeTheStart_NeverRunsTheCall(t *testing.T) {
	onDevelopmentCluster(t)
	f := newFixture(t)
	f.probe("print", "print")
	f.disturb("pause", "kubelet")
	t.Cleanup(func() { f.disturb("resume", "kubelet") })
	p := f.await(f.propose("print", "hello"), v1alpha1.PhaseFailed)
	if got, want := outcome(p), "Failed/NeverStarted"; got != want {
		t.Errorf("got %s, want %s: %s", got, want, p.Status.Message)
	}
	f.disturb("resume", "kubelet")
	f.eventually("Job and Pod to be gone", func() bool {
		var jobs batchv1.JobList
		var pods corev1.PodList
		return installed.admin.List(f.ctx, &jobs, client.InNamespace(f.namespace)) == nil &&
			installed.admin.List(f.ctx, &pods, client.InNamespace(f.namespace)) == nil && len(jobs.Items)+len(pods.Items) == 0
	})
	if err := installed.admin.Get(f.ctx, client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	if got, want := outcome(p), "Failed/NeverStarted"; got != want || p.Status.RedeemedBy != nil {
		t.Errorf("after the node agent is back: got %s, redeemed by %v; want %s and nobody", got, p.Status.RedeemedBy, want)
	}
}

func TestRunner_ThatIsStopped_EndsTheCallExactly(t *testing.T) {
	onDevelopmentCluster(t)
	t.Run("all", func(t *testing.T) {
		t.Run("it goes on after its timeout", func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			p, pod := f.shortCall()
			f.signalRunner(pod, syscall.SIGSTOP)
			<-time.After(8 * time.Second) // the timeout is 3 s, and the call is given up after 33 s
			f.signalRunner(pod, syscall.SIGCONT)
			p = f.wantOneRedemption(p)
			if got, want := outcome(p), "Failed/TimedOut"; got != want {
				t.Errorf("got %s, want %s: %s", got, want, p.Status.Message)
			}
		})
		t.Run("it goes on after the call was given up", func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			p, pod := f.shortCall()
			f.signalRunner(pod, syscall.SIGSTOP)
			p = f.wantOneRedemption(p)
			if got, want := outcome(p), "Indeterminate/ResultLost"; got != want {
				t.Fatalf("got %s, want %s: %s", got, want, p.Status.Message)
			}
			f.signalRunner(pod, syscall.SIGCONT)
			f.eventually("the Pod to be gone", func() bool {
				return client.IgnoreNotFound(installed.admin.Get(f.ctx, client.ObjectKeyFromObject(pod), pod.DeepCopy())) == nil &&
					installed.admin.Get(f.ctx, client.ObjectKeyFromObject(pod), pod.DeepCopy()) != nil
			})
			if now := f.wantOneRedemption(p); outcome(now) != outcome(p) || now.Status.Result != nil {
				t.Errorf("the call became %s with the result %v", outcome(now), now.Status.Result)
			}
		})
	})
}

// shortCall is a call that runs into its timeout of three seconds.
func (f *fixture) shortCall() (*v1alpha1.ToolProposal, *corev1.Pod) {
	return f.runningCall("60", func(m *v1alpha1.ToolManifest) { m.Spec.Execution.Timeout = &metav1.Duration{Duration: 3 * time.Second} })
}

// signalRunner sends a signal to the runner of a Pod, and to it alone.
func (f *fixture) signalRunner(pod *corev1.Pod, sig syscall.Signal) {
	f.t.Helper()
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, file := range groups {
		group, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(group), string(pod.UID)) {
			continue
		}
		folder := filepath.Dir(file)
		words, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || !strings.HasSuffix(strings.Split(string(words), "\x00")[0], "/assent-runner") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			f.t.Fatal(err)
		}
		if err := syscall.Kill(pid, sig); err != nil {
			f.t.Fatalf("signalling the runner: %v", err)
		}
		return
	}
	f.t.Fatalf("no runner of Pod %s runs", pod.Name)
}
