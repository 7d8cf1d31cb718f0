// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
)

// evaluator asks the policies that could match one request. It serves one
// decision and one goroutine.
type evaluator struct {
	request     *request
	policies    []*statement
	others      []*statement // that ask for another principal, to explain with
	expired     func() bool
	fingerprint string
	engine      Engine

	current  *statement // being evaluated
	timedOut bool
}

// outcome is one evaluation of all policies.
type outcome struct {
	approved bool
	permits  []string
	forbids  []string
	failure  Reason // PolicyError, PolicyPanic, PolicyTimeout, or empty
	errors   []EvaluationError
}

func (o *outcome) bad() bool    { return o.failure != "" }
func (o *outcome) allows() bool { return !o.bad() && len(o.forbids) == 0 && len(o.permits) > 0 }

// All yields the policies to cedar-go, one at a time, and stops when the time
// is over. It also remembers which one is at work, for the case that it panics.
func (e *evaluator) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		for _, s := range e.policies {
			e.current = s
			if e.expired != nil && e.expired() {
				e.timedOut = true
				return
			}
			if !yield(cedar.PolicyID(s.id), s.policy) {
				return
			}
		}
	}
}

// evaluate asks all policies once, as if the call were approved or not.
func (e *evaluator) evaluate(approved bool) outcome {
	o := e.ask(e.request, e.request.evaluation(approved, e.fingerprint))
	o.approved = approved
	return o
}

// ask puts one request before all policies. cedar-go reports a condition that
// failed and goes on without the policy; here it fails the evaluation.
func (e *evaluator) ask(entities types.EntityGetter, request types.Request) (o outcome) {
	e.current, e.timedOut = nil, false
	defer func() {
		// The value of the panic is dropped: it may quote an argument.
		if recover() != nil {
			o = outcome{failure: ReasonPolicyPanic, errors: []EvaluationError{
				{Policy: e.current.id, Message: "the evaluation panicked; report this with the text of the policy"},
			}}
		}
	}()
	decision, diagnostic := e.engine.orCedar()(e, entities, request)
	if e.timedOut {
		o.failure = ReasonPolicyTimeout
		o.errors = []EvaluationError{{Policy: e.current.id, Message: "the time for the decision ran out before this policy"}}
		return o
	}
	for _, one := range diagnostic.Errors {
		o.failure = ReasonPolicyError
		o.errors = append(o.errors, EvaluationError{Policy: string(one.PolicyID), Message: conditionError(one)})
	}
	if ids := reasonIDs(diagnostic.Reasons); decision == types.Allow {
		o.permits = ids
	} else {
		o.forbids = ids
	}
	slices.SortFunc(o.errors, byPolicy)
	return o
}

// reasonIDs lists the policies of reasons, sorted; nil if there are none.
func reasonIDs(reasons []types.DiagnosticReason) []string {
	if len(reasons) == 0 {
		return nil
	}
	ids := make([]string, 0, len(reasons))
	for _, one := range reasons {
		ids = append(ids, string(one.PolicyID))
	}
	slices.Sort(ids)
	return ids
}

func byPolicy(a, b EvaluationError) int { return strings.Compare(a.Policy, b.Policy) }

// conditionError words an error of cedar-go.
func conditionError(e types.DiagnosticError) string {
	return fmt.Sprintf("the condition could not be evaluated (policy at line %d, column %d): %s",
		e.Position.Line, e.Position.Column, withoutValues(e.Message))
}

// withoutValues takes from an error of cedar-go what cannot hold an argument:
// its errors also quote numbers that overflowed and texts that did not parse.
// What a type is called, and which attribute the policy asked for, is safe.
func withoutValues(message string) string {
	if strings.HasPrefix(message, "type error: ") {
		return message
	}
	if _, attribute, ok := strings.Cut(message, "does not have the attribute "); ok {
		return "the attribute " + attribute + " is missing; test it with \"has\" first"
	}
	for _, known := range [...]string{
		"integer overflow", "error parsing ip value", "error parsing decimal value", "error parsing datetime value",
		"error parsing duration value", "does not have the tag", "does not exist", "wrong number of arguments", "out of range",
	} {
		if strings.Contains(message, known) {
			return strings.Replace(known, "does not", "an entity does not", 1)
		}
	}
	return "the evaluation failed"
}

// decision words an outcome.
func (e *evaluator) decision(o outcome) Decision {
	switch {
	case o.bad():
		return deny(o.failure, fmt.Sprintf("policy %s: %s", o.errors[0].Policy, o.errors[0].Message), o.errors...)
	case len(o.forbids) > 0:
		return Decision{
			Answer: Deny, Reason: ReasonForbidden, Policies: o.forbids,
			Message: "forbidden by policy " + strings.Join(o.forbids, ", "),
		}
	case len(o.permits) == 0:
		return Decision{
			Answer: Deny, Reason: ReasonNoPolicyPermits, NearMisses: e.nearMisses(o.approved),
			Message: "no policy permits the call",
		}
	default:
		return Decision{
			Answer: Allow, Reason: ReasonPermitted, Policies: o.permits,
			Message: "permitted by policy " + strings.Join(o.permits, ", "),
		}
	}
}
