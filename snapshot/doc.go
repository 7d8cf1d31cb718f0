// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot freezes the arguments of a tool call into one text.
//
// Between the moment a policy or a person looks at a call and the moment it
// runs, the arguments must not change, and everybody must be able to check that
// they did not. A Go value cannot give that: it is a graph of references that
// others may hold, and the same JSON text means different values to different
// parsers. A canonical text can. This package is the one place where raw
// arguments become that text, and the reference for doing the same in another
// language (docs/snapshot.md).
//
// The way of a call through the package ([Prepare]):
//
//	raw text
//	   │  Decode: size, UTF-8, strict JSON, limits
//	   ▼
//	requested value
//	   │  the schema step, exactly once
//	   ▼
//	effective value
//	   │  New: detach, validate the copy, write it as RFC 8785 says, self-check, hash
//	   ▼
//	Snapshot
//
// A [Snapshot] is a string and its digest. Policy, approver and executor each get
// a view, decoded afresh from that string, and [Snapshot.Matches] tells whether a
// policy changed its own. [ProposalHash] and [Hash] bind the text to everything
// else a decision rests on.
//
// The package implements RFC-0016, "Authorized Tool Argument Snapshots", on top
// of RFC 8785 (canonical JSON), RFC 8259 (JSON) and RFC 7493 (I-JSON). It is
// stricter than all of them wherever two readers could otherwise see two
// values; an error says where, never with what content. It knows nothing of
// Kubernetes and keeps nothing between calls but memory to use again.
package snapshot
