// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
)

// replayed is what is printed about one stored call.
type replayed struct {
	Proposal string        `json:"proposal"`
	Tool     string        `json:"tool"`
	Before   string        `json:"before"`
	After    policy.Answer `json:"after"`
	Reason   policy.Reason `json:"reason"`
	Policies []string      `json:"policies"`
	Changed  bool          `json:"changed"`
	// Note says what makes the comparison less than exact.
	Note string `json:"note,omitempty"`
}

// replayAll asks the policies about every stored call, exactly as it was frozen.
func (o *simulateOptions) replayAll(w *offline, streams Streams) error {
	proposals := w.documents.Proposals
	if len(proposals) == 0 {
		return fmt.Errorf("there is no ToolProposal of namespace %s among the documents", w.namespace)
	}
	before, err := o.before(w, streams)
	if err != nil {
		return err
	}
	slices.SortFunc(proposals, func(a, b v1alpha1.ToolProposal) int { return cmp.Compare(a.Name, b.Name) })
	changed := 0
	for i := range proposals {
		r, err := w.replay(&proposals[i], before)
		if err != nil {
			return fmt.Errorf("ToolProposal %s: %w", proposals[i].Name, err)
		}
		if r.Changed {
			changed++
		}
		if err := o.printReplayed(r, streams.Out); err != nil {
			return fmt.Errorf("writing the decisions: %w", err)
		}
	}
	if o.output == "text" {
		if _, err := fmt.Fprintf(streams.Out, "%d of %d decisions would change\n", changed, len(proposals)); err != nil {
			return fmt.Errorf("writing the decisions: %w", err)
		}
	}
	return nil
}

// before gives the policies to compare with, or nil for what was decided.
func (o *simulateOptions) before(w *offline, streams Streams) (*policy.Set, error) {
	if len(o.baseline) == 0 {
		return nil, nil //nolint:nilnil // no set is an answer here: compare with the records
	}
	d, err := loadDocuments(o.baseline, streams.In)
	if err != nil {
		return nil, fmt.Errorf("reading the baseline: %w", err)
	}
	d.keep(w.namespace)
	base := &offline{
		documents: &documents{Policies: d.Policies, ClusterPolicies: d.ClusterPolicies},
		namespace: w.namespace, contracts: w.contracts, names: w.names, limits: w.limits,
	}
	if err := base.loadPolicies(); err != nil {
		return nil, fmt.Errorf("reading the baseline: %w", err)
	}
	return base.set, nil
}

func (w *offline) replay(p *v1alpha1.ToolProposal, before *policy.Set) (replayed, error) {
	r := replayed{Proposal: p.Name, Tool: p.Spec.Tool}
	if p.Spec.Prepared == nil || p.Spec.Requester == nil {
		return r, errors.New("it was never prepared")
	}
	c, err := w.contract(p.Spec.Tool)
	if err != nil {
		return r, err
	}
	call, err := proposal.PolicyCall(c, p, w.session(p))
	if err != nil {
		return r, err
	}
	if c.Hash() != p.Spec.Prepared.Contract.Hash {
		r.Note = "the contract in the files is not the one of the call"
	}
	if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionApproved) {
		call.Approved, call.ApprovedFingerprint = true, call.Fingerprint
	}
	d := w.set.Decide(call, policy.Options{})
	r.After, r.Reason, r.Policies = d.Answer, d.Reason, append([]string{}, d.Policies...)
	switch {
	case before != nil:
		r.Before = string(before.Decide(call, policy.Options{}).Answer)
	case p.Status.Decision != nil:
		r.Before = p.Status.Decision.Answer
	}
	r.Changed = r.Before != string(r.After)
	return r, nil
}

// session finds the session of a call among the documents.
func (w *offline) session(p *v1alpha1.ToolProposal) *v1alpha1.AgentSession {
	if p.Spec.SessionRef == nil {
		return nil
	}
	for i := range w.documents.Sessions {
		if w.documents.Sessions[i].Name == p.Spec.SessionRef.Name {
			return &w.documents.Sessions[i]
		}
	}
	return nil
}

func (o *simulateOptions) printReplayed(r replayed, out io.Writer) error {
	if o.output == "json" {
		return encodeLine(out, r)
	}
	if !r.Changed {
		return nil
	}
	note := ""
	if r.Note != "" {
		note = "; " + r.Note
	}
	_, err := fmt.Fprintf(out, "%s (%s): %s becomes %s (%s)%s\n", r.Proposal, r.Tool, cmp.Or(r.Before, "undecided"), r.After, r.Reason, note)
	return err
}
