// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
	"github.com/assent-dev/assent/internal/tracing"
	"github.com/assent-dev/assent/snapshot"
)

const kindProposal = "ToolProposal"

// proposals prepares and seals calls.
type proposals struct{ *Config }

// seal stamps who asked, prepares the call and seals both.
func (h *proposals) seal(ctx context.Context, req *request, p *v1alpha1.ToolProposal) ([]byte, error) {
	stamp, err := h.stamp(req.Namespace)
	if err != nil {
		return nil, err
	}
	err = h.prepare(ctx, req, p, stamp)
	h.trace(req, tracing.Admission, stamp.SealID, p, stamp.Now, err)
	if err != nil {
		return nil, err
	}
	// Whose fields are whose matters where several write to an object. Here each
	// field is written once, by one who is known, and names of field managers are
	// what clients call themselves. kube-apiserver does not start again to track
	// fields of an object that has none tracked, unless somebody applies it, and
	// writes a status in two thirds of the time.
	metadata := []member{{"managedFields", []string{}}}
	// Once dispatched, a proposal must outlive the question how its call ended.
	if controllerutil.AddFinalizer(p, v1alpha1.FinalizerOutcome) {
		metadata = append(metadata, member{"finalizers", p.Finalizers})
	}
	return stamped(&p.Spec, metadata...)
}

func (h *proposals) prepare(ctx context.Context, req *request, p *v1alpha1.ToolProposal, stamp proposal.Stamp) error {
	name := displayName(p)
	if !h.Rate.Allow(req.UserInfo.Username, h.Now()) {
		return tooMany(kindProposal, name, refusal{
			Field: "spec.requester", Reason: "QuotaExceeded",
			Message: "the requester creates proposals faster than is allowed: wait a second",
		})
	}
	p.Spec.Requester = proposal.IdentityOf(req.UserInfo)
	p.Spec.Prepared, p.Spec.Seal = nil, ""
	if err := checkCallID(p); err != nil {
		return err
	}
	c, prepared, err := h.prepareCall(ctx, req.Namespace, name, p)
	if _, refused := errors.AsType[*contract.RefusedError](err); refused {
		return invalid(kindProposal, name, prepareRefusal(p.Spec.Tool, err))
	}
	if err != nil {
		return err
	}
	if p.Spec.Prepared, err = proposal.PreparedCall(c, prepared); err != nil {
		return fmt.Errorf("storing the prepared call of tool %s: %w", p.Spec.Tool, err)
	}
	if stamp.Session, err = h.sessionOf(ctx, req.Namespace, p); err != nil {
		return err
	}
	return proposal.Seal(h.Keys(), p, stamp)
}

func displayName(o client.Object) string {
	if o.GetName() != "" {
		return o.GetName()
	}
	return o.GetGenerateName()
}

// prepareCall prepares the call against the contract of its tool, or says why it
// is refused. What the informers know may be older than what the requester has
// just written: a manifest that was mended, a type or a scope that was added.
// So no refusal rests on them alone, except of arguments that no contract could
// accept.
func (h *proposals) prepareCall(ctx context.Context, namespace, name string, p *v1alpha1.ToolProposal) (*contract.Contract, *contract.Prepared, error) {
	c, prepared, err := h.prepareFrom(ctx, h.Cached, namespace, name, p)
	if err == nil || isMalformed(err) {
		return c, prepared, err
	}
	return h.prepareFrom(ctx, h.Live, namespace, name, p)
}

// isMalformed says that a call was refused before any contract was asked.
func isMalformed(err error) bool {
	refused, ok := errors.AsType[*contract.RefusedError](err)
	return ok && refused.Err.Stage == snapshot.StageDecode
}

func (h *proposals) prepareFrom(ctx context.Context, from client.Reader, namespace, name string, p *v1alpha1.ToolProposal) (*contract.Contract, *contract.Prepared, error) {
	c, err := h.contractFrom(ctx, from, namespace, name, p.Spec.Tool)
	if err != nil {
		return nil, nil, err
	}
	prepared, err := c.Prepare(p.Spec.Requester.Username, p.Spec.Arguments)
	return c, prepared, err
}

// contractOf compiles the contract of a tool, or says why it cannot be called.
func (h *proposals) contractOf(ctx context.Context, namespace, name, tool string) (*contract.Contract, error) {
	c, err := h.contractFrom(ctx, h.Cached, namespace, name, tool)
	if err == nil {
		return c, nil
	}
	return h.contractFrom(ctx, h.Live, namespace, name, tool)
}

func (h *proposals) contractFrom(ctx context.Context, from client.Reader, namespace, name, tool string) (*contract.Contract, error) {
	m := &v1alpha1.ToolManifest{}
	// It is read and never changed, so that copying it is spared.
	err := read(ctx, from, client.ObjectKey{Namespace: namespace, Name: tool}, m, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, invalid(kindProposal, name, refusal{
			Field: "spec.tool", Reason: "UnknownTool",
			Message: fmt.Sprintf("there is no ToolManifest %s in namespace %s", tool, namespace),
		})
	}
	if err != nil {
		return nil, fmt.Errorf("reading ToolManifest %s: %w", tool, err)
	}
	tools, err := observe.Tools(ctx, from, m.Namespace)
	if err != nil {
		return nil, err
	}
	c, err := h.Contracts.Compile(m, tools)
	if err != nil {
		return nil, invalid(kindProposal, name, refusal{
			Field: "spec.tool", Reason: v1alpha1.ReasonToolNotReady,
			Message: fmt.Sprintf("ToolManifest %s is not Ready: %v", tool, err),
		})
	}
	return c, nil
}

// check refuses what another mutating webhook changed after the seal, and a
// requester with too many open calls.
func (h *proposals) check(ctx context.Context, req *request, p *v1alpha1.ToolProposal) ([]byte, error) {
	began := h.Now()
	seal, err := proposal.VerifySeal(h.Keys(), p)
	if errors.Is(err, proposal.ErrUnsealed) {
		return nil, invalid(kindProposal, displayName(p), refusal{
			Field: "spec.seal", Reason: v1alpha1.ReasonUnsealed,
			Message: fmt.Sprintf("%v: look for another mutating webhook or policy for toolproposals", err),
		})
	}
	if err != nil {
		return nil, err
	}
	err = h.checkQuota(ctx, p)
	h.trace(req, tracing.Validation, seal.SealID, p, began, err)
	return nil, err
}

func (h *proposals) checkQuota(ctx context.Context, p *v1alpha1.ToolProposal) error {
	var open v1alpha1.ToolProposalList
	// They are counted and nothing else, so that copying them is spared.
	err := h.Cached.List(ctx, &open, client.UnsafeDisableDeepCopy, client.MatchingFields{observe.IndexOpenRequester: p.Spec.Requester.Username})
	if err != nil {
		return fmt.Errorf("counting the requester's open proposals: %w", err)
	}
	if len(open.Items) < h.MaxPending {
		return nil
	}
	return tooMany(kindProposal, displayName(p), refusal{
		Field: "spec.requester", Reason: "QuotaExceeded",
		Message: fmt.Sprintf("the requester has %d open proposals, which is the limit: wait for some to end or delete them", h.MaxPending),
	})
}
