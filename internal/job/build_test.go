// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/runner"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got any) {
	t.Helper()
	text, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("differs from %s (-want +got); read it, then run with -update:\n%s", file, diff)
	}
}

func TestBuild_MakesExactlyTheTemplate(t *testing.T) {
	t.Parallel()
	everything := commandInput()
	everything.Namespace = "agents-execution"
	everything.Execution.RuntimeClassName = "gvisor"
	everything.Execution.ServiceAccountName = "restarter"
	everything.Execution.RequireIsolation = true
	everything.Canaries = []string{"10.96.0.1:443", "[fd00::1]:443"}
	everything.ImagePullSecrets = []string{"registry-b", "registry-a", "registry-b"}
	for name, in := range map[string]job.Input{
		"command.yaml":            commandInput(),
		"command-everything.yaml": everything,
		"http.yaml":               httpInput(),
		"mcp.yaml":                mcpInput(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, mustBuild(t, in))
		})
	}
}

func TestBuild_IsDeterministic(t *testing.T) {
	t.Parallel()
	first := mustBuild(t, commandInput())
	for range 20 {
		if diff := cmp.Diff(first, mustBuild(t, commandInput())); diff != "" {
			t.Fatalf("the same input gave another Job:\n%s", diff)
		}
	}
}

func TestBuild_PutsNoWordOfTheCallIntoThePod(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]job.Input{"command": commandInput(), "http": httpInput(), "mcp": mcpInput()} {
		text, err := json.Marshal(mustBuild(t, in))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"agent-supplied", "supplied-body", "tickets.example", "constant-of-the-manifest"} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s: the Job contains %q", name, word)
			}
		}
	}
}

func TestBuild_OwnsTheJobOnlyWithinOneNamespace(t *testing.T) {
	t.Parallel()
	if owners := mustBuild(t, commandInput()).OwnerReferences; len(owners) != 1 || owners[0].UID != commandInput().Proposal.UID {
		t.Errorf("owners in the proposal's namespace = %v", owners)
	}
	elsewhere := commandInput()
	elsewhere.Namespace = "agents-execution"
	if owners := mustBuild(t, elsewhere).OwnerReferences; owners != nil {
		t.Errorf("owners in another namespace = %v; the garbage collector would delete the Job", owners)
	}
}

func TestBuild_GivesTheEffectItsTimeAndTheRunnerTimeToReport(t *testing.T) {
	t.Parallel()
	in := commandInput()
	built := mustBuild(t, in)
	if got, want := in.EffectDeadline(), 10*time.Minute; got != want {
		t.Errorf("EffectDeadline = %v, want %v", got, want)
	}
	want := int64((13 * time.Minute).Seconds())
	if *built.Spec.ActiveDeadlineSeconds != want || *built.Spec.Template.Spec.ActiveDeadlineSeconds != want {
		t.Errorf("activeDeadlineSeconds = %d and %d, want %d", *built.Spec.ActiveDeadlineSeconds, *built.Spec.Template.Spec.ActiveDeadlineSeconds, want)
	}
}

// TestBuild_ConfiguresTheRunner feeds the Pod's environment to the code that
// reads it inside the Pod, so that the two cannot drift apart.
func TestBuild_ConfiguresTheRunner(t *testing.T) {
	t.Parallel()
	in := commandInput()
	in.Execution.RequireIsolation, in.Canaries = true, []string{"10.96.0.1:443"}
	in.Endpoint.CA, in.Endpoint.PublicKeys = testCertificate(t), testPublicKey(t)
	env := map[string]string{}
	for _, e := range mustBuild(t, in).Spec.Template.Spec.Containers[0].Env {
		env[e.Name] = e.Value
	}
	env["ASSENT_POD_UID"] = "pod-uid" // from the downward API
	config, err := runner.LoadConfig(func(name string) string { return env[name] }, os.ReadFile)
	if err != nil {
		t.Fatalf("LoadConfig: %v", err)
	}
	got := []any{
		config.Endpoint.String(), config.Proposal, config.PodUID, config.TokenFile,
		config.Fingerprint, config.StartLimit, config.Canaries[0].String(),
	}
	want := []any{
		in.Endpoint.URL,
		attest.ObjectRef{Namespace: "agents", Name: "restart-1", UID: string(in.Proposal.UID)},
		"pod-uid",
		"/var/run/assent/token", testFingerprint, in.StartTimeout, "10.96.0.1:443",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if _, ok := env[runner.EnvSecretPrefix+"token"]; !ok {
		t.Error("the secret is not where the runner looks for it")
	}
}

func TestName_IsALabelThatDependsOnTheSealAlone(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, seal := range []string{"", "a", "A", "a\n", strings.Repeat("f", 4096), "00112233445566778899aabbccddeeff"} {
		name := job.Name(seal)
		// A Pod's name has a suffix of six characters and is a host name.
		if errs := validation.IsDNS1123Label(name + "-abcde"); errs != nil {
			t.Errorf("Name = %q: %v", name, errs)
		}
		if other, dup := seen[name]; dup {
			t.Errorf("two seals share the name %q (%d and %d bytes)", name, len(other), len(seal))
		}
		seen[name] = seal
	}
	if got, want := job.Name("00112233445566778899aabbccddeeff"), "call-4daa3ff7085920e4563ca64116cab03f1f6363b2"; got != want {
		t.Errorf("Name changed to %q: Jobs of calls in flight would be created a second time", got)
	}
}

func TestBuild_LabelsToolsWithAnyName(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"restart-service", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("x.", 126) + "y"} {
		in := commandInput()
		in.Tool = tool
		if errs := validation.IsValidLabelValue(mustBuild(t, in).Labels[v1alpha1.LabelTool]); errs != nil {
			t.Errorf("a tool name of %d characters gives a bad label: %v", len(tool), errs)
		}
	}
}

