// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Harden keeps the process's memory to itself: it cannot be traced or read
// through /proc by a program of the same user, and a crash leaves no image of
// it. The tool runs as the same user in the same container, and this memory
// holds the key of the result and the secrets of other variables.
func Harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("making the process not dumpable: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("forbidding core files: %w", err)
	}
	return nil
}
