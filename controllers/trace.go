// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/tracing"
)

// Spans are made of steps that changed a call, after the change was stored: a
// call that is looked at again and again while it waits makes none.

// traceDecision tells of an answer that moved the call without a grant.
func (c *Config) traceDecision(f *facts, next *v1alpha1.ToolProposal) {
	if before := f.Proposal.Status; before.Phase == next.Status.Phase && before.Reason == next.Status.Reason {
		return
	}
	c.trace(f, next, tracing.Step{Name: tracing.Decision, Begin: f.began, End: c.Now()})
}

// traceGrant tells of the answer that granted the call, and of the grant.
func (c *Config) traceGrant(f *facts, next *v1alpha1.ToolProposal, decided time.Time, err error) {
	c.trace(f, next, tracing.Step{Name: tracing.Decision, Begin: f.began, End: decided})
	c.trace(f, next, tracing.Step{Name: tracing.Commit, Begin: decided, End: c.Now(), Failed: err != nil})
}

// traceEnd tells of the end of a call that was granted, and of its run as far
// as the runner has told. The runner sends no spans: nothing but its call can
// leave its Pod.
func (c *Config) traceEnd(f *facts, next *v1alpha1.ToolProposal) {
	if !next.Status.Phase.Terminal() || f.Proposal.Status.Phase.Terminal() {
		return
	}
	if by, result := next.Status.RedeemedBy, next.Status.Result; by != nil && result != nil {
		took := time.Duration(result.DurationMilliseconds) * time.Millisecond
		c.trace(f, next, tracing.Step{Name: tracing.Run, Begin: by.Time.Time, End: by.Time.Add(took), Failed: next.Status.Phase != v1alpha1.PhaseSucceeded})
	}
	c.trace(f, next, tracing.Step{Name: tracing.End, Begin: f.began, End: c.Now(), Failed: next.Status.Phase == v1alpha1.PhaseIndeterminate})
}

func (c *Config) trace(f *facts, p *v1alpha1.ToolProposal, s tracing.Step) {
	if c.Tracer == nil || f.Seal == nil || p.Spec.Prepared == nil {
		return
	}
	s.Outcome, s.Reason = string(p.Status.Phase), reasonLabel(p)
	c.Tracer.Step(tracing.Call{
		TraceID: f.Seal.SealID, Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Fingerprint: p.Spec.Prepared.Fingerprint,
	}, s)
}
