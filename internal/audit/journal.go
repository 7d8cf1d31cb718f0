// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
)

// ErrUnavailable is wrapped by every error of [Journal.Append] that says that
// the log could not take the record: the disk is full or failing, too slow for
// the caller's deadline, the journal is closed or another process writes it.
// Whoever sees it must not take the step that the record was to precede. Trying
// again later is right.
var ErrUnavailable = errors.New("the audit log is unavailable")

// ErrInvalidRecord is wrapped by errors about the record itself. Trying again
// with the same record is useless.
var ErrInvalidRecord = errors.New("the audit record is invalid")

// Journal keeps records for good.
type Journal interface {
	// Append returns the index of the record once the record is durable and
	// part of the Merkle tree, and not before. Records whose Append has
	// returned come before records whose Append is called afterwards.
	//
	// After an error that wraps [ErrUnavailable] the record may still turn up
	// in the log: a record says that a step was about to be taken, and one too
	// many is harmless. A caller that retries keeps the record's ID, by which a
	// reader recognises the repetition.
	Append(ctx context.Context, r Record) (index uint64, err error)
	// AppendAll appends several records, in their order, and returns once all
	// are durable; it costs little more than one Append. With an error come the
	// indexes of those before the first that failed; any of the others may turn
	// up in the log, as after an error of Append.
	AppendAll(ctx context.Context, records []Record) (indexes []uint64, err error)
}
