// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/internal/audit"
)

// Reason says what is wrong with a log.
type Reason string

// Reasons of findings.
const (
	// ReasonCheckpointMissing: there is no checkpoint, so nothing is promised.
	ReasonCheckpointMissing Reason = "CheckpointMissing"
	// ReasonCheckpointMalformed: the checkpoint is not in the defined form.
	ReasonCheckpointMalformed Reason = "CheckpointMalformed"
	// ReasonUntrustedKey: checkpoint or record signed by a key not given.
	ReasonUntrustedKey Reason = "UntrustedKey"
	// ReasonForeignLog: checkpoint or record of another log.
	ReasonForeignLog Reason = "ForeignLog"
	// ReasonEntryMissing: the checkpoint covers an entry that is not there.
	ReasonEntryMissing Reason = "EntryMissing"
	// ReasonEntryMalformed: an entry is not a well-formed record.
	ReasonEntryMalformed Reason = "EntryMalformed"
	// ReasonBadSignature: an entry was changed after it was signed.
	ReasonBadSignature Reason = "BadSignature"
	// ReasonWrongOrder: a record stands where its writer did not put it.
	ReasonWrongOrder Reason = "WrongOrder"
	// ReasonPartsMissing: the data of a large record cannot be put together.
	ReasonPartsMissing Reason = "PartsMissing"
	// ReasonTileMismatch: a hash tile does not match the entries.
	ReasonTileMismatch Reason = "TileMismatch"
	// ReasonRootMismatch: the entries are not those that the checkpoint signs.
	ReasonRootMismatch Reason = "RootMismatch"
	// ReasonTruncated: a remembered checkpoint covers more records.
	ReasonTruncated Reason = "Truncated"
	// ReasonForked: a remembered checkpoint covers other records.
	ReasonForked Reason = "Forked"
)

// Finding is one thing that is wrong.
type Finding struct {
	Reason Reason `json:"reason"`
	// Index is the first record that is known to be affected. For [ReasonForked]
	// it is the largest remembered size that still agrees: the logs differ at
	// that index or later.
	Index  uint64 `json:"index"`
	Detail string `json:"detail"`
}

// Report is the result of checking a log.
type Report struct {
	Origin string `json:"origin"`
	// Size is the number of records the checkpoint covers, Verified how many
	// were found in order before the first finding about a record.
	Size     uint64 `json:"size"`
	Verified uint64 `json:"verified"`
	// Root is the hex root hash of the checkpoint.
	Root string `json:"root"`
	// Records counts the verified records by type.
	Records map[audit.RecordType]uint64 `json:"records"`
	// Writers counts how often a journal was opened.
	Writers uint64 `json:"writers"`
	// Skipped counts numbers that writers left out because a write failed. It
	// is no finding when the root matches.
	Skipped uint64 `json:"skipped"`
	// ClockSteps counts records whose time is earlier than that of the record
	// before. The log's order holds regardless.
	ClockSteps uint64 `json:"clockSteps"`
	// Remembered counts the remembered checkpoints that agree.
	Remembered uint64 `json:"remembered"`

	Findings []Finding `json:"findings"`

	// Checkpoint is the log's checkpoint as it was read, to be remembered.
	Checkpoint []byte `json:"-"`
}

// OK reports whether nothing is wrong.
func (r *Report) OK() bool { return len(r.Findings) == 0 }

// FirstBad returns the finding with the smallest index, or nil.
func (r *Report) FirstBad() *Finding {
	if r.OK() {
		return nil
	}
	first := slices.MinFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.Index, b.Index) })
	return &first
}

func (r *Report) find(reason Reason, index uint64, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{Reason: reason, Index: index, Detail: fmt.Sprintf(format, args...)})
}
