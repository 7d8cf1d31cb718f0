// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import "time"

const (
	// stderrMaxBytes is how much text of a program's standard error is
	// reported. What the ticket allows applies to standard output.
	stderrMaxBytes = 4 << 10

	// DefaultStartTimeout is for how long redeeming is tried where the Pod
	// does not say.
	DefaultStartTimeout = 5 * time.Minute
	// DefaultKillGrace is how long a program may take to end after TERM
	// before KILL.
	DefaultKillGrace = 10 * time.Second
	// DefaultDelivery is for how long the delivery of a result is tried.
	DefaultDelivery = 2 * time.Minute

	// attemptTimeout bounds one request to the execution service. It is longer
	// than the service takes at most, so that its answer is not thrown away.
	attemptTimeout = 30 * time.Second
	// The pause between attempts doubles from the first to the second.
	firstPause = 200 * time.Millisecond
	longPause  = 5 * time.Second

	// canaryTimeout is how long one connection that must fail is tried.
	canaryTimeout = 3 * time.Second
	// canaryPatience is how long a network may take to close: policies are
	// programmed on a node some time after a Pod has started there.
	canaryPatience = 15 * time.Second

	// closePatience is how long the end of an MCP session is waited for.
	closePatience = time.Second

	// maxTokenBytes bounds the token that is read from its file.
	maxTokenBytes = 64 << 10
)
