// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package model checks the protocol by which a call is granted, handed out and
// ended. It is a small model of it, not the code: two controllers, two replicas
// of the execution endpoint, two Pods of the Job and one that is nobody's, two
// receipts, and a world that crashes, reads late, loses answers, deletes and
// creates anew. The test visits every state that can be reached and asks in
// each whether an invariant is broken. Each guard of the protocol can be taken
// out of the model; that something then breaks shows that the guard is needed
// and that the model would notice.
//
// What is modelled is docs/execution.md; "Follow" and "Decide" in
// internal/proposal and the endpoint's steps in execution are its code.
package model
