// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
)

// BatchReconciler tells what the outcomes of a batch amount to, once all its
// calls have ended. Its requests name a batch by namespace and ID: of one batch
// one pass runs at a time, so that its end is recorded once.
type BatchReconciler struct{ *Config }

// SetupWithManager registers the controller.
func (r *BatchReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("batch").
		Watches(&v1alpha1.ToolProposal{}, handler.EnqueueRequestsFromMapFunc(batchOf)).
		Complete(r)
}

func batchOf(_ context.Context, o client.Object) []reconcile.Request {
	p, ok := o.(*v1alpha1.ToolProposal)
	if !ok || p.Spec.Batch == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: p.Spec.Batch.ID}}}
}

// Reconcile looks at the batches of one ID. The reads are live: a call that the
// informer does not show yet must not be taken for one that was never made.
func (r *BatchReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	calls, err := observe.BatchCalls(ctx, r.Live, req.Namespace, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	var next time.Duration
	for _, members := range r.byOwner(calls) {
		recheck, err := r.judge(ctx, members)
		switch {
		case apierrors.IsConflict(err):
			recheck = 50 * time.Millisecond
		case err != nil:
			return ctrl.Result{}, err
		}
		if recheck > 0 && (next == 0 || recheck < next) {
			next = recheck
		}
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// byOwner keeps apart batches that only share an ID. What was not sealed is
// nobody's.
func (r *BatchReconciler) byOwner(calls []v1alpha1.ToolProposal) map[string][]proposal.BatchMember {
	out := map[string][]proposal.BatchMember{}
	for i := range calls {
		p := &calls[i]
		seal, err := proposal.VerifySeal(r.Keys(), p)
		if err != nil || seal.Batch == nil {
			continue
		}
		m := proposal.BatchMember{Proposal: p, Seal: seal}
		owner := m.BatchOwner()
		key := owner.UID + "/" + owner.Name
		out[key] = append(out[key], m)
	}
	return out
}

func (r *BatchReconciler) judge(ctx context.Context, members []proposal.BatchMember) (time.Duration, error) {
	over, err := r.batchIsOver(ctx, members[0])
	if err != nil {
		return 0, err
	}
	v := proposal.JudgeBatch(members, over, r.Now())
	if !v.Ended {
		return v.Recheck, nil
	}
	if told(members) == nil {
		first := members[0].Proposal
		if err := r.recordBatch(ctx, first, members[0].BatchOwner(), v); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "the end of a batch could not be recorded yet")
			return time.Second, nil
		}
		setBatchCompleted(first, v)
		if err := r.Client.Status().Update(ctx, first); err != nil {
			return 0, fmt.Errorf("noting the end of batch %s: %w", v.Batch.ID, err)
		}
		r.Events.BatchEnded(first)
	}
	return 0, r.tellAll(ctx, members)
}

// told is what was said about the batch before. It is said once: a call that
// names the batch afterwards hears the same.
func told(members []proposal.BatchMember) *metav1.Condition {
	for _, m := range members {
		if recorded(m.Proposal, string(audit.TypeToolBatchCompleted)) {
			return meta.FindStatusCondition(m.Proposal.Status.Conditions, v1alpha1.ConditionBatchCompleted)
		}
	}
	return nil
}

func (r *BatchReconciler) tellAll(ctx context.Context, members []proposal.BatchMember) error {
	c := told(members)
	for _, m := range members {
		p := m.Proposal
		if c == nil || !p.Status.Phase.Terminal() || meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionBatchCompleted) != nil {
			continue
		}
		setCondition(p, c.Type, c.Status, c.Reason, c.Message)
		if err := r.Client.Status().Update(ctx, p); err != nil {
			return fmt.Errorf("telling call %s/%s the end of its batch: %w", p.Namespace, p.Name, err)
		}
	}
	return nil
}

