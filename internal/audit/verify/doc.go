// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verify reads an audit log with nothing but its public files and the
// public keys: it checks the log as a whole, reads single records, and makes
// and checks inclusion proofs.
//
// A log is a directory of static files in the C2SP tlog-tiles layout
// (https://c2sp.org/tlog-tiles), on disk or behind any web server.
package verify
