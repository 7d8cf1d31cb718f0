// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import "github.com/assent-dev/assent/internal/audit"

// place checks that a record stands where its writer put it.
func (c *checker) place(index uint64, e *audit.Entry) error {
	at := e.Record.Position
	if at.Log != c.at.Origin {
		c.report.find(ReasonForeignLog, index, "the record was written to another log")
		return errStop
	}
	opens, isOpening := e.Record.Data.(audit.JournalOpened)
	if isOpening != (at.Seq == 0) {
		c.report.find(ReasonWrongOrder, index, "a writer's first record and its number do not agree")
		return errStop
	}
	if isOpening && opens.Size != index {
		c.report.find(ReasonWrongOrder, c.firstSkip(index), "a writer began at %d records and stands at %d", opens.Size, index)
		return errStop
	}
	if err := c.follow(index, at); err != nil {
		return err
	}
	if c.last != nil && e.Record.Time.Before(c.last.Time) {
		c.report.ClockSteps++
	}
	c.last = &audit.Record{Position: at, Time: e.Record.Time}
	return nil
}

// follow compares a position with the one before it.
func (c *checker) follow(index uint64, at audit.Position) error {
	if c.last == nil || c.last.Position.Writer != at.Writer {
		if at.Seq != 0 || c.writers[at.Writer] {
			c.report.find(ReasonWrongOrder, index, "the record belongs to the turn of another writer")
			return errStop
		}
		c.writers[at.Writer] = true
		c.report.Writers++
		return nil
	}
	before := c.last.Position.Seq
	if at.Seq <= before {
		c.report.find(ReasonWrongOrder, c.belongs(index, at.Seq), "records are not in the order in which they were written")
		return errStop
	}
	if at.Seq > before+1 {
		c.skips = append(c.skips, skip{index: index, from: before, to: at.Seq})
		c.report.Skipped += at.Seq - before - 1
	}
	return nil
}

// belongs returns the index at which a late record is missing: where its number
// was skipped, if that was seen.
func (c *checker) belongs(index uint64, seq uint64) uint64 {
	for _, s := range c.skips {
		if s.from < seq && seq < s.to {
			return s.index
		}
	}
	return index
}

// firstSkip returns where numbers were first left out, or index.
func (c *checker) firstSkip(index uint64) uint64 {
	if len(c.skips) > 0 {
		return c.skips[0].index
	}
	return index
}

// blameSkips turns the first skipped number into a finding when the log is not
// whole. In a log that is whole, skipped numbers are writes that failed; in one
// that is not, records may have been taken out there.
func (c *checker) blameSkips() {
	if len(c.skips) == 0 {
		return
	}
	for _, f := range c.report.Findings {
		if f.Reason == ReasonRootMismatch || f.Reason == ReasonEntryMissing || f.Reason == ReasonPartsMissing {
			c.report.find(ReasonWrongOrder, c.skips[0].index, "numbers are left out before this record")
			return
		}
	}
}
