// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing tells an OpenTelemetry collector of the steps of a call, from
// admission to its end, as the spans of one trace.
//
// The trace's ID is the ID of the call's seal, which is on the proposal and in
// each record of the audit log. The ID of the first span follows from it, so
// that every replica, also after a restart, hangs its spans below the same one
// and nothing has to be passed on. Neither can be chosen by whoever makes the
// call: a trace that an agent names is linked, never continued.
//
// A span says which call, which step, when, and the word for how it went. No
// span holds a message, an argument, an output or anything else that somebody
// wrote. Spans are a help and no proof: they may be lost, and nothing waits for
// them.
package tracing
