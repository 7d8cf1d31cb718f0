// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	log "github.com/assent-dev/assent/internal/audit/journal"
)

// journalRetry is how long to wait before opening the log is tried again.
const journalRetry = 2 * time.Second

// journal opens the audit log on the replica that leads and closes it when
// that ends. While it is not open every record is refused, and with it every
// step that a record must precede. The log's own lock, not the lease, makes
// sure that there is one writer.
type journal struct {
	dir     string
	origin  string
	version string
	keys    func() *attest.Keyring
	timeout time.Duration
	epoch   int64
	anchors []string
	open    atomic.Pointer[log.Log]
	// restored is set while an anchor remembers more than the log has.
	restored atomic.Bool
}

// Append implements [audit.Journal].
func (j *journal) Append(ctx context.Context, r audit.Record) (uint64, error) {
	l, err := j.opened()
	if err != nil {
		return 0, err
	}
	return l.Append(ctx, r)
}

// AppendAll implements [audit.Journal].
func (j *journal) AppendAll(ctx context.Context, records []audit.Record) ([]uint64, error) {
	l, err := j.opened()
	if err != nil {
		return nil, err
	}
	return l.AppendAll(ctx, records)
}

func (j *journal) opened() (*log.Log, error) {
	if l := j.open.Load(); l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("%w: the log is not open yet", audit.ErrUnavailable)
}

// wasRestored says that the log was put back to an earlier state.
func (j *journal) wasRestored() string {
	if !j.restored.Load() {
		return ""
	}
	return fmt.Sprintf("an anchor remembers records that the audit log does not have: it was cut back or restored; "+
		"raise the operator's --epoch above %d to go on, which voids every earlier call and receipt", j.epoch)
}

// Start keeps the log open until the context ends.
func (j *journal) Start(ctx context.Context) error {
	logger := ctrl.LoggerFrom(ctx).WithName("audit")
	for ctx.Err() == nil {
		l, err := log.Open(ctx, log.Options{
			Dir: j.dir, Origin: j.origin, Keys: j.keys(), Now: time.Now, Timeout: j.timeout, Software: j.version,
			Anchors: j.openAnchors(),
			Report:  func(err error) { logger.Error(err, "an anchor of the audit log cannot be reached") },
		})
		j.restored.Store(errors.Is(err, log.ErrRestored))
		if err == nil {
			err = j.noteEpoch(ctx, l)
		}
		if err == nil {
			if err := j.keep(ctx, l); err != nil || ctx.Err() != nil {
				return err
			}
			continue
		}
		if l != nil {
			err = errors.Join(err, l.Close(ctx))
		}
		if ctx.Err() == nil {
			logger.Error(err, "opening the audit log; nothing is granted until it is open")
		}
		select {
		case <-ctx.Done():
		case <-time.After(journalRetry):
		}
	}
	return nil
}

// epochFile keeps, beside the log, the epoch that its last writer had.
const epochFile = "epoch"

// noteEpoch records that the operator was told to begin a new epoch.
func (j *journal) noteEpoch(ctx context.Context, l *log.Log) error {
	file := log.FileAnchor(filepath.Join(j.dir, epochFile))
	before, err := loadEpoch(ctx, file)
	if err != nil || before >= j.epoch {
		return err
	}
	changed := audit.EpochChanged{From: before, To: j.epoch, By: attest.User{Username: "the operator's --epoch"}}
	if _, err := l.Append(ctx, audit.Record{Time: time.Now(), Data: changed}); err != nil {
		return fmt.Errorf("recording the new epoch: %w", err)
	}
	return storeEpoch(ctx, file, j.epoch)
}

// keep serves the log until the context ends or the signing key was rotated: a
// log signs with the keys that it was opened with, and must be opened anew.
func (j *journal) keep(ctx context.Context, l *log.Log) error {
	signing := j.keys().SigningKeyID()
	j.open.Store(l)
	for ctx.Err() == nil && j.keys().SigningKeyID() == signing {
		select {
		case <-ctx.Done():
		case <-time.After(journalRetry):
		}
	}
	j.open.Store(nil)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.timeout)
	defer cancel()
	return l.Close(closing)
}

// NeedLeaderElection says that the leader writes the log.
func (j *journal) NeedLeaderElection() bool { return true }

func (j *journal) openAnchors() []log.Anchor {
	var out []log.Anchor
	web := &http.Client{Timeout: j.timeout}
	for _, at := range j.anchors {
		place := func(suffix string) log.Anchor { return log.FileAnchor(at + suffix) }
		if strings.HasPrefix(at, "https://") || strings.HasPrefix(at, "http://") {
			place = func(suffix string) log.Anchor { return log.HTTPAnchor(at+suffix, web) }
		}
		out = append(out, &epochAnchor{Anchor: place(""), mark: place(".epoch"), epoch: j.epoch})
	}
	return out
}
