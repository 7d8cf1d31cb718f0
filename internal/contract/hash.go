// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import "github.com/assent-dev/assent/snapshot"

// resolved is everything that a contract's hash covers.
type resolved struct {
	name        string
	manifest    Manifest
	types       map[string]ArgumentType
	scopeName   string
	scope       *Scope
	runnerImage string
}

// contractHash is the hash of kind "contract" over
//
//	{"manifest":<spec with defaults>,"name":…,"runnerImage":…,
//	 "scope":{"name":…,"spec":…},"types":{NAME:<spec>,…}}
//
// in which types are those that an argument's chain goes through, and scope is
// absent when the contract uses none. The namespace is not part of it: the
// fingerprint binds it.
func contractHash(r resolved) (string, error) {
	manifest, err := toTree(r.manifest)
	if err != nil {
		return "", err
	}
	types := map[string]any{}
	for name, t := range r.types {
		if types[name], err = toTree(t); err != nil {
			return "", err
		}
	}
	members := map[string]any{
		"name": r.name, "manifest": manifest, "types": types, "runnerImage": r.runnerImage,
	}
	if r.scope != nil {
		spec, err := toTree(r.scope)
		if err != nil {
			return "", err
		}
		members["scope"] = map[string]any{"name": r.scopeName, "spec": spec}
	}
	return snapshot.Hash("contract", members)
}
