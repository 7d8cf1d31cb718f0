// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/proposal"
)

// SessionReconciler says of each session whether it carries calls.
type SessionReconciler struct{ *Config }

// SetupWithManager registers the controller.
func (r *SessionReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.AgentSession{}).Complete(r)
}

// Reconcile looks at one session, and again when it expires.
func (r *SessionReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s := &v1alpha1.AgentSession{}
	if err := r.Client.Get(ctx, req.NamespacedName, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	now := r.Now()
	next := s.DeepCopy()
	if s.Status.ObservedGeneration != 0 && s.Status.ObservedGeneration != s.Generation {
		// Whatever changed, it voided the session's open calls.
		if err := r.recordSessionChange(ctx, s); err != nil {
			return ctrl.Result{}, err
		}
	}
	setSessionReady(next, now)
	if !apiequality.Semantic.DeepEqual(s.Status, next.Status) {
		err := r.Client.Status().Update(ctx, next)
		if apierrors.IsConflict(err) {
			// A call was entered into the ledger meanwhile.
			return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
		}
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("writing the status of AgentSession %s: %w", req.NamespacedName, err)
		}
	}
	if left := s.Spec.ExpiresAt.Sub(now); left > 0 {
		return ctrl.Result{RequeueAfter: left + time.Second}, nil
	}
	return ctrl.Result{}, nil
}

// recordSessionChange says that a session was revoked or changed. Deleting one
// leaves nothing to record it by: the ends of the calls that it voids say so.
func (r *SessionReconciler) recordSessionChange(ctx context.Context, s *v1alpha1.AgentSession) error {
	ref, err := proposal.SessionRef(s)
	if err != nil {
		return err
	}
	reason := "Changed"
	switch {
	case s.DeletionTimestamp != nil:
		reason = v1alpha1.ReasonDeleted
	case s.Spec.Revoked:
		reason = "Revoked"
	}
	_, err = r.Journal.Append(ctx, audit.Record{
		ID: recordID(ref.UID, string(audit.TypeSessionChanged), ref.SpecDigest, fmt.Sprint(s.Generation)), Time: r.Now(),
		Data: audit.SessionChanged{Namespace: s.Namespace, Session: *ref, Reason: reason},
	})
	if err != nil {
		return fmt.Errorf("recording the change of AgentSession %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}

func setSessionReady(s *v1alpha1.AgentSession, now time.Time) {
	s.Status.ObservedGeneration = s.Generation
	c := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
		Message: "the session carries calls of its principal", ObservedGeneration: s.Generation,
	}
	switch err := proposal.CheckSessionContext(s.Spec.Context); {
	case s.Spec.Revoked:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonSessionRevoked, "the session was revoked"
	case !now.Before(s.Spec.ExpiresAt.Time):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonSessionExpired, "the session has expired"
	case err != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonContextInvalid, err.Error()
	}
	meta.SetStatusCondition(&s.Status.Conditions, c)
}