func TestTemplateHash_ChangesWithEveryThingThePodDependsOn(t *testing.T) {
	t.Parallel()
	base := mustBuild(t, commandInput()).Annotations[v1alpha1.AnnotationTemplateHash]
	for name, change := range map[string]func(*job.Input){
		"proposal name":   func(in *job.Input) { in.Proposal.Name = "other" },
		"proposal UID":    func(in *job.Input) { in.Proposal.UID = "other" },
		"fingerprint":     func(in *job.Input) { in.Proposal.Fingerprint = strings.Repeat("0", 64) },
		"tool":            func(in *job.Input) { in.Tool = "other" },
		"tool image":      func(in *job.Input) { in.Effect.Command.Image = testRunnerImage },
		"secret":          func(in *job.Input) { in.Effect.Command.Env[1].Secret.SecretName = "other" },
		"secret key":      func(in *job.Input) { in.Effect.Command.Env[1].Secret.Key = "other" },
		"runner image":    func(in *job.Input) { in.RunnerImage = testToolImage },
		"endpoint":        func(in *job.Input) { in.Endpoint.URL = "https://other:8443" },
		"authority":       func(in *job.Input) { in.Endpoint.CA = "other" },
		"public keys":     func(in *job.Input) { in.Endpoint.PublicKeys = "other" },
		"address":         func(in *job.Input) { in.Endpoint.Addresses = nil },
		"start timeout":   func(in *job.Input) { in.StartTimeout = time.Hour },
		"timeout":         func(in *job.Input) { d := contract.Duration(time.Hour); in.Execution.Timeout = &d },
		"cpu":             func(in *job.Input) { in.Execution.CPU = "1" },
		"memory":          func(in *job.Input) { in.Execution.Memory = "1Gi" },
		"storage":         func(in *job.Input) { in.Execution.EphemeralStorage = "1Gi" },
		"runtime class":   func(in *job.Input) { in.Execution.RuntimeClassName = "gvisor" },
		"service account": func(in *job.Input) { in.Execution.ServiceAccountName = "tool" },
		"isolation":       func(in *job.Input) { in.Execution.RequireIsolation, in.Canaries = true, []string{"10.0.0.1:1"} },
		"pull secret":     func(in *job.Input) { in.ImagePullSecrets = []string{"registry"} },
	} {
		in := commandInput()
		change(&in)
		if got := mustBuild(t, in).Annotations[v1alpha1.AnnotationTemplateHash]; got == base {
			t.Errorf("another %s gives the same template hash", name)
		}
	}
}

func TestAsIn_TakesWhatChangesUnderAJobAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]job.Input{"command": commandInput(), "http": httpInput(), "mcp": mcpInput()} {
		granted := mustBuild(t, in)
		later := in
		later.Endpoint.CA, later.Endpoint.PublicKeys = "a new authority", "new keys"
		hash := func(live *batchv1.Job) string {
			return mustBuild(t, later.AsIn(live)).Annotations[v1alpha1.AnnotationTemplateHash]
		}
		if want := granted.Annotations[v1alpha1.AnnotationTemplateHash]; hash(granted) != want {
			t.Errorf("%s: the granted Job is not the same one under new keys", name)
		}
		for i, e := range granted.Spec.Template.Spec.Containers[0].Env {
			if e.ValueFrom != nil {
				continue
			}
			forged := granted.DeepCopy()
			forged.Spec.Template.Spec.Containers[0].Env[i].Value = "forged"
			same := hash(forged) == granted.Annotations[v1alpha1.AnnotationTemplateHash]
			if taken := e.Name == "ASSENT_CA" || e.Name == "ASSENT_PUBLIC_KEYS"; same == taken {
				t.Errorf("%s: %s of a Job is taken over: %v, want %v", name, e.Name, !same, taken)
			}
		}
		other := granted.DeepCopy()
		other.Spec.Template.Spec.Containers[0].Name = "another"
		if hash(other) == granted.Annotations[v1alpha1.AnnotationTemplateHash] {
			t.Errorf("%s: what another container has is taken over", name)
		}
	}
}

func TestBuild_RoundsSizesAsTheAPIServerDoes(t *testing.T) {
	t.Parallel()
	in := commandInput()
	in.Execution.CPU = "0.0001"
	cpu := mustBuild(t, in).Spec.Template.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU]
	if cpu.String() != "1m" {
		t.Errorf("cpu = %s, want 1m; the live Pod would differ", cpu.String())
	}
}

func TestBuild_NeverRunsTwice(t *testing.T) {
	t.Parallel()
	spec := mustBuild(t, commandInput()).Spec
	got := []any{*spec.Completions, *spec.Parallelism, *spec.BackoffLimit, *spec.Suspend, *spec.PodReplacementPolicy, spec.Template.Spec.RestartPolicy}
	want := []any{int32(1), int32(1), int32(0), false, batchv1.Failed, corev1.RestartPolicyNever}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("completions, parallelism, backoffLimit, suspend, podReplacementPolicy, restartPolicy (-want +got):\n%s", diff)
	}
	if spec.TTLSecondsAfterFinished != nil {
		t.Error("a TTL would delete the Job before its outcome is recorded")
	}
}
