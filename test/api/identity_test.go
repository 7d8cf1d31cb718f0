// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// forged is what an agent would like to be taken for.
func forged(p *v1alpha1.ToolProposal) {
	p.Spec.Requester = &v1alpha1.Identity{Username: "system:admin", UID: "0", Groups: []string{"system:masters"}}
	p.Spec.Prepared = &v1alpha1.PreparedCall{
		ArgsCanonicalJSON: `{"target":"db"}`, ArgsDigest: zeros, ProposalHash: zeros, Fingerprint: zeros,
		Contract: v1alpha1.Contract{Name: "x", Version: "1", Hash: zeros},
		Effect:   v1alpha1.Effect{Command: &v1alpha1.CommandCall{Image: "x", Argv: []string{"x"}, WorkingDir: "/"}},
	}
	p.Spec.Seal = "forged"
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

func TestRequester_IsWhoeverAuthenticated_WhateverTheClientWrites(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	p := f.newProposal("restart", `{"target":"web"}`)
	forged(p)
	if err := f.as(agent, "system:serviceaccounts", "b", "a").Create(f.ctx, p); err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.Identity{Username: agent, Groups: []string{"a", "b", "system:authenticated", "system:serviceaccounts"}}
	if diff := cmp.Diff(want, p.Spec.Requester); diff != "" {
		t.Errorf("requester (-want +got):\n%s", diff)
	}
	if got := p.Spec.Prepared; got.ArgsCanonicalJSON != `{"target":"web"}` || got.Fingerprint == zeros || got.Contract.Name != "restart" || p.Spec.Seal == "forged" {
		t.Errorf("what the client wrote was kept: %s", jsonOf(t, p.Spec))
	}
}

func TestApprover_IsWhoeverAuthenticated_WhateverTheClientWrites(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	r := newReceipt(f.waiting())
	r.Spec.Approver = &v1alpha1.Identity{Username: "carol"}
	r.Spec.ExpiresAt = new(metav1.Date(2099, 1, 1, 0, 0, 0, 0, metav1.Now().Location()))
	r.Spec.Seal = "forged"
	if err := f.as(approver).Create(f.ctx, r); err != nil {
		t.Fatal(err)
	}
	if r.Spec.Approver.Username != approver || r.Spec.ExpiresAt.Year() == 2099 || r.Spec.Seal == "forged" {
		t.Errorf("what the client wrote was kept: %s", jsonOf(t, r.Spec))
	}
}

// A token of a ServiceAccount that is bound to a Pod names Pod and node.
// withToken is a client that authenticates with a token of its own.
func (f *fixture) withToken(token string) client.Client {
	f.t.Helper()
	config := rest.AnonymousClientConfig(server.config)
	config.BearerToken = token
	c, err := client.New(config, client.Options{Scheme: server.scheme})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

func TestRequester_CreatedAnewUnderTheOldName_InheritsNothing(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	account := f.serviceAccount("default")
	username := "system:serviceaccount:" + f.namespace + ":default"
	f.allow(username, "toolproposals")
	propose := func() *v1alpha1.ToolProposal {
		p := f.newProposal("change", `{"target":"web"}`)
		if err := f.withToken(f.token(nil)).Create(f.ctx, p); err != nil {
			t.Fatalf("proposing with the token: %v", err)
		}
		if p.Spec.Requester.Username != username || p.Spec.Requester.UID != string(account.UID) {
			t.Fatalf("requester %s %s", p.Spec.Requester.Username, p.Spec.Requester.UID)
		}
		p = f.step(p)
		f.wantOutcome(p, "AwaitingApproval/AwaitingApproval")
		return p
	}
	same, gone, renewed := propose(), propose(), propose()
	for _, p := range []*v1alpha1.ToolProposal{same, gone, renewed} {
		f.decide(p, v1alpha1.ReceiptApproved, approver)
	}
	f.wantOutcome(f.step(same), "Dispatching/Granted")

	f.mustDelete(account)
	f.wantOutcome(f.step(gone), "Denied/PrincipalChanged")
	f.serviceAccount("default")
	f.wantOutcome(f.step(renewed), "Denied/PrincipalChanged")
	if n := len(f.jobs()); n != 1 {
		t.Errorf("%d Jobs, want that of the call whose requester is still there", n)
	}
}

func TestApprover_CreatedAnewUnderTheOldName_InheritsNoApproval(t *testing.T) {
	f := newFixture(t)
	f.tool("change", func(m *v1alpha1.ToolManifest) {
		m.Spec.HumanApproval = true
		m.Spec.Approval = &v1alpha1.ApprovalRules{AllowServiceAccounts: true}
	})
	f.policy("allow", permitAll)
	account := f.serviceAccount("default")
	username := "system:serviceaccount:" + f.namespace + ":default"
	f.allow(username, "approvalreceipts")
	f.grantRole("bot", username)
	approved := func() (*v1alpha1.ToolProposal, *v1alpha1.ApprovalReceipt) {
		p := f.waiting()
		r := newReceipt(p)
		if err := f.withToken(f.token(nil)).Create(f.ctx, r); err != nil {
			t.Fatalf("approving with the token: %v", err)
		}
		return p, r
	}
	same, _ := approved()
	gone, ofGone := approved()
	renewed, ofRenewed := approved()
	f.wantOutcome(f.step(same), "Dispatching/Granted")

	f.mustDelete(account)
	f.wantOutcome(f.step(gone), "AwaitingApproval/AwaitingApproval")
	f.wantVerdict(ofGone, "Valid=False/ApproverNoLongerAuthorized ")
	f.serviceAccount("default")
	f.wantOutcome(f.step(renewed), "AwaitingApproval/AwaitingApproval")
	f.wantVerdict(ofRenewed, "Valid=False/ApproverNoLongerAuthorized ")
	// It burned nothing: the new account may decide for itself.
	if err := f.withToken(f.token(nil)).Create(f.ctx, newReceipt(renewed)); err != nil {
		t.Fatalf("approving with the new account's token: %v", err)
	}
	f.wantOutcome(f.step(renewed), "Dispatching/Granted")
}

func TestRequester_WithAPodsToken_NamesPodAndNode(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "bot", Namespace: f.namespace}}
	f.create(account)
	username := "system:serviceaccount:" + f.namespace + ":bot"
	f.allow(username, "toolproposals")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: f.namespace},
		Spec: corev1.PodSpec{
			ServiceAccountName: "bot", AutomountServiceAccountToken: new(false), NodeName: "node",
			Containers: []corev1.Container{{Name: "a", Image: "registry.example/a"}},
		},
	}
	f.create(pod)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	if err := server.admin.SubResource("token").Create(f.ctx, account, request); err != nil {
		t.Fatalf("asking for a token: %v", err)
	}
	p := f.newProposal("restart", `{"target":"web"}`)
	if err := f.withToken(request.Status.Token).Create(f.ctx, p); err != nil {
		t.Fatalf("proposing with the Pod's token: %v", err)
	}
	got := map[string]string{}
	for _, e := range p.Spec.Requester.Extra {
		got[e.Key] = fmt.Sprint(e.Values)
	}
	delete(got, "authentication.kubernetes.io/credential-id")
	want := map[string]string{
		"authentication.kubernetes.io/pod-name":  "[agent]",
		"authentication.kubernetes.io/pod-uid":   fmt.Sprintf("[%s]", pod.UID),
		"authentication.kubernetes.io/node-name": "[node]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("extra (-want +got):\n%s", diff)
	}
	if p.Spec.Requester.Username != username || p.Spec.Requester.UID != string(account.UID) {
		t.Errorf("requester %s %s", p.Spec.Requester.Username, p.Spec.Requester.UID)
	}
}

