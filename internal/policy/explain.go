// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/assent-dev/assent/internal/policy/cedartext"
)

// Bounds of an explanation: it is stored with the call.
const (
	maxNearMisses     = 16
	maxConditionBytes = 256
)

// clauses are the parts of a policy's conditions that must all hold, each as a
// policy of its own. They are made when a denial is explained for the first
// time: most policies never need them.
type clauses struct {
	once sync.Once
	list []clause
}

type clause struct {
	pos    cedartext.Position
	text   string
	policy *cedar.Policy
}

// nearMisses names, for each permit of the action and the resource, the first
// part that did not hold: the principal of the scope, or a condition.
func (e *evaluator) nearMisses(approved bool) []NearMiss {
	var misses []NearMiss
	request := e.request.evaluation(approved, e.fingerprint)
	for _, s := range slices.Concat(e.policies, e.others) {
		if len(misses) == maxNearMisses || (e.expired != nil && e.expired()) {
			break
		}
		if s.policy.Effect() != types.Permit {
			continue
		}
		for _, part := range e.parts(s) {
			if part.policy == nil || e.fails(part, request) {
				misses = append(misses, NearMiss{Policy: s.id, Line: part.pos.Line, Column: part.pos.Column, Condition: part.text})
				break
			}
		}
	}
	slices.SortFunc(misses, func(a, b NearMiss) int { return strings.Compare(a.Policy, b.Policy) })
	return misses
}

// parts lists what must hold for a policy; a principal that does not match
// stands alone, without anything to evaluate.
func (e *evaluator) parts(s *statement) []clause {
	if s.scope.principal.accepts(e.request.principal.UID, e.request.principal.Parents) {
		return s.parts()
	}
	document, policy := s.document()
	return []clause{{pos: document.Pos(policy.Principal), text: shorten(document.Source(policy.Principal))}}
}

func (e *evaluator) fails(part clause, request types.Request) bool {
	decision, _ := e.engine.orCedar()(only{part.policy}, e.request, request)
	return decision == types.Deny
}

// only is a set of one policy.
type only struct{ policy *cedar.Policy }

// All yields the policy.
func (o only) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) { yield("part", o.policy) }
}

func (s *statement) parts() []clause {
	s.clauses.once.Do(func() { s.clauses.list = s.readParts() })
	return s.clauses.list
}

func (s *statement) readParts() []clause {
	document, policy := s.document()
	var list []clause
	for _, condition := range policy.Conditions {
		word, parts := "when", condition.Body.Conjuncts()
		if condition.Unless {
			word, parts = "unless", []*cedartext.Expr{condition.Body}
		}
		for _, part := range parts {
			source := document.Source(part)
			text := fmt.Sprintf("permit (principal, action, resource) %s { %s };", word, source)
			if condition.Unless {
				source = "unless { " + source + " }"
			}
			var policy cedar.Policy
			if policy.UnmarshalCedar([]byte(text)) == nil {
				list = append(list, clause{pos: document.Pos(part), text: shorten(source), policy: &policy})
			}
		}
	}
	return list
}

// shorten puts a text on one line, and cuts it.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxConditionBytes {
		return text
	}
	end := maxConditionBytes
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
