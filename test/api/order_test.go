// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/audit"
)

// applied is what somebody keeps in Git: a tool with its type and scope, and
// two policies that read its arguments.
func (f *fixture) applied() []client.Object {
	return []client.Object{
		f.manifest("scan", withArgument("type: box")),
		f.argumentType("box", `{base: ip_address, scopeCheck: true}`),
		f.scope("lab", `{targets: [10.0.0.0/8]}`),
		f.newPolicy("allow", `permit (principal, action == Action::"tool_call::scan", resource == Tool::"scan") when { context.invocation.argument_addresses.v.isInRange(ip("10.0.0.0/16")) };`),
		f.newPolicy("guard", `forbid (principal, action, resource == Tool::"scan") when { context.invocation.arguments.v == "10.0.0.13" };`),
	}
}

// counter takes records and keeps none: making hundreds of them durable takes
// minutes, and what is compared here does not rest on them.
type counter struct{ index atomic.Uint64 }

// Append implements audit.Journal.
func (c *counter) Append(context.Context, audit.Record) (uint64, error) { return c.index.Add(1), nil }

// AppendAll implements audit.Journal.
func (c *counter) AppendAll(ctx context.Context, records []audit.Record) ([]uint64, error) {
	return oneByOne(ctx, c, records)
}

// permutations lists all orders of n things.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, rest := range permutations(n - 1) {
		for i := range n {
			out = append(out, slices.Insert(slices.Clone(rest), i, n-1))
		}
	}
	return out
}

// apply creates the objects in an order. After each the controllers look at
// whatever its event would wake.
func (f *fixture) apply(objects []client.Object, order []int) {
	f.t.Helper()
	var tools []client.Object
	for _, i := range order {
		f.create(objects[i])
		if _, ok := objects[i].(*v1alpha1.ToolPolicy); !ok {
			tools = append(tools, objects[i])
			for _, o := range tools {
				f.lookAt(o)
			}
		}
		f.reloadPolicies()
	}
}

// takeAway deletes all of them again.
func (f *fixture) takeAway(objects []client.Object) {
	f.t.Helper()
	for _, o := range objects {
		f.mustDelete(o)
	}
	f.reloadPolicies()
}

// state describes what the objects say of themselves and what becomes of calls.
func (f *fixture) state(objects []client.Object, agent client.Client, addresses ...string) []string {
	f.t.Helper()
	var state []string
	for _, o := range objects {
		ready, message := f.ready(o)
		text := fmt.Sprintf("%s: %s: %s", o.GetName(), ready, message)
		switch o := o.(type) {
		case *v1alpha1.ToolManifest:
			text += " contract " + o.Status.ContractHash
		case *v1alpha1.ToolPolicy:
			text += " problems " + jsonOf(f.t, o.Status.Problems) + " warnings " + jsonOf(f.t, o.Status.Warnings)
		}
		state = append(state, text)
	}
	for _, address := range addresses {
		p := f.newProposal("scan", fmt.Sprintf(`{"v":%q}`, address))
		if err := agent.Create(f.ctx, p); err != nil {
			f.t.Fatalf("proposing a call on %s: %v", address, err)
		}
		p = f.step(p)
		d := p.Status.Decision
		state = append(state, fmt.Sprintf("%s: %s by %v, near %v, under %s", address, outcome(p), d.Policies, d.NearMisses, d.PolicySetDigest))
	}
	return state
}

// Nobody should have to know in which order a folder of manifests is applied.
func TestObjects_AppliedInAnyOrder_EndInTheSameState(t *testing.T) {
	f := newFixture(t)
	f.shared.Journal = &counter{}
	var first []string
	for n, order := range permutations(5) {
		objects := f.applied()
		f.apply(objects, order)
		// One requester can have a limited number of open calls only.
		state := f.state(objects, f.as(fmt.Sprintf("agent-%d", n), "system:masters"), "10.0.0.13", "10.1.0.1")
		if first == nil {
			first = state
			f.wantFirst(objects, state)
		}
		if diff := cmp.Diff(first, state); diff != "" {
			t.Errorf("order %v (-first +this):\n%s", order, diff)
		}
		f.takeAway(objects)
	}
}

// wantFirst checks that the state which all orders end in is the right one.
func (f *fixture) wantFirst(objects []client.Object, state []string) {
	f.t.Helper()
	for i, want := range []string{
		"scan: True/Ready: the tool can be called", "box: True/Ready: ", "lab: True/Ready: ",
		"allow: True/Ready: the policies are in force problems null warnings null",
		"guard: True/Ready: the policies are in force problems null warnings null",
		"10.0.0.13: Denied/Forbidden by [" + f.namespace + "/guard#0]",
		"10.1.0.1: Denied/NoPolicyPermits by [], near [" + f.namespace + "/allow#0 line 1",
	} {
		if !strings.HasPrefix(state[i], want) {
			f.t.Errorf("got %s, want %s", state[i], want)
		}
	}
	allowed := f.state(objects, f.as(agent), "10.0.0.1")
	if got, want := allowed[len(allowed)-1], "10.0.0.1: Dispatching/Granted by ["+f.namespace+"/allow#0]"; !strings.HasPrefix(got, want) {
		f.t.Errorf("got %s, want %s", got, want)
	}
}
