// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// scope is the part of a policy in front of its conditions, in a form that
// answers questions without an evaluation.
type scope struct {
	principal constraint
	action    constraint
	resource  constraint
}

// constraint is what the scope says of one of principal, action and resource.
// A constraint without anything set accepts every entity.
type constraint struct {
	// is demands a type.
	is types.EntityType
	// equal demands this entity; in demands one of these entities or something
	// inside one of them.
	equal *types.EntityUID
	in    []types.EntityUID
	// narrow tells "in []", which accepts nothing, from no constraint.
	narrow bool
}

func readScope(p *cedar.Policy) scope {
	tree := (*ast.Policy)(p.AST())
	return scope{
		principal: readConstraint(tree.Principal),
		action:    readConstraint(tree.Action),
		resource:  readConstraint(tree.Resource),
	}
}

func readConstraint(node ast.IsScopeNode) constraint {
	switch n := node.(type) {
	case ast.ScopeTypeEq:
		return constraint{equal: &n.Entity, narrow: true}
	case ast.ScopeTypeIn:
		return constraint{in: []types.EntityUID{n.Entity}, narrow: true}
	case ast.ScopeTypeInSet:
		return constraint{in: slices.Clone(n.Entities), narrow: true}
	case ast.ScopeTypeIs:
		return constraint{is: n.Type, narrow: true}
	case ast.ScopeTypeIsIn:
		return constraint{is: n.Type, in: []types.EntityUID{n.Entity}, narrow: true}
	default: // ast.ScopeTypeAll
		return constraint{}
	}
}

// accepts says whether an entity with these parents satisfies the constraint.
// Parents are complete: none of our entities has grandparents.
func (c *constraint) accepts(uid types.EntityUID, parents types.EntityUIDSet) bool {
	switch {
	case !c.narrow:
		return true
	case c.is != "" && c.is != uid.Type:
		return false
	case c.equal != nil:
		return *c.equal == uid
	case c.in == nil:
		return c.is != ""
	}
	for _, ancestor := range c.in {
		if ancestor == uid || parents.Contains(ancestor) {
			return true
		}
	}
	return false
}

// fixed lists the entities that an accepted one must be or lie in; ok is false
// when there is no such list.
func (c *constraint) fixed() (uids []types.EntityUID, ok bool) {
	switch {
	case c.equal != nil:
		return []types.EntityUID{*c.equal}, true
	case c.in == nil:
		return nil, false
	}
	for _, uid := range c.in {
		uids = appendNew(uids, uid)
	}
	return uids, true
}

// accepts says whether the scope accepts action and resource of the request.
func (s *scope) accepts(r *request) bool {
	return s.action.accepts(r.action, zeroParents) && s.resource.accepts(r.resource, zeroParents)
}
