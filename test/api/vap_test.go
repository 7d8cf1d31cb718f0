// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/config"
)

// admissionPolicies are those that the chart installs, with the user of these
// tests as the operator.
func admissionPolicies(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	self := &authenticationv1.SelfSubjectReview{}
	if err := server.admin.Create(t.Context(), self); err != nil {
		t.Fatal(err)
	}
	text, err := config.Files.ReadFile("admission/policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("system:serviceaccount:system:assent"), []byte(self.Status.UserInfo.Username))
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var out []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(o); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
}

// withPolicies installs the admission policies for the rest of the test and
// waits until one of each kind of refusal is seen.
func (f *fixture) withPolicies() {
	f.t.Helper()
	policies := admissionPolicies(f.t)
	remove := func() {
		for _, o := range policies {
			if err := server.admin.Delete(noCancel(f.t.Context()), o.DeepCopy()); client.IgnoreNotFound(err) != nil {
				f.t.Errorf("removing %s: %v", o.GetName(), err)
			}
		}
	}
	remove()
	f.t.Cleanup(remove)
	for _, o := range policies {
		f.create(o.DeepCopy())
	}
	// kube-apiserver compiles them one by one, within a second.
	f.until("the admission policies", func() bool {
		probe := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: f.namespace, Labels: map[string]string{v1alpha1.LabelRun: "x"}}, Spec: jobSpec()}
		job := f.as("mallory", "system:masters").Create(f.ctx, probe, client.DryRunAll)
		p := f.newProposal("nothing", "{}")
		identity := server.admin.Create(f.ctx, p, client.DryRunAll)
		return apierrors.IsInvalid(job) && identity != nil
	})
}

func jobSpec() batchv1.JobSpec {
	return batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "registry.example/a"}},
	}}}
}

// mallory may do everything that RBAC can give.
func (f *fixture) mallory() client.Client { return f.as("mallory", "system:masters") }

// refusedByPolicy wants a refusal by this admission policy and by nothing else.
func refusedByPolicy(t *testing.T, what, policy string, err error) {
	t.Helper()
	refusedByOneOf(t, what, err, policy)
}

// refusedByOneOf is for what several policies refuse: any of them is named.
func refusedByOneOf(t *testing.T, what string, err error, policies ...string) {
	t.Helper()
	if err == nil || !slices.ContainsFunc(policies, func(policy string) bool {
		return strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"'")
	}) {
		t.Errorf("%s: got %v, want a refusal by %s", what, err, strings.Join(policies, " or "))
	}
}

func TestAdmissionPolicies_HoldWithoutAnyWebhook(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	p := f.waiting()
	sealed := p.DeepCopy()
	f.withoutAdmission()
	f.withPolicies()
	mallory := f.mallory()

	fresh := func() *v1alpha1.ToolProposal {
		return &v1alpha1.ToolProposal{ObjectMeta: metav1.ObjectMeta{GenerateName: "forged-", Namespace: f.namespace}, Spec: *sealed.Spec.DeepCopy()}
	}
	refusedByPolicy(t, "a call in the name of somebody else", "assent-identity", mallory.Create(f.ctx, fresh()))
	unsealed := fresh()
	unsealed.Spec.Requester.Username, unsealed.Spec.Seal = "mallory", ""
	refusedByPolicy(t, "a call without a seal", "assent-identity", mallory.Create(f.ctx, unsealed))
	owned := fresh()
	owned.Spec.Requester.Username = "mallory"
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "none"}}
	refusedByPolicy(t, "a call with an owner", "assent-identity", mallory.Create(f.ctx, owned))
	receipt := newReceipt(p)
	receipt.Spec.Approver = &v1alpha1.Identity{Username: approver}
	receipt.Spec.Seal = "x"
	refusedByPolicy(t, "a receipt in the name of somebody else", "assent-identity", mallory.Create(f.ctx, receipt))

	for name, edit := range map[string]func(*v1alpha1.ToolProposal){
		"a finalizer taken off": func(p *v1alpha1.ToolProposal) { p.Finalizers = nil },
		"an owner added": func(p *v1alpha1.ToolProposal) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "none"}}
		},
	} {
		changed := f.reload(p)
		edit(changed)
		refusedByPolicy(t, name, "assent-frozen", mallory.Update(f.ctx, changed))
	}
	labelled := f.reload(p)
	labelled.Labels = map[string]string{"team": "red"}
	if err := mallory.Update(f.ctx, labelled); err != nil {
		t.Errorf("a label was refused: %v", err)
	}

	approved := f.reload(p)
	approved.Status.Phase = v1alpha1.PhaseDispatching
	refusedByPolicy(t, "a status", "assent-status", mallory.Status().Update(f.ctx, approved))
	approved = f.reload(p)
	approved.Status.Message = "the operator may"
	if err := server.admin.Status().Update(f.ctx, approved); err != nil {
		t.Errorf("the operator's own status: %v", err)
	}
}

