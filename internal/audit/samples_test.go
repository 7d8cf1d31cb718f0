// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func keys(t testing.TB, seed byte) *attest.Keyring {
	t.Helper()
	k, err := attest.NewKeyring(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func idOf(s string) string { return digestOf(s)[:32] }

func position(seq uint64) audit.Position {
	return audit.Position{Log: "assent.test/audit", Writer: idOf("writer"), Seq: seq}
}

func sampleUser() attest.User {
	return attest.User{Username: "dana", UID: "u-1", Groups: []string{"approvers"}, Extra: map[string][]string{"k": {"v"}}}
}

func sampleCall() audit.CallText {
	return audit.CallText{
		Args: `{"n":5}`, ArgsDigest: digestOf(`{"n":5}`), Sensitive: map[string]string{"token": digestOf("t")},
		Effect: `{"kind":"command"}`, EffectDigest: digestOf(`{"kind":"command"}`),
	}
}

func sampleReceipt() audit.Receipt {
	return audit.Receipt{
		Name: "r-1", UID: "u-r1", SealID: idOf("seal"), Decision: attest.DecisionApproved,
		Approver: sampleUser(), Fingerprint: digestOf("fingerprint"), ExpiresAt: at.Add(time.Hour),
	}
}

// sampleData holds one valid value with every field set for each type.
func sampleData() []audit.Data {
	session := attest.SessionRef{Name: "s-1", UID: "u-s1", SpecDigest: digestOf("session")}
	contract := attest.ContractRef{Name: "fetch", Version: "1.2.0", Hash: digestOf("contract")}
	batch := attest.BatchRef{ID: "b-1", Size: 1}
	object := attest.ObjectRef{Namespace: "agents", Name: "p-1", UID: "u-p1"}
	return []audit.Data{
		audit.JournalOpened{Size: 7, Software: "v0.1.0"},
		audit.RecordPart{SHA256: digestOf("whole"), Number: 1, Bytes: []byte("part")},
		audit.ProposalAdmitted{
			Requester: sampleUser(), SealID: idOf("seal"), CallID: "c-1", Session: &session, Iteration: new(int64(2)),
			Batch: &batch, Tool: "fetch", Contract: contract, ProposalHash: digestOf("proposal"),
			RawDigest: digestOf("raw"), Binding: digestOf("binding"), Call: sampleCall(),
		},
		audit.ProposalRefused{Requester: sampleUser(), Tool: "fetch", Stage: "decode", Reason: "DuplicateKey"},
		audit.PolicyEvaluated{
			Commit: true, Decision: audit.DecisionAllow, Reason: "Permitted", Tool: "fetch", Contract: contract,
			Call: sampleCall(), Policies: []string{"agents/p#0"}, Errors: []string{"agents/q#1"},
			PolicySetDigest: digestOf("set"), Receipts: []audit.Receipt{sampleReceipt()}, Binding: digestOf("binding"), Epoch: 3,
		},
		audit.Denied{Reason: "Forbidden", By: new(sampleUser()), Policies: []string{"agents/p#0"}},
		audit.ReceiptAdmitted{Receipt: sampleReceipt()},
		audit.ReceiptRejected{Receipt: sampleReceipt(), Reason: "SelfApproval"},
		audit.ReceiptConsumed{Receipt: sampleReceipt()},
		audit.Dispatched{
			JobName: "assent-1", TemplateHash: digestOf("template"), ContractHash: digestOf("contract"),
			Binding: digestOf("binding"), Deadline: at.Add(time.Minute),
		},
		audit.Redeemed{
			JobUID: "u-j1", PodName: "assent-1-x", PodUID: "u-pod1", NodeName: "n-1", NonceDigest: digestOf("nonce"),
			TicketDigest: digestOf("ticket"), Deadline: at.Add(time.Minute),
		},
		audit.RedeemRefused{PodUID: "u-pod2", Reason: "ClaimDenied"},
		audit.ToolCompleted{
			CallID: "c-1", PodUID: "u-pod1", Phase: "Failed", Reason: "NonZeroExit", ExitCode: new(int32(2)),
			HTTPStatus: new(int32(500)), StdoutSHA256: digestOf("out"), StderrSHA256: digestOf("err"),
			StdoutBytes: 3, StderrBytes: 4, Truncated: true, DurationMillis: 12,
		},
		audit.ToolBatchCompleted{
			Session: session, Iteration: 2, Batch: batch, Complete: false, Reason: "MissingOutcome",
			Outcomes: []audit.BatchOutcome{{
				CallID: "c-1", Proposal: object, Fingerprint: digestOf("fingerprint"), Phase: "Succeeded", Reason: "Done", Call: sampleCall(),
			}},
		},
		audit.ProposalEnded{Phase: "Expired", Reason: "ApprovalTimeout", By: new(sampleUser())},
		audit.SessionChanged{Namespace: "agents", Session: session, Reason: "Revoked"},
		audit.IntegrityAlarm{Reason: "StatusTampered", Objects: []string{"ToolProposal/agents/p-1"}},
		audit.EpochChanged{From: 2, To: 3, By: sampleUser()},
	}
}

func sampleRecord(d audit.Data) audit.Record {
	return audit.Record{
		ID: idOf("record"), Time: at, Proposal: &attest.ObjectRef{Namespace: "agents", Name: "p-1", UID: "u-p1"},
		Fingerprint: digestOf("fingerprint"), TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Data: d,
	}
}

func seal(t testing.TB, r audit.Record, at audit.Position, parts []uint64) string {
	t.Helper()
	draft, err := audit.NewDraft(r)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := draft.Seal(keys(t, 1), at, parts)
	if err != nil {
		t.Fatal(err)
	}
	return entry
}
