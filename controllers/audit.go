// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
	"github.com/assent-dev/assent/snapshot"
)

// record appends one record about a call and notes its index in the status
// that is about to be written. A record that was noted before is not made
// again; one that was made and not noted, by a crash in between, carries the
// same ID when it says the same.
func (c *Config) record(ctx context.Context, p *v1alpha1.ToolProposal, data audit.Data, part string) error {
	r := audit.Record{
		Time:     c.Now(),
		Proposal: &attest.ObjectRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)},
		TraceID:  proposal.TraceID(c.Keys(), p),
		Data:     data,
	}
	if p.Spec.Prepared != nil {
		r.Fingerprint = p.Spec.Prepared.Fingerprint
	}
	kind := string(r.Type())
	if part == "" && recorded(p, kind) {
		return nil
	}
	text, err := attest.Encode(data)
	if err != nil {
		return fmt.Errorf("encoding %s of %s/%s: %w", kind, p.Namespace, p.Name, err)
	}
	r.ID = recordID(string(p.UID), kind, part, string(text))
	index, ok := c.appended.index(p.UID, r.ID)
	if !ok {
		began := c.Now()
		written, err := c.Journal.Append(ctx, r)
		c.Metrics.appended(c.Now().Sub(began), err)
		if err != nil {
			return fmt.Errorf("recording %s of %s/%s: %w", kind, p.Namespace, p.Name, err)
		}
		index = statusIndex(written)
		c.appended.add(p.UID, r.ID, index)
	}
	note(p, kind, index)
	return nil
}

// statusIndex is an index as a status holds it.
func statusIndex(index uint64) int64 {
	return int64(index) //nolint:gosec // no log comes near 2^63 records
}

