// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/audit/verify"
)

// Errors of opening a log. They wrap [audit.ErrUnavailable].
var (
	// ErrLocked: another process writes this log.
	ErrLocked = fmt.Errorf("%w: another process holds the writer's lock", audit.ErrUnavailable)
	// ErrForeignLog: the directory holds a log of another origin or key.
	ErrForeignLog = fmt.Errorf("%w: the directory holds another log", audit.ErrUnavailable)
	// ErrRestored: an anchor remembers records that the log does not have.
	// Nothing may be granted until a person has looked into it.
	ErrRestored = fmt.Errorf("%w: the log was cut back or replaced", audit.ErrUnavailable)
)

const (
	// checkpointInterval is the shortest that Tessera's POSIX storage allows.
	checkpointInterval = 100 * time.Millisecond

	defaultBatchAge       = 4 * time.Millisecond
	defaultTimeout        = 5 * time.Second
	defaultMaxOutstanding = 1024
)

// Options describe a log to write.
type Options struct {
	// Dir is the directory of the log, on a file system that keeps what is
	// synced and supports flock. Required.
	Dir string
	// Origin is the log's name in checkpoints, such as
	// "assent.example.com/audit/cluster-1". Required; it must not change.
	Origin string
	// Keys sign records and checkpoints. Required.
	Keys *attest.Keyring
	// Software is the version written into the first record.
	Software string
	// Now is the clock for the journal's own records. Required.
	Now func() time.Time

	// BatchAge is how long a record waits at most for others that are being made
	// to share its batch. Default 4 ms.
	BatchAge time.Duration
	// Timeout bounds every Append, whatever its context says. Default 5 s.
	Timeout time.Duration
	// MaxOutstanding bounds records that are being written, and with it memory
	// and goroutines while the disk stalls. Default 1024.
	MaxOutstanding int

	// Anchors remember checkpoints elsewhere; see [Anchor].
	Anchors []Anchor
	// Report is told when an anchor cannot be reached while the log is open. It
	// may be nil.
	Report func(error)
	// Random is the source of IDs. Default crypto/rand.
	Random io.Reader
}

// Log is an open journal. It implements [audit.Journal].
type Log struct {
	o      Options
	lock   *os.File
	writer string

	ctx      context.Context // of Tessera's background work
	cancel   context.CancelFunc
	appender *tessera.Appender
	shutdown func(context.Context) error
	reader   tessera.LogReader

	slots     chan struct{}
	line      *line
	sealing   atomic.Int64  // records that are being made and not in line yet
	stop      chan struct{} // closed when nothing more can come
	committed chan struct{} // closed when the committer has ended
	pending   sync.WaitGroup
	anchors   sync.WaitGroup

	order    sync.Mutex // guards the line in which records get their numbers
	seq      uint64
	lastTurn <-chan struct{}

	state    sync.Mutex
	closed   bool
	released chan struct{} // closed when the lock was given up
	closeErr error
}

var _ audit.Journal = (*Log)(nil)

// Open takes the writer's lock, waiting for it until ctx ends, checks that the
// directory holds this log and that no anchor remembers more than it holds, and
// writes a [audit.JournalOpened] record. Errors wrap [audit.ErrUnavailable]
// unless the options are wrong.
func Open(ctx context.Context, o Options) (*Log, error) {
	if o.Dir == "" || o.Keys == nil || o.Now == nil {
		return nil, errors.New("audit journal: directory, keys and clock must be set")
	}
	o = withDefaults(o)
	signer, err := o.Keys.NoteSigner(o.Origin)
	if err != nil {
		return nil, fmt.Errorf("audit journal: %w", err)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, unavailable(err)
	}
	lock, err := acquireLock(ctx, o.Dir)
	if err != nil {
		return nil, unavailable(err)
	}
	l := &Log{o: o, lock: lock, slots: make(chan struct{}, o.MaxOutstanding), released: make(chan struct{})}
	l.line, l.stop, l.committed = newLine(), make(chan struct{}), make(chan struct{})
	firstTurn := make(chan struct{})
	close(firstTurn)
	l.lastTurn = firstTurn
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := l.start(ctx, tessera.NewAppendOptions().
		WithCheckpointSigner(signer).
		WithBatching(batchSize, handOver).
		WithCheckpointInterval(checkpointInterval)); err != nil {
		return nil, errors.Join(unavailable(err), l.Close(ctx))
	}
	return l, nil
}

