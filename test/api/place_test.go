// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// labelNamespace sets a label of a namespace, or takes it off.
func (f *fixture) labelNamespace(namespace, key, value string) {
	f.t.Helper()
	body := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
	if value == "" {
		body = fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, key)
	}
	o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := server.admin.Patch(f.ctx, o, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		f.t.Fatal(err)
	}
}

// elsewhere creates a namespace that the fixture's calls run in.
func (f *fixture) elsewhere() string {
	f.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-exec-", Labels: map[string]string{v1alpha1.LabelServes: f.namespace}}}
	f.create(ns)
	f.labelNamespace(f.namespace, v1alpha1.LabelExecutionNamespace, ns.Name)
	return ns.Name
}

// Without the answer at the grant these calls would get a Job that never gets a
// Pod, and nobody would know more until their time to start is over.
func TestCall_WhosePodWouldFindNoPlace_IsDeniedWithTheReason(t *testing.T) {
	runtime := func(name string) func(*v1alpha1.ToolManifest) {
		return func(m *v1alpha1.ToolManifest) { m.Spec.Execution = &v1alpha1.Execution{RuntimeClassName: name} }
	}
	account := func(m *v1alpha1.ToolManifest) {
		m.Spec.Execution = &v1alpha1.Execution{ServiceAccountName: "restarter"}
	}
	for name, tc := range map[string]struct {
		tool    func(*v1alpha1.ToolManifest)
		arrange func(*fixture) (message string)
		mend    func(*fixture)
		reason  string
	}{
		"a RuntimeClass that does not exist": {
			tool: runtime("t-absent"),
			arrange: func(*fixture) string {
				return "the tool's execution.runtimeClassName is t-absent, and the cluster has no such RuntimeClass"
			},
			mend: func(f *fixture) {
				class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "t-absent"}, Handler: "runc"}
				f.create(class)
				f.t.Cleanup(func() { _ = server.admin.Delete(noCancel(f.ctx), class) })
			},
			reason: "RuntimeClassNotFound",
		},
		"a ServiceAccount that does not exist": {
			tool: account,
			arrange: func(f *fixture) string {
				return "the tool's execution.serviceAccountName is restarter, and namespace " + f.namespace + " has no such ServiceAccount"
			},
			mend:   func(f *fixture) { f.serviceAccount("restarter") },
			reason: "ServiceAccountNotFound",
		},
		"a ServiceAccount of the wrong namespace": {
			tool: account,
			arrange: func(f *fixture) string {
				f.serviceAccount("restarter")
				return "the tool's execution.serviceAccountName is restarter, and namespace " + f.elsewhere() + " has no such ServiceAccount"
			},
			mend:   func(f *fixture) { f.labelNamespace(f.namespace, v1alpha1.LabelExecutionNamespace, "") },
			reason: "ServiceAccountNotFound",
		},
		"an execution namespace that serves nobody": {
			tool: func(*v1alpha1.ToolManifest) {},
			arrange: func(f *fixture) string {
				jobs := f.elsewhere()
				f.labelNamespace(jobs, v1alpha1.LabelServes, "")
				return "namespace " + f.namespace + " names " + jobs + " for its calls, but that has no label assent.dev/serves=" + f.namespace
			},
			mend:   func(f *fixture) { f.labelNamespace(f.namespace, v1alpha1.LabelExecutionNamespace, "") },
			reason: "ExecutionNamespaceNotAgreed",
		},
		"an execution namespace that serves another": {
			tool: func(*v1alpha1.ToolManifest) {},
			arrange: func(f *fixture) string {
				jobs := f.elsewhere()
				f.labelNamespace(jobs, v1alpha1.LabelServes, "default")
				return "namespace " + f.namespace + " names " + jobs + " for its calls, but that has no label assent.dev/serves=" + f.namespace
			},
			mend:   func(f *fixture) { f.elsewhere() },
			reason: "ExecutionNamespaceNotAgreed",
		},
		"an execution namespace that does not exist": {
			tool: func(*v1alpha1.ToolManifest) {},
			arrange: func(f *fixture) string {
				f.labelNamespace(f.namespace, v1alpha1.LabelExecutionNamespace, "t-absent")
				return "namespace " + f.namespace + " names t-absent for its calls, but that does not exist"
			},
			mend:   func(f *fixture) { f.elsewhere() },
			reason: "ExecutionNamespaceNotAgreed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := callFixture(t, tc.tool)
			message := tc.arrange(f)
			p := f.step(f.propose("restart", web))
			if got, want := outcome(p)+": "+p.Status.Message, "Denied/"+tc.reason+": "+message; got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
			if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionDispatched); c == nil || c.Status != metav1.ConditionFalse || c.Reason != tc.reason {
				t.Errorf("got condition %v, want False with the reason", c)
			}
			if p.Status.Dispatch != nil {
				t.Error("the call was granted")
			}
			tc.mend(f)
			f.dispatched("restart", web)
		})
	}
}
