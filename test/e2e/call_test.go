// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

func TestCall_ReportsItsOutcomeExactly(t *testing.T) {
	f := newFixture(t)
	f.probe("print", "print")
	f.probe("fail", "fail")
	f.probe("flood", "flood")
	f.probe("slow", "sleep", func(m *v1alpha1.ToolManifest) {
		m.Spec.Execution.Timeout = &metav1.Duration{Duration: 2 * time.Second}
	})
	for name, tc := range map[string]struct {
		tool, value, want string
		check             func(*testing.T, *v1alpha1.Result)
	}{
		"output": {"print", "hello", "Succeeded/Succeeded", func(t *testing.T, r *v1alpha1.Result) {
			if r.Output != "hello\n" || r.ExitCode == nil || *r.ExitCode != 0 {
				t.Errorf("got output %q, exit code %v", r.Output, r.ExitCode)
			}
		}},
		"exit code": {"fail", "3", "Failed/NonZeroExit", func(t *testing.T, r *v1alpha1.Result) {
			if r.ExitCode == nil || *r.ExitCode != 3 || !strings.Contains(r.ErrorOutput, "told to fail") {
				t.Errorf("got exit code %v, error output %q", r.ExitCode, r.ErrorOutput)
			}
		}},
		"timeout": {"slow", "20", "Failed/TimedOut", nil},
		"a long output by its digest": {"flood", "100000", "Succeeded/Succeeded", func(t *testing.T, r *v1alpha1.Result) {
			sum := sha256.Sum256([]byte(strings.Repeat("x", 100000)))
			if r.OutputDigest != hex.EncodeToString(sum[:]) || r.OutputBytes != 100000 || !r.Truncated || len(r.Output) != 32768 {
				t.Errorf("got digest %s, %d bytes, truncated %v, %d kept", r.OutputDigest, r.OutputBytes, r.Truncated, len(r.Output))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := f.await(f.propose(tc.tool, tc.value), v1alpha1.PhaseSucceeded)
			if got := outcome(p); got != tc.want {
				t.Fatalf("got %s, want %s: %s", got, tc.want, p.Status.Message)
			}
			if tc.check != nil {
				tc.check(t, p.Status.Result)
			}
		})
	}
}

func TestProgram_HasNothingInItsEnvironmentButWhatTheManifestSays(t *testing.T) {
	f := newFixture(t)
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "credentials", Namespace: f.namespace},
		StringData: map[string]string{"token": "canary-secret"},
	})
	constant := "constant"
	f.probe("env", "env", func(m *v1alpha1.ToolManifest) {
		m.Spec.Secrets = []v1alpha1.SecretReference{{Name: "token", SecretName: "credentials", Key: "token"}}
		m.Spec.Command.Env = []v1alpha1.EnvironmentVariable{{Name: "PLAIN", Value: &constant}, {Name: "TOKEN", Secret: "token"}}
		m.Spec.Output = &v1alpha1.Output{Format: v1alpha1.OutputText}
	})
	p := f.await(f.propose("env", "x"), v1alpha1.PhaseSucceeded)
	var names []string
	for line := range strings.Lines(p.Status.Result.Output) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	if got, want := strings.Join(names, " "), "HOME PATH PLAIN TOKEN"; got != want {
		t.Errorf("the program has %s, want %s", got, want)
	}
}

func TestCall_ThatNeedsApproval_RunsOnceApproved(t *testing.T) {
	f := newFixture(t)
	f.probe("change", "print", func(m *v1alpha1.ToolManifest) { m.Spec.HumanApproval = true })
	p := f.await(f.propose("change", "hello"), v1alpha1.PhaseAwaitingApproval)
	if got, want := outcome(p), "AwaitingApproval/AwaitingApproval"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	receipt := &v1alpha1.ApprovalReceipt{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "r-", Namespace: f.namespace},
		Spec: v1alpha1.ApprovalReceiptSpec{
			ProposalRef: v1alpha1.ProposalReference{Name: p.Name, UID: p.UID},
			Fingerprint: p.Spec.Prepared.Fingerprint, Decision: v1alpha1.ReceiptApproved,
		},
	}
	if err := f.as(approver).Create(f.ctx, receipt); err != nil {
		t.Fatalf("approving: %v", err)
	}
	p = f.await(p, v1alpha1.PhaseSucceeded)
	if got, want := outcome(p), "Succeeded/Succeeded"; got != want {
		t.Errorf("got %s, want %s: %s", got, want, p.Status.Message)
	}
}

func TestRunningCall_ThatIsDeleted_IsStopped(t *testing.T) {
	f := newFixture(t)
	f.probe("slow", "sleep", func(m *v1alpha1.ToolManifest) {
		m.Spec.Execution.Timeout = &metav1.Duration{Duration: 10 * time.Minute}
	})
	p := f.await(f.propose("slow", "500"), v1alpha1.PhaseRunning)
	if p.Status.Phase != v1alpha1.PhaseRunning {
		t.Fatalf("got %s, want Running", outcome(p))
	}
	if err := installed.admin.Delete(f.ctx, p); err != nil {
		t.Fatal(err)
	}
	f.eventually("Job and Pod to be gone", func() bool {
		var jobs batchv1.JobList
		var pods corev1.PodList
		if installed.admin.List(f.ctx, &jobs, client.InNamespace(f.namespace)) != nil || installed.admin.List(f.ctx, &pods, client.InNamespace(f.namespace)) != nil {
			return false
		}
		return len(jobs.Items) == 0 && len(pods.Items) == 0
	})
	f.eventually("the proposal to be gone", func() bool {
		return client.IgnoreNotFound(installed.admin.Get(f.ctx, client.ObjectKeyFromObject(p), p.DeepCopy())) == nil &&
			installed.admin.Get(f.ctx, client.ObjectKeyFromObject(p), p.DeepCopy()) != nil
	})
}

func TestCall_WhosePodCannotStart_HasNeverStarted(t *testing.T) {
	f := newFixture(t)
	f.probe("missing", "print", func(m *v1alpha1.ToolManifest) {
		m.Spec.Command.Image = "registry.example/assent/missing@sha256:" + strings.Repeat("a", 64)
	})
	// The class exists, and the node knows nothing of its handler.
	class := f.runtimeClass("handled-nowhere", "e2e-absent")
	f.probe("unhandled", "print", func(m *v1alpha1.ToolManifest) { m.Spec.Execution.RuntimeClassName = class })
	missing, unhandled := f.propose("missing", "x"), f.propose("unhandled", "x")
	for _, p := range []*v1alpha1.ToolProposal{missing, unhandled} {
		p = f.await(p, v1alpha1.PhaseFailed)
		if got, want := outcome(p), "Failed/NeverStarted"; got != want {
			t.Errorf("%s: got %s, want %s: %s", p.Spec.Tool, got, want, p.Status.Message)
		}
	}
}

func TestColumns_AreThoseThatPeopleNeed(t *testing.T) {
	f := newFixture(t)
	f.probe("print", "print")
	f.await(f.propose("print", "x"), v1alpha1.PhaseSucceeded)
	for args, want := range map[string]string{
		"get tp -o wide": "NAME TOOL PHASE REASON REQUESTER APPROVALS AGE FINGERPRINT EXPIRES JOB",
		"get tm":         "NAME EFFECT APPROVAL RISK READY AGE",
	} {
		t.Run(args, func(t *testing.T) {
			out, err := exec.Command(kubectl(), append(strings.Fields(args), "-n", f.namespace)...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			header, _, _ := strings.Cut(string(out), "\n")
			if got := strings.Join(strings.Fields(header), " "); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
