// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/policy"
)

// effort is what bringing policies in force takes.
type effort struct{ Compiled, Written int }

// measure counts the texts of the fixture's namespace that are read, and the
// statuses of policies that are written.
func (f *fixture) measure() *effort {
	e := &effort{}
	f.policies.Compile = func(s policy.Source, l policy.Limits) (*policy.Compiled, []policy.Problem) {
		if s.Namespace == f.namespace {
			e.Compiled++
		}
		return policy.Compile(s, l)
	}
	f.shared.Client = interceptor.NewClient(server.admin, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if _, ok := o.(*v1alpha1.ToolPolicy); ok {
				e.Written++
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	return e
}

// At the limit of 500 objects, a change of one must not cost what all cost.
func TestFiveHundredPolicies_AreReadOnceEach(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.create(f.newPolicy("allow", permitAll))
	for i := range policy.DefaultObjects - 2 {
		f.create(f.newPolicy(fmt.Sprintf("p%d", i), fmt.Sprintf(`forbid (principal, action, resource == Tool::"restart") when { context.invocation.arguments.target == "p%d" };`, i)))
	}
	last := f.newPolicy("last", `forbid (principal, action, resource == Tool::"restart") when { context.invocation.arguments.target == "never" };`)
	f.create(last)
	e := f.measure()
	want := func(when string, want effort) {
		t.Helper()
		f.reloadPolicies()
		if diff := cmp.Diff(want, *e); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		*e = effort{}
	}
	want("at first", effort{Compiled: 500, Written: 500})
	want("when nothing changed", effort{})
	f.wantCall("restart", granted)

	last.ResourceVersion = ""
	if err := server.admin.Get(f.ctx, client.ObjectKeyFromObject(last), last); err != nil {
		t.Fatal(err)
	}
	last.Spec.Cedar = `forbid (principal, action, resource == Tool::"restart") when { context.invocation.arguments.target == "web" };`
	f.mustUpdate(last)
	want("when one object changed", effort{Compiled: 1, Written: 1})
	f.wantCall("restart", "Denied/Forbidden")

	f.mustDelete(last)
	want("when one object went", effort{})
	f.wantCall("restart", granted)

	// The same name is not the same object.
	f.create(f.newPolicy("last", `forbid (principal, action, resource == Tool::"restart") when { context.invocation.arguments.target == "web" };`))
	want("when another object took its name", effort{Compiled: 1, Written: 1})
	f.wantCall("restart", "Denied/Forbidden")

	f.tool("other")
	want("when a tool came", effort{})

	f.create(f.newPolicy("one-too-many", `permit (principal, action, resource == Tool::"elsewhere");`))
	want("beyond the limit", effort{Compiled: 1, Written: 501})
	f.wantCall("other", "Denied/PolicySetTooLarge")
}

func TestConfiguredLimit_OfPolicies_Counts(t *testing.T) {
	f := newFixture(t)
	f.policies.Limits.Objects = 1
	f.tool("restart")
	f.policy("allow", permitAll)
	f.wantCall("restart", granted)
	f.create(f.newPolicy("second", permitAll))
	f.reloadPolicies()
	f.wantCall("restart", "Denied/PolicySetTooLarge")
	p := &v1alpha1.ToolPolicy{}
	if err := server.admin.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: "allow"}, p); err != nil {
		t.Fatal(err)
	}
	f.wantReady(p, "False/LimitExceeded", "2 policy objects where 1 are the limit")
}
