// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/cedar-policy/cedar-go/types"

// index finds the policies that could match a request by the action and the
// resource of their scope, so that a decision costs what the tool's own
// policies cost. "==" and "in" share a place: what is looked up is an entity
// with all that it lies in, and the evaluation tells the two apart.
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
// no action or no resource may have none.
func (s *scope) keys() []indexKey {
	actions, ok := s.action.fixed()
	if !ok {
		actions = []types.EntityUID{{}}
	}
	resources, ok := s.resource.fixed()
	if !ok {
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

// candidates appends the policies that could match, each once. actions and
// resources hold the entity and what it lies in; with us, nothing.
func (ix index) candidates(to []*statement, actions, resources []types.EntityUID) []*statement {
	for _, action := range actions {
		to = ix.forAction(to, action, resources)
	}
	return ix.forAction(to, types.EntityUID{}, resources)
}

func (ix index) forAction(to []*statement, action types.EntityUID, resources []types.EntityUID) []*statement {
	for _, resource := range resources {
		to = append(to, ix[indexKey{action: action, resource: resource}]...)
	}
	to = append(to, ix[indexKey{action: action, is: resources[0].Type}]...)
	return append(to, ix[indexKey{action: action}]...)
}