func TestDryRun_ShowsThePreparedCallAndLeavesNothing(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	p := f.newProposal("restart", `{"target":"web"}`)
	p.Name, p.GenerateName = "dry", ""
	if err := f.as(agent).Create(f.ctx, p, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if p.Spec.Prepared == nil || p.Spec.Prepared.ArgsCanonicalJSON != `{"target":"web"}` || p.Spec.Seal == "" {
		t.Errorf("the dry run does not show the prepared call: %s", jsonOf(t, p.Spec))
	}
	if err := server.admin.Get(f.ctx, client.ObjectKeyFromObject(p), p); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
}

// A manifest that was created a moment ago is found, although no informer has
// seen it: 20 in a row would meet the gap.
func TestTool_CanBeCalledAtOnce(t *testing.T) {
	f := newFixture(t)
	for i := range 20 {
		name := fmt.Sprintf("tool-%d", i)
		f.tool(name)
		if err := f.as(agent).Create(f.ctx, f.newProposal(name, `{"target":"web"}`)); err != nil {
			t.Fatalf("tool %d: %v", i, err)
		}
	}
}

// A manifest that was mended a moment ago is what counts, although the informers
// still have the one that refuses the call.
func TestTool_ThatWasMendedCanBeCalledAtOnce(t *testing.T) {
	f := newFixture(t)
	for name, c := range map[string]struct {
		spoil, mend func(*v1alpha1.Argument)
		refusal     string
	}{
		"not-ready": {
			func(a *v1alpha1.Argument) { a.Type = "later" },
			func(a *v1alpha1.Argument) { a.Type = "string" },
			"422 spec.tool:ToolNotReady",
		},
		"too-narrow": {
			func(a *v1alpha1.Argument) { a.Pattern = "db" },
			func(a *v1alpha1.Argument) { a.Pattern = "web|db" },
			"422 spec.arguments:PatternMismatch",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			m := f.tool(name)
			propose := func() string { return refusalOf(f.as(agent).Create(f.ctx, f.newProposal(name, web), client.DryRunAll)) }
			change := func(how func(*v1alpha1.Argument)) {
				how(&m.Spec.Arguments[0])
				if err := server.admin.Update(f.ctx, m); err != nil {
					t.Fatal(err)
				}
			}
			change(c.spoil)
			if got := propose(); got != c.refusal {
				t.Fatalf("got %s, want %s", got, c.refusal)
			}
			server.informers.pin(t, m.DeepCopy())
			change(c.mend)
			if got := propose(); got != "accepted" {
				t.Errorf("got %s, want accepted", got)
			}
		})
	}
}

