// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"

	"github.com/assent-dev/assent/internal/attest"
)

// report is how an effect ended, before it is cut to the ticket's limits.
type report struct {
	outcome    attest.Outcome
	reason     Reason
	exitCode   *int32
	httpStatus *int32
	// stdout is the body for HTTP and MCP effects. nil means no output.
	stdout, stderr *capture
	// complete says that the end of both outputs of a program was seen.
	complete  bool
	mediaType string
	// cause is for the runner's own log. It names no values.
	cause error
}

// refused reports an effect that has not begun.
func refused(reason Reason, cause error) report {
	return report{outcome: attest.OutcomeRefused, reason: reason, cause: cause}
}

// refusal is an error that already knows its reason.
type refusal struct {
	reason Reason
	cause  error
}

func (r *refusal) Error() string { return fmt.Sprintf("%s: %v", r.reason, r.cause) }
func (r *refusal) Unwrap() error { return r.cause }

// refuse makes a refusal; the text must not contain values.
func refuse(reason Reason, format string, args ...any) error {
	return &refusal{reason: reason, cause: fmt.Errorf(format, args...)}
}
