// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

const permitAll = `permit (principal, action, resource);`

func (f *fixture) jobs() []batchv1.Job {
	f.t.Helper()
	var jobs batchv1.JobList
	if err := server.admin.List(f.ctx, &jobs, client.InNamespace(f.namespace)); err != nil {
		f.t.Fatal(err)
	}
	return jobs.Items
}

func TestAllowedCall_IsGrantedAndGetsItsJob(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.policy("allow", permitAll)
	p := f.step(f.propose("restart", `{"target":"web"}`))
	if got, want := outcome(p), "Dispatching/Granted"; got != want {
		t.Fatalf("got %s, want %s: %s", got, want, jsonOf(t, p.Status))
	}
	jobs := f.jobs()
	if len(jobs) != 1 || jobs[0].Name != p.Status.Dispatch.JobName {
		t.Fatalf("want exactly the granted Job, got %d", len(jobs))
	}
	f.step(p)
	f.step(p)
	if n := len(f.jobs()); n != 1 {
		t.Errorf("looking again made %d Jobs of one call", n)
	}
}

func TestForbiddenCall_IsDeniedNamingThePolicy(t *testing.T) {
	f := newFixture(t)
	f.tool("delete-database")
	f.policy("rules", permitAll+` forbid (principal, action, resource == Tool::"delete-database");`)
	p := f.step(f.propose("delete-database", `{"target":"orders"}`))
	if got, want := outcome(p), "Denied/Forbidden"; got != want {
		t.Fatalf("got %s, want %s: %s", got, want, jsonOf(t, p.Status))
	}
	if got, want := p.Status.Decision.Policies, f.namespace+"/rules#1"; len(got) != 1 || got[0] != want {
		t.Errorf("got policies %v, want %s", got, want)
	}
	if n := len(f.jobs()); n != 0 {
		t.Errorf("a denied call has %d Jobs", n)
	}
}

func TestCallThatNeedsApproval_WaitsAndRunsOnceApproved(t *testing.T) {
	f := newFixture(t)
	f.tool("change", func(m *v1alpha1.ToolManifest) { m.Spec.HumanApproval = true })
	f.policy("allow", permitAll)
	p := f.step(f.propose("change", `{"target":"web"}`))
	if got, want := outcome(p), "AwaitingApproval/AwaitingApproval"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if n := len(f.jobs()); n != 0 {
		t.Fatalf("a waiting call has %d Jobs", n)
	}
	receipt := newReceipt(p)
	if err := f.as(approver).Create(f.ctx, receipt); err != nil {
		t.Fatalf("approving: %v", err)
	}
	p = f.step(p)
	if got, want := outcome(p), "Dispatching/Granted"; got != want {
		t.Fatalf("got %s, want %s: %s", got, want, jsonOf(t, p.Status))
	}
	consumed := p.Status.Dispatch.Receipts
	if len(consumed) != 1 || consumed[0].UID != receipt.UID || consumed[0].Approver != approver {
		t.Errorf("the grant names %v, want the receipt of %s", consumed, approver)
	}
}

func TestReceipt_IsRefusedForAnyOtherCall(t *testing.T) {
	f := newFixture(t)
	f.tool("change", func(m *v1alpha1.ToolManifest) { m.Spec.HumanApproval = true })
	f.policy("allow", permitAll)
	p := f.step(f.propose("change", `{"target":"web"}`))
	for name, tc := range map[string]struct {
		by     string
		change func(*v1alpha1.ApprovalReceipt)
		want   string
	}{
		"another fingerprint": {approver, func(r *v1alpha1.ApprovalReceipt) {
			r.Spec.Fingerprint = "0" + r.Spec.Fingerprint[1:63] + "0"
		}, "422 spec.fingerprint:FingerprintMismatch"},
		"another object of the name": {approver, func(r *v1alpha1.ApprovalReceipt) {
			r.Spec.ProposalRef.UID = types.UID("00000000-0000-0000-0000-000000000000")
		}, "422 spec.proposalRef.uid:UIDMismatch"},
		"another name":         {approver, func(r *v1alpha1.ApprovalReceipt) { r.Spec.ProposalRef.Name = "other" }, "422 spec.proposalRef.name:ProposalNotFound"},
		"by the requester":     {agent, func(*v1alpha1.ApprovalReceipt) {}, "403 spec.approver:SelfApproval"},
		"without the verb":     {"carol", func(*v1alpha1.ApprovalReceipt) {}, "403 spec.approver:ApproverNotAuthorized"},
		"by a service account": {"system:serviceaccount:agents:other", func(*v1alpha1.ApprovalReceipt) {}, "403 spec.approver:ServiceAccountNotAllowed"},
		"exactly this call":    {approver, func(*v1alpha1.ApprovalReceipt) {}, "accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			f.allow(tc.by, "approvalreceipts")
			if name == "by the requester" || name == "by a service account" {
				f.mayApprove(tc.by)
			}
			r := newReceipt(p)
			tc.change(r)
			if got := refusalOf(f.as(tc.by).Create(f.ctx, r)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestMalformedCall_IsRefusedAtAdmissionWithItsStage(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	for name, tc := range map[string]struct{ tool, arguments, want string }{
		"duplicate key":         {"restart", `{"target":"canary","target":"b"}`, "422 spec.arguments:DuplicateKey"},
		"duplicate escaped key": {"restart", `{"target":"canary","\u0074arget":"b"}`, "422 spec.arguments:DuplicateKey"},
		"not JSON":              {"restart", `{"target":`, "422 spec.arguments:Syntax"},
		"wrong type":            {"restart", `{"target":7}`, "422 spec.arguments:WrongType"},
		"missing":               {"restart", `{}`, "422 spec.arguments:MissingArgument"},
		"unexpected":            {"restart", `{"target":"a","canary":1}`, "422 spec.arguments:UnexpectedArgument"},
		"unknown tool":          {"nothing", `{}`, "422 spec.tool:UnknownTool"},
	} {
		t.Run(name, func(t *testing.T) {
			err := f.as(agent).Create(f.ctx, f.newProposal(tc.tool, tc.arguments))
			if got := refusalOf(err); got != tc.want {
				t.Errorf("got %s, want %s (%v)", got, tc.want, err)
			}
		})
	}
}
