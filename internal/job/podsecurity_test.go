// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/job"
)

func restricted(t testing.TB) func(*corev1.PodTemplateSpec) []string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	return func(template *corev1.PodTemplateSpec) []string {
		var problems []string
		for _, r := range evaluator.EvaluatePod(level, &metav1.ObjectMeta{Labels: template.Labels, Annotations: template.Annotations}, &template.Spec) {
			if !r.Allowed {
				problems = append(problems, r.ForbiddenReason+": "+r.ForbiddenDetail)
			}
		}
		return problems
	}
}

// text is anything a manifest's author might write into a field.
func text(r *rand.Rand) string {
	words := []string{
		"", "a", "root", "0", "-1", "1", "500m", "256Mi", "1e3", "true", "privileged", "hostPath", "/", "../..", "$(HOME)", "{{x}}",
		"\x00", "\n", "é", "kube-system", "default", "system:masters", "docker/default", "unconfined", "gvisor", "SYS_ADMIN", "sha256:0",
		testToolImage, "sidecar.istio.io/inject", "https://h", "10.0.0.1:1", testFingerprint,
	}
	return words[r.IntN(len(words))]
}

// size is mostly a quantity, so that most inputs get as far as a Job.
func size(r *rand.Rand) string {
	if r.IntN(20) == 0 {
		return text(r)
	}
	return []string{"1", "500m", "256Mi", "1e3", "0.0000001", "1Pi"}[r.IntN(6)]
}

// anyInput fills everything a manifest decides with arbitrary text.
func anyInput(r *rand.Rand) job.Input {
	in := commandInput()
	timeout := contract.Duration(time.Duration(1 + r.Int64N(int64(24*time.Hour))))
	in.Tool = text(r)
	in.Execution = contract.Execution{
		Timeout: &timeout, CPU: size(r), Memory: size(r), EphemeralStorage: size(r), RuntimeClassName: text(r),
		AllowDNS: r.IntN(2) == 0, RequireIsolation: r.IntN(2) == 0,
	}
	in.Canaries = []string{"10.96.0.1:443"}
	secret := func() contract.ResolvedSecret {
		return contract.ResolvedSecret{Name: text(r), SecretName: text(r), Key: text(r), Hosts: []string{text(r)}}
	}
	switch r.IntN(3) {
	case 0:
		in.Execution.ServiceAccountName = text(r)
		c := &contract.CommandCall{Image: text(r) + "x", WorkingDir: text(r)}
		for range r.IntN(4) {
			s := secret()
			c.Argv = append(c.Argv, text(r))
			c.Env = append(c.Env, contract.ResolvedVariable{Name: text(r), Secret: &s}, contract.ResolvedVariable{Name: text(r), Value: new(text(r))})
		}
		in.Effect = contract.Effect{Command: c}
	case 1:
		in.Effect = contract.Effect{HTTP: &contract.HTTPCall{
			Method: text(r), URL: text(r), Body: text(r), AllowPrivate: true, Secrets: []contract.ResolvedSecret{secret()},
		}}
	default:
		in.Effect = contract.Effect{MCP: &contract.MCPCall{URL: text(r), Tool: text(r), Secrets: []contract.ResolvedSecret{secret(), secret()}}}
	}
	return in
}

// FuzzBuild_PassesPodSecurityRestricted drives the template with everything a
// manifest can say. A Job is built or refused; a Job that is built passes the
// check that the API server itself uses.
func FuzzBuild_PassesPodSecurityRestricted(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed, seed*7919)
	}
	check := restricted(f)
	f.Fuzz(func(t *testing.T, a, b uint64) {
		built, err := job.Build(anyInput(rand.New(rand.NewPCG(a, b))))
		if err != nil {
			return
		}
		if problems := check(&built.Spec.Template); problems != nil {
			t.Errorf("the Pod is refused in a restricted namespace: %v", problems)
		}
	})
}

func TestBuild_PassesPodSecurityRestricted(t *testing.T) {
	t.Parallel()
	check := restricted(t)
	for name, in := range map[string]job.Input{"command": commandInput(), "http": httpInput(), "mcp": mcpInput()} {
		if problems := check(&mustBuild(t, in).Spec.Template); problems != nil {
			t.Errorf("%s: %v", name, problems)
		}
	}
	// The check itself must be able to say no.
	open := mustBuild(t, commandInput())
	open.Spec.Template.Spec.HostPID = true
	if check(&open.Spec.Template) == nil {
		t.Error("the check accepts hostPID, so it proves nothing")
	}
	built := 0
	for seed := range uint64(4000) {
		pod, err := job.Build(anyInput(rand.New(rand.NewPCG(seed, 1))))
		if err != nil {
			continue
		}
		built++
		if problems := check(&pod.Spec.Template); problems != nil {
			t.Errorf("seed %d: the Pod is refused in a restricted namespace: %v", seed, problems)
		}
	}
	if built < 1000 {
		t.Errorf("only %d of 4000 arbitrary manifests gave a Job, so the fuzz test proves little", built)
	}
}
