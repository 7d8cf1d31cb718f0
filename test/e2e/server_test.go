// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

const (
	securePort = 8443
	token      = "t0ken-of-the-tests"
)

// server is the demo's service in the namespace: HTTP and MCP over TLS.
type server struct{ authority, announce, mcp string }

func (f *fixture) server() server {
	f.t.Helper()
	host := "ledger." + f.namespace + ".svc"
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "ledger", Namespace: f.namespace},
		Data:       map[string][]byte{"tls.crt": certificate, "tls.key": key, "token": []byte(token)},
	})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "ledger", Namespace: f.namespace, Labels: map[string]string{"app": "ledger"}},
		Spec:       f.restrictedPod(),
	}
	c := &pod.Spec.Containers[0]
	c.Image = installed.images["demo-ledger"]
	c.Args = []string{fmt.Sprintf("-secure-listen=:%d", securePort), "-cert=/secret/tls.crt", "-key=/secret/tls.key", "-token=/secret/token"}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "secret", MountPath: "/secret", ReadOnly: true}}
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(securePort)}}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "ledger"}}}}
	f.create(pod)
	f.create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "ledger", Namespace: f.namespace},
		Spec:       corev1.ServiceSpec{Selector: pod.Labels, Ports: []corev1.ServicePort{{Port: securePort}}},
	})
	f.eventually("the server to be ready", func() bool {
		if installed.admin.Get(f.ctx, client.ObjectKeyFromObject(pod), pod) != nil {
			return false
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady {
				return condition.Status == corev1.ConditionTrue
			}
		}
		return false
	})
	url := fmt.Sprintf("https://%s:%d", host, securePort)
	return server{authority: string(certificate), announce: url + "/services/web/announcements", mcp: url + "/mcp"}
}

// onServer creates a tool that calls the server.
func (f *fixture) onServer(name string, s server, effect func(*v1alpha1.ToolManifestSpec)) {
	f.t.Helper()
	headers := []v1alpha1.HTTPHeader{{Name: "Authorization", Value: "Bearer {_secret:token}"}}
	m := &v1alpha1.ToolManifest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec: v1alpha1.ToolManifestSpec{
			Version: "1", RiskTier: v1alpha1.RiskLow,
			Arguments: []v1alpha1.Argument{{Name: "value", Type: "string", Required: true}},
			Secrets:   []v1alpha1.SecretReference{{Name: "token", SecretName: "ledger", Key: "token", Hosts: []string{"ledger." + f.namespace + ".svc"}}},
			Execution: &v1alpha1.Execution{
				Timeout: &metav1.Duration{Duration: 30 * time.Second}, CPU: "100m", Memory: "64Mi", EphemeralStorage: "64Mi", AllowDNS: true,
				Egress: []v1alpha1.EgressRule{{Namespace: f.namespace, PodLabels: map[string]string{"app": "ledger"}, Ports: []int32{securePort}}},
			},
		},
	}
	effect(&m.Spec)
	if m.Spec.HTTP != nil {
		m.Spec.HTTP.Headers, m.Spec.HTTP.CABundle, m.Spec.HTTP.AllowPrivate = append(m.Spec.HTTP.Headers, headers...), s.authority, true
	}
	if m.Spec.MCP != nil {
		m.Spec.MCP.Headers, m.Spec.MCP.CABundle, m.Spec.MCP.AllowPrivate = headers, s.authority, true
	}
	f.create(m)
}

// announcing is a tool with one request.
func announcing(s server) func(*v1alpha1.ToolManifestSpec) {
	return func(m *v1alpha1.ToolManifestSpec) {
		m.HTTP = &v1alpha1.HTTPTemplate{
			Method: "POST", URL: s.announce, Body: `{"text": "{value}"}`,
			Headers: []v1alpha1.HTTPHeader{{Name: "Content-Type", Value: "application/json"}},
		}
	}
}

// releasing is a tool with one call of an MCP tool.
func (f *fixture) releasing(s server) func(*v1alpha1.ToolManifestSpec) {
	f.t.Helper()
	manifest, err := os.ReadFile(filepath.Join(repository, "test", "demo", "manifests", "45-servers.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	pinned := regexp.MustCompile(`toolDigest: "([0-9a-f]{64})"`).FindSubmatch(manifest)
	if pinned == nil {
		f.t.Fatal("the demo pins no tool")
	}
	service := `"web"`
	return func(m *v1alpha1.ToolManifestSpec) {
		m.MCP = &v1alpha1.MCPTemplate{
			URL: s.mcp, Tool: "release", ToolDigest: string(pinned[1]),
			Arguments: []v1alpha1.MCPArgument{{Name: "service", Value: &service}, {Name: "version", Argument: "value"}},
		}
	}
}

func TestServers_AreCalledAsDecided(t *testing.T) {
	f := newFixture(t)
	s := f.server()
	f.onServer("announce", s, announcing(s))
	f.onServer("release", s, f.releasing(s))
	for _, tool := range []string{"announce", "release"} {
		t.Run(tool, func(t *testing.T) {
			p := f.await(f.propose(tool, "hello"), v1alpha1.PhaseSucceeded)
			if got := outcome(p); got != "Succeeded/Succeeded" {
				t.Fatalf("got %s, want Succeeded/Succeeded: %s", got, p.Status.Message)
			}
			var sequence int
			if _, err := fmt.Sscanf(p.Status.Result.Output, `{"done":"`+tool+`","sequence":%d}`, &sequence); err != nil {
				t.Errorf("output %q: %v", p.Status.Result.Output, err)
			}
		})
	}
}
