// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/job"
)

// runtimeClass creates a RuntimeClass for the test, which says some more of its
// Pods, and returns its name.
func (f *fixture) runtimeClass(suffix, handler string) string {
	f.t.Helper()
	class := &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-" + suffix}, Handler: handler,
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Mi")}},
		Scheduling: &nodev1.Scheduling{
			NodeSelector: map[string]string{corev1.LabelOSStable: "linux"},
			Tolerations:  []corev1.Toleration{{Key: "e2e.example/sandboxed", Operator: corev1.TolerationOpExists}},
		},
	}
	f.create(class)
	f.t.Cleanup(func() { _ = installed.admin.Delete(context.WithoutCancel(f.ctx), class) })
	return class.Name
}

// podOf is the Pod that fetched a call.
func (f *fixture) podOf(p *v1alpha1.ToolProposal) *corev1.Pod {
	f.t.Helper()
	if p.Status.RedeemedBy == nil {
		f.t.Fatalf("no Pod fetched the call, which is %s: %s", outcome(p), p.Status.Message)
	}
	pod := &corev1.Pod{}
	if err := installed.admin.Get(f.ctx, client.ObjectKey{Namespace: p.Status.Dispatch.JobNamespace, Name: p.Status.RedeemedBy.PodName}, pod); err != nil {
		f.t.Fatal(err)
	}
	return pod
}

// wantOutput says that a call succeeded with an output.
func (f *fixture) wantOutput(p *v1alpha1.ToolProposal, want string) *v1alpha1.ToolProposal {
	f.t.Helper()
	p = f.await(p, v1alpha1.PhaseSucceeded)
	if got, want := outcome(p), "Succeeded/Succeeded"; got != want {
		f.t.Fatalf("got %s, want %s: %s", got, want, p.Status.Message)
	}
	if got := p.Status.Result.Output; got != want+"\n" {
		f.t.Errorf("got output %q, want %q", got, want)
	}
	return p
}

func withRuntimeClass(name string) func(*v1alpha1.ToolManifest) {
	return func(m *v1alpha1.ToolManifest) { m.Spec.Execution.RuntimeClassName = name }
}

func TestToolWithARuntimeClass_RunsUnderIt(t *testing.T) {
	f := newFixture(t)
	class := f.runtimeClass("runc", "runc")
	f.probe("sandboxed", "print", withRuntimeClass(class))
	pod := f.podOf(f.wantOutput(f.propose("sandboxed", "hello"), "hello"))
	if name := pod.Spec.RuntimeClassName; name == nil || *name != class {
		t.Errorf("the Pod runs under %v, want %s", name, class)
	}
	if memory := pod.Spec.Overhead[corev1.ResourceMemory]; memory.String() != "8Mi" || pod.Spec.NodeSelector[corev1.LabelOSStable] != "linux" {
		t.Errorf("the class has no effect on the Pod: overhead %v, node selector %v", pod.Spec.Overhead, pod.Spec.NodeSelector)
	}
}

const tokenOfTheTool = "/var/run/secrets/kubernetes.io/serviceaccount/token"

func TestToolWithAServiceAccount_RunsAsIt(t *testing.T) {
	f := newFixture(t)
	const author = "author-of-the-tests"
	f.bind(author, "assent-editor")
	f.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "restarter", Namespace: f.namespace}})
	identified := func(m *v1alpha1.ToolManifest) { m.Spec.Execution.ServiceAccountName = "restarter" }
	writing := f.as(author)
	err := writing.Create(f.ctx, f.newProbe("identified", "subject", identified))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), author+" may not use ServiceAccount restarter of namespace "+f.namespace) {
		t.Fatalf("without the verb use: got %v", err)
	}
	f.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "use", Namespace: f.namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"restarter"}, Verbs: []string{"use"}}},
	})
	f.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "use", Namespace: f.namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: author, APIGroup: rbacv1.GroupName}},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: "use", APIGroup: rbacv1.GroupName},
	})
	f.eventually("the author to hold the verb use", func() bool {
		return writing.Create(f.ctx, f.newProbe("identified", "subject", identified)) == nil
	})
	f.probe("nobody", "subject")
	asNobody, asAccount := f.propose("nobody", tokenOfTheTool), f.propose("identified", tokenOfTheTool)
	for _, tc := range []struct {
		call          *v1alpha1.ToolProposal
		token, runsAs string
	}{
		{asNobody, "no token", "default"},
		{asAccount, "system:serviceaccount:" + f.namespace + ":restarter", "restarter"},
	} {
		pod := f.podOf(f.wantOutput(tc.call, tc.token))
		if got := pod.Spec.ServiceAccountName; got != tc.runsAs {
			t.Errorf("%s: the Pod runs as %s, want %s", tc.call.Spec.Tool, got, tc.runsAs)
		}
		if automount := pod.Spec.AutomountServiceAccountToken; automount == nil || *automount {
			t.Errorf("%s: Kubernetes mounts tokens by itself", tc.call.Spec.Tool)
		}
	}
}

