// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

const withIdentity = `{version: "1", execution: {serviceAccountName: restarter}, command: {image: IMAGE, argv: [tool]}}`

func TestToolManifest_WithAServiceAccount_NeedsTheVerbUseOfWhoeverWritesIt(t *testing.T) {
	f := newFixture(t)
	const author, deputy = "author", "deputy"
	for _, who := range []string{author, deputy} {
		f.allow(who, "toolmanifests")
		plain := f.manifest("plain", `{version: "1", command: {image: IMAGE, argv: [tool]}}`)
		f.until(who+" may write manifests", func() bool { return f.as(who).Create(f.ctx, plain.DeepCopy(), client.DryRunAll) == nil })
	}
	refused := "403 spec.execution.serviceAccountName:ServiceAccountNotUsable"
	use := func(who, name string) {
		f.grant(who, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"use"}, ResourceNames: []string{name}})
	}
	want := func(what string, err error, want string) {
		t.Helper()
		if got := refusalOf(err); got != want {
			t.Errorf("%s: got %s, want %s (%v)", what, got, want, err)
		}
	}
	want("without the verb", f.as(author).Create(f.ctx, f.manifest("none", withIdentity)), refused)
	use(author, "another")
	want("with the verb on another", f.as(author).Create(f.ctx, f.manifest("none", withIdentity)), refused)
	use(author, "restarter")
	m := f.manifest("tool", withIdentity)
	f.until("the right is in force", func() bool { return f.as(author).Create(f.ctx, m.DeepCopy(), client.DryRunAll) == nil })
	want("with the verb", f.as(author).Create(f.ctx, m), "accepted")

	patch := func(who, body string) error {
		return f.as(who).Patch(f.ctx, m.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)))
	}
	want("labels by somebody without", patch(deputy, `{"metadata":{"labels":{"team":"red"}}}`), "accepted")
	want("the command by somebody without", patch(deputy, `{"spec":{"command":{"argv":["other"]}}}`), refused)
	want("the name by somebody without", patch(author, `{"spec":{"execution":{"serviceAccountName":"admin"}}}`), refused)
	want("no identity any more by somebody without", patch(deputy, `{"spec":{"execution":null}}`), "accepted")
	want("one again by somebody without", patch(deputy, `{"spec":{"execution":{"serviceAccountName":"restarter"}}}`), refused)
	want("by the author", patch(author, `{"spec":{"execution":{"serviceAccountName":"restarter"}}}`), "accepted")
}

// The identity is that of the namespace that the Jobs run in.
func TestToolManifest_WithAServiceAccountOfAnotherNamespace_NeedsTheVerbThere(t *testing.T) {
	f, jobs := newFixture(t), newFixture(t)
	const author = "author"
	f.allow(author, "toolmanifests")
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"use"}}
	f.grant(author, rule)
	label := func(namespace, key, value string) {
		body := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
		o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if err := server.admin.Patch(f.ctx, o, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	create := func() error { return f.as(author).Create(f.ctx, f.manifest("tool", withIdentity), client.DryRunAll) }
	f.until("the right is in force", func() bool { return create() == nil })
	refused := "403 spec.execution.serviceAccountName:ServiceAccountNotUsable"
	label(f.namespace, v1alpha1.LabelExecutionNamespace, jobs.namespace)
	if got := refusalOf(create()); got != refused {
		t.Errorf("where only one side agreed: got %s, want %s", got, refused)
	}
	label(jobs.namespace, v1alpha1.LabelServes, f.namespace)
	if got := refusalOf(create()); got != refused {
		t.Errorf("with the verb in the wrong namespace: got %s, want %s", got, refused)
	}
	jobs.grant(author, rule)
	f.until("the right there is in force", func() bool { return create() == nil })
}
