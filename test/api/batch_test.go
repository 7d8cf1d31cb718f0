// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/proposal"
)

// recorder is a journal that keeps the records in memory before it passes them
// on, and refuses them while it is told to.
type recorder struct {
	audit.Journal
	mu      sync.Mutex
	records []audit.Record
	fail    func(audit.Record) error
}

// all are the records so far, while controllers still write.
func (r *recorder) all() []audit.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.records)
}

func (r *recorder) Append(ctx context.Context, record audit.Record) (uint64, error) {
	if r.fail != nil {
		if err := r.fail(record); err != nil {
			return 0, err
		}
	}
	index, err := r.Journal.Append(ctx, record)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.records = append(r.records, record)
	}
	return index, err
}

func (r *recorder) AppendAll(ctx context.Context, records []audit.Record) ([]uint64, error) {
	return oneByOne(ctx, r, records)
}

// oneByOne lets a stand-in see each record by itself.
func oneByOne(ctx context.Context, j audit.Journal, records []audit.Record) ([]uint64, error) {
	var indexes []uint64
	for _, r := range records {
		index, err := j.Append(ctx, r)
		if err != nil {
			return indexes, err
		}
		indexes = append(indexes, index)
	}
	return indexes, nil
}

// record puts a recorder in front of the fixture's journal.
func (f *fixture) record() *recorder {
	r := &recorder{Journal: f.shared.Journal}
	f.shared.Journal = r
	return r
}

func batchRef(id string, size int32) func(*v1alpha1.ToolProposalSpec) {
	return func(s *v1alpha1.ToolProposalSpec) { s.Batch = &v1alpha1.BatchReference{ID: id, Size: size} }
}

func (f *fixture) stepBatch(id string) {
	f.t.Helper()
	r := &controllers.BatchReconciler{Config: f.shared}
	if _, err := r.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: f.namespace, Name: id}}); err != nil {
		f.t.Fatalf("reconciling batch %s: %v", id, err)
	}
}

// batchReason is what a call says of its batch.
func (f *fixture) batchReason(p *v1alpha1.ToolProposal) string {
	f.t.Helper()
	c := meta.FindStatusCondition(f.reload(p).Status.Conditions, v1alpha1.ConditionBatchCompleted)
	if c == nil {
		return ""
	}
	return string(c.Status) + "/" + c.Reason
}

func batchRecords(r *recorder) []audit.ToolBatchCompleted {
	var out []audit.ToolBatchCompleted
	for _, record := range r.records {
		if d, ok := record.Data.(audit.ToolBatchCompleted); ok {
			out = append(out, d)
		}
	}
	return out
}

