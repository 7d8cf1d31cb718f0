// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command images builds the project's container images without a container
// engine: static binaries on an empty root file system, written as archives
// that containerd, kind and Docker load, or pushed to a registry.
//
// The same sources and the same Go toolchain give the same digests, so that
// what a manifest names by digest can be rebuilt and compared. With
// -reproducible this holds across machines and checkout folders too.
package main
