// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy decides calls with Cedar policies. It wraps cedar-go so that
// every way in which a policy can fail ends in a denial that names the policy:
// cedar-go itself skips a forbid whose condition fails, and goes on.
//
// The way of a policy text: [Compile] bounds and parses it, a [Set] holds all
// texts in force and indexes them, [Set.WithTools] checks them against the
// schema of a namespace's tools, and [Set.Decide] answers for one call. A Set
// never changes; [Store] swaps one for the next.
//
// The package is pure: no clock, no log, no client, and the same input always
// gives the same answer.
package policy
