// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proposal maps the objects of api/v1alpha1 to the domain packages and
// holds the decisions about them: whether a seal or a receipt counts, and what
// happens next with a call. It reads no clock, has no client and does not log,
// so that every decision can be tested as a table.
package proposal
