// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package job builds the Job of a call and tells whether a live Pod is the one
// that was built.
//
// [Build] is a fixed template with a few values in it. A manifest chooses
// images, sizes, a runtime class and names of Secrets; there is no field with
// which it could choose a volume, a user or a capability, and none that holds
// any part of an agent's arguments: the call reaches the Pod later, as a
// signed ticket.
//
// [Diff] is the other half. Between the Job and the running Pod stand
// controllers, admission and whoever may write Pods. Diff compares every field
// of the Pod and allows only what Kubernetes itself is known to add. A field
// that it has no rule for is a difference.
//
// The package is pure: no clock, no client, no log.
package job
