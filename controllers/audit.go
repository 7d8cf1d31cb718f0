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

// entry is a record that a step needs. Of most types a call has one record;
// part tells apart those of which it may have several.
type entry struct {
	data audit.Data
	part string
}

// record appends records about a call, in their order, and notes their indexes
// in the status that is about to be written. A record that was noted before is
// not made again; one that was made and not noted, by a crash in between,
// carries the same ID when it says the same.
func (c *Config) record(ctx context.Context, p *v1alpha1.ToolProposal, entries ...entry) error {
	all, err := identify(p, entries)
	if err != nil {
		return err
	}
	var missing []audit.Record
	for _, r := range all {
		if _, ok := c.appended.index(p.UID, r.ID); !ok && r.ID != "" {
			missing = append(missing, r)
		}
	}
	if err := c.append(ctx, p, missing); err != nil {
		return err
	}
	for _, r := range all {
		if index, ok := c.appended.index(p.UID, r.ID); ok {
			note(p, string(r.Type()), index)
		}
	}
	return nil
}

// append makes records durable and remembers where they are.
func (c *Config) append(ctx context.Context, p *v1alpha1.ToolProposal, records []audit.Record) error {
	if len(records) == 0 {
		return nil
	}
	c.about(p, records)
	began := c.Now()
	indexes, err := c.Journal.AppendAll(ctx, records)
	c.Metrics.appended(c.Now().Sub(began), len(records), err)
	for i, index := range indexes {
		c.appended.add(p.UID, records[i].ID, statusIndex(index))
	}
	if err != nil {
		return fmt.Errorf("recording %s of %s/%s: %w", records[min(len(indexes), len(records)-1)].Type(), p.Namespace, p.Name, err)
	}
	return nil
}

// identify gives each record its ID. It is empty for one that the status notes
// already.
func identify(p *v1alpha1.ToolProposal, entries []entry) ([]audit.Record, error) {
	var all []audit.Record
	for _, e := range entries {
		r := audit.Record{Data: e.data}
		kind := string(r.Type())
		if e.part != "" || !recorded(p, kind) {
			text, err := attest.Encode(e.data)
			if err != nil {
				return nil, fmt.Errorf("encoding %s of %s/%s: %w", kind, p.Namespace, p.Name, err)
			}
			r.ID = recordID(string(p.UID), kind, e.part, string(text))
		}
		all = append(all, r)
	}
	return all, nil
}

// about says in each record which call it is about.
func (c *Config) about(p *v1alpha1.ToolProposal, records []audit.Record) {
	trace := proposal.TraceID(c.Keys(), p)
	for i := range records {
		r := &records[i]
		r.Time, r.TraceID = c.Now(), trace
		r.Proposal = &attest.ObjectRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
		if p.Spec.Prepared != nil {
			r.Fingerprint = p.Spec.Prepared.Fingerprint
		}
	}
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
	entries, err := admitted(p, f)
	if err != nil {
		return err
	}
	evaluated, err := evaluation(f, plan, true)
	if err != nil {
		return err
	}
	entries = append(entries, entry{data: evaluated})
	for _, receipt := range evaluated.Receipts {
		entries = append(entries, entry{audit.ReceiptConsumed{Receipt: receipt}, receipt.UID})
	}
	d := p.Status.Dispatch
	return c.record(ctx, p, append(entries, entry{data: audit.Dispatched{
		JobName: d.JobName, TemplateHash: d.TemplateHash, ContractHash: f.ContractHash,
		Binding: evaluated.Binding, Deadline: d.Deadline.Time,
	}})...)
}

// admitted says what was admitted; it is nothing without a seal. Admission
// itself may be a dry run and runs on every replica, so that the first look of
// the one writer records it.
func admitted(p *v1alpha1.ToolProposal, f *facts) ([]entry, error) {
	if f.Seal == nil {
		return nil, nil
	}
	text, binding, err := f.subject()
	if err != nil {
		return nil, err
	}
	return []entry{{data: audit.ProposalAdmitted{
		Requester: f.Seal.Requester, SealID: f.Seal.SealID, CallID: f.Seal.CallID, Session: f.Seal.Session,
		Iteration: f.Seal.Iteration, Batch: f.Seal.Batch, Tool: f.Seal.Tool, Contract: contractRef(p),
		ProposalHash: f.Seal.ProposalHash, RawDigest: f.Seal.RawDigest, Binding: binding, Call: text,
	}}}, nil
}

// recordEnd says how a call ended that was never dispatched.
func (c *Config) recordEnd(ctx context.Context, p *v1alpha1.ToolProposal, f *facts, plan *proposal.Plan) error {
	entries, err := admitted(p, f)
	if err != nil {
		return err
	}
	if plan.Decision != nil {
		evaluated, err := evaluation(f, plan, false)
		if err != nil {
			return err
		}
		entries = append(entries, entry{data: evaluated})
	}
	return c.record(ctx, p, append(entries, entry{data: endOf(plan)})...)
}

func endOf(plan *proposal.Plan) audit.Data {
	if plan.Phase != v1alpha1.PhaseDenied {
		return audit.ProposalEnded{Phase: string(plan.Phase), Reason: plan.Reason}
	}
	denied := audit.Denied{Reason: plan.Reason}
	if plan.Decision != nil {
		denied.Policies = plan.Decision.Policies
	}
	if plan.Approval != nil && plan.Approval.Denied != nil {
		by := proposal.UserOf(plan.Approval.Denied.Spec.Approver)
		denied.By = &by
	}
	return denied
}

// recordCompletion says how a call ended that was dispatched.
func (c *Config) recordCompletion(ctx context.Context, p *v1alpha1.ToolProposal) error {
	if p.Status.RedeemedBy == nil {
		return c.record(ctx, p, entry{data: audit.ProposalEnded{Phase: string(p.Status.Phase), Reason: p.Status.Reason}})
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
	return c.record(ctx, p, redeemed(p), entry{data: done})
}

func redeemed(p *v1alpha1.ToolProposal) entry {
	r := p.Status.RedeemedBy
	return entry{data: audit.Redeemed{
		JobUID: string(p.Status.Dispatch.JobUID), PodName: r.PodName, PodUID: string(r.PodUID),
		NodeName: r.NodeName, NonceDigest: r.NonceDigest, TicketDigest: r.TicketDigest, Deadline: p.Status.Dispatch.Deadline.Time,
	}}
}

func evaluation(f *facts, plan *proposal.Plan, commit bool) (audit.PolicyEvaluated, error) {
	text, binding, err := f.subject()
	if err != nil {
		return audit.PolicyEvaluated{}, err
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

// subject is what several records say of the call that they are about: the call
// as the log may show it, and the hash of what it is bound to.
func (f *facts) subject() (text audit.CallText, binding string, err error) {
	if f.binding != "" {
		return f.text, f.binding, nil
	}
	if f.text, err = callText(f); err != nil {
		return f.text, "", err
	}
	if f.binding, err = proposal.BindingOf(f.Proposal, f.Seal).Hash(); err != nil {
		return f.text, "", fmt.Errorf("hashing the binding: %w", err)
	}
	return f.text, f.binding, nil
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