// label sets labels of a namespace, or takes off those that are empty.
func (f *fixture) label(namespace string, labels map[string]string) {
	f.t.Helper()
	f.eventually("the labels of namespace "+namespace, func() bool {
		ns := &corev1.Namespace{}
		if err := installed.admin.Get(f.ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
			return false
		}
		for key, value := range labels {
			ns.Labels[key] = value
			if value == "" {
				delete(ns.Labels, key)
			}
		}
		return installed.admin.Update(f.ctx, ns) == nil
	})
}

// elsewhere creates a namespace that the fixture's calls run in.
func (f *fixture) elsewhere() string {
	f.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-jobs-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted", v1alpha1.LabelServes: f.namespace},
	}}
	f.create(ns)
	f.t.Cleanup(func() { _ = installed.admin.Delete(context.WithoutCancel(f.ctx), ns) })
	f.label(f.namespace, map[string]string{v1alpha1.LabelExecutionNamespace: ns.Name})
	// Its controllers make this, and a Pod is refused until then.
	f.eventually("the default ServiceAccount of "+ns.Name, func() bool {
		return installed.admin.Get(f.ctx, client.ObjectKey{Namespace: ns.Name, Name: "default"}, &corev1.ServiceAccount{}) == nil
	})
	return ns.Name
}

// callPods counts the Pods of calls in a namespace.
func (f *fixture) callPods(namespace string) int {
	f.t.Helper()
	var pods corev1.PodList
	if err := installed.admin.List(f.ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelRun: job.RunLabelValue}); err != nil {
		f.t.Fatal(err)
	}
	return len(pods.Items)
}

func TestExecutionNamespace_IsWhereTheCallsRun(t *testing.T) {
	f := newFixture(t)
	named, other := f.serving("named"), f.serving("other")
	jobs := f.elsewhere()
	f.connecting("named")
	open, closed := f.propose("connect", named+":8080"), f.propose("connect", other+":8080")
	open = f.wantOutput(open, "connected")
	f.wantOutput(closed, "no connection")
	if pod := f.podOf(open); pod.Namespace != jobs || f.callPods(f.namespace) != 0 || f.callPods(jobs) != 2 {
		t.Errorf("the Pod ran in %s, with %d Pods of calls where they were made and %d in %s, want 0 and 2", pod.Namespace, f.callPods(f.namespace), f.callPods(jobs), jobs)
	}
	// Who may create Pods there at all is held to Pod Security as well.
	config := rest.CopyConfig(installed.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kube-system:job-controller", Groups: []string{"system:masters"}}
	controller, err := client.New(config, client.Options{Scheme: installed.scheme})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		by       client.Client
		unsafe   bool
		refusals string
	}{
		"an administrator's Pod":                 {installed.admin, false, "this namespace is for the Jobs of calls"},
		"the Job controller's Pod":               {controller, false, ""},
		"the Job controller's Pod on its node's": {controller, true, `violates PodSecurity "restricted`},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: jobs}, Spec: f.restrictedPod()}
		pod.Spec.HostNetwork = tc.unsafe
		err := tc.by.Create(f.ctx, pod, client.DryRunAll)
		if (tc.refusals == "" && err != nil) || (tc.refusals != "" && (!apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.refusals))) {
			t.Errorf("%s: got %v, want %q", name, err, tc.refusals)
		}
	}
	// A call that goes takes along what ran elsewhere, which Kubernetes would not.
	if err := installed.admin.Delete(f.ctx, open); err != nil {
		t.Fatal(err)
	}
	f.eventually("the deleted call's Pod to be gone", func() bool { return f.callPods(jobs) == 1 })
}

// Without the answer at the grant these calls would wait for their whole time
// to start.
func TestCall_WhosePodWouldFindNoPlace_IsDeniedOnTheCluster(t *testing.T) {
	f := newFixture(t)
	f.probe("classless", "print", withRuntimeClass(f.namespace+"-absent"))
	f.probe("nobody", "print", func(m *v1alpha1.ToolManifest) { m.Spec.Execution.ServiceAccountName = "absent" })
	f.probe("homeless", "print")
	for _, tc := range []struct{ tool, reason, message string }{
		{"classless", "RuntimeClassNotFound", "the tool's execution.runtimeClassName is " + f.namespace + "-absent, and the cluster has no such RuntimeClass"},
		{"nobody", "ServiceAccountNotFound", "the tool's execution.serviceAccountName is absent, and namespace " + f.namespace + " has no such ServiceAccount"},
		{"homeless", "ExecutionNamespaceNotAgreed", "namespace " + f.namespace + " names JOBS for its calls, but that has no label assent.dev/serves=" + f.namespace},
	} {
		if tc.tool == "homeless" {
			jobs := f.elsewhere()
			f.label(jobs, map[string]string{v1alpha1.LabelServes: ""})
			tc.message = strings.Replace(tc.message, "JOBS", jobs, 1)
		}
		p := f.await(f.propose(tc.tool, "x"), v1alpha1.PhaseDenied)
		if got, want := outcome(p)+": "+p.Status.Message, "Denied/"+tc.reason+": "+tc.message; got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		if p.Status.Dispatch != nil {
			t.Errorf("%s: the call was granted", tc.tool)
		}
	}
}
