// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/job"
)

func TestEgressPolicy_ThatNoToolWantsAnyMore_IsMarkedAndDeletedLater(t *testing.T) {
	f := callFixture(t)
	f.tool("other", reaching("192.0.2.0/24"))
	kept, keptJob := f.dispatched("restart", web)
	gone, goneJob := f.dispatched("other", web)
	f.over(kept)
	f.over(gone)
	operator, stay, leave := f.egress(), egressOf(keptJob), egressOf(goneJob)
	if wait := operator.look(f.namespace); wait != 0 {
		t.Errorf("with all tools there: looks again after %s, want never", wait)
	}
	f.wantPolicies("with all tools there", f.namespace, job.DefaultDenyName, stay, leave)

	f.dropTool("other")
	if wait := operator.look(f.namespace); wait != stays {
		t.Errorf("without the tool: looks again after %s, want %s", wait, stays)
	}
	f.wantPolicies("without the tool", f.namespace, job.DefaultDenyName, stay, leave+"*")
	operator.ahead += stays - 2*time.Second
	if wait := operator.look(f.namespace); wait < time.Second || wait > 2*time.Second {
		t.Errorf("just before the time: looks again after %s, want the rest", wait)
	}
	f.wantPolicies("just before the time", f.namespace, job.DefaultDenyName, stay, leave+"*")
	operator.ahead += 2 * time.Second
	if wait := operator.look(f.namespace); wait != 0 {
		t.Errorf("after the time: looks again after %s, want never", wait)
	}
	f.wantPolicies("after the time", f.namespace, job.DefaultDenyName, stay)
}

// A manifest that is not Ready has no calls. Neither its policy nor that of the
// last tool of a namespace takes the closed network away.
func TestEgressPolicies_OfANamespaceWithoutTools_LeaveItClosed(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	f.over(p)
	f.editTool("restart", func(m *v1alpha1.ToolManifest) { m.Spec.Arguments[0].Type = "absent" })
	foreign := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "assent-egress-of-somebody"}}
	f.create(foreign)
	f.egress().expire(f.namespace)
	f.wantPolicies("in the end", f.namespace, job.DefaultDenyName, foreign.Name)
}

