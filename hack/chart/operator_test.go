// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func TestCharts_PassHelmsStrictLint(t *testing.T) {
	for name, args := range map[string][]string{
		"the operator": {"lint", "--strict", chart, "--values", values},
		"the kinds":    {"lint", "--strict", crdChart},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := helm(t, args...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOperator_IsAllowedInARestrictedNamespace(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for name, settings := range map[string][]string{
		"with a claim":              nil,
		"with an existing claim":    {"audit.persistence.type=existingClaim", "audit.persistence.existingClaim=log"},
		"with a volume of the node": {"audit.persistence.type=emptyDir", "audit.acceptDataLoss=true", "replicaCount=1"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := render(t, settings...).deployment.Spec.Template
			for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
				if !result.Allowed {
					t.Errorf("%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			if !*pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem {
				t.Error("the root file system is writable")
			}
		})
	}
}

func TestOperator_GetsTheFlagsItIsDocumentedWith(t *testing.T) {
	digest := func(letter string) string { return "@sha256:" + strings.Repeat(letter, 64) }
	want := []string{
		"--runner-image=registry.example/assent/assent-runner" + digest("b"),
		"--execution-url=https://assent-execution.agents-platform.svc:8443",
		"--namespace=$(POD_NAMESPACE)",
		"--signing-secret=assent-signing",
		"--public-keys-configmap=assent-public-keys",
		"--webhook-cert-secret=assent-webhook-cert",
		"--webhook-configuration=assent",
		"--webhook-port=9443",
		"--execution-port=8443",
		"--audit-dir=/var/lib/assent/audit",
		"--leader-elect",
		"--metrics-bind-address=:8080",
		"--health-probe-bind-address=:8081",
	}
	for name, tc := range map[string]struct{ settings, more []string }{
		"by default":               {nil, nil},
		"with image tags accepted": {[]string{"allowImageTags=true"}, []string{"--allow-image-tags"}},
		"with more policies":       {[]string{"maxPolicyObjects=1000000"}, []string{"--max-policy-objects=1000000"}},
		"in a later epoch":         {[]string{"epoch=1000000"}, []string{"--epoch=1000000"}},
		"with anchors": {
			[]string{"audit.anchors={https://one.example/assent,http://two.example:8080/a}"},
			[]string{"--audit-anchor=https://one.example/assent", "--audit-anchor=http://two.example:8080/a"},
		},
		"with a flag of the user": {[]string{"extraArgs={--v=2}"}, []string{"--v=2"}},
		"with a collector":        {[]string{"tracing.endpoint=http://collector:4318"}, []string{"--otlp-endpoint=http://collector:4318"}},
	} {
		t.Run(name, func(t *testing.T) {
			container := render(t, tc.settings...).deployment.Spec.Template.Spec.Containers[0]
			if diff := cmp.Diff(append(slices.Clone(want), tc.more...), container.Args); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
			if want := "registry.example/assent/assent" + digest("a"); container.Image != want {
				t.Errorf("image %s, want %s", container.Image, want)
			}
		})
	}
}

func TestOperator_GetsTheVariablesOfItsTraces(t *testing.T) {
	env := render(t, "tracing.env[0].name=OTEL_EXPORTER_OTLP_HEADERS", "tracing.env[0].valueFrom.secretKeyRef.name=collector",
		"tracing.env[0].valueFrom.secretKeyRef.key=headers").deployment.Spec.Template.Spec.Containers[0].Env
	got := env[len(env)-1]
	if got.Name != "OTEL_EXPORTER_OTLP_HEADERS" || got.ValueFrom == nil || got.ValueFrom.SecretKeyRef == nil || got.ValueFrom.SecretKeyRef.Key != "headers" {
		t.Errorf("got %+v, want the Secret's key", got)
	}
}

// TestServices_ReachThePortsTheOperatorServes follows each Service's selector
// and named port to the Pod template.
func TestServices_ReachThePortsTheOperatorServes(t *testing.T) {
	o := render(t)
	pod := o.deployment.Spec.Template
	got := map[string][2]int32{}
	for name, service := range o.services {
		for key, value := range service.Spec.Selector {
			if pod.Labels[key] != value {
				t.Errorf("Service %s selects %s=%s, the Pod has %q", name, key, value, pod.Labels[key])
			}
		}
		for _, port := range service.Spec.Ports {
			for _, container := range pod.Spec.Containers[0].Ports {
				if container.Name == port.TargetPort.String() {
					got[name] = [2]int32{port.Port, container.ContainerPort}
				}
			}
		}
	}
	want := map[string][2]int32{"assent-webhook": {443, 9443}, "assent-execution": {8443, 8443}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Service ports to container ports (-want +got):\n%s", diff)
	}
}

func TestOperator_SurvivesTheLossOfOneReplica(t *testing.T) {
	o := render(t)
	if got := *o.deployment.Spec.Replicas; got != 2 {
		t.Errorf("%d replicas, want 2", got)
	}
	if update := o.deployment.Spec.Strategy.RollingUpdate; update == nil || update.MaxUnavailable.IntValue() != 0 {
		t.Errorf("rollout %+v: a rollout must not take a replica away before the new one is ready", update)
	}
	if o.budget == nil || o.budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("disruption budget %+v, want at most one unavailable", o.budget)
	}
	if diff := cmp.Diff(o.deployment.Spec.Selector, o.budget.Spec.Selector); diff != "" {
		t.Errorf("the budget selects other Pods (-deployment +budget):\n%s", diff)
	}
	container := o.deployment.Spec.Template.Spec.Containers[0]
	if container.LivenessProbe == nil || container.ReadinessProbe == nil || container.StartupProbe == nil {
		t.Error("a probe is missing")
	}
}

func TestAuditVolume_DecidesWhereReplicasRun(t *testing.T) {
	for name, tc := range map[string]struct {
		settings []string
		oneNode  bool
		claim    string
	}{
		"a volume for one node keeps them together": {nil, true, "assent-audit"},
		"a volume for many nodes spreads them":      {[]string{"audit.persistence.accessMode=ReadWriteMany"}, false, "assent-audit"},
		"a claim of the user's leaves it to the user": {
			[]string{"audit.persistence.type=existingClaim", "audit.persistence.existingClaim=log"}, false, "log",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := render(t, tc.settings...)
			spec := o.deployment.Spec.Template.Spec
			if spec.Volumes[0].PersistentVolumeClaim.ClaimName != tc.claim {
				t.Errorf("claim %q, want %q", spec.Volumes[0].PersistentVolumeClaim.ClaimName, tc.claim)
			}
			if got := spec.Affinity != nil; got != tc.oneNode {
				t.Errorf("bound to one node: %v, want %v", got, tc.oneNode)
			}
			if got := len(spec.TopologySpreadConstraints) == 0; got != tc.oneNode {
				t.Errorf("not spread: %v, want %v", got, tc.oneNode)
			}
		})
	}
}

