// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit defines what Assent writes down before it acts: the types of
// audit record, their one encoding, and the interface of the journal that
// keeps them. The journal itself is in package journal.
//
// A record is an in-toto statement signed with package attest, one entry of a
// Merkle-tree log. Its subject is the fingerprint of the call it is about, or
// the record's own digest where there is no single call.
//
// Arguments that a contract marks as sensitive, and all tool output, appear
// only by digest; see [NewCallText].
//
// The package is pure: it has no clock, no log, no files and no Kubernetes.
package audit
