// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
)

// usedNames lists the entities and types that a policy names, in its scope and
// in its conditions.
type usedNames struct {
	entities []types.EntityUID
	types    []types.EntityType
}

func (s *statement) usedNames() usedNames {
	var u usedNames
	for _, c := range []constraint{s.scope.principal, s.scope.action, s.scope.resource} {
		if c.is != "" {
			u.types = append(u.types, c.is)
		}
		if c.equal != nil {
			u.entities = append(u.entities, *c.equal)
		}
		u.entities = append(u.entities, c.in...)
	}
	for _, condition := range s.tree().Conditions {
		ast.Inspect(ast.NewNode(condition.Body), func(n ast.IsNode) bool {
			switch n := n.(type) {
			case ast.NodeValue:
				if uid, ok := n.Value.(types.EntityUID); ok {
					u.entities = append(u.entities, uid)
				}
			case ast.NodeTypeIs:
				u.types = append(u.types, n.EntityType)
			case ast.NodeTypeIsIn:
				u.types = append(u.types, n.EntityType)
			default: // holds no name itself
			}
			return true
		})
	}
	return u
}

// tree is the syntax tree of the policy, which must not be changed.
func (s *statement) tree() *ast.Policy { return (*ast.Policy)(s.policy.AST()) }

// unknown lists the names that a policy uses and the namespace does not define.
func (c *checks) unknown(used usedNames) *otherNames {
	u := &otherNames{}
	for _, t := range used.types {
		if !c.knownType(t) && !isAction(t) {
			u.types = appendNew(u.types, t)
		}
	}
	for _, uid := range used.entities {
		switch {
		case isAction(uid.Type):
			if c.actions[uid] == nil {
				u.actions = appendNew(u.actions, uid)
			}
		case !c.knownType(uid.Type):
			u.types = appendNew(u.types, uid.Type)
		case c.resourceTypes[uid.Type] && !c.resources[uid]:
			u.tools = appendNew(u.tools, uid)
		}
	}
	return u
}

// besides lists the names that a policy uses and the schema of one action does
// not hold: those of other actions, and those that nothing defines.
func (a *actionTypes) besides(used usedNames) *otherNames {
	o := &otherNames{}
	addType := func(t types.EntityType) {
		if !isPrincipal(t) && !isAction(t) && !slices.Contains(a.resources, t) {
			o.types = appendNew(o.types, t)
		}
	}
	for _, t := range used.types {
		addType(t)
	}
	for _, uid := range used.entities {
		if isAction(uid.Type) && uid != a.uid {
			o.actions = appendNew(o.actions, uid)
		}
		addType(uid.Type)
	}
	return o
}

func isPrincipal(t types.EntityType) bool {
	return t == typeUser || t == typeServiceAccount || t == typeGroup
}

func (c *checks) knownType(t types.EntityType) bool {
	return isPrincipal(t) || c.resourceTypes[t]
}

// otherNames are names that a policy uses and a schema does not hold.
type otherNames struct {
	types   []types.EntityType
	actions []types.EntityUID
	tools   []types.EntityUID
}

// isAction says whether a type is that of actions.
func isAction(t types.EntityType) bool {
	_, name := splitPath(string(t))
	return name == string(typeAction)
}

func appendNew[T comparable](list []T, one T) []T {
	if slices.Contains(list, one) {
		return list
	}
	return append(list, one)
}
