// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"fmt"

	"github.com/assent-dev/assent/internal/audit"
)

var errClosed = fmt.Errorf("%w: the journal is closed", audit.ErrUnavailable)

// Append implements [audit.Journal].
func (l *Log) Append(ctx context.Context, r audit.Record) (uint64, error) {
	indexes, err := l.AppendAll(ctx, []audit.Record{r})
	if err != nil {
		return 0, err
	}
	return indexes[0], nil
}

// AppendAll implements [audit.Journal].
func (l *Log) AppendAll(ctx context.Context, records []audit.Record) ([]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	waiting, err := l.enqueueAll(ctx, records)
	indexes, waitErr := waitAll(ctx, waiting)
	if waitErr != nil {
		err = waitErr
	}
	return indexes, err
}

// enqueueAll puts records in line, each once its parts are in the log, up to the
// first that cannot be. The committer waits for the last of them, so that they
// share a batch.
func (l *Log) enqueueAll(ctx context.Context, records []audit.Record) (waiting []future, err error) {
	l.sealing.Add(1)
	defer l.sealing.Add(-1)
	for _, r := range records {
		if r.ID == "" {
			id, err := l.newID()
			if err != nil {
				return waiting, unavailable(err)
			}
			r.ID = id
		}
		draft, err := audit.NewDraft(r)
		if err != nil {
			return waiting, err
		}
		indexes, err := l.appendParts(ctx, r, draft)
		if err != nil {
			return waiting, err
		}
		waiting = append(waiting, l.enqueue(ctx, draft, indexes))
	}
	return waiting, nil
}

// appendParts writes the parts of a large record together and waits for all:
// the record names their indexes, so it can only come after them.
func (l *Log) appendParts(ctx context.Context, r audit.Record, draft *audit.Draft) ([]uint64, error) {
	waiting, err := l.enqueueParts(ctx, r, draft)
	if err != nil {
		return nil, err
	}
	// All are waited for, also where one failed: whoever is told that the record
	// was not written should not find a part of it written afterwards.
	return waitAll(ctx, waiting)
}

// waitAll returns, once all have ended, the indexes of those before the first
// that failed, and its error.
func waitAll(ctx context.Context, waiting []future) (indexes []uint64, err error) {
	for _, f := range waiting {
		index, failed := f.wait(ctx)
		if err == nil && failed == nil {
			indexes = append(indexes, index)
		} else if err == nil {
			err = failed
		}
	}
	return indexes, err
}

// enqueueParts puts the parts in line. The committer waits for the last of
// them, so that a disk that is full takes all or none where they fit a batch.
func (l *Log) enqueueParts(ctx context.Context, r audit.Record, draft *audit.Draft) ([]future, error) {
	l.sealing.Add(1)
	defer l.sealing.Add(-1)
	var waiting []future
	for _, data := range draft.Parts() {
		id, err := l.newID()
		if err != nil {
			return nil, unavailable(err)
		}
		part, err := audit.NewDraft(audit.Record{ID: id, Time: r.Time, Data: data})
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, l.enqueue(ctx, part, nil))
	}
	return waiting, nil
}

type outcome struct {
	index uint64
	err   error
}

type future chan outcome

// wait returns the outcome, or ErrUnavailable when the caller's time is over.
func (f future) wait(ctx context.Context) (uint64, error) {
	select {
	case o := <-f:
		return o.index, o.err
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: the record was not written in time: %w", audit.ErrUnavailable, ctx.Err())
	}
}

// enqueue signs a record, puts it in line for the committer and returns at once.
// A slot is held until the record is written, so that callers who give up on a
// stalled disk do not pile up behind it.
func (l *Log) enqueue(ctx context.Context, draft *audit.Draft, parts []uint64) future {
	f := make(future, 1)
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return f // never answers; wait sees that ctx is done
	}
	if !l.begin() {
		<-l.slots
		f <- outcome{err: errClosed}
		return f
	}
	l.seal(write{ctx: ctx, answer: f}, draft, parts)
	return f
}

// begin counts a write that Close must wait for, unless it is too late.
func (l *Log) begin() bool {
	l.state.Lock()
	defer l.state.Unlock()
	if !l.closed {
		l.pending.Add(1)
		l.sealing.Add(1)
	}
	return !l.closed
}

// seal gives the record its number, signs it and puts it in line in the order
// of the numbers. Signing, which is most of the work, goes on in parallel.
func (l *Log) seal(w write, draft *audit.Draft, parts []uint64) {
	defer l.sealing.Add(-1)
	t := l.takeTurn()
	defer close(t.done)
	entry, err := draft.Seal(l.o.Keys, audit.Position{Log: l.o.Origin, Writer: l.writer, Seq: t.seq}, parts)
	<-t.before
	if err != nil {
		l.finish(w, outcome{err: err})
		return
	}
	w.entry = []byte(entry)
	l.line.push(w)
}

// finish answers a write and gives its place to another.
func (l *Log) finish(w write, o outcome) {
	w.answer <- o
	<-l.slots
	l.pending.Done()
}

// turn is a place in the order of numbers.
type turn struct {
	seq    uint64
	before <-chan struct{} // closed when the turn before has passed
	done   chan struct{}
}

func (l *Log) takeTurn() turn {
	l.order.Lock()
	defer l.order.Unlock()
	t := turn{seq: l.seq, before: l.lastTurn, done: make(chan struct{})}
	l.seq++
	l.lastTurn = t.done
	return t
}
