// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract turns an agent's arguments into exactly one call.
//
// [Compile] reads a tool's manifest with everything it refers to, once.
// [Contract.Prepare] then takes the raw arguments of one proposal through
// strict decoding, the argument types, the scope and the templates of the
// effect, and returns the canonical arguments, the resolved effect and their
// hashes. Defaults, normalisation and clamps happen there and nowhere else, so
// that policy, approver and runner look at what will run.
//
// Values of an agent never become structure: they are not split into words, not
// read as templates, not evaluated, and they are escaped for the place in which
// they stand. Nothing in an effect depends on the time, on chance or on the
// machine.
//
// The package knows nothing of Kubernetes. Its types have the JSON form of the
// specs in api/v1alpha1.
package contract
