// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
)

// claim lets the call's session take it up. What must be unique or bounded
// within a session is decided here and nowhere else: the entry in the
// session's ledger is written with the session's resourceVersion, so that of
// any number of calls, controllers and crashes each entry is made once and
// after all others that it was checked against. The rest goes by live reads.
func (r *ProposalReconciler) claim(ctx context.Context, cached *v1alpha1.ToolProposal) (ctrl.Result, error) {
	p, result, err := r.reread(ctx, client.ObjectKeyFromObject(cached))
	if p == nil {
		return result, err
	}
	f, err := r.gather(ctx, r.Live, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := proposal.Decide(f.Observed, r.Now())
	if !plan.Claim {
		return r.commit(ctx, f)
	}
	session, err := observe.Session(ctx, r.Live, p)
	if err != nil || session == nil {
		return ctrl.Result{RequeueAfter: time.Millisecond}, err
	}
	refusal, wait, err := r.checkClaim(ctx, session, p, f)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case wait:
		return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, nil
	case refusal != nil:
		f.Claim = proposal.Claim{Refusal: refusal}
		return r.applyPlan(ctx, f, proposal.Decide(f.Observed, r.Now()))
	}
	if err := r.enter(ctx, f, session); err != nil {
		return ctrl.Result{}, err
	}
	return r.commit(ctx, f)
}

// enter writes the call's entry into the session's ledger.
func (r *ProposalReconciler) enter(ctx context.Context, f *facts, session *v1alpha1.AgentSession) error {
	if err := r.hold(ctx, session); err != nil {
		return err
	}
	if err := proposal.EnterClaim(f.Keys, session, f.Proposal); err != nil {
		return err
	}
	if err := r.Client.Status().Update(ctx, session); err != nil {
		return fmt.Errorf("entering call %s into the ledger of session %s: %w", client.ObjectKeyFromObject(f.Proposal), session.Name, err)
	}
	return nil
}

// checkClaim says whether the session takes up the call, or whether calls of
// earlier iterations that were admitted before this one must be taken up
// first: they would be refused afterwards. The calls are listed after the
// session was read, so that one that is entered meanwhile ends in a conflict.
func (r *ProposalReconciler) checkClaim(ctx context.Context, s *v1alpha1.AgentSession, p *v1alpha1.ToolProposal, f *facts) (refusal *proposal.ClaimRefusal, wait bool, err error) {
	calls, err := observe.SessionCalls(ctx, r.Live, p.Namespace, s.Name)
	if err != nil {
		return nil, false, err
	}
	pending := 0
	for i := range calls {
		other := &calls[i]
		if other.UID == p.UID || other.Status.Phase.Terminal() {
			continue
		}
		if proposal.HasClaim(s, other.UID) {
			pending++
		} else if r.goesFirst(other, p, f) {
			wait = true
		}
	}
	if refusal = proposal.CheckClaim(f.Keys, s, p, pending); refusal != nil {
		return refusal, false, nil
	}
	return nil, wait, nil
}

// goesFirst says whether another call of the session is of an earlier
// iteration and was admitted before this one.
func (r *ProposalReconciler) goesFirst(other, p *v1alpha1.ToolProposal, f *facts) bool {
	if p.Spec.Iteration == nil || other.Spec.Iteration == nil || *other.Spec.Iteration >= *p.Spec.Iteration {
		return false
	}
	seal, err := proposal.VerifySeal(f.Keys, other)
	return err == nil && seal.Session != nil && seal.Session.UID == f.Seal.Session.UID && seal.IssuedAt.Before(f.Seal.IssuedAt)
}

// sessionTurns lets those changes of a session wake its calls that may change
// what becomes of them. The ledger, which each of them writes, is not one.
func sessionTurns() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.AgentSession)
		after, ok2 := e.ObjectNew.(*v1alpha1.AgentSession)
		if !ok || !ok2 || before.Generation != after.Generation {
			return true
		}
		was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady)
		is := meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady)
		return (was == nil) != (is == nil) || (is != nil && (was.Status != is.Status || was.Reason != is.Reason))
	}}
}
