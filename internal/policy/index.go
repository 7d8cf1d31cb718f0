// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/cedar-policy/cedar-go/types"

// index finds the policies that could match a request by the action and the
// resource of their scope, so that a decision costs what the tool's own
// policies cost. Actions and resources have no parents, so that "in" is "==".
type index map[indexKey][]*statement

// indexKey holds what a scope fixes; what is empty it leaves open.
type indexKey struct {
	action   types.EntityUID
	resource types.EntityUID
	is       types.EntityType
}

func newIndex(sources []*Compiled) index {
	ix := index{}
	for _, source := range sources {
		for _, s := range source.statements {
			for _, key := range s.scope.keys() {
				ix[key] = append(ix[key], s)
			}
		}
	}
	return ix
}

// keys lists the places of a policy in the index. A policy whose scope accepts
// no action or no resource has none.
func (s scope) keys() []indexKey {
	actions, fixed := s.action.single()
	if !fixed {
		actions = []types.EntityUID{{}}
	}
	resources, fixed := s.resource.single()
	if !fixed {
		resources = []types.EntityUID{{}}
	}
	keys := make([]indexKey, 0, len(actions)*len(resources))
	for _, action := range actions {
		for _, resource := range resources {
			key := indexKey{action: action, resource: resource}
			if resource.IsZero() {
				key.is = s.resource.is
			}
			keys = append(keys, key)
		}
	}
	return keys
}

// candidates appends the policies that could match, each once.
func (ix index) candidates(to []*statement, action, resource types.EntityUID) []*statement {
	for _, a := range [...]types.EntityUID{action, {}} {
		to = append(to, ix[indexKey{action: a, resource: resource}]...)
		to = append(to, ix[indexKey{action: a, is: resource.Type}]...)
		to = append(to, ix[indexKey{action: a}]...)
	}
	return to
}