// Each row is something that may still need a policy that no manifest wants,
// and how that ends.
func TestEgressPolicy_ThatSomethingMayStillNeed_Stays(t *testing.T) {
	for name, tc := range map[string]struct {
		arrange func(*fixture) (end func())
	}{
		"an open call of the contract before": {func(f *fixture) func() {
			p := f.waiting()
			f.editTool("change", func(m *v1alpha1.ToolManifest) { m.Spec.Version = "2" })
			return func() { f.wantOutcome(f.step(p), "Denied/ContractChanged") }
		}},
		"an open call of a tool that is gone": {func(f *fixture) func() {
			p := f.waiting()
			f.dropTool("change")
			return func() { f.wantOutcome(f.step(p), "Denied/ContractChanged") }
		}},
		"a Job": {func(f *fixture) func() {
			p, j := f.dispatched("other", web)
			p.Finalizers = nil
			f.mustUpdate(p)
			// By the API alone: the Job and its Pod outlive their call for a while.
			f.mustDelete(p)
			return func() {
				j.Finalizers = nil
				f.mustUpdate(j)
				if err := server.admin.Delete(f.ctx, j, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
					f.t.Fatal(err)
				}
			}
		}},
		"a Pod": {func(f *fixture) func() {
			p, j := f.dispatched("other", web)
			pod := f.startPod(j)
			f.over(p)
			return func() { f.removePod(pod) }
		}},
		"a Pod that says it ended": {func(f *fixture) func() {
			p, j := f.dispatched("other", web)
			pod := f.startPod(j)
			f.succeedPod(pod)
			f.over(p)
			return func() { f.removePod(pod) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.approvalTool()
			f.tool("other", reaching("192.0.2.0/24"))
			p, j := f.dispatched("other", web)
			f.over(p)
			end := tc.arrange(f)
			f.dropTool("other")
			operator := f.egress()
			operator.look(f.namespace)
			operator.ahead += stays
			if wait := operator.look(f.namespace); wait != stays {
				t.Errorf("looks again after %s, want %s", wait, stays)
			}
			if policies := f.policiesIn(f.namespace); !slices.Contains(policies, egressOf(j)+"*") {
				t.Fatalf("the policy is gone: %v", policies)
			}
			end()
			if wait := operator.look(f.namespace); wait != 0 {
				t.Errorf("in the end: looks again after %s, want never", wait)
			}
			if policies := f.policiesIn(f.namespace); strings.Contains(strings.Join(policies, " "), egressOf(j)) {
				t.Errorf("in the end: the policy is still there: %v", policies)
			}
		})
	}
}

// unused is a policy whose time is over, of a tool that is gone.
func (f *fixture) unused(operator *egressOperator) string {
	f.t.Helper()
	f.tool("other", reaching("192.0.2.0/24"))
	p, j := f.dispatched("other", web)
	f.over(p)
	f.dropTool("other")
	operator.look(f.namespace)
	operator.ahead += stays
	f.wantPolicies("when its time is over", f.namespace, job.DefaultDenyName, egressOf(j)+"*")
	return egressOf(j)
}

func TestEgressPolicy_ThatIsWantedAgain_IsUnmarkedByTheFirstCallThatNeedsIt(t *testing.T) {
	f := newFixture(t)
	f.policy("allow", permitAll)
	operator := f.egress()
	name := f.unused(operator)
	f.tool("other", reaching("192.0.2.0/24"))
	operator.look(f.namespace)
	f.wantPolicies("with the tool back", f.namespace, job.DefaultDenyName, name+"*")
	f.dispatched("other", web)
	f.wantPolicies("with a call", f.namespace, job.DefaultDenyName, name)
}

// The collector has made sure that nothing needs the policy, and is about to
// delete it, when a call comes that does.
func TestEgressPolicy_ThatACallUsesAtTheLastMoment_IsNotDeleted(t *testing.T) {
	f := newFixture(t)
	f.policy("allow", permitAll)
	operator := f.egress()
	name := f.unused(operator)
	deleted := 0
	operator.Client = interceptor.NewClient(server.admin, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			deleted++
			f.tool("other", reaching("192.0.2.0/24"))
			f.dispatched("other", web)
			err := c.Delete(ctx, o, opts...)
			if !apierrors.IsConflict(err) {
				t.Errorf("deleting: got %v, want a conflict", err)
			}
			return err
		},
	})
	if wait := operator.look(f.namespace); wait != time.Minute {
		t.Errorf("looks again after %s, want a minute", wait)
	}
	if deleted != 1 {
		t.Errorf("tried %d times to delete, want once", deleted)
	}
	f.wantPolicies("in the end", f.namespace, job.DefaultDenyName, name)
}

// A call has found its policy, with the mark on it, when the collector deletes
// it. Whatever the call does then, its Job comes after its policy.
func TestEgressPolicy_ThatIsDeletedUnderACall_IsBackBeforeTheJob(t *testing.T) {
	f := newFixture(t)
	f.policy("allow", permitAll)
	operator := f.egress()
	name := f.unused(operator)
	f.tool("other", reaching("192.0.2.0/24"))
	p := f.propose("other", web)
	whole := f.shared.Client
	f.shared.Client = interceptor.NewClient(server.admin, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if _, ok := o.(*networkingv1.NetworkPolicy); ok {
				f.dropPolicy(name)
			}
			return c.Update(ctx, o, opts...)
		},
	})
	_, err := f.proposals.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)})
	f.shared.Client = whole
	if !apierrors.IsNotFound(err) {
		t.Fatalf("got %v, want that the policy is not found", err)
	}
	if n := len(f.jobs()); n != 0 {
		t.Fatalf("there are %d Jobs, without their policy", n)
	}
	f.step(p)
	if n := len(f.jobs()); n != 1 {
		t.Errorf("there are %d Jobs in the end, want 1", n)
	}
	f.wantPolicies("in the end", f.namespace, job.DefaultDenyName, name)
}

