// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"time"

	"github.com/assent-dev/assent/internal/attest"
)

// RecordType names what a record is about. The type of a record follows from
// its Data.
type RecordType string

// Record is one entry of the audit log.
type Record struct {
	// ID is 16 random bytes in lower-case hex. A journal draws one when it is
	// empty; a caller that may have to retry draws it itself.
	ID string
	// Time is when the caller made the record. The log's own order, not the
	// time, says what came first.
	Time time.Time
	// Proposal is the call's object, or nil for a record about no single call.
	Proposal *attest.ObjectRef
	// Fingerprint of the call, or empty.
	Fingerprint string
	// TraceID connects the record with traces and logs of the same call.
	TraceID string
	// Data is one of the structures of this package, by value.
	Data Data

	// Position is set by the journal; what a caller puts there is ignored.
	Position Position
}

// Position says where a record stands, as its writer saw it. It is signed with
// the record, so that records cannot be moved, dropped or brought in from
// another log without a trace at that very place.
type Position struct {
	// Log is the origin of the log, as in its checkpoints.
	Log string `json:"log"`
	// Writer is a random name that a journal takes when it is opened.
	Writer string `json:"writer"`
	// Seq counts the records of one writer from 0. A number is left out when a
	// write failed.
	Seq uint64 `json:"seq"`
}

// Type returns the type that belongs to the record's data, or "" without data.
func (r Record) Type() RecordType {
	if r.Data == nil {
		return ""
	}
	return r.Data.recordType()
}

// Data is what is particular to one type of record. It is implemented by the
// structures of this package only.
type Data interface {
	recordType() RecordType
	check() error
}

// Check reports what is wrong with a record, naming the field and never a
// value. The error wraps [ErrInvalidRecord].
func (r Record) Check() error {
	var c checks
	c.require(r.Data != nil, "data", "must be set")
	c.require(r.ID == "" || isHex(r.ID, 32), "id", "must be empty or 32 lower-case hex digits")
	c.require(!r.Time.IsZero(), "time", "must be set")
	c.require(r.Fingerprint == "" || isHex(r.Fingerprint, 64), "fingerprint", "must be empty or 64 lower-case hex digits")
	c.require(len(r.TraceID) <= maxTraceBytes, "traceID", "is too long")
	if r.Proposal != nil {
		c.object("proposal.namespace", r.Proposal.Namespace)
		c.object("proposal.name", r.Proposal.Name)
		c.object("proposal.uid", r.Proposal.UID)
	}
	if c.err == nil {
		c.err = r.Data.check()
	}
	if c.err != nil {
		return fmt.Errorf("%w: %s: %w", ErrInvalidRecord, r.Type(), c.err)
	}
	return nil
}

const (
	// maxNameBytes bounds short texts in data: names, reasons, identifiers.
	maxNameBytes = 1024
	// maxObjectBytes is the longest name of a Kubernetes object. It is tighter
	// than maxNameBytes because these stand in the entry beside up to 32 KiB of
	// data, and the entry has an end.
	maxObjectBytes = 253
	maxTraceBytes  = 128
)

// checks collects the first broken rule. Messages name field and rule only.
type checks struct{ err error }

func (c *checks) require(ok bool, field, rule string) {
	if !ok && c.err == nil {
		c.err = fmt.Errorf("%s %s", field, rule)
	}
}

func (c *checks) text(field, v string) {
	c.require(v != "" && len(v) <= maxNameBytes, field, fmt.Sprintf("must have 1 to %d bytes", maxNameBytes))
}

func (c *checks) object(field, v string) {
	c.require(v != "" && len(v) <= maxObjectBytes, field, fmt.Sprintf("must have 1 to %d bytes", maxObjectBytes))
}

func (c *checks) digest(field, v string) {
	c.require(isHex(v, 64), field, "must be 64 lower-case hex digits")
}

func (c *checks) optionalDigest(field, v string) {
	c.require(v == "" || isHex(v, 64), field, "must be empty or 64 lower-case hex digits")
}

func isHex(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
