// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scope decides whether a network target lies inside what a ToolScope
// permits. It works on text alone: it resolves no names and opens no
// connections, so that the same call gets the same answer at admission, in
// tests and offline. Addresses behind a permitted name are checked again where
// the connection is made.
//
// There is one spelling per target. Everything that other parsers would read
// as the same host in another way is refused, never guessed at: numeric forms
// other than dotted-quad IPv4 (RFC 6943 section 3.1.1 lists the confusions),
// trailing dots, punycode, zones, underscores, non-ASCII letters.
package scope
