// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attest makes and checks the signed statements that carry trust from
// one part of Assent to another: the seal on a stored proposal, the seal on an
// approval receipt, the ticket a runner executes, and each audit record.
//
// Every statement is an in-toto Statement v1 in a DSSE envelope, signed with
// Ed25519. Its one subject is the SHA-256 fingerprint of the call (an audit
// record about no single call names its own digest), so a tool that knows
// DSSE and in-toto can check it without knowing Assent.
//
// Three things keep one kind of statement from passing as another: the payload
// type is part of what is signed, the predicate type inside the payload is
// compared, and the subject is compared with what the caller expects.
//
// Decoding is strict everywhere. A text is accepted only when encoding what
// was read gives the same bytes again, which rules out duplicate, unknown and
// case-variant members, null in place of a value, trailing data and white
// space without a list of special cases.
//
// The package is pure: it has no clock, no log, no network and no Kubernetes.
package attest
