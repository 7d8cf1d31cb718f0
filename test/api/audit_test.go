// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
	"github.com/assent-dev/assent/internal/audit"
)

// types are the types of the records, in order.
func (r *recorder) types() []string {
	var out []string
	for _, record := range r.records {
		out = append(out, string(record.Type()))
	}
	return out
}

// indexes are the records that a call names, by type and index.
func indexes(p *v1alpha1.ToolProposal) []string {
	if p.Status.Audit == nil {
		return nil
	}
	var out []string
	for _, r := range p.Status.Audit.Records {
		out = append(out, fmt.Sprintf("%s@%d", r.Type, r.Index))
	}
	return out
}

// The journal's own first record has index 0.
func TestCall_NamesEachOfItsRecordsByIndex(t *testing.T) {
	f := newFixture(t)
	log := f.record()
	f.tool("change", humanApproval)
	f.policy("allow", permitAll)
	p := f.step(f.propose("change", `{"target":"web"}`))
	if err := f.as(approver).Create(f.ctx, newReceipt(p)); err != nil {
		t.Fatal(err)
	}
	p = f.step(p)
	want := []string{"ProposalAdmitted@1", "PolicyEvaluated@2", "ReceiptConsumed@3", "Dispatched@4"}
	if diff := cmp.Diff(want, indexes(p)); diff != "" {
		t.Errorf("records of the granted call (-want +got):\n%s", diff)
	}
	p = f.step(f.redeemed(p))
	if diff := cmp.Diff([]string{"ProposalAdmitted", "PolicyEvaluated", "ReceiptConsumed", "Dispatched", "Redeemed"}, log.types()); diff != "" {
		t.Errorf("records once the redemption was seen (-want +got):\n%s", diff)
	}
	f.step(p)
	f.setClock(1 << 40)
	p = f.step(p)
	want = append(want, "Redeemed@5", "ToolCompleted@6")
	if diff := cmp.Diff(want, indexes(p)); diff != "" {
		t.Errorf("records of the call at its end (-want +got):\n%s", diff)
	}
	if got := *p.Status.Audit.Index; got != 6 {
		t.Errorf("the call points at record %d, want its latest, 6", got)
	}
	for _, r := range log.records {
		if r.TraceID == "" || r.TraceID != log.records[0].TraceID {
			t.Errorf("record %s has trace ID %q, the first has %q", r.Type(), r.TraceID, log.records[0].TraceID)
		}
	}
}

// For each record that precedes the grant: without it nothing is granted, and
// once the log is back the call goes on without a record missing or repeated.
func TestCall_WhoseRecordCannotBeMade_WaitsAndGoesOnWithoutGaps(t *testing.T) {
	full := []string{"ProposalAdmitted", "PolicyEvaluated", "ReceiptConsumed", "Dispatched"}
	for _, failing := range full {
		t.Run(failing, func(t *testing.T) {
			f := newFixture(t)
			log := f.record()
			f.tool("change", humanApproval)
			f.policy("allow", permitAll)
			p := f.step(f.propose("change", `{"target":"web"}`))
			if err := f.as(approver).Create(f.ctx, newReceipt(p)); err != nil {
				t.Fatal(err)
			}
			log.fail = func(r audit.Record) error {
				if string(r.Type()) == failing {
					return fmt.Errorf("%w: the disk is full", audit.ErrUnavailable)
				}
				return nil
			}
			for range 3 {
				p = f.step(p)
			}
			if got, want := outcome(p), "AwaitingApproval/AuditUnavailable"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if p.Status.Dispatch != nil || len(f.jobs()) != 0 {
				t.Errorf("the call was granted without its record %s", failing)
			}
			log.fail = nil
			p = f.step(p)
			if got, want := outcome(p), "Dispatching/Granted"; got != want {
				t.Errorf("once the log is back: got %s, want %s", got, want)
			}
			if diff := cmp.Diff(full, log.types()); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeniedCall_WhoseRecordCannotBeMade_EndsOnceItCan(t *testing.T) {
	f := newFixture(t)
	log := f.record()
	f.tool("restart")
	f.policy("none", `forbid (principal, action, resource);`)
	log.fail = func(audit.Record) error { return audit.ErrUnavailable }
	p := f.step(f.propose("restart", `{"target":"web"}`))
	if got, want := outcome(p), "Pending/AuditUnavailable"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	log.fail = nil
	p = f.step(p)
	if got, want := outcome(p), "Denied/Forbidden"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"ProposalAdmitted@1", "PolicyEvaluated@2", "Denied@3"}, indexes(p)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// What waits for the log after a grant is the record of the end, not the grant.
func TestRunningCall_WhoseEndCannotBeRecorded_KeepsItsGrant(t *testing.T) {
	f := newFixture(t)
	log := f.record()
	f.tool("restart")
	f.policy("allow", permitAll)
	p := f.redeemed(f.step(f.propose("restart", `{"target":"web"}`)))
	log.fail = func(audit.Record) error { return audit.ErrUnavailable }
	f.setClock(1 << 40)
	p = f.step(p)
	if got, want := outcome(p), "Running/AuditUnavailable"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if j := f.jobOf(p); j.DeletionTimestamp != nil || !slices.Contains(j.Finalizers, v1alpha1.FinalizerOutcome) {
		t.Errorf("the Job was let go before the end of its call was recorded: %v", j.ObjectMeta)
	}
	log.fail = nil
	// The operator was restarted meanwhile.
	f.proposals = &controllers.ProposalReconciler{Config: f.restarted()}
	p = f.step(p)
	if got, want := outcome(p), "Indeterminate/ResultLost"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"ProposalAdmitted", "PolicyEvaluated", "Dispatched", "Redeemed", "ToolCompleted"}, log.types()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}
