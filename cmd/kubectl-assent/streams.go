// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
)

// Streams are where a command reads and writes, so that tests can stand in for
// a terminal.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Exit codes that scripts rely on.
const (
	exitDone    = 0
	exitError   = 1 // the command could not do its work
	exitRefused = 2 // it did, and the answer is no: refused or denied
)

// ExitError ends the program with a code of its own. A nil Err means that the
// command has already printed what there is to say.
type ExitError struct {
	Code int
	Err  error
}

// Error is the text of Err, or names the code.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// finish reports an error that has not been printed yet and returns the exit
// code of the program: 1 for everything that is not an [ExitError].
func finish(err error, streams Streams) int {
	if err == nil {
		return exitDone
	}
	code := exitError
	if exit, ok := errors.AsType[*ExitError](err); ok {
		code = exit.Code
		if exit.Err == nil {
			return code
		}
	}
	_, _ = fmt.Fprintf(streams.Err, "error: %v\n", err)
	return code
}
