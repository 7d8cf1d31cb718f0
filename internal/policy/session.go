// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/cedar-policy/cedar-go/types"
)

// badSession denies a call whose session lacks an attribute that a policy in
// scope requires, or has one of another type than the policy declares. Without
// a session there is no context.session, and nothing to check.
func badSession(call *Call, r *request, relevant []*statement) (Decision, bool) {
	if !call.HasSession {
		return Decision{}, false
	}
	var last *Compiled
	for _, s := range relevant {
		if s.source == last {
			continue
		}
		last = s.source
		for i := range last.source.SessionAttributes {
			attribute := &last.source.SessionAttributes[i]
			value, ok := r.session.Get(types.String(attribute.Name))
			switch {
			case !ok && attribute.Required:
				return contextInvalid(s, attribute, "is missing"), true
			case ok && !attribute.Type.accepts(value):
				return contextInvalid(s, attribute, "has another type than "+string(attribute.Type)), true
			}
		}
	}
	return Decision{}, false
}

func contextInvalid(s *statement, a *SessionAttribute, what string) Decision {
	message := fmt.Sprintf("the session's attribute %s, which the policy declares, %s; correct the AgentSession", a.Name, what)
	return deny(ReasonContextInvalid, message, EvaluationError{Policy: s.id, Message: message})
}

func (t AttributeType) accepts(value types.Value) bool {
	switch v := value.(type) {
	case types.String:
		return t == AttributeString
	case types.Long:
		return t == AttributeLong
	case types.Boolean:
		return t == AttributeBoolean
	case types.Set:
		for one := range v.All() {
			if _, ok := one.(types.String); !ok {
				return false
			}
		}
		return t == AttributeStrings
	default:
		return false
	}
}
