// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/assent-dev/assent/snapshot"
)

// Options of one decision.
type Options struct {
	// Expired says that the time for the decision has run out. It is asked
	// before each policy: cedar-go cannot be interrupted inside one, which the
	// limits on texts and arguments keep short. Nil means no limit.
	Expired func() bool
	// Observers see the arguments while the policies are asked, each in a fresh
	// view of its own. One that changes its view makes the call denied: it is
	// part of the policy, and policy must not edit what it decides on.
	Observers []func(arguments any)
}

// Decide answers for one call. It never fails: whatever goes wrong is a Deny
// that says so. It is safe for concurrent use, and a nil Set denies.
func (s *Set) Decide(call Call, options Options) Decision {
	if s == nil {
		return deny(ReasonPolicySetNotLoaded, "the policies have not been loaded yet; the call can be proposed again")
	}
	d := s.decide(&call, &options)
	d.SetDigest = s.Digest(call.Tool.Namespace)
	return d
}

func (s *Set) decide(call *Call, options *Options) (d Decision) {
	// Nothing outside an evaluation is known to panic, but the answer must not
	// depend on that.
	defer func() {
		if recover() != nil {
			d = deny(ReasonPolicyPanic, "the decision panicked; report this with the versions in use")
		}
	}()
	if d, bad := s.unreadable(call.Tool.Namespace); bad {
		return d
	}
	if call.Approved && call.ApprovedFingerprint != call.Fingerprint {
		return deny(ReasonApprovalMismatch, "the approval is for another call; approve this one")
	}
	checks, tool := s.checksFor(&call.Tool)
	r, err := newRequest(call, tool)
	if err != nil {
		refused := asRefusal(err)
		return deny(refused.reason, refused.message)
	}
	relevant, others := s.relevant(call.Tool.Namespace, r)
	if d, bad := unhealthy(checks, relevant); bad {
		return d
	}
	if d, bad := badSession(call, r, relevant); bad {
		return d
	}
	// Before anybody else sees the call: nothing is read from it afterwards.
	r.narrow(relevant)
	if d, bad := observe(call, options); bad {
		return d
	}
	e := &evaluator{request: r, policies: relevant, others: others, expired: options.Expired, fingerprint: call.Fingerprint, engine: s.engine}
	return e.answer(call)
}

// unreadable denies everything while a text of the set cannot be read.
func (s *Set) unreadable(namespace string) (Decision, bool) {
	for _, p := range s.partsFor(namespace) {
		if len(p.broken) > 0 {
			var errors []EvaluationError
			for _, c := range p.broken {
				errors = append(errors, EvaluationError{Policy: c.Key().String(), Message: c.problems[0].advice()})
			}
			return deny(ReasonPolicyUnhealthy, fmt.Sprintf(
				"policy %s cannot be read, so that nothing is known to be permitted; fix or delete it", p.broken[0].Key()), errors...), true
		}
		if len(p.sources) > s.limits.Objects {
			return deny(ReasonPolicySetTooLarge, fmt.Sprintf(
				"%d policy objects are in force where %d are the limit; merge or delete some", len(p.sources), s.limits.Objects)), true
		}
	}
	return Decision{}, false
}

// relevant lists the policies whose scope accepts the request, always in the
// same order, and others that accept only its action and its resource.
func (s *Set) relevant(namespace string, r *request) (relevant, others []*statement) {
	found := make([]*statement, 0, 32)
	actions, resources := []types.EntityUID{r.action}, []types.EntityUID{r.resource}
	for _, p := range s.partsFor(namespace) {
		found = p.index.candidates(found, actions, resources)
	}
	relevant = found[:0]
	for _, one := range found {
		switch {
		case !one.scope.accepts(r):
		case one.scope.principal.accepts(r.principal.UID, r.principal.Parents):
			relevant = append(relevant, one)
		default:
			others = append(others, one)
		}
	}
	return relevant, others
}

// unhealthy denies when a policy failed validation that could match the call.
func unhealthy(checks *checks, relevant []*statement) (Decision, bool) {
	var errors []EvaluationError
	var last *Compiled
	var known verdicts
	for _, s := range relevant {
		if s.source != last {
			last, known = s.source, checks.verdictsOf(s.source)
		}
		for _, p := range checks.verdict(s, known) {
			if p.Severity == SeverityError {
				errors = append(errors, EvaluationError{Policy: s.id, Message: p.advice()})
				break
			}
		}
	}
	if len(errors) == 0 {
		return Decision{}, false
	}
	slices.SortFunc(errors, byPolicy)
	return deny(ReasonPolicyUnhealthy, fmt.Sprintf(
		"policy %s could match the call, but failed validation; fix it", errors[0].Policy), errors...), true
}

// observe shows the arguments to the observers and looks for changes.
func observe(call *Call, options *Options) (Decision, bool) {
	if len(options.Observers) == 0 {
		return Decision{}, false
	}
	arguments, err := snapshot.Parse(call.ArgsCanonicalJSON)
	if err != nil {
		return deny(ReasonNotRepresentable, err.Error()), true
	}
	for _, observer := range options.Observers {
		view := arguments.View()
		observer(view)
		if err := arguments.Matches(view); err != nil {
			return deny(ReasonPolicyMutatedArguments, err.Error()), true
		}
	}
	return Decision{}, false
}

// answer gives one of the three answers. A call without approval is asked about
// twice: what is permitted only once approved needs approval, and what is not
// even permitted then is denied. Whatever goes wrong in either evaluation
// denies.
func (e *evaluator) answer(call *Call) Decision {
	if call.Approved {
		return e.decision(e.evaluate(true))
	}
	plain := e.evaluate(false)
	allowed := plain.allows()
	if plain.bad() || (allowed && !call.Tool.HumanApproval) {
		return e.decision(plain)
	}
	approved := e.evaluate(true)
	if !approved.allows() {
		return e.decision(approved)
	}
	reason, message := ReasonApprovalRequired, "the policies permit the call once it is approved"
	if allowed {
		reason, message = ReasonHumanApprovalRequired, "the policies permit the call, and its contract demands a person's approval"
	}
	return Decision{Answer: NeedsApproval, Reason: reason, Message: message, Policies: approved.permits}
}
