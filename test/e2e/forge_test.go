// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// Somebody who may write the status of Jobs and Pods says that all is done. It
// is no result: the runner's own counts.
func TestForgedStatus_IsNoOutcome(t *testing.T) {
	const (
		pod = `{"status":{"phase":"Succeeded","message":"{\"exit\":0,\"reason\":\"\"}"}}`
		job = `{"status":{"succeeded":1,"active":0,"ready":0,"terminating":0,"completionTime":%[1]q,"startTime":%[1]q,"conditions":[
			{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":%[1]q},
			{"type":"Complete","status":"True","lastTransitionTime":%[1]q}]}}`
	)
	for name, forge := range map[string]func(*fixture, *v1alpha1.ToolProposal, *corev1.Pod) error{
		"of the Pod": func(f *fixture, _ *v1alpha1.ToolProposal, p *corev1.Pod) error {
			return installed.admin.Status().Patch(f.ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(pod)))
		},
		"of the Job": func(f *fixture, p *v1alpha1.ToolProposal, _ *corev1.Pod) error {
			j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: p.Status.Dispatch.JobName, Namespace: f.namespace}}
			if err := installed.admin.Get(f.ctx, client.ObjectKeyFromObject(j), j); err != nil {
				return err
			}
			now := j.Status.StartTime.UTC().Format("2006-01-02T15:04:05Z")
			return installed.admin.Status().Patch(f.ctx, j, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, job, now)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			p, live := f.slowCall("25")
			f.unguarded()
			f.untilDone("the status to be forged", func() error { return forge(f, p, live) })
			p = f.wantOneRedemption(p)
			if got, want := outcome(p), "Succeeded/Succeeded"; got != want || p.Status.Result.Output != "slept\n" {
				t.Errorf("got %s with %v, want %s", got, p.Status.Result, want)
			}
		})
	}
}

// One grant for one Pod, however many the Job is told to make.
func TestJob_ThatIsMadeParallel_RunsTheCallOnce(t *testing.T) {
	f := newFixture(t)
	p, pod := f.slowCall("10")
	f.unguarded()
	f.untilDone("the Job to be parallel", func() error {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: p.Status.Dispatch.JobName, Namespace: f.namespace}}
		return installed.admin.Patch(f.ctx, j, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parallelism":5}}`)))
	})
	var pods corev1.PodList
	if err := installed.admin.List(f.ctx, &pods, client.InNamespace(f.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if other := &pods.Items[i]; other.UID != pod.UID && f.exitOf(other, 0) != claimDenied {
			t.Errorf("Pod %s ended with another code than %d", other.Name, claimDenied)
		}
	}
	if got, want := outcome(f.wantOneRedemption(p)), "Succeeded/Succeeded"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A policy of somebody else changes every Pod of the namespace.
func TestPod_ThatAPolicyChanges_GetsNoCall(t *testing.T) {
	for name, tc := range map[string]struct {
		patch  string
		inPlay func(corev1.PodSpec) bool
	}{
		"a sidecar": {
			`path: "/spec/containers/-", value: Object.spec.containers{
				name: "sidecar", image: "` + installedImage("e2e-probe") + `", command: ["/probe", "sleep", "60"],
				securityContext: Object.spec.containers.securityContext{allowPrivilegeEscalation: false, runAsNonRoot: true,
					capabilities: Object.spec.containers.securityContext.capabilities{drop: ["ALL"]}}}`,
			func(s corev1.PodSpec) bool { return len(s.Containers) == 2 },
		},
		"a variable": {
			`path: "/spec/containers/0/env/-", value: Object.spec.containers.env{name: "LD_PRELOAD", value: "/work/evil.so"}`,
			func(s corev1.PodSpec) bool { return len(s.Containers[0].Env) == 2 },
		},
		"a volume": {
			`path: "/spec/volumes/-", value: Object.spec.volumes{name: "extra", emptyDir: Object.spec.volumes.emptyDir{}}`,
			func(s corev1.PodSpec) bool {
				for _, v := range s.Volumes {
					if v.Name == "extra" {
						return true
					}
				}
				return false
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.mutate("[JSONPatch{op: \"add\", " + tc.patch + "}]")
			f.untilDone("the policy to be in force", func() error {
				probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Namespace: f.namespace}, Spec: f.restrictedPod()}
				probe.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
				if err := installed.admin.Create(f.ctx, probe, client.DryRunAll); err != nil {
					return err
				}
				if !tc.inPlay(probe.Spec) {
					return errors.New("a Pod is as it was asked for")
				}
				return nil
			})
			f.probe("print", "print")
			p := f.await(f.propose("print", "hello"), v1alpha1.PhaseFailed)
			if got, want := outcome(p), "Failed/PodSpecDrift"; got != want || p.Status.RedeemedBy != nil {
				t.Errorf("got %s, redeemed by %v, want %s and nobody: %s", got, p.Status.RedeemedBy, want, p.Status.Message)
			}
		})
	}
}

// installedImage is an image of the cluster, where there is one.
func installedImage(name string) string {
	if installed == nil {
		return ""
	}
	return installed.images[name]
}

// mutate puts an admission policy in force that patches the Pods of the
// namespace as they are created.
func (f *fixture) mutate(patch string) {
	f.t.Helper()
	name := "change-" + f.namespace
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: patch},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	for _, o := range []client.Object{policy, binding} {
		f.create(o)
		f.t.Cleanup(func() { _ = installed.admin.Delete(context.WithoutCancel(f.ctx), o) })
	}
}
