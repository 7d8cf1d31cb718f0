// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/proposal"
)

// screen is everything that an approver looks at, in the order they read it.
// It has one line for each fact and shortens nothing.
type screen struct {
	b     strings.Builder
	width int
}

func (s *screen) title(text string) {
	if s.b.Len() > 0 {
		s.b.WriteByte('\n')
	}
	s.b.WriteString(text + "\n")
}

// line prints a label and a text that is safe already.
func (s *screen) line(label, text string) {
	fmt.Fprintf(&s.b, "  %-*s  %s\n", s.width, label, text)
}

// name prints what people compare letter by letter; nothing if it is empty.
func (s *screen) name(label, text string) {
	if text != "" {
		s.line(label, escapeName(text))
	}
}

// quote prints a text of somebody else between quotation marks.
func (s *screen) quote(label, text string) {
	if text != "" {
		s.line(label, quoteText(text))
	}
}

// view is a call as approvers see it.
type view struct {
	Proposal *v1alpha1.ToolProposal `json:"proposal"`
	Manifest *v1alpha1.ToolManifest `json:"manifest,omitempty"`
	// Fingerprint is computed here, from the content of the proposal alone.
	Fingerprint string `json:"fingerprint"`
	// FingerprintMatches says that the stored fingerprint is the same.
	FingerprintMatches bool `json:"fingerprintMatches"`
	// Seal is verified, invalid, or not checked for want of the public keys.
	Seal string `json:"seal"`
}

// fingerprintOf computes the fingerprint anew. It never trusts the stored one.
func fingerprintOf(p *v1alpha1.ToolProposal) (string, error) {
	call, err := proposal.CallOf(p)
	if err != nil {
		return "", fmt.Errorf("the proposal was not prepared: %w", err)
	}
	fingerprint, err := call.Fingerprint()
	if err != nil {
		return "", fmt.Errorf("computing the fingerprint: %w", err)
	}
	return fingerprint, nil
}

// render writes the whole screen.
func (v *view) render(w io.Writer) error {
	s := &screen{width: 11}
	p := v.Proposal
	s.title("Call " + escapeName(p.Namespace+"/"+p.Name))
	s.name("uid", string(p.UID))
	s.name("phase", string(p.Status.Phase))
	s.name("reason", p.Status.Reason)
	s.line("created", p.CreationTimestamp.UTC().Format(time.RFC3339))
	if p.Status.ExpiresAt != nil {
		s.line("expires", p.Status.ExpiresAt.UTC().Format(time.RFC3339))
	}
	v.renderRequester(s)
	v.renderTool(s)
	v.renderDecision(s)
	if p.Spec.Prepared != nil {
		s.title("Arguments (canonical JSON)")
		s.b.WriteString("  " + escapeText(p.Spec.Prepared.ArgsCanonicalJSON) + "\n")
		renderEffect(s, p.Spec.Prepared.Effect)
	}
	s.title("Fingerprint")
	s.b.WriteString("  " + v.Fingerprint + "\n")
	s.line("computed", "by this program, from the content above")
	s.line("stored", map[bool]string{true: "the same", false: "ANOTHER ONE: do not approve"}[v.FingerprintMatches])
	s.line("seal", v.Seal)
	if _, err := io.WriteString(w, s.b.String()); err != nil {
		return fmt.Errorf("writing the screen: %w", err)
	}
	return nil
}

func (v *view) renderRequester(s *screen) {
	spec := v.Proposal.Spec
	s.title("Requester")
	renderIdentity(s, spec.Requester)
	if spec.SessionRef != nil {
		s.name("session", spec.SessionRef.Name)
	}
	s.quote("call ID", spec.CallID)
	if spec.Iteration != nil {
		s.line("iteration", fmt.Sprint(*spec.Iteration))
	}
	if spec.Batch != nil {
		s.line("batch", fmt.Sprintf("%s, %d calls", escapeName(spec.Batch.ID), spec.Batch.Size))
	}
	// The agent's own words come last and are marked as such.
	s.quote("it claims", spec.Reason)
}

func renderIdentity(s *screen, id *v1alpha1.Identity) {
	if id == nil {
		s.line("username", "NOT STAMPED: do not approve")
		return
	}
	s.name("username", id.Username)
	s.name("uid", id.UID)
	for _, group := range id.Groups {
		s.name("group", group)
	}
	for _, extra := range id.Extra {
		s.line("extra", escapeName(extra.Key)+" = "+escapeName(strings.Join(extra.Values, ", ")))
	}
}

func (v *view) renderTool(s *screen) {
	spec := v.Proposal.Spec
	s.title("Tool")
	s.name("name", spec.Tool)
	if m := v.Manifest; m != nil {
		risk := string(m.Spec.RiskTier)
		if risk == "" {
			risk = string(v1alpha1.RiskMedium)
		}
		s.line("risk", risk)
		s.quote("it says", m.Spec.Description)
	}
	if spec.Prepared == nil {
		return
	}
	s.name("version", spec.Prepared.Contract.Version)
	s.name("contract", spec.Prepared.Contract.Hash)
	switch m := v.Manifest; {
	case m == nil:
		s.line("now", "the manifest could not be read")
	case m.Status.ContractHash == "":
		s.line("now", "the operator has not looked at the manifest yet")
	case m.Status.ContractHash != spec.Prepared.Contract.Hash:
		s.line("now", "the contract CHANGED since: the call will be denied")
	default:
		s.line("now", "the contract is the same")
	}
}

func (v *view) renderDecision(s *screen) {
	d := v.Proposal.Status.Decision
	if d == nil {
		return
	}
	s.title("Policy")
	s.line("answer", escapeName(d.Answer)+" ("+escapeName(d.Reason)+")")
	for _, id := range d.Policies {
		s.name("by", id)
	}
	for _, miss := range d.NearMisses {
		s.line("near miss", escapeText(miss))
	}
	for _, e := range d.Errors {
		s.line("error", escapeText(e))
	}
	s.name("set", d.PolicySetDigest)
	if a := v.Proposal.Status.Approvals; a != nil {
		s.name("approvals", a.Summary)
		for _, who := range a.Approvers {
			s.name("approved", who)
		}
	}
}
