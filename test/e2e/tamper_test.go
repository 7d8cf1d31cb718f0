// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/job"
)

// claimDenied is the exit code of a runner that was refused its call.
const claimDenied = 75

// slowCall is a call that runs for some seconds, with its Pod.
func (f *fixture) slowCall(seconds string) (*v1alpha1.ToolProposal, *corev1.Pod) {
	return f.runningCall(seconds, func(m *v1alpha1.ToolManifest) { m.Spec.Execution.Timeout = &metav1.Duration{Duration: time.Minute} })
}

func (f *fixture) runningCall(seconds string, change func(*v1alpha1.ToolManifest)) (*v1alpha1.ToolProposal, *corev1.Pod) {
	f.t.Helper()
	f.probe("slow", "sleep", change)
	p := f.await(f.propose("slow", seconds), v1alpha1.PhaseRunning)
	if p.Status.Phase != v1alpha1.PhaseRunning {
		f.t.Fatalf("got %s, want Running: %s", outcome(p), p.Status.Message)
	}
	pod := &corev1.Pod{}
	if err := installed.admin.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: p.Status.RedeemedBy.PodName}, pod); err != nil {
		f.t.Fatal(err)
	}
	return p, pod
}

// unguarded takes the policy away that lets nobody touch the Jobs and Pods of
// calls, for the rest of the test: what it prevents must come to nothing
// without it as well. No further call is granted meanwhile.
func (f *fixture) unguarded() {
	f.t.Helper()
	const name = "assent-workloads"
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	if err := installed.admin.Get(f.ctx, client.ObjectKey{Name: name}, binding); err != nil {
		f.t.Fatal(err)
	}
	if err := installed.admin.Delete(f.ctx, binding.DeepCopy()); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		binding.ResourceVersion, binding.UID = "", ""
		if err := client.IgnoreAlreadyExists(installed.admin.Create(context.WithoutCancel(f.ctx), binding)); err != nil {
			f.t.Errorf("putting %s back: %v", name, err)
		}
	})
}

// untilDone repeats what an admission policy still refuses: the API server
// notices within seconds that it is gone.
func (f *fixture) untilDone(what string, do func() error) {
	f.t.Helper()
	var last error
	defer func() {
		if last != nil {
			f.t.Logf("%s: %v", what, last)
		}
	}()
	f.eventually(what, func() bool { last = do(); return last == nil })
}

// exitOf waits until the container of a call has ended in a Pod and returns
// its exit code; with restarts, until it has been started again that often.
func (f *fixture) exitOf(pod *corev1.Pod, restarts int32) int32 {
	f.t.Helper()
	var code int32
	f.eventually("the container of Pod "+pod.Name+" to end", func() bool {
		now := &corev1.Pod{}
		if installed.admin.Get(f.ctx, client.ObjectKeyFromObject(pod), now) != nil {
			return false
		}
		for _, s := range now.Status.ContainerStatuses {
			if s.Name == job.ContainerName && s.RestartCount >= restarts && s.State.Terminated != nil {
				code = s.State.Terminated.ExitCode
				return true
			}
		}
		return false
	})
	return code
}

func (f *fixture) wantOneRedemption(p *v1alpha1.ToolProposal) *v1alpha1.ToolProposal {
	f.t.Helper()
	now := f.await(p, v1alpha1.PhaseSucceeded)
	if now.Status.RedeemedBy == nil || now.Status.RedeemedBy.PodUID != p.Status.RedeemedBy.PodUID || now.Status.RedeemedBy.NonceDigest != p.Status.RedeemedBy.NonceDigest {
		f.t.Errorf("the call was redeemed by %v, and before by %v", now.Status.RedeemedBy, p.Status.RedeemedBy)
	}
	return now
}

func TestCopiedPod_GetsNoCall(t *testing.T) {
	f := newFixture(t)
	p, pod := f.slowCall("15")
	pod.Spec.NodeName = ""
	twin := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			// Without the Job's marks: the Job controller would remove one too many.
			Name: "twin", Namespace: f.namespace, Labels: maps.Clone(pod.Labels), Annotations: pod.Annotations,
		},
		Spec: pod.Spec,
	}
	for _, mark := range []string{batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name"} {
		delete(twin.Labels, mark)
	}
	f.unguarded()
	f.untilDone("the copy to be created", func() error { return installed.admin.Create(f.ctx, twin.DeepCopy()) })
	if got := f.exitOf(twin, 0); got != claimDenied {
		t.Errorf("the copy ended with %d, want %d", got, claimDenied)
	}
	if got, want := outcome(f.wantOneRedemption(p)), "Succeeded/Succeeded"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A new image makes the kubelet start the container again.
