// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart holds the tests of the Helm charts. They render the charts
// with Helm itself and look at the objects that a cluster would receive.
package chart

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../.."
	chart     = root + "/charts/assent"
	crdChart  = root + "/charts/assent-crds"
	values    = chart + "/ci/values.yaml"
	namespace = "agents-platform"
)

// helm runs Helm: the program that the variable HELM names, or else the pinned
// tool, which Go compiles first where it has not yet done so.
func helm(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	command := []string{"go", "tool", "-modfile=" + root + "/hack/tools.mod", "helm"}
	if program := os.Getenv("HELM"); program != "" {
		command = []string{program}
	}
	cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], args...)...)
	// Neither a cluster nor the user's own settings may change the outcome.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "KUBECONFIG=/dev/null", "HELM_CONFIG_HOME="+t.TempDir(), "HELM_CACHE_HOME="+t.TempDir())
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return out.String(), &helmError{output: problems.String() + out.String(), cause: err}
	}
	return out.String(), nil
}

type helmError struct {
	output string
	cause  error
}

func (e *helmError) Error() string { return e.cause.Error() + ": " + e.output }
func (e *helmError) Unwrap() error { return e.cause }

// render renders the operator's chart, with settings as for --set.
func render(t *testing.T, settings ...string) *objects {
	t.Helper()
	args := []string{"template", "assent", chart, "--namespace", namespace, "--values", values}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	out, err := helm(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, out)
}

// objects are the rendered objects by kind and name.
type objects struct {
	deployment     appsv1.Deployment
	services       map[string]corev1.Service
	secrets        map[string]corev1.Secret
	claims         map[string]corev1.PersistentVolumeClaim
	clusterRoles   map[string]rbacv1.ClusterRole
	roles          map[string]rbacv1.Role
	clusterBinding rbacv1.ClusterRoleBinding
	binding        rbacv1.RoleBinding
	mutating       admissionregistrationv1.MutatingWebhookConfiguration
	validating     admissionregistrationv1.ValidatingWebhookConfiguration
	policies       map[string]admissionregistrationv1.ValidatingAdmissionPolicy
	policyBindings map[string]admissionregistrationv1.ValidatingAdmissionPolicyBinding
	configMaps     map[string]corev1.ConfigMap
	budget         *policyv1.PodDisruptionBudget
	account        corev1.ServiceAccount
	// all are the metadata of every object.
	all []metav1.PartialObjectMetadata
}

// decode decodes the documents strictly: a field that the API does not know
// would be dropped by a cluster without a word.
func decode(t *testing.T, text string) *objects {
	t.Helper()
	o := &objects{
		services: map[string]corev1.Service{}, secrets: map[string]corev1.Secret{},
		claims:       map[string]corev1.PersistentVolumeClaim{},
		clusterRoles: map[string]rbacv1.ClusterRole{}, roles: map[string]rbacv1.Role{},
		policies:       map[string]admissionregistrationv1.ValidatingAdmissionPolicy{},
		policyBindings: map[string]admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
		configMaps:     map[string]corev1.ConfigMap{},
	}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var meta metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(document), &meta); err != nil {
			t.Fatalf("decoding: %v\n%s", err, document)
		}
		if meta.Kind == "" {
			continue
		}
		o.all = append(o.all, meta)
		o.add(t, meta, []byte(document))
	}
	return o
}

func (o *objects) add(t *testing.T, meta metav1.PartialObjectMetadata, document []byte) {
	t.Helper()
	switch meta.Kind {
	case "Deployment":
		strict(t, document, &o.deployment)
	case "ServiceAccount":
		strict(t, document, &o.account)
	case "PodDisruptionBudget":
		o.budget = &policyv1.PodDisruptionBudget{}
		strict(t, document, o.budget)
	case "Service":
		into(t, document, o.services, meta.Name)
	case "Secret":
		into(t, document, o.secrets, meta.Name)
	case "PersistentVolumeClaim":
		into(t, document, o.claims, meta.Name)
	case "ClusterRole":
		into(t, document, o.clusterRoles, meta.Name)
	case "Role":
		into(t, document, o.roles, meta.Name)
	default:
		o.addCluster(t, meta, document)
	}
}

func (o *objects) addCluster(t *testing.T, meta metav1.PartialObjectMetadata, document []byte) {
	t.Helper()
	switch meta.Kind {
	case "ClusterRoleBinding":
		strict(t, document, &o.clusterBinding)
	case "RoleBinding":
		strict(t, document, &o.binding)
	case "MutatingWebhookConfiguration":
		strict(t, document, &o.mutating)
	case "ValidatingWebhookConfiguration":
		strict(t, document, &o.validating)
	case "ValidatingAdmissionPolicy":
		into(t, document, o.policies, meta.Name)
	case "ValidatingAdmissionPolicyBinding":
		into(t, document, o.policyBindings, meta.Name)
	case "ConfigMap":
		into(t, document, o.configMaps, meta.Name)
	default:
		t.Fatalf("the chart has a %s, which no test looks at", meta.Kind)
	}
}

func strict(t *testing.T, document []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		t.Fatalf("decoding: %v\n%s", err, document)
	}
}

func into[T any](t *testing.T, document []byte, target map[string]T, name string) {
	t.Helper()
	var object T
	strict(t, document, &object)
	target[name] = object
}
