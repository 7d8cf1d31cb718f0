// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
)

// stays is how long a policy stays that nobody wants: the time to start of the
// fixture's operator, and a minute.
const stays = 11 * time.Minute

// reaching lets a tool's calls reach one network more than others.
func reaching(cidr string) func(*v1alpha1.ToolManifest) {
	return func(m *v1alpha1.ToolManifest) {
		m.Spec.Execution = &v1alpha1.Execution{Egress: []v1alpha1.EgressRule{{CIDR: cidr, Ports: []int32{443}}}}
	}
}

// egressOperator is a collector of policies with a clock of its own, so that
// the calls meanwhile do not grow old.
type egressOperator struct {
	*controllers.EgressReconciler
	f     *fixture
	ahead time.Duration
}

func (f *fixture) egress() *egressOperator {
	o := &egressOperator{f: f, EgressReconciler: &controllers.EgressReconciler{Config: f.restarted()}}
	o.Now = func() time.Time { return f.clock.Now().Add(o.ahead) }
	return o
}

// look lets it look once at a namespace and says when it wants to look again.
func (o *egressOperator) look(namespace string) time.Duration {
	o.f.t.Helper()
	result, err := o.Reconcile(o.f.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Name: namespace}})
	if err != nil {
		o.f.t.Fatalf("looking at the policies of %s: %v", namespace, err)
	}
	return result.RequeueAfter.Round(time.Second)
}

// expire lets it look, marks and all, until what nobody needs is gone.
func (o *egressOperator) expire(namespace string) {
	o.f.t.Helper()
	o.look(namespace)
	o.ahead += stays
	o.look(namespace)
}

// policiesIn are the names of the NetworkPolicies of a namespace, a marked one
// with a star.
func (f *fixture) policiesIn(namespace string) []string {
	f.t.Helper()
	var list networkingv1.NetworkPolicyList
	if err := server.admin.List(f.ctx, &list, client.InNamespace(namespace)); err != nil {
		f.t.Fatal(err)
	}
	var out []string
	for i := range list.Items {
		name := list.Items[i].Name
		if list.Items[i].Annotations[v1alpha1.AnnotationUnused] != "" {
			name += "*"
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (f *fixture) wantPolicies(what, namespace string, want ...string) {
	f.t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, f.policiesIn(namespace)); diff != "" {
		f.t.Errorf("%s: policies (-want +got):\n%s", what, diff)
	}
}

// egressOf is the name of the policy of a Job's Pods.
func egressOf(j *batchv1.Job) string {
	return "assent-egress-" + j.Spec.Template.Labels[v1alpha1.LabelEgress]
}

// over ends a call without its runner, and takes away what is left of it.
func (f *fixture) over(p *v1alpha1.ToolProposal) {
	f.t.Helper()
	f.mustDelete(p)
	f.pass(p)
	f.pass(p)
	if f.exists(p.DeepCopy()) {
		f.t.Fatal("the call is still there")
	}
}

func (f *fixture) dropTool(name string) {
	f.t.Helper()
	f.mustDelete(&v1alpha1.ToolManifest{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}})
}
