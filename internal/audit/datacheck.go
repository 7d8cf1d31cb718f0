// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import "github.com/assent-dev/assent/internal/attest"

func (JournalOpened) recordType() RecordType      { return TypeJournalOpened }
func (RecordPart) recordType() RecordType         { return TypeRecordPart }
func (ProposalAdmitted) recordType() RecordType   { return TypeProposalAdmitted }
func (ProposalRefused) recordType() RecordType    { return TypeProposalRefused }
func (PolicyEvaluated) recordType() RecordType    { return TypePolicyEvaluated }
func (Denied) recordType() RecordType             { return TypeDenied }
func (ReceiptAdmitted) recordType() RecordType    { return TypeReceiptAdmitted }
func (ReceiptRejected) recordType() RecordType    { return TypeReceiptRejected }
func (ReceiptConsumed) recordType() RecordType    { return TypeReceiptConsumed }
func (Dispatched) recordType() RecordType         { return TypeDispatched }
func (Redeemed) recordType() RecordType           { return TypeRedeemed }
func (RedeemRefused) recordType() RecordType      { return TypeRedeemRefused }
func (ToolCompleted) recordType() RecordType      { return TypeToolCompleted }
func (ToolBatchCompleted) recordType() RecordType { return TypeToolBatchCompleted }
func (ProposalEnded) recordType() RecordType      { return TypeProposalEnded }
func (SessionChanged) recordType() RecordType     { return TypeSessionChanged }
func (IntegrityAlarm) recordType() RecordType     { return TypeIntegrityAlarm }
func (EpochChanged) recordType() RecordType       { return TypeEpochChanged }

func (d JournalOpened) check() error {
	var c checks
	c.text("software", d.Software)
	return c.err
}

func (d RecordPart) check() error {
	var c checks
	c.digest("sha256", d.SHA256)
	c.require(d.Number < maxParts, "number", "is out of range")
	c.require(len(d.Bytes) > 0 && len(d.Bytes) <= partBytes, "bytes", "has a length out of range")
	return c.err
}

func (d ProposalAdmitted) check() error {
	var c checks
	c.text("requester.username", d.Requester.Username)
	c.text("sealID", d.SealID)
	c.text("callID", d.CallID)
	c.text("tool", d.Tool)
	c.contract(d.Contract)
	c.digest("proposalHash", d.ProposalHash)
	c.digest("rawDigest", d.RawDigest)
	c.digest("binding", d.Binding)
	c.call("call", d.Call)
	return c.err
}

func (d ProposalRefused) check() error {
	var c checks
	c.text("requester.username", d.Requester.Username)
	c.text("stage", d.Stage)
	c.text("reason", d.Reason)
	return c.err
}

func (d PolicyEvaluated) check() error {
	var c checks
	known := d.Decision == DecisionAllow || d.Decision == DecisionNeedsApproval || d.Decision == DecisionDeny
	c.require(known, "decision", "must be Allow, NeedsApproval or Deny")
	c.text("reason", d.Reason)
	c.text("tool", d.Tool)
	c.contract(d.Contract)
	c.call("call", d.Call)
	c.optionalDigest("policySetDigest", d.PolicySetDigest)
	c.digest("binding", d.Binding)
	for _, r := range d.Receipts {
		c.receipt(r)
	}
	return c.err
}

func (d Denied) check() error {
	var c checks
	c.text("reason", d.Reason)
	return c.err
}

func (d ReceiptAdmitted) check() error {
	var c checks
	c.receipt(d.Receipt)
	return c.err
}

func (d ReceiptRejected) check() error {
	var c checks
	c.text("receipt.name", d.Receipt.Name)
	c.text("reason", d.Reason)
	return c.err
}

func (d ReceiptConsumed) check() error {
	var c checks
	c.receipt(d.Receipt)
	return c.err
}

func (d Dispatched) check() error {
	var c checks
	c.text("jobName", d.JobName)
	c.digest("templateHash", d.TemplateHash)
	c.digest("contractHash", d.ContractHash)
	c.digest("binding", d.Binding)
	c.require(!d.Deadline.IsZero(), "deadline", "must be set")
	return c.err
}

func (d Redeemed) check() error {
	var c checks
	c.text("jobUID", d.JobUID)
	c.text("podName", d.PodName)
	c.text("podUID", d.PodUID)
	c.digest("nonceDigest", d.NonceDigest)
	c.optionalDigest("ticketDigest", d.TicketDigest)
	c.require(!d.Deadline.IsZero(), "deadline", "must be set")
	return c.err
}

func (d RedeemRefused) check() error {
	var c checks
	c.text("reason", d.Reason)
	return c.err
}

func (d ToolCompleted) check() error {
	var c checks
	c.text("callID", d.CallID)
	c.text("phase", d.Phase)
	c.optionalDigest("stdoutSHA256", d.StdoutSHA256)
	c.optionalDigest("stderrSHA256", d.StderrSHA256)
	return c.err
}

func (d ToolBatchCompleted) check() error {
	var c checks
	c.text("session.name", d.Session.Name)
	c.text("batch.id", d.Batch.ID)
	c.require(d.Batch.Size > 0, "batch.size", "must be at least 1")
	c.require(d.Complete == (d.Reason == ""), "reason", "must be set exactly when the batch is not complete")
	c.require(!d.Complete || int64(len(d.Outcomes)) == d.Batch.Size, "outcomes", "must be one for each call of a complete batch")
	for _, o := range d.Outcomes {
		c.text("outcomes.callID", o.CallID)
		c.text("outcomes.phase", o.Phase)
		c.optionalDigest("outcomes.fingerprint", o.Fingerprint)
	}
	return c.err
}

func (d ProposalEnded) check() error {
	var c checks
	c.text("phase", d.Phase)
	c.text("reason", d.Reason)
	return c.err
}

func (d SessionChanged) check() error {
	var c checks
	c.text("namespace", d.Namespace)
	c.text("session.name", d.Session.Name)
	c.text("reason", d.Reason)
	return c.err
}

func (d IntegrityAlarm) check() error {
	var c checks
	c.text("reason", d.Reason)
	return c.err
}

func (d EpochChanged) check() error {
	var c checks
	c.require(d.To > d.From, "to", "must be greater than from")
	c.text("by.username", d.By.Username)
	return c.err
}

func (c *checks) contract(r attest.ContractRef) {
	c.text("contract.name", r.Name)
	c.digest("contract.hash", r.Hash)
}

func (c *checks) call(field string, t CallText) {
	c.digest(field+".argsDigest", t.ArgsDigest)
	c.digest(field+".effectDigest", t.EffectDigest)
}

func (c *checks) receipt(r Receipt) {
	c.text("receipt.name", r.Name)
	c.text("receipt.uid", r.UID)
	c.text("receipt.approver.username", r.Approver.Username)
	c.digest("receipt.fingerprint", r.Fingerprint)
	c.require(r.Decision == attest.DecisionApproved || r.Decision == attest.DecisionDenied,
		"receipt.decision", "must be Approved or Denied")
}
