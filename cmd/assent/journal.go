// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
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
	keys    func() *attest.Keyring
	timeout time.Duration
	open    atomic.Pointer[log.Log]
}

// Append implements [audit.Journal].
func (j *journal) Append(ctx context.Context, r audit.Record) (uint64, error) {
	l := j.open.Load()
	if l == nil {
		return 0, fmt.Errorf("%w: the log is not open yet", audit.ErrUnavailable)
	}
	return l.Append(ctx, r)
}

// Start keeps the log open until the context ends.
func (j *journal) Start(ctx context.Context) error {
	logger := ctrl.LoggerFrom(ctx).WithName("audit")
	for ctx.Err() == nil {
		l, err := log.Open(ctx, log.Options{
			Dir: j.dir, Origin: j.origin, Keys: j.keys(), Now: time.Now, Timeout: j.timeout,
			Report: func(err error) { logger.Error(err, "an anchor of the audit log cannot be reached") },
		})
		if err == nil {
			j.open.Store(l)
			<-ctx.Done()
			j.open.Store(nil)
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.timeout)
			defer cancel()
			return l.Close(closing)
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

// NeedLeaderElection says that the leader writes the log.
func (j *journal) NeedLeaderElection() bool { return true }
