// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// kind is what a line of the record is about.
type kind string

const (
	written  kind = "status written"
	jobMade  kind = "Job created"
	audited  kind = "audit record"
	effected kind = "effect"
	other    kind = "write"
)

// line is one thing that happened. Only what the API server accepted is a
// write; only what the log made durable is an audit record.
type line struct {
	kind     kind
	proposal types.UID
	// detail is the resource written, or the type of the audit record.
	detail string
	// Of a written status.
	phase, reason string
	grant         string
	redeemer      types.UID
	receipts      []types.UID
	fingerprint   string
	// allowed says of an audit record that it is a commit point's Allow.
	allowed bool
	// value is what the target of an effect received.
	value string
}

// record is everything that happened, in order.
type record struct {
	mu    sync.Mutex
	lines []line
}

func (r *record) add(l line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, l)
}

func (r *record) all() []line {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

// expectation is what a call was to do.
type expectation struct {
	value         string
	fingerprint   string
	needsApproval bool
}

// check reads a record and returns what it breaks, by the invariants of the
// protocol: I1 no effect without Allow and grant, I2 one grant, one redemption,
// one Job, one effect, I3 approval by a receipt that nothing else used, I4 what
// was decided is what was done, I5 records come first, I6 an end stays.
func check(lines []line, calls map[types.UID]expectation) []string {
	c := checker{calls: calls, by: map[types.UID]*history{}, receipts: map[types.UID]types.UID{}}
	for uid := range calls {
		c.by[uid] = &history{}
	}
	for _, l := range lines {
		h := c.by[l.proposal]
		if h == nil {
			if l.kind == effected {
				c.breaks(l, "I1", "an effect of no call")
			}
			continue
		}
		switch l.kind {
		case audited:
			h.audit = append(h.audit, l)
		case written:
			c.status(h, l)
		case jobMade:
			c.job(h, l)
		case effected:
			c.effect(h, l)
		}
	}
	c.endings()
	slices.Sort(c.broken)
	return c.broken
}

type history struct {
	audit           []line
	grant, redeemer string
	jobs, effects   int
	end             *line
}

func (h *history) has(record string) bool {
	return slices.ContainsFunc(h.audit, func(l line) bool { return l.detail == record })
}

type checker struct {
	calls    map[types.UID]expectation
	by       map[types.UID]*history
	receipts map[types.UID]types.UID
	broken   []string
}

func (c *checker) breaks(l line, invariant, what string) {
	c.broken = append(c.broken, fmt.Sprintf("%s: %s (call %s)", invariant, what, l.proposal))
}

func (c *checker) status(h *history, l line) {
	if l.grant != "" && h.grant != l.grant {
		c.granted(h, l)
	}
	if r := string(l.redeemer); r != "" && h.redeemer != r {
		if h.redeemer != "" {
			c.breaks(l, "I2", "a second redemption")
		}
		h.redeemer = r
	}
	switch {
	case h.end != nil && (l.phase != h.end.phase || l.reason != h.end.reason):
		c.breaks(l, "I6", "an end that changed from "+h.end.phase+" to "+l.phase)
	case h.end == nil && v1alpha1.Phase(l.phase).Terminal():
		h.end = &l
		if !h.has("ProposalEnded") && !h.has("ToolCompleted") && !h.has("Denied") {
			c.breaks(l, "I5", "an end without its record")
		}
	}
}

func (c *checker) granted(h *history, l line) {
	if h.grant != "" {
		c.breaks(l, "I2", "a second grant")
	}
	h.grant = l.grant
	if !h.has("Dispatched") || !h.has("PolicyEvaluated") {
		c.breaks(l, "I5", "a grant without its record")
	}
	if !slices.ContainsFunc(h.audit, func(a line) bool { return a.allowed && a.fingerprint == l.fingerprint }) {
		c.breaks(l, "I1", "a grant that policy did not allow")
	}
	if c.calls[l.proposal].needsApproval && len(l.receipts) == 0 {
		c.breaks(l, "I3", "a grant without a receipt")
	}
	for _, r := range l.receipts {
		if _, used := c.receipts[r]; used {
			c.breaks(l, "I3", "a receipt that was used before")
		}
		c.receipts[r] = l.proposal
	}
}

func (c *checker) job(h *history, l line) {
	if h.jobs++; h.jobs > 1 {
		c.breaks(l, "I2", "a second Job")
	}
	if h.grant == "" {
		c.breaks(l, "I1", "a Job without a grant")
	}
}

func (c *checker) effect(h *history, l line) {
	if h.effects++; h.effects > 1 {
		c.breaks(l, "I2", "a second effect")
	}
	if h.grant == "" || h.redeemer == "" {
		c.breaks(l, "I1", "an effect that was not granted and handed out")
	}
	if l.value != c.calls[l.proposal].value {
		c.breaks(l, "I4", "another effect than was decided on")
	}
	if h.end != nil {
		c.breaks(l, "I6", "an effect after the end")
	}
}

func (c *checker) endings() {
	for uid, h := range c.by {
		l := line{proposal: uid}
		switch {
		case h.end == nil:
			c.breaks(l, "I6", "no end")
		case h.end.phase == string(v1alpha1.PhaseSucceeded) && h.effects != 1:
			c.breaks(l, "I4", "success without exactly one effect")
		case h.end.reason == v1alpha1.ReasonNeverStarted && h.effects != 0:
			c.breaks(l, "I4", "an effect of a call that never started")
		}
	}
}
