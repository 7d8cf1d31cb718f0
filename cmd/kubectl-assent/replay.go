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
	Proposal string `json:"proposal"`
	Tool     string `json:"tool"`
	// Decided is the answer that was stored with the call.
	Decided string `json:"decided,omitempty"`
	// Before is what After is compared with: the answer of the baseline, and
	// without one the stored answer.
	Before   string        `json:"before"`
	After    policy.Answer `json:"after"`
	Reason   policy.Reason `json:"reason"`
	Policies []string      `json:"policies"`
	Changed  bool          `json:"changed"`
	// Note says what makes the comparison less than exact, or why After is empty.
	Note string `json:"note,omitempty"`
}

// replayAll asks the policies about every stored call, exactly as it was
// frozen. before has the policies to compare with, or is nil for what was
// decided.
func (o *simulateOptions) replayAll(w, before *offline, streams Streams) error {
	proposals := w.documents.Proposals
	if len(proposals) == 0 {
		return fmt.Errorf("there is no ToolProposal of namespace %s among the %s", w.namespace, o.where())
	}
	slices.SortFunc(proposals, func(a, b v1alpha1.ToolProposal) int { return cmp.Compare(a.Name, b.Name) })
	changed, failed := 0, 0
	for i := range proposals {
		r, err := w.replay(&proposals[i], before)
		switch {
		case err != nil && !o.fromCluster:
			return fmt.Errorf("ToolProposal %s: %w", proposals[i].Name, err)
		case err != nil:
			// One call that never passed admission must not hide all others.
			r.Note = err.Error()
			failed++
		case r.Changed:
			changed++
		}
		if err := o.printReplayed(r, streams.Out); err != nil {
			return fmt.Errorf("writing the decisions: %w", err)
		}
	}
	if o.output == "text" {
		end := ""
		if failed > 0 {
			end = fmt.Sprintf("; %d could not be asked about", failed)
		}
		if _, err := fmt.Fprintf(streams.Out, "%d of %d decisions would change%s\n", changed, len(proposals), end); err != nil {
			return fmt.Errorf("writing the decisions: %w", err)
		}
	}
	return nil
}

func (o *simulateOptions) where() string {
	if o.fromCluster {
		return "objects of the cluster"
	}
	return "documents"
}

// before gives the policies to compare with, or nil for what was decided.
func (o *simulateOptions) before(w *offline, streams Streams) (*offline, error) {
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
		namespace: w.namespace, contracts: w.contracts, names: w.names, limits: w.limits, hashes: w.hashes,
	}
	if err := base.loadPolicies(); err != nil {
		return nil, fmt.Errorf("reading the baseline: %w", err)
	}
	return base, nil
}

func (w *offline) replay(p *v1alpha1.ToolProposal, before *offline) (replayed, error) {
	r := replayed{Proposal: p.Name, Tool: p.Spec.Tool, Policies: []string{}}
	if p.Status.Decision != nil {
		r.Decided = p.Status.Decision.Answer
	}
	call, err := w.storedCall(p)
	if err != nil {
		return r, err
	}
	d := w.set.Decide(*call, policy.Options{})
	r.After, r.Reason, r.Policies = d.Answer, d.Reason, append(r.Policies, d.Policies...)
	r.Before = r.Decided
	if before != nil {
		then, err := before.storedCall(p)
		if err != nil {
			return r, err
		}
		r.Before = string(before.set.Decide(*then, policy.Options{}).Answer)
	}
	r.Changed, r.Note = r.Before != string(r.After), w.inexact(p, call)
	return r, nil
}

// storedCall is a stored call as it was put before the policies.
func (w *offline) storedCall(p *v1alpha1.ToolProposal) (*policy.Call, error) {
	if p.Spec.Prepared == nil || p.Spec.Requester == nil {
		return nil, errors.New("it was never prepared")
	}
	c, err := w.contract(p.Spec.Tool)
	if err != nil {
		return nil, err
	}
	call, err := proposal.PolicyCall(c, p, w.session(p))
	if err != nil {
		return nil, err
	}
	call.Tool.ContractHash = w.hash(c)
	if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionApproved) {
		call.Approved, call.ApprovedFingerprint = true, call.Fingerprint
	}
	return &call, nil
}

// inexact says in what the call that was asked about differs from the stored one.
func (w *offline) inexact(p *v1alpha1.ToolProposal, call *policy.Call) string {
	switch {
	case call.Tool.ContractHash != p.Spec.Prepared.Contract.Hash:
		return "the contract in the files is not the one of the call"
	case p.Spec.SessionRef != nil && !call.HasSession:
		return "the session of the call is not there"
	}
	return ""
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
	if !r.Changed && r.After != "" {
		return nil
	}
	text := fmt.Sprintf("%s (%s): ", escapeName(r.Proposal), escapeName(r.Tool))
	if r.After == "" {
		_, err := fmt.Fprintf(out, "%s%s\n", text, escapeText(r.Note))
		return err
	}
	text += fmt.Sprintf("%s becomes %s (%s)", cmp.Or(r.Before, "undecided"), r.After, r.Reason)
	if r.Decided != "" && r.Decided != r.Before {
		text += "; it was decided " + escapeName(r.Decided)
	}
	if r.Note != "" {
		text += "; " + r.Note
	}
	_, err := fmt.Fprintln(out, text)
	return err
}
