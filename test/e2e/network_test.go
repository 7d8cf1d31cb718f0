// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// serving starts a Pod that answers at the ports 8080 and 8081, with a label of
// its own, and returns its address.
func (f *fixture) serving(name string) string {
	f.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace, Labels: map[string]string{"app": name}},
		Spec:       f.restrictedPod(),
	}
	pod.Spec.Containers[0].Command = []string{"/probe", "listen", ":8080,:8081"}
	f.create(pod)
	f.eventually("Pod "+name+" to run", func() bool {
		return installed.admin.Get(f.ctx, client.ObjectKeyFromObject(pod), pod) == nil && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != ""
	})
	return pod.Status.PodIP
}

// connecting creates a tool that tries an address and may reach the Pods with
// one label. It begins only when its network has been proved to be closed.
func (f *fixture) connecting(label string) {
	f.t.Helper()
	f.probe("connect", "connect", func(m *v1alpha1.ToolManifest) {
		m.Spec.Execution.RequireIsolation = true
		m.Spec.Execution.Egress = []v1alpha1.EgressRule{{Namespace: f.namespace, PodLabels: map[string]string{"app": label}, Ports: []int32{8080}}}
	})
}

// disturb pauses, resumes or restarts a process of the development cluster.
func (f *fixture) disturb(how, program string) {
	f.t.Helper()
	command := filepath.Join(repository, "bin", "assent-cluster")
	if out, err := exec.CommandContext(context.WithoutCancel(f.ctx), command, how, program).CombinedOutput(); err != nil {
		f.t.Fatalf("assent-cluster %s %s: %v: %s", how, program, err, out)
	}
}

// onDevelopmentCluster skips a test that needs the node's processes.
func onDevelopmentCluster(t *testing.T) {
	t.Helper()
	if os.Getenv("ASSENT_STATE") == "" {
		t.Skip("needs the development cluster, whose processes it disturbs")
	}
}

func TestEgress_IsWhatTheManifestNamesAndNothingElse(t *testing.T) {
	f := newFixture(t)
	named, other := f.serving("named"), f.serving("other")
	f.connecting("named")
	for name, tc := range map[string]struct{ address, want string }{
		"the named Pods":                     {named + ":8080", "connected\n"},
		"Pods of the same namespace":         {other + ":8080", "no connection\n"},
		"another port of the named Pods":     {named + ":8081", "no connection\n"},
		"the API server, by its Service":     {f.service("default", "kubernetes"), "no connection\n"},
		"the operator's webhooks":            {f.service("assent-system", "assent-webhook"), "no connection\n"},
		"name servers, which were not asked": {f.service("kube-system", "kube-dns"), "no connection\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := f.await(f.propose("connect", tc.address), v1alpha1.PhaseSucceeded)
			if got, want := outcome(p), "Succeeded/Succeeded"; got != want {
				t.Fatalf("got %s, want %s: %s", got, want, p.Status.Message)
			}
			if got := p.Status.Result.Output; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// service is the address of a Service's first TCP port.
func (f *fixture) service(namespace, name string) string {
	f.t.Helper()
	s := &corev1.Service{}
	if err := installed.admin.Get(f.ctx, client.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
		f.t.Fatal(err)
	}
	for _, p := range s.Spec.Ports {
		if p.Protocol == corev1.ProtocolTCP {
			return net.JoinHostPort(s.Spec.ClusterIP, strconv.Itoa(int(p.Port)))
		}
	}
	f.t.Fatalf("Service %s/%s has no TCP port", namespace, name)
	return ""
}

// While nothing enforces NetworkPolicies, a call whose tool requires isolation
// is not even asked for.
func TestOpenNetwork_KeepsACallThatRequiresIsolationFromRunning(t *testing.T) {
	onDevelopmentCluster(t)
	f := newFixture(t)
	address := f.serving("named") + ":8080"
	f.connecting("named")
	f.disturb("pause", "network-policies")
	t.Cleanup(func() { f.disturb("resume", "network-policies") })
	p := f.await(f.propose("connect", address), v1alpha1.PhaseFailed)
	if got, want := outcome(p), "Failed/EgressNotIsolated"; got != want {
		t.Errorf("got %s, want %s: %s", got, want, p.Status.Message)
	}
	if p.Status.RedeemedBy != nil {
		t.Error("the call was redeemed")
	}
	f.disturb("resume", "network-policies")
	p = f.await(f.propose("connect", address), v1alpha1.PhaseSucceeded)
	if got, want := outcome(p), "Succeeded/Succeeded"; got != want {
		t.Errorf("with policies enforced again: got %s, want %s: %s", got, want, p.Status.Message)
	}
}
