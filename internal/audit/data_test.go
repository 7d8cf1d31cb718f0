// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
)

func TestData_ChecksItsFields(t *testing.T) {
	byType := map[reflect.Type]audit.Data{}
	for _, d := range sampleData() {
		byType[reflect.TypeOf(d)] = d
	}
	const text, digest, optional = " must have 1 to 1024 bytes", " must be 64 lower-case hex digits", " must be empty or 64 lower-case hex digits"
	tests := []struct {
		data audit.Data
		want string
	}{
		{edit(byType, func(d *audit.JournalOpened) { d.Software = "" }), "software" + text},
		{edit(byType, func(d *audit.RecordPart) { d.SHA256 = "" }), "sha256" + digest},
		{edit(byType, func(d *audit.RecordPart) { d.Number = 137 }), "number is out of range"},
		{edit(byType, func(d *audit.RecordPart) { d.Bytes = nil }), "bytes has a length out of range"},
		{edit(byType, func(d *audit.RecordPart) { d.Bytes = make([]byte, 30<<10+1) }), "bytes has a length out of range"},
		{edit(byType, func(d *audit.ProposalAdmitted) { d.Requester.Username = "" }), "requester.username" + text},
		{edit(byType, func(d *audit.ProposalAdmitted) { d.SealID = "" }), "sealID" + text},
		{edit(byType, func(d *audit.ProposalAdmitted) { d.CallID = "" }), "callID" + text},
		{edit(byType, func(d *audit.ProposalAdmitted) { d.Tool = "" }), "tool" + text},
		{edit(byType, func(d *audit.ProposalAdmitted) { d.Contract.Name = "" }), "contract.name" + text},
		{edit(byType, func(d *audit.ProposalAdmitted) { d.Contract.Hash = "" }), "contract.hash" + digest},
		{edit(byType, func(d *audit.ProposalAdmitted) { d.ProposalHash = "" }), "proposalHash" + digest},
		{edit(byType, func(d *audit.ProposalAdmitted) { d.RawDigest = "" }), "rawDigest" + digest},
		{edit(byType, func(d *audit.ProposalAdmitted) { d.Binding = "" }), "binding" + digest},
		{edit(byType, func(d *audit.ProposalAdmitted) { d.Call.ArgsDigest = "" }), "call.argsDigest" + digest},
		{edit(byType, func(d *audit.ProposalAdmitted) { d.Call.EffectDigest = "" }), "call.effectDigest" + digest},
		{edit(byType, func(d *audit.ProposalRefused) { d.Requester.Username = "" }), "requester.username" + text},
		{edit(byType, func(d *audit.ProposalRefused) { d.Stage = "" }), "stage" + text},
		{edit(byType, func(d *audit.ProposalRefused) { d.Reason = "" }), "reason" + text},
		{edit(byType, func(d *audit.PolicyEvaluated) { d.Decision = "Maybe" }), "decision must be Allow, NeedsApproval or Deny"},
		{edit(byType, func(d *audit.PolicyEvaluated) { d.Reason = "" }), "reason" + text},
		{edit(byType, func(d *audit.PolicyEvaluated) { d.Tool = "" }), "tool" + text},
		{edit(byType, func(d *audit.PolicyEvaluated) { d.Contract.Hash = "" }), "contract.hash" + digest},
		{edit(byType, func(d *audit.PolicyEvaluated) { d.Call.ArgsDigest = "" }), "call.argsDigest" + digest},
		{edit(byType, func(d *audit.PolicyEvaluated) { d.PolicySetDigest = "x" }), "policySetDigest" + optional},
		{edit(byType, func(d *audit.PolicyEvaluated) { d.Binding = "" }), "binding" + digest},
		{edit(byType, func(d *audit.PolicyEvaluated) { d.Receipts = []audit.Receipt{{}} }), "receipt.name" + text},
		{edit(byType, func(d *audit.Denied) { d.Reason = "" }), "reason" + text},
		{edit(byType, func(d *audit.ReceiptAdmitted) { d.Receipt.UID = "" }), "receipt.uid" + text},
		{edit(byType, func(d *audit.ReceiptAdmitted) { d.Receipt.Decision = "Allow" }), "receipt.decision must be Approved or Denied"},
		{edit(byType, func(d *audit.ReceiptRejected) { d.Receipt.Name = "" }), "receipt.name" + text},
		{edit(byType, func(d *audit.ReceiptRejected) { d.Reason = "" }), "reason" + text},
		{edit(byType, func(d *audit.ReceiptConsumed) { d.Receipt.Approver.Username = "" }), "receipt.approver.username" + text},
		{edit(byType, func(d *audit.ReceiptConsumed) { d.Receipt.Fingerprint = "" }), "receipt.fingerprint" + digest},
		{edit(byType, func(d *audit.Dispatched) { d.JobName = "" }), "jobName" + text},
		{edit(byType, func(d *audit.Dispatched) { d.TemplateHash = "" }), "templateHash" + digest},
		{edit(byType, func(d *audit.Dispatched) { d.ContractHash = "" }), "contractHash" + digest},
		{edit(byType, func(d *audit.Dispatched) { d.Binding = "" }), "binding" + digest},
		{edit(byType, func(d *audit.Dispatched) { d.Deadline = time.Time{} }), "deadline must be set"},
		{edit(byType, func(d *audit.Redeemed) { d.JobUID = "" }), "jobUID" + text},
		{edit(byType, func(d *audit.Redeemed) { d.PodName = "" }), "podName" + text},
		{edit(byType, func(d *audit.Redeemed) { d.PodUID = "" }), "podUID" + text},
		{edit(byType, func(d *audit.Redeemed) { d.NonceDigest = "" }), "nonceDigest" + digest},
		{edit(byType, func(d *audit.Redeemed) { d.TicketDigest = "x" }), "ticketDigest" + optional},
		{edit(byType, func(d *audit.Redeemed) { d.Deadline = time.Time{} }), "deadline must be set"},
		{edit(byType, func(d *audit.RedeemRefused) { d.Reason = "" }), "reason" + text},
		{edit(byType, func(d *audit.ToolCompleted) { d.CallID = "" }), "callID" + text},
		{edit(byType, func(d *audit.ToolCompleted) { d.Phase = "" }), "phase" + text},
		{edit(byType, func(d *audit.ToolCompleted) { d.StdoutSHA256 = "x" }), "stdoutSHA256" + optional},
		{edit(byType, func(d *audit.ToolCompleted) { d.StderrSHA256 = "x" }), "stderrSHA256" + optional},
		{edit(byType, func(d *audit.ToolBatchCompleted) { d.Session.Name = "" }), "session.name" + text},
		{edit(byType, func(d *audit.ToolBatchCompleted) { d.Batch.ID = "" }), "batch.id" + text},
		{edit(byType, func(d *audit.ToolBatchCompleted) { d.Batch.Size = 0 }), "batch.size must be at least 1"},
		{edit(byType, func(d *audit.ToolBatchCompleted) { d.Reason = "" }), "reason must be set exactly when the batch is not complete"},
		{edit(byType, func(d *audit.ToolBatchCompleted) { d.Complete = true }), "reason must be set exactly when the batch is not complete"},
		{edit(byType, func(d *audit.ToolBatchCompleted) { d.Complete, d.Reason, d.Outcomes = true, "", nil }), "outcomes must be one for each call of a complete batch"},
		{edit(byType, func(d *audit.ToolBatchCompleted) { d.Outcomes[0].CallID = "" }), "outcomes.callID" + text},
		{edit(byType, func(d *audit.ToolBatchCompleted) { d.Outcomes[0].Phase = "" }), "outcomes.phase" + text},
		{edit(byType, func(d *audit.ToolBatchCompleted) { d.Outcomes[0].Fingerprint = "x" }), "outcomes.fingerprint" + optional},
		{edit(byType, func(d *audit.ProposalEnded) { d.Phase = "" }), "phase" + text},
		{edit(byType, func(d *audit.ProposalEnded) { d.Reason = "" }), "reason" + text},
		{edit(byType, func(d *audit.SessionChanged) { d.Namespace = "" }), "namespace" + text},
		{edit(byType, func(d *audit.SessionChanged) { d.Session.Name = "" }), "session.name" + text},
		{edit(byType, func(d *audit.SessionChanged) { d.Reason = "" }), "reason" + text},
		{edit(byType, func(d *audit.IntegrityAlarm) { d.Reason = "" }), "reason" + text},
		{edit(byType, func(d *audit.EpochChanged) { d.To = d.From }), "to must be greater than from"},
		{edit(byType, func(d *audit.EpochChanged) { d.By.Username = "" }), "by.username" + text},
	}
	for _, tc := range tests {
		r := sampleRecord(tc.data)
		want := fmt.Sprintf("%v: %s: %s", audit.ErrInvalidRecord, r.Type(), tc.want)
		if err := r.Check(); err == nil || err.Error() != want || !errors.Is(err, audit.ErrInvalidRecord) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// edit returns the sample of a type, changed.
func edit[T audit.Data](samples map[reflect.Type]audit.Data, f func(*T)) audit.Data {
	d := samples[reflect.TypeFor[T]()].(T)
	if batch, ok := any(&d).(*audit.ToolBatchCompleted); ok {
		batch.Outcomes = append([]audit.BatchOutcome{}, batch.Outcomes...)
	}
	f(&d)
	return d
}

func TestCallText_HidesSensitiveArgumentsEverywhere(t *testing.T) {
	const canary = "s3cr3t-canary"
	args := `{"n":5,"other":{"deep":"x"},"token":"` + canary + `"}`
	effect := `{"argv":["fetch","--token=` + canary + `"],"kind":"command"}`
	text, err := audit.NewCallText(args, effect, []string{"token", "absent"})
	if err != nil {
		t.Fatal(err)
	}
	want := audit.CallText{
		Args: `{"n":5,"other":{"deep":"x"}}`, ArgsDigest: digestOf(args),
		Sensitive:    map[string]string{"token": digestOf(`"` + canary + `"`)},
		EffectDigest: digestOf(effect),
	}
	if !reflect.DeepEqual(text, want) {
		t.Errorf("got %+v\nwant %+v", text, want)
	}
	entry := seal(t, sampleRecord(audit.ToolBatchCompleted{
		Session: attest.SessionRef{Name: "s"}, Batch: attest.BatchRef{ID: "b", Size: 1}, Complete: true,
		Outcomes: []audit.BatchOutcome{{CallID: "c", Phase: "Succeeded", Call: text}},
	}), position(1), nil)
	if strings.Contains(payloadOf(t, entry), canary) {
		t.Error("the canary is in the record")
	}
}

func TestCallText_ShowsTheWholeCallOtherwise(t *testing.T) {
	args, effect := `{"n":5}`, `{"kind":"command"}`
	want := audit.CallText{Args: args, ArgsDigest: digestOf(args), Effect: effect, EffectDigest: digestOf(effect)}
	for _, sensitive := range [][]string{nil, {}, {"absent"}} {
		got, err := audit.NewCallText(args, effect, sensitive)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("sensitive %v: %+v, %v", sensitive, got, err)
		}
	}
}

func TestCallText_RefusesOtherTexts(t *testing.T) {
	const canary = "s3cr3t-canary"
	for name, args := range map[string]string{
		"white space":                    `{ "token":"` + canary + `"}`,
		"an array with a sensitive name": `["` + canary + `"]`,
	} {
		_, err := audit.NewCallText(args, `{}`, []string{"token"})
		if err == nil || strings.Contains(err.Error(), canary) || !strings.HasPrefix(err.Error(), "arguments for the audit log: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// payloadOf returns what is signed.
func payloadOf(t *testing.T, entry string) string {
	t.Helper()
	_, rest, _ := strings.Cut(entry, `"payload":"`)
	payload, _, _ := strings.Cut(rest, `"`)
	text, err := base64.StdEncoding.DecodeString(payload)
	if err != nil || len(text) == 0 {
		t.Fatal(err)
	}
	return string(text)
}