func TestImagePatchedOnTheLivePod_GetsNoSecondCall(t *testing.T) {
	f := newFixture(t)
	p, pod := f.slowCall("40")
	f.unguarded()
	f.untilDone("the Pod to have another image", func() error {
		patch := fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"image":%q}]}}`, job.ContainerName, installed.images["assent-runner"])
		return installed.admin.Patch(f.ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
	})
	p = f.wantOneRedemption(p)
	if got, want := outcome(p), "Failed/Terminated"; got != want {
		t.Errorf("got %s, want %s: %s", got, want, p.Status.Message)
	}
}

func TestSuspendedAndResumedJob_RunsTheCallOnce(t *testing.T) {
	f := newFixture(t)
	p, _ := f.slowCall("40")
	f.unguarded()
	suspend := func(yes bool) {
		t.Helper()
		f.untilDone("the Job to be suspended or resumed", func() error {
			j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: p.Status.Dispatch.JobName, Namespace: f.namespace}}
			return installed.admin.Patch(f.ctx, j, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, yes)))
		})
	}
	suspend(true)
	p = f.wantOneRedemption(p)
	if got, want := outcome(p), "Failed/Terminated"; got != want {
		t.Errorf("got %s, want %s: %s", got, want, p.Status.Message)
	}
	suspend(false)
	second := &corev1.Pod{}
	f.eventually("the Job's second Pod", func() bool {
		var pods corev1.PodList
		if installed.admin.List(f.ctx, &pods, client.InNamespace(f.namespace)) != nil {
			return false
		}
		for i := range pods.Items {
			if pods.Items[i].UID != p.Status.RedeemedBy.PodUID {
				second = &pods.Items[i]
				return true
			}
		}
		return false
	})
	if got := f.exitOf(second, 0); got != claimDenied {
		t.Errorf("the second Pod ended with %d, want %d", got, claimDenied)
	}
	f.wantOneRedemption(p)
}

// restrictedPod is a Pod that Pod Security "restricted" admits.
func (f *fixture) restrictedPod() corev1.PodSpec {
	no, yes := false, true
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name: "probe", Image: installed.images["e2e-probe"],
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
	}
}

// Whoever can read a waiting call knows the name of its Job.
func TestJob_ThatWaitsUnderOurName_IsNotTouched(t *testing.T) {
	f := newFixture(t)
	f.probe("change", "print", func(m *v1alpha1.ToolManifest) { m.Spec.HumanApproval = true })
	p := f.await(f.propose("change", "hello"), v1alpha1.PhaseAwaitingApproval)
	never := true
	squatter := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: job.Name(sealID(t, p)), Namespace: f.namespace},
		Spec: batchv1.JobSpec{Suspend: &never, Template: corev1.PodTemplateSpec{Spec: func() corev1.PodSpec {
			s := f.restrictedPod()
			s.RestartPolicy = corev1.RestartPolicyNever
			return s
		}()}},
	}
	f.create(squatter)
	f.approve(p)
	p = f.await(p, v1alpha1.PhaseFailed)
	if got, want := outcome(p), "Failed/NameSquatted"; got != want {
		t.Errorf("got %s, want %s: %s", got, want, p.Status.Message)
	}
	after := &batchv1.Job{}
	if err := installed.admin.Get(f.ctx, client.ObjectKeyFromObject(squatter), after); err != nil || after.UID != squatter.UID {
		t.Errorf("the other Job was touched: %v", err)
	}
}

func (f *fixture) approve(p *v1alpha1.ToolProposal) {
	f.t.Helper()
	err := f.as(approver).Create(f.ctx, &v1alpha1.ApprovalReceipt{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "r-", Namespace: f.namespace},
		Spec: v1alpha1.ApprovalReceiptSpec{
			ProposalRef: v1alpha1.ProposalReference{Name: p.Name, UID: p.UID},
			Fingerprint: p.Spec.Prepared.Fingerprint, Decision: v1alpha1.ReceiptApproved,
		},
	})
	if err != nil {
		f.t.Fatalf("approving: %v", err)
	}
}

// sealID reads the seal as anybody can, without any key.
func sealID(t *testing.T, p *v1alpha1.ToolProposal) string {
	t.Helper()
	var envelope struct{ Payload string }
	if err := json.Unmarshal([]byte(p.Spec.Seal), &envelope); err != nil {
		t.Fatal(err)
	}
	payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil {
		t.Fatal(err)
	}
	var statement struct {
		Predicate struct {
			SealID string `json:"sealID"`
		} `json:"predicate"`
	}
	if err := json.Unmarshal(payload, &statement); err != nil {
		t.Fatal(err)
	}
	return statement.Predicate.SealID
}

// The operator ends at the two places where a call is on its way.
func TestOperator_ThatIsKilled_FinishesTheCallWhenItIsBack(t *testing.T) {
	for name, phase := range map[string]v1alpha1.Phase{
		"between grant and redemption":  v1alpha1.PhaseDispatching,
		"between redemption and result": v1alpha1.PhaseRunning,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.probe("slow", "sleep", func(m *v1alpha1.ToolManifest) {
				m.Spec.Execution.Timeout = &metav1.Duration{Duration: time.Minute}
			})
			p := f.await(f.propose("slow", "5"), phase)
			now := int64(0)
			err := installed.admin.DeleteAllOf(f.ctx, &corev1.Pod{}, client.InNamespace("assent-system"),
				client.MatchingLabels{"app.kubernetes.io/name": "assent"}, &client.DeleteAllOfOptions{DeleteOptions: client.DeleteOptions{GracePeriodSeconds: &now}})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := outcome(f.await(p, v1alpha1.PhaseSucceeded)), "Succeeded/Succeeded"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
