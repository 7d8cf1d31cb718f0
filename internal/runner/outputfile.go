// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
)

// readOutputFile makes the file of the effect the output of a program that
// succeeded. The program wrote the file and everything on the way to it, so
// that no symbolic link is followed: it could lead to what only the runner may
// read. Nothing of the program runs any more.
func (c commandRunner) readOutputFile(file string, r report) report {
	content := newCapture(c.limits.OutputMaxBytes, c.limits.StatusMaxBytes)
	err := copyFile(content, c.work, strings.TrimPrefix(file, homeDir+"/"))
	switch {
	case err == nil:
		r.stdout = content
		return r
	case errors.Is(err, errOutputTooLarge):
		r.stdout = content
		return failedAfter(r, ReasonOutputTooLarge, err)
	case errors.Is(err, unix.ENOENT):
		return failedAfter(r, ReasonOutputFileMissing, errors.New("command: the program ended with exit code 0 and left no output file"))
	default:
		return failedAfter(r, ReasonOutputFileUnusable, err)
	}
}

// failedAfter turns the report of a program that ended by itself into a failure.
func failedAfter(r report, reason Reason, cause error) report {
	r.outcome, r.reason, r.cause = attest.OutcomeFailed, reason, cause
	return r
}

// checkOutputFile refuses an effect that preparation would have refused.
func checkOutputFile(file string) error {
	if file != "" && !contract.IsOutputFile(file) {
		return refuse(ReasonEffectInvalid, "command: outputFile is not a path below %s", homeDir)
	}
	return nil
}

// copyFile copies a regular file below a directory.
func copyFile(to io.Writer, dir, below string) error {
	file, err := openBelow(dir, below)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.New("command: outputFile is not a regular file")
	}
	if _, err := io.Copy(to, file); err != nil {
		return fmt.Errorf("command: reading outputFile: %w", err)
	}
	return nil
}

// openBelow opens a file step by step, each from the directory before it, so
// that nothing on the way can be a symbolic link.
func openBelow(dir, below string) (*os.File, error) {
	const directory = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	at, err := unix.Open(dir, directory&^unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("command: opening the directory of the call: %w", err)
	}
	defer func() { _ = unix.Close(at) }()
	steps := strings.Split(below, "/")
	for _, step := range steps[:len(steps)-1] {
		next, err := unix.Openat(at, step, directory, 0)
		if err != nil {
			return nil, fmt.Errorf("command: opening a directory of outputFile: %w", err)
		}
		_ = unix.Close(at)
		at = next
	}
	// Without waiting: the program may have left a pipe there.
	const reading = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
	fd, err := unix.Openat(at, steps[len(steps)-1], reading, 0)
	if err != nil {
		return nil, fmt.Errorf("command: opening outputFile: %w", err)
	}
	return os.NewFile(uintptr(fd), "outputFile"), nil
}
