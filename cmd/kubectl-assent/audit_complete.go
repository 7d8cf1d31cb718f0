// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/audit/verify"
)

// Reasons of findings about log and cluster together.
const (
	// reasonCallWithoutRecord: a call says, or shows by its state, that there is
	// a record which the log does not have.
	reasonCallWithoutRecord verify.Reason = "CallWithoutRecord"
	// reasonRecordWithoutCall: the log has a call that did not end, and the
	// cluster does not have it.
	reasonRecordWithoutCall verify.Reason = "RecordWithoutCall"
)

// joined says how calls and records fit together.
type joined struct {
	// Calls is how many calls the cluster has, Newer how many of them point
	// beyond the log as it was read, and Gone how many calls of the log ended
	// and are not kept any more.
	Calls uint64 `json:"calls"`
	Newer uint64 `json:"newer"`
	Gone  uint64 `json:"gone"`
}

// callRecords are the records of one call.
type callRecords struct {
	about string
	first uint64
	types map[audit.RecordType]bool
	at    map[uint64]audit.RecordType
	ended bool
}

// completeness collects the records of each call while a log is read.
type completeness map[string]*callRecords

func (c completeness) visit(index uint64, e *audit.Entry) {
	about := e.Record.Proposal
	if about == nil {
		return
	}
	r := c[about.UID]
	if r == nil {
		r = &callRecords{
			about: about.Namespace + "/" + about.Name, first: index,
			types: map[audit.RecordType]bool{}, at: map[uint64]audit.RecordType{},
		}
		c[about.UID] = r
	}
	r.types[e.Type], r.at[index] = true, e.Type
	r.ended = r.ended || endsCall(e.Record.Data)
}

// endsCall says whether a call has ended with the record. One that was found
// tampered with ends by the alarm.
func endsCall(d audit.Data) bool {
	switch d := d.(type) {
	case audit.ToolCompleted, audit.ProposalEnded, audit.Denied:
		return true
	case audit.IntegrityAlarm:
		return d.Reason == v1alpha1.ReasonStatusTampered
	}
	return false
}

// join compares the calls of the cluster, read after the log, with the log.
func (c completeness) join(calls []v1alpha1.ToolProposal, report *verify.Report) joined {
	out := joined{Calls: uint64(len(calls))}
	present := map[string]bool{}
	slices.SortFunc(calls, func(a, b v1alpha1.ToolProposal) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := range calls {
		p := &calls[i]
		present[string(p.UID)] = true
		if newerThan(p, report.Size) {
			out.Newer++
			continue
		}
		report.Findings = append(report.Findings, c.missing(p, report.Size)...)
	}
	for uid, r := range c {
		switch {
		case present[uid]:
		case r.ended:
			out.Gone++
		default:
			report.Findings = append(report.Findings, verify.Finding{
				Reason: reasonRecordWithoutCall, Index: r.first,
				Detail: fmt.Sprintf("call %s with UID %s has not ended, and there is no such ToolProposal", r.about, uid),
			})
		}
	}
	slices.SortStableFunc(report.Findings, func(a, b verify.Finding) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// newerThan says whether the call went on after the log was read.
func newerThan(p *v1alpha1.ToolProposal, size uint64) bool {
	a := p.Status.Audit
	return a != nil && a.Index != nil && *a.Index >= 0 && uint64(*a.Index) >= size
}

// notThere are the records that the call's status names and the log has not.
func (r *callRecords) notThere(named *v1alpha1.AuditReference) []v1alpha1.AuditRecordReference {
	if named == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(named.Records), func(n v1alpha1.AuditRecordReference) bool {
		return n.Type == string(audit.TypeToolBatchCompleted) || (n.Index >= 0 && string(r.at[uint64(n.Index)]) == n.Type)
	})
}

// missing names the records that a call must have and does not.
func (c completeness) missing(p *v1alpha1.ToolProposal, size uint64) []verify.Finding {
	r := c[string(p.UID)]
	if r == nil {
		r = &callRecords{}
	}
	var out []verify.Finding
	find := func(index uint64, what string) {
		out = append(out, verify.Finding{Reason: reasonCallWithoutRecord, Index: index, Detail: fmt.Sprintf("call %s/%s with UID %s %s", p.Namespace, p.Name, p.UID, what)})
	}
	for _, named := range r.notThere(p.Status.Audit) {
		find(uint64(max(named.Index, 0)), "names a record "+named.Type+" that is not there")
	}
	for _, t := range mustHave(p) {
		if !r.types[t] {
			find(size, "has no record "+string(t))
		}
	}
	if p.Status.Phase.Terminal() && !r.ended && len(out) == 0 {
		find(size, "has ended, and there is no record of its end")
	}
	return out
}

// mustHave are the records that precede what the call's status shows.
func mustHave(p *v1alpha1.ToolProposal) []audit.RecordType {
	var out []audit.RecordType
	if p.Status.Dispatch != nil && p.Status.Reason != v1alpha1.ReasonStatusTampered {
		out = append(out, audit.TypeProposalAdmitted, audit.TypePolicyEvaluated, audit.TypeDispatched)
		for range p.Status.Dispatch.Receipts {
			out = append(out, audit.TypeReceiptConsumed)
			break
		}
	}
	if p.Status.RedeemedBy != nil && p.Status.Phase.Terminal() && p.Status.Reason != v1alpha1.ReasonStatusTampered {
		out = append(out, audit.TypeRedeemed)
	}
	return out
}

// readCalls reads the calls of an export or of a cluster, after the log.
func (o *auditVerifyOptions) readCalls(ctx context.Context, streams Streams) ([]v1alpha1.ToolProposal, error) {
	if o.objects != "" {
		d, err := loadDocuments([]string{o.objects}, streams.In)
		if err != nil {
			return nil, fmt.Errorf("reading the calls: %w", err)
		}
		return d.Proposals, nil
	}
	c, err := (&clusterFlags{kubeconfig: o.kubeconfig}).connect()
	if err != nil {
		return nil, err
	}
	var list v1alpha1.ToolProposalList
	if err := c.List(ctx, &list); err != nil {
		return nil, serverError(err)
	}
	return list.Items, nil
}