func (f *fixture) dropPolicy(name string) {
	f.t.Helper()
	f.mustDelete(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}})
}

// A mark that makes no sense, or is of a time to come, says nothing about how
// long the policy was unused.
func TestEgressPolicy_WithAMarkThatSaysNothing_IsMarkedAnew(t *testing.T) {
	for name, mark := range map[string]string{"no time": "yesterday", "a time to come": "2999-01-01T00:00:00Z"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.policy("allow", permitAll)
			operator := f.egress()
			policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: f.unused(operator)}}
			if !f.exists(policy) {
				t.Fatal("there is no policy")
			}
			policy.Annotations[v1alpha1.AnnotationUnused] = mark
			f.mustUpdate(policy)
			if wait := operator.look(f.namespace); wait != stays {
				t.Errorf("looks again after %s, want %s", wait, stays)
			}
			if !f.exists(policy) || policy.Annotations[v1alpha1.AnnotationUnused] != operator.Now().UTC().Format(time.RFC3339) {
				t.Errorf("got mark %q, want the time", policy.Annotations[v1alpha1.AnnotationUnused])
			}
		})
	}
}

// The policies of calls are where their Pods are, and the tools elsewhere.
func TestEgressPolicies_OfAnExecutionNamespace_AreThoseOfTheToolsItServes(t *testing.T) {
	f := callFixture(t)
	first, firstJob := f.dispatched("restart", web)
	f.over(first)
	jobs := f.elsewhere()
	f.tool("other", reaching("192.0.2.0/24"))
	kept, keptJob := f.dispatched("restart", web)
	gone, goneJob := f.dispatched("other", web)
	f.over(kept)
	f.over(gone)
	if keptJob.Namespace != jobs {
		t.Fatalf("the Job runs in %s, want %s", keptJob.Namespace, jobs)
	}
	operator := f.egress()
	f.dropTool("other")
	operator.expire(f.namespace)
	f.wantPolicies("where the calls run", jobs, job.DefaultDenyName, egressOf(keptJob))
	f.wantPolicies("where they ran before", f.namespace, job.DefaultDenyName)
	if egressOf(firstJob) != egressOf(keptJob) || egressOf(goneJob) == egressOf(keptJob) {
		t.Error("the policies are not those that were meant")
	}
	t.Run("while only one side says so", func(t *testing.T) {
		f := f.in(t)
		f.labelNamespace(f.namespace, v1alpha1.LabelExecutionNamespace, "absent")
		operator.expire(jobs)
		f.wantPolicies("the policies", jobs, job.DefaultDenyName, egressOf(keptJob))
	})
	t.Run("when the calls run somewhere else", func(t *testing.T) {
		f := f.in(t)
		f.labelNamespace(f.namespace, v1alpha1.LabelExecutionNamespace, "")
		operator.expire(jobs)
		f.wantPolicies("the policies", jobs, job.DefaultDenyName)
	})
}

// What changed while no operator ran is found when one starts.
func TestEgressPolicies_AreAllLookedAtWhenTheOperatorStarts(t *testing.T) {
	f := newFixture(t)
	f.policy("allow", permitAll)
	operator := f.egress()
	f.unused(operator)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	operator.Live = interceptor.NewClient(server.admin, interceptor.Funcs{
		// Other tests' namespaces have policies, too, and clocks of their own.
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, all := list.(*metav1.PartialObjectMetadataList); all && len(opts) == 0 {
				opts = append(opts, client.InNamespace(ns.Name))
			}
			return c.List(ctx, list, opts...)
		},
	})
	if wait := operator.look(""); wait != 0 {
		t.Errorf("looks again after %s, want never", wait)
	}
	f.wantPolicies("in the end", f.namespace, job.DefaultDenyName)
}
