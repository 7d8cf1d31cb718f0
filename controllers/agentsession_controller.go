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
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

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
	if s.DeletionTimestamp != nil {
		return again(r.release(ctx, s))
	}
	if err := r.hold(ctx, s); err != nil {
		return again(err)
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
		if err := r.Client.Status().Update(ctx, next); err != nil {
			return again(fmt.Errorf("writing the status of AgentSession %s: %w", req.NamespacedName, err))
		}
	}
	if left := s.Spec.ExpiresAt.Sub(now); left > 0 {
		return ctrl.Result{RequeueAfter: left + time.Second}, nil
	}
	return ctrl.Result{}, nil
}

// again looks once more where a call was entered into the ledger meanwhile.
func again(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return ctrl.Result{}, err
}

// hold sees to it that the session stays, once deleted, until that is
// recorded. No call is entered into the ledger of a session that is not held.
func (c *Config) hold(ctx context.Context, s *v1alpha1.AgentSession) error {
	if !controllerutil.AddFinalizer(s, v1alpha1.FinalizerRecord) {
		return nil
	}
	if err := c.Client.Update(ctx, s); err != nil {
		return fmt.Errorf("holding AgentSession %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}

// release records that the session was deleted and lets it go. Its calls were
// void from the moment that the deletion was asked for.
func (r *SessionReconciler) release(ctx context.Context, s *v1alpha1.AgentSession) error {
	if !controllerutil.ContainsFinalizer(s, v1alpha1.FinalizerRecord) {
		return nil
	}
	if err := r.recordSessionChange(ctx, s); err != nil {
		return err
	}
	next := s.DeepCopy()
	controllerutil.RemoveFinalizer(next, v1alpha1.FinalizerRecord)
	if err := r.Client.Update(ctx, next); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("letting go of AgentSession %s/%s: %w", s.Namespace, s.Name, err)
	}
	return nil
}

// recordSessionChange says that a session was revoked, changed or deleted.
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