func TestAuditVolume_OutlivesTheRelease(t *testing.T) {
	claim := render(t).claims["assent-audit"]
	if claim.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Error("Helm would delete the audit log with the release")
	}
	if diff := cmp.Diff([]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, claim.Spec.AccessModes); diff != "" {
		t.Errorf("access modes (-want +got):\n%s", diff)
	}
}

func TestChart_RefusesUnsafeValues(t *testing.T) {
	for name, tc := range map[string]struct {
		settings []string
		want     string
	}{
		"an operator image by tag":                 {[]string{"image.operator=registry.example/assent:v1"}, "at '/image/operator'"},
		"a runner image by tag":                    {[]string{"image.runner=registry.example/runner:v1"}, "at '/image/runner'"},
		"no image at all":                          {[]string{"image.operator="}, "at '/image/operator'"},
		"an audit log on the Pod's own volume":     {[]string{"audit.persistence.type=emptyDir", "replicaCount=1"}, "at '/audit/acceptDataLoss': value must be true"},
		"a separate audit log for every replica":   {[]string{"audit.persistence.type=emptyDir", "audit.acceptDataLoss=true"}, "gives every replica a log of its own"},
		"a folder of the node without its path":    {[]string{"audit.persistence.type=hostPath"}, "at '/audit/persistence/hostPath'"},
		"an existing claim without its name":       {[]string{"audit.persistence.type=existingClaim"}, "at '/audit/persistence/existingClaim'"},
		"a value that does not exist":              {[]string{"replicas=2"}, "additional properties 'replicas' not allowed"},
		"a webhook that waits longer than allowed": {[]string{"webhook.timeoutSeconds=31"}, "at '/webhook/timeoutSeconds'"},
		"no policies at all":                       {[]string{"maxPolicyObjects=0"}, "at '/maxPolicyObjects'"},
		"an epoch before the first":                {[]string{"epoch=-1"}, "at '/epoch'"},
		"an anchor with a password in its URL":     {[]string{"audit.anchors={https://u:p@one.example/a}"}, "at '/audit/anchors/0'"},
		"an anchor that is no URL":                 {[]string{"audit.anchors={/var/lib/assent/audit/anchor}"}, "at '/audit/anchors/0'"},
		"the same anchor twice":                    {[]string{"audit.anchors={https://one.example/a,https://one.example/a}"}, "at '/audit/anchors'"},
		"a further argument that is not a flag":    {[]string{"extraArgs={serve}"}, "at '/extraArgs/0'"},
		"a collector with a password in its URL":   {[]string{"tracing.endpoint=http://u:p@collector:4318"}, "at '/tracing/endpoint'"},
		"a variable that is not of OpenTelemetry":  {[]string{"tracing.env[0].name=LD_PRELOAD", "tracing.env[0].value=x"}, "at '/tracing/env/0/name'"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"template", "assent", chart, "--values", values}
			for _, s := range tc.settings {
				args = append(args, "--set", s)
			}
			_, err := helm(t, args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestNotes_WarnAboutWhatWeakensTheProof(t *testing.T) {
	for name, tc := range map[string]struct {
		settings string
		want     string
	}{
		"an audit log on the Pod's own volume": {
			"audit.persistence.type=emptyDir,audit.acceptDataLoss=true,replicaCount=1", "WARNING: the audit log is on an emptyDir",
		},
		"tool images by tag": {"allowImageTags=true", "WARNING: tool images may be named by tag"},
	} {
		t.Run(name, func(t *testing.T) {
			for settings, want := range map[string]bool{tc.settings: true, "replicaCount=1": false} {
				out, err := helm(t, "install", "assent", chart, "--dry-run=client", "--values", values, "--set", settings)
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Contains(out, tc.want); got != want {
					t.Errorf("with %s the warning is shown: %v, want %v", settings, got, want)
				}
			}
		})
	}
}

func TestChart_PutsEverythingInItsNamespace(t *testing.T) {
	clusterWide := []string{
		"ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	}
	for _, object := range render(t).all {
		want := namespace
		if slices.Contains(clusterWide, object.Kind) {
			want = ""
		}
		if object.Namespace != want {
			t.Errorf("%s %s is in namespace %q, want %q", object.Kind, object.Name, object.Namespace, want)
		}
		if object.Labels["app.kubernetes.io/part-of"] != "assent" {
			t.Errorf("%s %s does not carry the common labels", object.Kind, object.Name)
		}
	}
}

func TestCertificateSecret_IsLeftToTheOperator(t *testing.T) {
	secret := render(t).secrets["assent-webhook-cert"]
	want := corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "assent-webhook-cert", Namespace: namespace, Labels: secret.Labels},
		Type:       corev1.SecretTypeOpaque,
	}
	if diff := cmp.Diff(want, secret); diff != "" {
		t.Errorf("an upgrade would overwrite the certificate (-want +got):\n%s", diff)
	}
}
