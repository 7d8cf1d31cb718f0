// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/config"
	"github.com/assent-dev/assent/controllers"
)

// enforcement is what these tests install and the operator compares with: the
// kinds, the admission policies, and the webhooks with the tests' own address.
func enforcement(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	out := admissionPolicies(t)
	crds, err := fs.Glob(config.Files, "crd/*.yaml")
	if err != nil || len(crds) != 8 {
		t.Fatalf("%d kinds: %v", len(crds), err)
	}
	for _, name := range crds {
		text, err := config.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(o); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	for kind, hook := range map[string]any{"MutatingWebhookConfiguration": server.hooks.mutating, "ValidatingWebhookConfiguration": server.hooks.validating} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(hook)
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{Object: content}
		o.SetAPIVersion("admissionregistration.k8s.io/v1")
		o.SetKind(kind)
		out = append(out, o)
	}
	return out
}

func TestEnforcementDrift_IsSeenWhateverIsLoosened(t *testing.T) {
	f := newFixture(t)
	f.withPolicies()
	d := &controllers.Drift{Live: server.admin, Installed: enforcement(t), Now: f.clock.Now}
	check := func(what, want string) {
		t.Helper()
		if err := d.Check(f.ctx); err != nil {
			t.Fatal(err)
		}
		if got := d.Problem(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	check("as installed", "")

	crd := &apiextensionsv1.CustomResourceDefinition{}
	loosen(f, crd, "approvalreceipts.assent.dev", func() {
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = nil
	}, func() {
		check("a kind that is not frozen any more", "CustomResourceDefinition approvalreceipts.assent.dev differs from what was installed at spec.versions[0].schema.openAPIV3Schema.x-kubernetes-validations")
	})
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	loosen(f, hook, "assent", func() {
		hook.Webhooks[0].FailurePolicy = new(admissionregistrationv1.Ignore)
	}, func() {
		check("a webhook that ignores failures", "ValidatingWebhookConfiguration assent differs from what was installed at webhooks[0].failurePolicy")
	})
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	loosen(f, mutating, "assent", func() {
		mutating.Webhooks = mutating.Webhooks[:1]
	}, func() {
		check("a webhook that is gone", "MutatingWebhookConfiguration assent differs from what was installed at webhooks")
	})
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	loosen(f, binding, "assent-status", func() {
		binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
	}, func() {
		check("a policy that only warns", "ValidatingAdmissionPolicyBinding assent-status differs from what was installed at spec.validationActions")
	})
	check("restored", "")
}

// loosen changes an object, runs the check and puts it back.
func loosen(f *fixture, o client.Object, name string, change, check func()) {
	f.t.Helper()
	o.SetName(name)
	if err := server.admin.Get(f.ctx, client.ObjectKeyFromObject(o), o); err != nil {
		f.t.Fatal(err)
	}
	original := o.DeepCopyObject().(client.Object)
	change()
	if err := server.admin.Update(f.ctx, o); err != nil {
		f.t.Fatalf("changing %s: %v", name, err)
	}
	check()
	original.SetResourceVersion(o.GetResourceVersion())
	if err := server.admin.Update(f.ctx, original); err != nil {
		f.t.Fatalf("restoring %s: %v", name, err)
	}
}

func TestEnforcementDrift_HoldsGrantsUntilItIsRestored(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.policy("allow", permitAll)
	f.withPolicies()
	d := &controllers.Drift{Live: server.admin, Installed: enforcement(t), Now: f.clock.Now}
	f.shared.Drift = d.Problem
	compare := func() {
		t.Helper()
		if err := d.Check(f.ctx); err != nil {
			t.Fatal(err)
		}
	}
	p := f.step(f.propose("restart", `{"target":"web"}`))
	f.wantOutcome(p, "Pending/EnforcementDrift") // nothing was compared yet
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionDispatched); c == nil || string(c.Status)+"/"+c.Reason != "False/EnforcementDrift" {
		t.Errorf("condition %s: %+v", v1alpha1.ConditionDispatched, c)
	}

	policy := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	policy.Name = "assent-frozen"
	if err := server.admin.Delete(f.ctx, policy); err != nil {
		t.Fatal(err)
	}
	compare()
	p = f.step(p)
	f.wantOutcome(p, "Pending/EnforcementDrift")
	if got, want := p.Status.Message, "ValidatingAdmissionPolicyBinding assent-frozen is missing"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	if n := len(f.jobs()); n != 0 {
		t.Fatalf("%d Jobs while something is missing", n)
	}
	for _, o := range admissionPolicies(t) {
		if o.GetName() == policy.Name && o.GetKind() == "ValidatingAdmissionPolicyBinding" {
			f.create(o)
		}
	}
	compare()
	f.wantOutcome(f.step(p), "Dispatching/Granted")
}