func TestBatch_IsRecordedOnceWhenAllItsCallsHaveEnded(t *testing.T) {
	f := newFixture(t)
	log := f.record()
	f.tool("change", humanApproval)
	f.tool("forbidden")
	f.policy("rules", permitAll+` forbid (principal, action, resource == Tool::"forbidden");`)
	f.session("s")
	first := f.step(f.made(f.inSession("s", "forbidden", "b", iteration(3), batchRef("batch", 2))))
	second := f.step(f.made(f.inSession("s", "change", "a", iteration(3), batchRef("batch", 2))))
	f.stepBatch("batch")
	if n := len(batchRecords(log)); n != 0 {
		t.Fatalf("a batch with a call that waits has %d records", n)
	}
	if got := f.batchReason(first); got != "" {
		t.Errorf("the call that has ended says %s of its batch", got)
	}
	denial := newReceipt(second)
	denial.Spec.Decision = v1alpha1.ReceiptDenied
	if err := f.as(approver).Create(f.ctx, denial); err != nil {
		t.Fatal(err)
	}
	second = f.step(second)
	for range 3 {
		f.stepBatch("batch")
	}
	records := batchRecords(log)
	if len(records) != 1 {
		t.Fatalf("the batch has %d records, want 1", len(records))
	}
	var got []string
	for _, o := range records[0].Outcomes {
		got = append(got, o.CallID+" "+o.Phase+"/"+o.Reason+" "+o.Proposal.Name+" "+o.Fingerprint+" "+o.Call.Args)
	}
	want := []string{
		"a Denied/DeniedByApprover " + second.Name + " " + second.Spec.Prepared.Fingerprint + ` {"target":"web"}`,
		"b Denied/Forbidden " + first.Name + " " + first.Spec.Prepared.Fingerprint + ` {"target":"web"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if !records[0].Complete || records[0].Iteration != 3 || records[0].Batch.Size != 2 || records[0].Session.Name != "s" {
		t.Errorf("the record is about another batch: %+v", records[0])
	}
	for _, p := range []*v1alpha1.ToolProposal{first, second} {
		if got, want := f.batchReason(p), "True/BatchComplete"; got != want {
			t.Errorf("call %s says %q of its batch, want %q", p.Spec.CallID, got, want)
		}
	}
}

func TestBatch_WhoseOutcomesDoNotAddUp_FailsExplicitly(t *testing.T) {
	for name, tc := range map[string]struct {
		calls []func(*v1alpha1.ToolProposalSpec)
		then  func(*fixture)
		want  string
	}{
		"a call was never made": {
			calls: []func(*v1alpha1.ToolProposalSpec){batchRef("batch", 2)},
			then:  func(f *fixture) { f.setClock(proposal.BatchPatience + time.Minute) },
			want:  "False/MissingOutcome",
		},
		"the session went on without a call": {
			calls: []func(*v1alpha1.ToolProposalSpec){batchRef("batch", 2)},
			then:  func(f *fixture) { f.step(f.made(f.inSession("s", "forbidden", "next", iteration(2)))) },
			want:  "False/MissingOutcome",
		},
		"the session was revoked before a call": {
			calls: []func(*v1alpha1.ToolProposalSpec){batchRef("batch", 2)},
			then: func(f *fixture) {
				f.changeSession("s", func(s *v1alpha1.AgentSessionSpec) { s.Revoked = true })
			},
			want: "False/MissingOutcome",
		},
		"a call may still come": {
			calls: []func(*v1alpha1.ToolProposalSpec){batchRef("batch", 2)},
			want:  "",
		},
		"a call says another size": {
			calls: []func(*v1alpha1.ToolProposalSpec){batchRef("batch", 2), batchRef("batch", 3)},
			want:  "False/ForeignOutcome",
		},
		"a call too many": {
			calls: []func(*v1alpha1.ToolProposalSpec){batchRef("batch", 1), batchRef("batch", 1)},
			want:  "False/ForeignOutcome",
		},
		"another requester's calls of the same name": {
			calls: []func(*v1alpha1.ToolProposalSpec){batchRef("batch", 2), func(s *v1alpha1.ToolProposalSpec) {
				batchRef("batch", 2)(s)
				s.SessionRef = nil
			}},
			want: "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			log := f.record()
			f.tool("forbidden")
			f.policy("rules", permitAll+` forbid (principal, action, resource == Tool::"forbidden");`)
			f.session("s")
			var first *v1alpha1.ToolProposal
			for i, change := range tc.calls {
				p := f.step(f.made(f.inSession("s", "forbidden", string(rune('a'+i)), iteration(1), change)))
				if got, want := outcome(p), "Denied/Forbidden"; got != want {
					t.Fatalf("call %d: got %s, want %s", i, got, want)
				}
				if first == nil {
					first = p
				}
			}
			if tc.then != nil {
				tc.then(f)
			}
			f.stepBatch("batch")
			f.stepBatch("batch")
			if got := f.batchReason(first); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			wantRecords := 1
			if tc.want == "" {
				wantRecords = 0
			}
			if got := batchRecords(log); len(got) != wantRecords || (wantRecords == 1 && (got[0].Complete || "False/"+got[0].Reason != tc.want)) {
				t.Errorf("the log has %+v, want %d records of %s", got, wantRecords, tc.want)
			}
		})
	}
}

func TestCallOfABatch_IsKeptUntilItsBatchHasEnded(t *testing.T) {
	f := newFixture(t)
	f.tool("forbidden")
	f.policy("rules", permitAll+` forbid (principal, action, resource == Tool::"forbidden");`)
	f.session("s")
	p := f.step(f.made(f.inSession("s", "forbidden", "a", iteration(1), batchRef("batch", 2))))
	f.setClock(f.shared.Retention + time.Hour)
	if f.step(p).DeletionTimestamp != nil {
		t.Fatal("a call was deleted whose batch has not ended")
	}
	f.stepBatch("batch")
	if _, err := f.proposals.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); err != nil {
		t.Fatal(err)
	}
	if err := server.admin.Get(f.ctx, client.ObjectKeyFromObject(p), p); err == nil && p.DeletionTimestamp == nil {
		t.Error("the call is kept after its batch has ended")
	}
}
