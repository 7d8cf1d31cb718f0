// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clad turns ToolClad manifests (.clad.toml), their project's types
// (toolclad.toml) and scope files into manifests, argument types and scopes.
//
// What a file says is carried over with ToolClad's meaning, which its
// documentation and reference runners define: the imported command starts the
// same words for the same arguments. What has no counterpart is an error that
// names the key and says what to do instead; nothing is dropped in silence.
package clad