func withDefaults(o Options) Options {
	if o.BatchAge <= 0 {
		o.BatchAge = defaultBatchAge
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxOutstanding <= 0 {
		o.MaxOutstanding = defaultMaxOutstanding
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Software == "" {
		o.Software = "unknown"
	}
	return o
}

func (l *Log) start(ctx context.Context, options *tessera.AppendOptions) error {
	if err := l.checkDirectory(ctx); err != nil {
		return err
	}
	var err error
	if l.writer, err = l.newID(); err != nil {
		return err
	}
	driver, err := posix.New(l.ctx, posix.Config{Path: l.o.Dir})
	if err != nil {
		return err
	}
	l.appender, l.shutdown, l.reader, err = tessera.NewAppender(l.ctx, driver, options)
	if err != nil {
		return err
	}
	go l.commitLoop()
	size, err := l.reader.IntegratedSize(ctx)
	if err != nil {
		return err
	}
	if err := l.checkAnchors(ctx, size); err != nil {
		return err
	}
	if _, err := l.Append(ctx, audit.Record{
		Time: l.o.Now(), Data: audit.JournalOpened{Size: size, Software: l.o.Software},
	}); err != nil {
		return err
	}
	l.startAnchors()
	return nil
}

// checkDirectory refuses to continue a log that is not this one.
func (l *Log) checkDirectory(ctx context.Context) error {
	text, err := l.Source().ReadCheckpoint(ctx)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := verify.ParseCheckpoint(text, l.o.Keys, l.o.Origin); err != nil {
		return fmt.Errorf("%w: %w", ErrForeignLog, err)
	}
	return nil
}

func (l *Log) newID() (string, error) {
	var id [16]byte
	if _, err := io.ReadFull(l.o.Random, id[:]); err != nil {
		return "", fmt.Errorf("reading randomness: %w", err)
	}
	return hex.EncodeToString(id[:]), nil
}

// Source reads the log's files.
func (l *Log) Source() verify.Source { return verify.DirSource(l.o.Dir) }

// Size returns how many records are integrated. Their checkpoint may not be
// published yet.
func (l *Log) Size(ctx context.Context) (uint64, error) {
	size, err := l.reader.IntegratedSize(ctx)
	if err != nil {
		return 0, unavailable(err)
	}
	return size, nil
}

// Checkpoint returns the latest published checkpoint.
func (l *Log) Checkpoint(ctx context.Context) (*verify.Checkpoint, error) {
	text, err := l.reader.ReadCheckpoint(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	at, err := verify.ParseCheckpoint(text, l.o.Keys, l.o.Origin)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeignLog, err)
	}
	return at, nil
}

// Prove returns the inclusion proof of a record, waiting until a checkpoint
// that covers it is published or ctx ends.
func (l *Log) Prove(ctx context.Context, index uint64) (*verify.Proof, error) {
	for {
		at, err := l.Checkpoint(ctx)
		if err != nil {
			return nil, err
		}
		if index < at.Size {
			return verify.Prove(ctx, l.Source(), l.o.Keys, l.o.Origin, index)
		}
		select {
		case <-ctx.Done():
			return nil, unavailable(ctx.Err())
		case <-time.After(checkpointInterval):
		}
	}
}

// Close waits until everything that was appended is committed to by a published
// checkpoint, and gives up the writer's lock. When ctx ends first, the rest goes
// on in the background, and the lock is given up once no write can follow.
func (l *Log) Close(ctx context.Context) error {
	l.state.Lock()
	if !l.closed {
		l.closed = true
		go l.release(context.WithoutCancel(ctx))
	}
	l.state.Unlock()
	select {
	case <-l.released:
		return l.closeErr
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
}

// release ends the background work in an order in which no record that Tessera
// has accepted is left without an answer, and no file is written after the lock
// is gone.
func (l *Log) release(ctx context.Context) {
	defer close(l.released)
	l.pending.Wait()
	if l.shutdown != nil {
		close(l.stop)
		<-l.committed
		if err := l.shutdown(ctx); err != nil { // bounded by Tessera
			l.closeErr = unavailable(err)
		}
	}
	l.cancel()
	l.anchors.Wait()
	if err := l.lock.Close(); err != nil && l.closeErr == nil {
		l.closeErr = unavailable(err)
	}
}

// unavailable makes an error one of [audit.ErrUnavailable].
func unavailable(err error) error {
	if errors.Is(err, audit.ErrUnavailable) || errors.Is(err, audit.ErrInvalidRecord) {
		return err
	}
	return fmt.Errorf("%w: %w", audit.ErrUnavailable, err)
}