func TestQuota_RefusesTheHundredAndFirstOpenCallOfOneRequesterOnly(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	flood := "system:serviceaccount:" + f.namespace + ":flood"
	f.allow(flood, "toolproposals")
	c := f.as(flood)
	var wait sync.WaitGroup
	for range 10 {
		wait.Go(func() {
			for range 10 {
				if err := c.Create(f.ctx, f.newProposal("restart", `{"target":"web"}`)); err != nil {
					t.Errorf("within the quota: %v", err)
				}
			}
		})
	}
	wait.Wait()
	f.until("the informers have seen all of them", func() bool {
		return refusalOf(c.Create(f.ctx, f.newProposal("restart", `{"target":"web"}`), client.DryRunAll)) == "429 spec.requester:QuotaExceeded"
	})
	if got := refusalOf(f.as(agent).Create(f.ctx, f.newProposal("restart", `{"target":"web"}`))); got != "accepted" {
		t.Errorf("somebody else: %s", got)
	}
	// Ended calls make room again.
	f.policy("none", `forbid (principal, action, resource);`)
	var calls v1alpha1.ToolProposalList
	if err := server.admin.List(f.ctx, &calls, client.InNamespace(f.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range calls.Items {
		f.step(&calls.Items[i])
	}
	f.until("the informers have seen that they ended", func() bool {
		return refusalOf(c.Create(f.ctx, f.newProposal("restart", `{"target":"web"}`), client.DryRunAll)) == "accepted"
	})
}
