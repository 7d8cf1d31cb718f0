// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal_test

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/proposal"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

const (
	namespace = "agents"
	agent     = "system:serviceaccount:agents:bot"
	sealID    = "000102030405060708090a0b0c0d0e0f"
	digest    = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	runner    = "registry.example/runner@" + digest
)

func keyring(t testing.TB, b byte) *attest.Keyring {
	t.Helper()
	k, err := attest.NewKeyring(bytes.Repeat([]byte{b}, ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The manifests set every member of their effect, so that tests by reflection
// meet all of them.

func commandManifest() *v1alpha1.ToolManifest {
	return manifest(v1alpha1.ToolManifestSpec{
		Arguments: []v1alpha1.Argument{{Name: "target", Type: "string", Required: true}},
		Command: &v1alpha1.CommandTemplate{
			Image: "registry.example/tool@" + digest, Argv: []string{"tool", "{target}"}, WorkingDir: "/work",
			Env: []v1alpha1.EnvironmentVariable{{Name: "MODE", Value: new("fast")}, {Name: "TOKEN", Secret: "token"}},
		},
		Secrets: []v1alpha1.SecretReference{{Name: "token", SecretName: "tokens", Key: "t"}},
	})
}

func httpManifest() *v1alpha1.ToolManifest {
	return manifest(v1alpha1.ToolManifestSpec{
		Arguments: []v1alpha1.Argument{{Name: "target", Type: "string", Required: true}},
		HTTP: &v1alpha1.HTTPTemplate{
			Method: "POST", URL: "https://api.example.com/things/{target}",
			Headers: []v1alpha1.HTTPHeader{{Name: "Authorization", Value: "Bearer {_secret:token}"}},
			Body:    "plain", SuccessStatus: []int32{200, 202}, AllowPrivate: true,
		},
		Secrets: []v1alpha1.SecretReference{{Name: "token", SecretName: "tokens", Key: "t", Hosts: []string{"api.example.com"}}},
	})
}

func mcpManifest() *v1alpha1.ToolManifest {
	return manifest(v1alpha1.ToolManifestSpec{
		Arguments: []v1alpha1.Argument{{Name: "target", Type: "string", Required: true}},
		MCP: &v1alpha1.MCPTemplate{
			URL: "https://mcp.example.com/", Tool: "change", ToolDigest: strings.TrimPrefix(digest, "sha256:"),
			Arguments: []v1alpha1.MCPArgument{{Name: "where", Argument: "target"}, {Name: "how", Value: new(`"fast"`)}},
			Headers:   []v1alpha1.HTTPHeader{{Name: "Authorization", Value: "Bearer {_secret:token}"}}, AllowPrivate: true,
		},
		Secrets: []v1alpha1.SecretReference{{Name: "token", SecretName: "tokens", Key: "t", Hosts: []string{"mcp.example.com"}}},
	})
}

func manifest(spec v1alpha1.ToolManifestSpec) *v1alpha1.ToolManifest {
	spec.Version = "1"
	return &v1alpha1.ToolManifest{ObjectMeta: metav1.ObjectMeta{Name: "change", Namespace: namespace, UID: "m", Generation: 1}, Spec: spec}
}

func compile(t testing.TB, m *v1alpha1.ToolManifest) *contract.Contract {
	t.Helper()
	c, err := (&proposal.Compiler{RunnerImage: runner}).Compile(m, proposal.Tools{})
	if err != nil {
		t.Fatalf("compiling the manifest: %v", err)
	}
	return c
}

func session() *v1alpha1.AgentSession {
	return &v1alpha1.AgentSession{
		ObjectMeta: metav1.ObjectMeta{Name: "run", Namespace: namespace, UID: "s"},
		Spec:       v1alpha1.AgentSessionSpec{Principal: agent, Context: `{"team":"red"}`, ExpiresAt: metav1.NewTime(now.Add(time.Hour))},
	}
}

// sealed is a call with every member set, as admission would store it.
func sealed(t testing.TB, k *attest.Keyring, m *v1alpha1.ToolManifest) *v1alpha1.ToolProposal {
	t.Helper()
	p := &v1alpha1.ToolProposal{
		ObjectMeta: metav1.ObjectMeta{Name: "call", Namespace: namespace, UID: "p", CreationTimestamp: metav1.NewTime(now), Generation: 1},
		Spec: v1alpha1.ToolProposalSpec{
			Tool: "change", Arguments: ` {"target": "web"}`, CallID: "c1", Reason: "because",
			SessionRef: &v1alpha1.SessionReference{Name: "run"}, Iteration: new(int64(3)),
			Batch: &v1alpha1.BatchReference{ID: "b", Size: 2},
			Requester: &v1alpha1.Identity{
				Username: agent, UID: "u", Groups: []string{"system:serviceaccounts"},
				Extra: []v1alpha1.IdentityExtra{{Key: "authentication.kubernetes.io/pod-uid", Values: []string{"pod"}}},
			},
		},
	}
	c := compile(t, m)
	prepared, err := c.Prepare(agent, p.Spec.Arguments)
	if err != nil {
		t.Fatalf("preparing the call: %v", err)
	}
	if p.Spec.Prepared, err = proposal.PreparedCall(c, prepared); err != nil {
		t.Fatal(err)
	}
	if err := proposal.Seal(k, p, proposal.Stamp{Namespace: namespace, SealID: sealID, Session: session(), Epoch: 4, Now: now}); err != nil {
		t.Fatal(err)
	}
	return p
}

// receiptOf is a receipt for exactly this call, as admission would store it.
func receiptOf(t testing.TB, k *attest.Keyring, p *v1alpha1.ToolProposal, name, approver string, edit ...func(*v1alpha1.ApprovalReceipt)) *v1alpha1.ApprovalReceipt {
	t.Helper()
	r := &v1alpha1.ApprovalReceipt{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.Namespace, UID: types.UID(name), CreationTimestamp: metav1.NewTime(now)},
		Spec: v1alpha1.ApprovalReceiptSpec{
			ProposalRef: v1alpha1.ProposalReference{Name: p.Name, UID: p.UID},
			Fingerprint: p.Spec.Prepared.Fingerprint, Decision: v1alpha1.ReceiptApproved, Reason: "fine",
			Approver: &v1alpha1.Identity{
				Username: approver, UID: "uid-of-" + approver, Groups: []string{"sre"},
				Extra: []v1alpha1.IdentityExtra{{Key: "example.com/desk", Values: []string{"3"}}},
			},
			ExpiresAt: new(metav1.NewTime(now.Add(15 * time.Minute))),
		},
	}
	for _, e := range edit {
		e(r)
	}
	err := proposal.SealReceipt(k, r, proposal.Stamp{Namespace: p.Namespace, SealID: sealID, Epoch: 4, Now: r.CreationTimestamp.Time})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