func setBatchCompleted(p *v1alpha1.ToolProposal, v proposal.BatchVerdict) {
	status, message := metav1.ConditionTrue, "every call of the batch has ended"
	switch v.Reason {
	case v1alpha1.ReasonMissingOutcome:
		status, message = metav1.ConditionFalse, fmt.Sprintf("the batch has %d calls, of which %d were made", v.Batch.Size, len(v.Outcomes))
	case v1alpha1.ReasonDuplicateOutcome:
		status, message = metav1.ConditionFalse, "two calls of the batch have one call ID"
	case v1alpha1.ReasonForeignOutcome:
		status, message = metav1.ConditionFalse, "calls of another iteration or size, or more calls than it has, name the batch"
	}
	setCondition(p, v1alpha1.ConditionBatchCompleted, status, v.Reason, message)
}

// batchIsOver says whether the owner of the batch makes no more calls of it.
// Without a session only time tells.
func (r *BatchReconciler) batchIsOver(ctx context.Context, m proposal.BatchMember) (bool, error) {
	if m.Seal.Session == nil {
		return false, nil
	}
	s, err := observe.Session(ctx, r.Live, m.Proposal)
	if err != nil {
		return false, err
	}
	if proposal.SessionProblem(s, m.Seal.Requester.Username, r.Now()) != "" || proposal.SessionChanged(s, m.Seal.Session) != "" {
		return true, nil
	}
	ledger := s.Status.Ledger
	return ledger != nil && ledger.Iteration != nil && m.Seal.Iteration != nil && *ledger.Iteration > *m.Seal.Iteration, nil
}

// maxBatchArguments is how many bytes of arguments the record of a batch shows.
const maxBatchArguments = 2 << 20

// recordBatch appends the record of the batch's end and notes it on one of its
// calls. Without a session the record names the requester in its place.
func (r *BatchReconciler) recordBatch(ctx context.Context, on *v1alpha1.ToolProposal, owner attest.SessionRef, v proposal.BatchVerdict) error {
	data := audit.ToolBatchCompleted{Session: owner, Iteration: v.Iteration, Batch: v.Batch, Complete: v.Complete()}
	if !data.Complete {
		data.Reason = v.Reason
	}
	room := maxBatchArguments
	for _, m := range v.Outcomes {
		f := &facts{Observed: proposal.Observed{Proposal: m.Proposal, Seal: m.Seal, Keys: r.Keys()}}
		if err := r.gatherContract(ctx, r.Client, f); err != nil {
			return err
		}
		text, err := callText(f)
		if err != nil {
			return err
		}
		// The whole effect, and arguments beyond what one record can hold, are
		// in the record of the admission; here are their digests.
		text.Effect = ""
		if room -= len(text.Args); room < 0 {
			text.Args = ""
		}
		p := m.Proposal
		data.Outcomes = append(data.Outcomes, audit.BatchOutcome{
			CallID: m.Seal.CallID, Proposal: attest.ObjectRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)},
			Fingerprint: m.Seal.Fingerprint, Phase: string(p.Status.Phase), Reason: p.Status.Reason, Call: text,
		})
	}
	record := audit.Record{Time: r.Now(), Data: data, ID: recordID(owner.UID, owner.Name, data.Batch.ID, string(audit.TypeToolBatchCompleted))}
	index, err := r.Journal.Append(ctx, record)
	if err != nil {
		return fmt.Errorf("recording the end of batch %s: %w", v.Batch.ID, err)
	}
	note(on, string(audit.TypeToolBatchCompleted), statusIndex(index))
	return nil
}

// batchOpen says whether an ended call is part of a batch whose end has not
// been told yet: it is kept until then, since its outcome is part of it.
func batchOpen(p *v1alpha1.ToolProposal) bool {
	return p.Spec.Batch != nil && p.Spec.Seal != "" && p.Status.Reason != v1alpha1.ReasonUnsealed &&
		meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionBatchCompleted) == nil
}