// recordID is the same for the same record, whoever makes it.
func recordID(parts ...string) string {
	h := sha256.New()
	h.Write([]byte("assent.dev/record-id/v1"))
	for _, p := range parts {
		fmt.Fprintf(h, "\n%d ", len(p))
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func recorded(p *v1alpha1.ToolProposal, kind string) bool {
	if p.Status.Audit == nil {
		return false
	}
	for _, r := range p.Status.Audit.Records {
		if r.Type == kind {
			return true
		}
	}
	return false
}

func note(p *v1alpha1.ToolProposal, kind string, index int64) {
	if p.Status.Audit == nil {
		p.Status.Audit = &v1alpha1.AuditReference{}
	}
	p.Status.Audit.Index = &index
	p.Status.Audit.Records = append(p.Status.Audit.Records, v1alpha1.AuditRecordReference{Type: kind, Index: index})
}

// recordGrant makes everything durable that a grant rests on. It precedes the
// grant: when it fails there is none.
func (c *Config) recordGrant(ctx context.Context, p *v1alpha1.ToolProposal, f *facts, plan *proposal.Plan) error {
	if err := c.recordAdmitted(ctx, p, f); err != nil {
		return err
	}
	evaluated, err := evaluation(f, plan, true)
	if err != nil {
		return err
	}
	if err := c.record(ctx, p, evaluated, ""); err != nil {
		return err
	}
	for _, receipt := range evaluated.Receipts {
		if err := c.record(ctx, p, audit.ReceiptConsumed{Receipt: receipt}, receipt.UID); err != nil {
			return err
		}
	}
	d := p.Status.Dispatch
	return c.record(ctx, p, audit.Dispatched{
		JobName: d.JobName, TemplateHash: d.TemplateHash, ContractHash: f.ContractHash,
		Binding: evaluated.Binding, Deadline: d.Deadline.Time,
	}, "")
}

// recordAdmitted says what was admitted. Admission itself may be a dry run and
// runs on every replica, so that the first look of the one writer records it.
func (c *Config) recordAdmitted(ctx context.Context, p *v1alpha1.ToolProposal, f *facts) error {
	if f.Seal == nil {
		return nil
	}
	text, err := callText(f)
	if err != nil {
		return err
	}
	binding, err := proposal.BindingOf(p, f.Seal).Hash()
	if err != nil {
		return fmt.Errorf("hashing the binding: %w", err)
	}
	return c.record(ctx, p, audit.ProposalAdmitted{
		Requester: f.Seal.Requester, SealID: f.Seal.SealID, CallID: f.Seal.CallID, Session: f.Seal.Session,
		Iteration: f.Seal.Iteration, Batch: f.Seal.Batch, Tool: f.Seal.Tool, Contract: contractRef(p),
		ProposalHash: f.Seal.ProposalHash, RawDigest: f.Seal.RawDigest, Binding: binding, Call: text,
	}, "")
}

// recordEnd says how a call ended that was never dispatched.
func (c *Config) recordEnd(ctx context.Context, p *v1alpha1.ToolProposal, f *facts, plan *proposal.Plan) error {
	if err := c.recordAdmitted(ctx, p, f); err != nil {
		return err
	}
	if plan.Decision != nil {
		evaluated, err := evaluation(f, plan, false)
		if err != nil {
			return err
		}
		if err := c.record(ctx, p, evaluated, ""); err != nil {
			return err
		}
	}
	if plan.Phase != v1alpha1.PhaseDenied {
		return c.record(ctx, p, audit.ProposalEnded{Phase: string(plan.Phase), Reason: plan.Reason}, "")
	}
	denied := audit.Denied{Reason: plan.Reason}
	if plan.Decision != nil {
		denied.Policies = plan.Decision.Policies
	}
	if plan.Approval != nil && plan.Approval.Denied != nil {
		by := proposal.UserOf(plan.Approval.Denied.Spec.Approver)
		denied.By = &by
	}
	return c.record(ctx, p, denied, "")
}

// recordCompletion says how a call ended that was dispatched.
func (c *Config) recordCompletion(ctx context.Context, p *v1alpha1.ToolProposal) error {
	if p.Status.RedeemedBy == nil {
		return c.record(ctx, p, audit.ProposalEnded{Phase: string(p.Status.Phase), Reason: p.Status.Reason}, "")
	}
	if err := c.recordRedeemed(ctx, p); err != nil {
		return err
	}
	done := audit.ToolCompleted{
		CallID: p.Spec.CallID, PodUID: string(p.Status.RedeemedBy.PodUID),
		Phase: string(p.Status.Phase), Reason: p.Status.Reason,
	}
	if r := p.Status.Result; r != nil {
		done.ExitCode, done.HTTPStatus = r.ExitCode, r.HTTPStatus
		done.StdoutSHA256, done.StdoutBytes = r.OutputDigest, r.OutputBytes
		done.Truncated, done.DurationMillis = r.Truncated, r.DurationMilliseconds
	}
	return c.record(ctx, p, done, "")
}

func (c *Config) recordRedeemed(ctx context.Context, p *v1alpha1.ToolProposal) error {
	r := p.Status.RedeemedBy
	return c.record(ctx, p, audit.Redeemed{
		JobUID: string(p.Status.Dispatch.JobUID), PodName: r.PodName, PodUID: string(r.PodUID),
		NodeName: r.NodeName, NonceDigest: r.NonceDigest, TicketDigest: r.TicketDigest, Deadline: p.Status.Dispatch.Deadline.Time,
	}, "")
}

func evaluation(f *facts, plan *proposal.Plan, commit bool) (audit.PolicyEvaluated, error) {
	text, err := callText(f)
	if err != nil {
		return audit.PolicyEvaluated{}, err
	}
	binding, err := proposal.BindingOf(f.Proposal, f.Seal).Hash()
	if err != nil {
		return audit.PolicyEvaluated{}, fmt.Errorf("hashing the binding: %w", err)
	}
	out := audit.PolicyEvaluated{
		Commit: commit, Decision: audit.Decision(plan.Decision.Answer), Reason: string(plan.Decision.Reason),
		Tool: f.Seal.Tool, Contract: contractRef(f.Proposal), Call: text,
		Policies: plan.Decision.Policies, Errors: failedPolicies(plan.Decision),
		PolicySetDigest: plan.Decision.SetDigest, Binding: binding, Epoch: f.Epoch,
	}
	if plan.Approval != nil && commit {
		for _, r := range plan.Approval.Receipts {
			seal, err := proposal.VerifyReceiptSeal(f.Keys, r)
			if err != nil {
				return audit.PolicyEvaluated{}, err
			}
			out.Receipts = append(out.Receipts, audit.Receipt{
				Name: r.Name, UID: string(r.UID), SealID: seal.SealID, Decision: seal.Decision,
				Approver: seal.Approver, Fingerprint: seal.Fingerprint, ExpiresAt: seal.ExpiresAt,
			})
		}
	}
	return out, nil
}

// failedPolicies are the IDs of the policies that could not be evaluated.
func failedPolicies(d *policy.Decision) []string {
	var ids []string
	for _, e := range d.Errors {
		ids = append(ids, e.Policy)
	}
	return ids
}

func contractRef(p *v1alpha1.ToolProposal) attest.ContractRef {
	c := p.Spec.Prepared.Contract
	return attest.ContractRef{Name: c.Name, Version: c.Version, Hash: c.Hash}
}

// callText is the call as the log may show it. Without its contract nobody
// knows what is sensitive, so that every argument is shown by digest.
func callText(f *facts) (audit.CallText, error) {
	prepared := f.Proposal.Spec.Prepared
	effect, err := proposal.EffectJSON(prepared.Effect)
	if err != nil {
		return audit.CallText{}, err
	}
	var sensitive []string
	if f.contract == nil || f.ContractHash != prepared.Contract.Hash {
		if sensitive, err = argumentNames(prepared.ArgsCanonicalJSON); err != nil {
			return audit.CallText{}, err
		}
		return audit.NewCallText(prepared.ArgsCanonicalJSON, effect, sensitive)
	}
	for _, a := range f.contract.Arguments() {
		if a.Sensitive {
			sensitive = append(sensitive, a.Name)
		}
	}
	return audit.NewCallText(prepared.ArgsCanonicalJSON, effect, sensitive)
}

func argumentNames(canonical string) ([]string, error) {
	s, err := snapshot.Parse(canonical)
	if err != nil {
		return nil, err
	}
	members, _ := s.View().(map[string]any)
	return slices.Sorted(maps.Keys(members)), nil
}

// withCall lets every log line about a call name it. Fingerprint and UID are
// the words in which all other records speak of it.
func withCall(ctx context.Context, p *v1alpha1.ToolProposal) context.Context {
	logger := ctrl.LoggerFrom(ctx).WithValues("uid", p.UID)
	if p.Spec.Prepared != nil {
		logger = logger.WithValues("fingerprint", p.Spec.Prepared.Fingerprint)
	}
	return ctrl.LoggerInto(ctx, logger)
}
