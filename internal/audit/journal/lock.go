// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockName is not part of the tlog-tiles layout and not a file that Tessera
// locks: closing any descriptor of such a file would drop Tessera's lock.
const lockName = ".assent-writer.lock"

// lockRetry is how often a waiting writer looks whether the other has gone.
const lockRetry = 50 * time.Millisecond

// acquireLock takes the writer's lock of a log directory, waiting for it until
// ctx ends. The kernel drops the lock when the process dies, so a killed leader
// does not keep its successor out.
func acquireLock(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking the log: %w", err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ErrLocked, f.Close())
		case <-time.After(lockRetry):
		}
	}
}
