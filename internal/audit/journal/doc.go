// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package journal keeps audit records in a Merkle-tree log on a file system,
// with Tessera's POSIX storage. One process writes at a time; anybody may read
// the files, see package verify.
//
// A record is acknowledged when it is on disk and integrated into the tree. The
// checkpoint that commits to it is signed and published within a fraction of a
// second after that, also when the process dies in between: the tree is on disk,
// and the next writer publishes it.
package journal