func TestAdmissionPolicies_KeepOthersFromTheJobsOfCalls(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.policy("allow", permitAll)
	p := f.step(f.propose("restart", `{"target":"web"}`))
	f.wantOutcome(p, "Dispatching/Granted")
	f.withPolicies()
	mallory := f.mallory()
	job := f.jobs()[0]
	for name, edit := range map[string]func(*batchv1.Job){
		"more Pods":           func(j *batchv1.Job) { j.Spec.Parallelism = new(int32(5)) },
		"suspended":           func(j *batchv1.Job) { j.Spec.Suspend = new(true) },
		"the label taken off": func(j *batchv1.Job) { delete(j.Labels, v1alpha1.LabelRun) },
		"no finalizer":        func(j *batchv1.Job) { j.Finalizers = nil },
	} {
		changed := job.DeepCopy()
		edit(changed)
		refusedByPolicy(t, name, "assent-workloads", mallory.Update(f.ctx, changed))
	}
	done := job.DeepCopy()
	done.Status.Succeeded = 1
	refusedByPolicy(t, "a forged end", "assent-workloads", mallory.Status().Update(f.ctx, done))
	squatter := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "squatter", Namespace: f.namespace, Labels: map[string]string{v1alpha1.LabelRun: "x"}}, Spec: jobSpec()}
	refusedByPolicy(t, "a Job with our label", "assent-workloads", mallory.Create(f.ctx, squatter))
	squatter.Labels = nil
	if err := mallory.Create(f.ctx, squatter); err != nil {
		t.Errorf("an ordinary Job in the namespace: %v", err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: f.namespace, Labels: map[string]string{v1alpha1.LabelRun: "x"}},
		Spec:       jobSpec().Template.Spec,
	}
	refusedByPolicy(t, "a Pod with our label", "assent-workloads", mallory.Create(f.ctx, pod.DeepCopy()))

	exec := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-exec-", Labels: map[string]string{v1alpha1.LabelServes: f.namespace}}}
	f.create(exec)
	pod.Namespace, pod.Labels = exec.Name, nil
	f.until("the policy for such namespaces", func() bool { return mallory.Create(f.ctx, pod.DeepCopy(), client.DryRunAll) != nil })
	refusedByPolicy(t, "any Pod where only calls run", "assent-execution-namespaces", mallory.Create(f.ctx, pod.DeepCopy()))
	squatter = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "squatter", Namespace: exec.Name}, Spec: jobSpec()}
	refusedByPolicy(t, "any Job where only calls run", "assent-execution-namespaces", mallory.Create(f.ctx, squatter))
	controller := f.as("system:serviceaccount:kube-system:job-controller", "system:masters")
	if err := controller.Create(f.ctx, pod); err != nil {
		t.Errorf("the Job controller's Pod: %v", err)
	}
}
