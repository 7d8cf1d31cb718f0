// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
)

// sessionOf reads the session that the call names. It is always read live,
// since a revoked session must not carry one more call.
func (h *proposals) sessionOf(ctx context.Context, namespace string, p *v1alpha1.ToolProposal) (*v1alpha1.AgentSession, error) {
	if p.Spec.SessionRef == nil {
		return nil, nil //nolint:nilnil // a call needs no session
	}
	s := &v1alpha1.AgentSession{}
	err := read(ctx, h.Live, client.ObjectKey{Namespace: namespace, Name: p.Spec.SessionRef.Name}, s)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading AgentSession %s: %w", p.Spec.SessionRef.Name, err)
	}
	if apierrors.IsNotFound(err) {
		s = nil
	}
	if problem := proposal.SessionProblem(s, p.Spec.Requester.Username, h.Now()); problem != "" {
		return nil, invalid(kindProposal, displayName(p), refusal{Field: "spec.sessionRef", Reason: v1alpha1.ReasonSessionInvalid, Message: problem})
	}
	return s, h.checkClaim(ctx, namespace, s, p)
}

// checkCallID refuses a call that its outcome could not be told to. The CRD
// says so too, but only after the call was prepared.
func checkCallID(p *v1alpha1.ToolProposal) error {
	if p.Spec.CallID != "" {
		return nil
	}
	return invalid(kindProposal, displayName(p), refusal{
		Field: "spec.callID", Reason: "EmptyCallID", Message: "set spec.callID: outcomes are correlated by it",
	})
}

// checkClaim tells the agent at once what the controller would refuse. Calls
// that are created at the same time may all pass here: the session's ledger,
// which the controller writes, is what keeps them apart.
func (h *proposals) checkClaim(ctx context.Context, namespace string, s *v1alpha1.AgentSession, p *v1alpha1.ToolProposal) error {
	calls, err := observe.SessionCalls(ctx, h.Cached, namespace, s.Name)
	if err != nil {
		return err
	}
	pending := 0
	for i := range calls {
		if !calls[i].Status.Phase.Terminal() {
			pending++
		}
	}
	r := proposal.CheckClaim(h.Keys(), s, p, pending)
	if r == nil {
		return nil
	}
	because := refusal{Field: r.Field, Reason: r.Reason, Message: r.Message}
	if r.Phase() == v1alpha1.PhaseDenied {
		return forbidden(kindProposal, displayName(p), because)
	}
	return invalid(kindProposal, displayName(p), because)
}

// sessions checks sessions when they are created and when they change.
type sessions struct {
	checker[*v1alpha1.AgentSession]
}

// ValidateUpdate has nothing to say of a spec that stays as it is: the
// finalizer of a session must come and go whatever its context looks like.
func (h sessions) ValidateUpdate(ctx context.Context, old, s *v1alpha1.AgentSession) (admission.Warnings, error) {
	if apiequality.Semantic.DeepEqual(old.Spec, s.Spec) {
		return nil, nil
	}
	return h.checker(ctx, s)
}

// checkSession refuses a trusted context that cannot be read.
func checkSession(_ context.Context, s *v1alpha1.AgentSession) (admission.Warnings, error) {
	err := proposal.CheckSessionContext(s.Spec.Context)
	if err == nil {
		return nil, nil
	}
	message := err.Error()
	if cause := errors.Unwrap(err); cause != nil {
		message = cause.Error()
	}
	return nil, invalid("AgentSession", s.Name, refusal{Field: "spec.context", Reason: v1alpha1.ReasonContextInvalid, Message: message})
}
