// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fault lets operators die, lose answers and be overtaken at every
// write to the API server and every request of a runner, and checks afterwards
// what is said of it all. API server and runner are real; Jobs become Pods by a
// stand-in for the kubelet. What happened is recorded, and the invariants are
// checked on the record alone. "make test-api" runs the short set, "make
// test-long" everything.
package fault
