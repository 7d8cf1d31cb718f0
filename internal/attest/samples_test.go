// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/attest"
)

var issued = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func seed(b byte) []byte { return bytes.Repeat([]byte{b}, ed25519.SeedSize) }

func publicOf(b byte) ed25519.PublicKey {
	return ed25519.NewKeyFromSeed(seed(b)).Public().(ed25519.PublicKey)
}

func keyring(t testing.TB, b byte, extra ...ed25519.PublicKey) *attest.Keyring {
	t.Helper()
	k, err := attest.NewKeyring(seed(b), extra...)
	if err != nil {
		t.Fatalf("NewKeyring: %v", err)
	}
	return k
}

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func sampleUser() attest.User {
	return attest.User{
		Username: "system:serviceaccount:agents:planner",
		UID:      "0b5c7a1e-0000-4000-8000-000000000001",
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
		Extra:    map[string][]string{"authentication.kubernetes.io/pod-uid": {"0b5c7a1e-0000-4000-8000-0000000000aa"}},
	}
}

func sampleProposalSeal() attest.ProposalSeal {
	return attest.ProposalSeal{
		SealID: "000102030405060708090a0b0c0d0e0f", Namespace: "agents", Kind: attest.ObjectToolProposal,
		Fingerprint: digestOf("fingerprint"), ProposalHash: digestOf("proposal"),
		ArgsDigest: digestOf("args"), RawDigest: digestOf("raw"),
		Tool: "fetch", CallID: "call-1", ContractHash: digestOf("contract"),
		Requester: sampleUser(),
		Session:   &attest.SessionRef{Name: "s1", UID: "u-s1", SpecDigest: digestOf("session")},
		Iteration: new(int64(3)), Batch: &attest.BatchRef{ID: "b1", Size: 2},
		Encoding: attest.EncodingV1, Epoch: 4, IssuedAt: issued, ExpiresAt: new(issued.Add(time.Hour)),
	}
}

func sampleReceiptSeal() attest.ReceiptSeal {
	return attest.ReceiptSeal{
		SealID: "0f0e0d0c0b0a09080706050403020100", Namespace: "agents", Kind: attest.ObjectApprovalReceipt,
		ProposalName: "p-1", ProposalUID: "u-p1", Fingerprint: digestOf("fingerprint"),
		Decision: attest.DecisionApproved,
		Approver: attest.User{Username: "dana", Groups: []string{"approvers"}, Extra: map[string][]string{}},
		Epoch:    4, IssuedAt: issued, ExpiresAt: issued.Add(15 * time.Minute),
	}
}

func sampleCall() attest.Call {
	return attest.Call{
		Agent: "system:serviceaccount:agents:planner", Tool: "fetch",
		ArgsCanonicalJSON: `{"n":5,"url":"https://example.com/é"}`, Namespace: "agents",
		Contract:   attest.ContractRef{Name: "fetch", Version: "1.2.0", Hash: digestOf("contract")},
		EffectJSON: `{"argv":["/bin/fetch","--n=5","https://example.com/%C3%A9"],"kind":"command"}`,
	}
}

func sampleTicket(t testing.TB) attest.Ticket {
	t.Helper()
	call := sampleCall()
	fingerprint, err := call.Fingerprint()
	if err != nil {
		t.Fatalf("Fingerprint: %v", err)
	}
	return attest.Ticket{
		Proposal: attest.ObjectRef{Namespace: "agents", Name: "p-1", UID: "u-p1"},
		JobUID:   "u-j1", PodUID: "u-pod1", NonceDigest: attest.NonceDigest("nonce"),
		Fingerprint: fingerprint, Binding: digestOf("binding"), Call: call,
		Limits: attest.Limits{TimeoutSeconds: 60, OutputMaxBytes: 10 << 20, StatusMaxBytes: 32 << 10},
		Epoch:  4, IssuedAt: issued, Deadline: issued.Add(time.Minute),
	}
}

func sampleResult() attest.Result {
	return attest.Result{
		ProposalUID: "u-p1", PodUID: "u-pod1", Fingerprint: digestOf("fingerprint"),
		Outcome: attest.OutcomeFailed, ExitCode: new(int32(2)), Reason: "NonZeroExit",
		Stdout: "partial\n", Stderr: "no such host\n",
		StdoutSHA256: digestOf("partial\n"), StderrSHA256: digestOf("no such host\n"),
		StdoutBytes: 8, StderrBytes: 13, MediaType: "text/plain",
		DurationMillis: 1234, StartedAt: issued,
	}
}

// samples lists one valid predicate for each kind that this package defines.
func samples(t testing.TB) map[attest.PayloadKind]any {
	return map[attest.PayloadKind]any{
		attest.KindProposalSeal: sampleProposalSeal(),
		attest.KindReceiptSeal:  sampleReceiptSeal(),
		attest.KindTicket:       sampleTicket(t),
	}
}

func fingerprintOf(v any) string {
	switch p := v.(type) {
	case attest.ProposalSeal:
		return p.Fingerprint
	case attest.ReceiptSeal:
		return p.Fingerprint
	case attest.Ticket:
		return p.Fingerprint
	default:
		return ""
	}
}

// pae is the pre-authentication encoding written from the DSSE specification,
// independent of the library that the package uses.
func pae(payloadType, payload string) []byte {
	return []byte("DSSEv1 " + strconv.Itoa(len(payloadType)) + " " + payloadType + " " + strconv.Itoa(len(payload)) + " " + payload)
}

// forge signs any payload text with the key of seed b, so that tests can reach
// the checks behind the signature.
func forge(b byte, payloadType, payload string) string {
	sig := ed25519.Sign(ed25519.NewKeyFromSeed(seed(b)), pae(payloadType, payload))
	return envelopeJSON(payloadType, base64.StdEncoding.EncodeToString([]byte(payload)),
		attest.KeyID(publicOf(b)), base64.StdEncoding.EncodeToString(sig))
}

func envelopeJSON(payloadType, payload, keyID, sig string) string {
	return `{"payload":"` + payload + `","payloadType":"` + payloadType +
		`","signatures":[{"keyid":"` + keyID + `","sig":"` + sig + `"}]}`
}
