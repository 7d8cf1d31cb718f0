// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lint finds manifests that work and should not be written like that.
//
// A contract that compiles is enforced, but it may still leave more to agents
// than its author meant: a free text where a program reads a subcommand, a
// pattern that matches anything after the intended part, a scope that is the
// whole internet. Every rule says why it exists. Nothing here changes what a
// call may do.
package lint
