// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runner is what runs inside the Pod of one call.
//
// It does five things in one order and never goes back: protect its own
// memory, prove that the network is closed where that is asked for, redeem the
// call, check that what it got is the call that was decided on, and only then
// carry out the one effect and report how it ended.
//
//	config → harden → reach endpoint → canary → redeem → verify → effect → result
//	         └───────────── no effect has begun ─────────────┘
//
// Redeeming is the one-way door. Before it, the runner may be started as often
// as Kubernetes likes. After it, no second runner gets the call, so that
// whatever happens to this one, the effect begins at most once.
//
// The package knows nothing of Kubernetes: everything it needs comes from the
// environment and from files. A tool shares the container with it, which is
// why the key for the result is kept in memory that the tool cannot read.
package runner
