// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// withMutator puts another mutating webhook behind Assent's for the rest of the
// test: webhooks are called in the order of their configurations' names.
func (f *fixture) withMutator(resource string, patch ...map[string]any) {
	f.t.Helper()
	text, err := json.Marshal(patch)
	if err != nil {
		f.t.Fatal(err)
	}
	server.noop.patch.Store(&text)
	hook := server.noop.hooks.mutating.DeepCopy()
	hook.Name = "zz-other"
	hook.Webhooks[0].Rules[0].Resources = []string{resource}
	hook.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": f.namespace}}
	f.create(hook)
	f.t.Cleanup(func() {
		server.noop.patch.Store(nil)
		if err := server.admin.Delete(noCancel(f.t.Context()), hook); err != nil {
			f.t.Errorf("removing the other webhook: %v", err)
		}
	})
}

// unsealed wants the refusal that names the seal and where to look.
func unsealed(t *testing.T, what string, err error, resource string) {
	t.Helper()
	if !apierrors.IsInvalid(err) || !apierrors.HasStatusCause(err, v1alpha1.ReasonUnsealed) ||
		!strings.HasSuffix(err.Error(), "look for another mutating webhook or policy for "+resource) {
		t.Errorf("%s: %v", what, err)
	}
}

func TestCall_ChangedAfterItsSeal_IsRefused(t *testing.T) {
	tests := map[string]map[string]any{
		"the arguments as sent":     {"op": "replace", "path": "/spec/arguments", "value": `{"target":"web"} `},
		"the canonical arguments":   {"op": "replace", "path": "/spec/prepared/argsCanonicalJson", "value": `{"target":"db"}`},
		"a word of the program":     {"op": "replace", "path": "/spec/prepared/effect/command/argv/0", "value": "sh"},
		"the requester":             {"op": "replace", "path": "/spec/requester/username", "value": "root"},
		"a group of the requester":  {"op": "add", "path": "/spec/requester/groups/-", "value": "system:masters"},
		"the call ID":               {"op": "replace", "path": "/spec/callID", "value": "other"},
		"a session that it had not": {"op": "add", "path": "/spec/sessionRef", "value": map[string]string{"name": "s"}},
		"the seal":                  {"op": "remove", "path": "/spec/seal"},
	}
	f := newFixture(t)
	f.tool("restart")
	for name, patch := range tests {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			f.withMutator("toolproposals", patch)
			create := func() error {
				return f.as(agent).Create(f.ctx, f.newProposal("restart", `{"target":"web"}`), client.DryRunAll)
			}
			f.until("the other webhook", func() bool { return create() != nil })
			unsealed(t, name, create(), "toolproposals")
		})
	}
}

func TestReceipt_ChangedAfterItsSeal_IsRefused(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	p := f.waiting()
	f.withMutator("approvalreceipts", map[string]any{"op": "replace", "path": "/spec/decision", "value": "Approved"})
	deny := func() error {
		r := newReceipt(p)
		r.Spec.Decision = v1alpha1.ReceiptDenied
		return f.as(approver).Create(f.ctx, r, client.DryRunAll)
	}
	f.until("the other webhook", func() bool { return deny() != nil })
	unsealed(t, "a denial turned into an approval", deny(), "approvalreceipts")
}

// Schemas are looked at after admission only, so that admission sees what they
// would refuse. That is the client's mistake and never the server's.
func TestAdmission_RefusesWhatNoSchemaAllows(t *testing.T) {
	f := newFixture(t)
	f.approvalTool()
	p := f.waiting()
	call := func(change func(*v1alpha1.ToolProposal)) client.Object {
		o := f.newProposal("change", `{"target":"web"}`)
		change(o)
		return o
	}
	receipt := func(change func(*v1alpha1.ApprovalReceipt)) client.Object {
		o := newReceipt(p)
		change(o)
		return o
	}
	tests := map[string]struct {
		object client.Object
		field  string
		cause  metav1.CauseType
	}{
		"a call of no tool":             {call(func(p *v1alpha1.ToolProposal) { p.Spec.Tool = "" }), "spec.tool", "UnknownTool"},
		"a tool with an odd name":       {call(func(p *v1alpha1.ToolProposal) { p.Spec.Tool = "../secrets/a" }), "spec.tool", "UnknownTool"},
		"a session without a name":      {call(func(p *v1alpha1.ToolProposal) { p.Spec.SessionRef = &v1alpha1.SessionReference{} }), "spec.sessionRef", "SessionInvalid"},
		"a session with an odd name":    {call(func(p *v1alpha1.ToolProposal) { p.Spec.SessionRef = &v1alpha1.SessionReference{Name: "a/b"} }), "spec.sessionRef", "SessionInvalid"},
		"a call without an ID":          {call(func(p *v1alpha1.ToolProposal) { p.Spec.CallID = "" }), "spec.callID", "EmptyCallID"},
		"a receipt for nothing":         {receipt(func(r *v1alpha1.ApprovalReceipt) { r.Spec.ProposalRef.Name = "" }), "spec.proposalRef.name", "ProposalNotFound"},
		"a receipt with an odd name":    {receipt(func(r *v1alpha1.ApprovalReceipt) { r.Spec.ProposalRef.Name = "a%b" }), "spec.proposalRef.name", "ProposalNotFound"},
		"a receipt without the UID":     {receipt(func(r *v1alpha1.ApprovalReceipt) { r.Spec.ProposalRef.UID = "" }), "spec.proposalRef.uid", "UIDMismatch"},
		"a receipt without fingerprint": {receipt(func(r *v1alpha1.ApprovalReceipt) { r.Spec.Fingerprint = "" }), "spec.fingerprint", "FingerprintMismatch"},
	}
	for name, tc := range tests {
		who := agent
		if _, is := tc.object.(*v1alpha1.ApprovalReceipt); is {
			who = approver
		}
		err := f.as(who).Create(f.ctx, tc.object)
		cause, ok := apierrors.StatusCause(err, tc.cause)
		if !apierrors.IsInvalid(err) || !ok || cause.Field != tc.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}
