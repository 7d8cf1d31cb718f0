// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// connections are the ways into a running Pod that kube-apiserver offers.
var connections = map[string]map[string]string{
	"exec":        {"command": "sh", "container": "a", "stdout": "true"},
	"attach":      {"container": "a", "stdout": "true"},
	"portforward": {"ports": "80"},
	"proxy":       {},
}

// enter asks for a way into a Pod. Admission answers before any node is asked.
func enter(t *testing.T, core kubernetes.Interface, namespace, pod, way string) error {
	t.Helper()
	r := core.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).SubResource(way)
	for key, value := range connections[way] {
		r = r.Param(key, value)
	}
	return r.Do(t.Context()).Error()
}

// callPod is the Pod of a call as the Job controller would create it.
func (f *fixture) callPod(namespace string) *corev1.Pod {
	f.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "call", Namespace: namespace, Labels: map[string]string{v1alpha1.LabelRun: "x"}},
		Spec:       jobSpec().Template.Spec,
	}
	if err := f.as("system:serviceaccount:kube-system:job-controller", "system:masters").Create(f.ctx, pod); err != nil {
		f.t.Fatalf("the Job controller's Pod: %v", err)
	}
	f.t.Cleanup(func() { _ = server.admin.Delete(noCancel(f.t.Context()), pod, client.GracePeriodSeconds(0)) })
	return pod
}

func TestAdmissionPolicies_LetNobodyIntoThePodOfACall(t *testing.T) {
	f := newFixture(t)
	f.withPolicies()
	execution := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-exec-", Labels: map[string]string{v1alpha1.LabelServes: f.namespace}}}
	f.create(execution)
	mallory := f.mallory()
	f.until("the policy for such namespaces", func() bool {
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: execution.Name}, Spec: jobSpec().Template.Spec}
		return mallory.Create(f.ctx, probe, client.DryRunAll) != nil
	})
	pod, elsewhere := f.callPod(execution.Name), f.callPod(f.namespace)

	config := rest.CopyConfig(server.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "mallory", Groups: []string{"system:masters"}}
	for who, c := range map[string]*rest.Config{"mallory": config, "the operator itself": server.config} {
		core, err := kubernetes.NewForConfig(c)
		if err != nil {
			t.Fatal(err)
		}
		for way := range connections {
			refusedByPolicy(t, way+" by "+who, "assent-execution-namespaces", enter(t, core, execution.Name, pod.Name, way))
			// In a namespace for other things as well, the way in is RBAC's to
			// close: the options of a connection carry no labels to select by.
			err := enter(t, core, elsewhere.Namespace, elsewhere.Name, way)
			if err == nil || apierrors.IsForbidden(err) || strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
				t.Errorf("%s by %s where not only calls run: %v, want what the Pod's absence from any node gives", way, who, err)
			}
		}
	}

	for at, policies := range map[*corev1.Pod][]string{pod: {"assent-execution-namespaces", "assent-workloads"}, elsewhere: {"assent-workloads"}} {
		debugger := at.DeepCopy()
		debugger.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debugger", Image: "registry.example/a", ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}}}
		refusedByOneOf(t, "an ephemeral container", mallory.SubResource("ephemeralcontainers").Update(f.ctx, debugger), policies...)
		image := at.DeepCopy()
		image.Spec.Containers[0].Image = "registry.example/other"
		refusedByOneOf(t, "another image", mallory.Update(f.ctx, image), policies...)
		ended := at.DeepCopy()
		ended.Status.Phase = corev1.PodSucceeded
		refusedByOneOf(t, "a forged end", mallory.Status().Update(f.ctx, ended), policies...)
		unlabelled := at.DeepCopy()
		unlabelled.Labels = nil
		refusedByOneOf(t, "the label taken off", mallory.Update(f.ctx, unlabelled), policies...)
		resized := at.DeepCopy()
		resized.Spec.Containers[0].Resources.Limits = corev1.ResourceList{}
		refusedByOneOf(t, "another size", mallory.SubResource("resize").Update(f.ctx, resized), policies...)
	}
}
