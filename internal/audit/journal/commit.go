// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/transparency-dev/tessera"
)

const (
	// batchSize is one entry bundle.
	batchSize = 256
	// handOver is how long Tessera may wait for more. The committer hands over
	// whole batches, so there is nothing to wait for.
	handOver = time.Millisecond
	// gatherSteps is how often, within the batch age, the committer looks
	// whether somebody is still about to add a record.
	gatherSteps = 8
)

// write is a signed record on its way to the log.
type write struct {
	ctx    context.Context // of the caller
	entry  []byte
	answer future
}

// line holds signed records in the order of their numbers.
type line struct {
	mu      sync.Mutex
	waiting []write
	// arrived has a value when something was pushed, full when a batch is.
	arrived, full chan struct{}
}

func newLine() *line {
	return &line{arrived: make(chan struct{}, 1), full: make(chan struct{}, 1)}
}

func (q *line) push(w write) {
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	n := len(q.waiting)
	q.mu.Unlock()
	notify(q.arrived)
	if n >= batchSize {
		notify(q.full)
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take removes at most one batch.
func (q *line) take() []write {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), batchSize)
	batch := q.waiting[:n:n]
	q.waiting = slices.Clone(q.waiting[n:])
	select { // what was full is so no longer
	case <-q.full:
	default:
	}
	if len(q.waiting) >= batchSize {
		notify(q.full)
	}
	return batch
}

// commitLoop writes one batch after the other. Having a single batch on its way
// lets all that arrives meanwhile share the next one: the cost of a batch is
// that of syncing its few files, however many records it has.
func (l *Log) commitLoop() {
	defer close(l.committed)
	for {
		select {
		case <-l.line.arrived:
		case <-l.stop:
			return
		}
		for {
			l.gather()
			batch := l.line.take()
			if len(batch) == 0 {
				break
			}
			l.commit(batch)
		}
	}
}

// gather waits for records that belong into the same batch: as long as some are
// being made, but no longer than the batch age. Whoever is alone waits for an
// eighth of it.
func (l *Log) gather() {
	step := l.o.BatchAge / gatherSteps
	timer := time.NewTimer(step)
	defer timer.Stop()
	for range gatherSteps {
		select {
		case <-l.line.full:
			return
		case <-timer.C:
		}
		if l.sealing.Load() == 0 {
			return
		}
		timer.Reset(step)
	}
}

// commit hands a batch to Tessera and answers its callers. A record whose
// caller has gone is left out: written now, it would only confuse.
func (l *Log) commit(batch []write) {
	futures := make([]tessera.IndexFuture, len(batch))
	for i, w := range batch {
		if w.ctx.Err() == nil {
			futures[i] = l.appender.Add(l.ctx, tessera.NewEntry(w.entry))
		}
	}
	for i, w := range batch {
		if futures[i] == nil {
			l.finish(w, outcome{err: unavailable(w.ctx.Err())})
			continue
		}
		index, err := futures[i]()
		if err != nil {
			err = unavailable(err)
		}
		l.finish(w, outcome{index: index.Index, err: err})
	}
}
