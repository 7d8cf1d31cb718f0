// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
)

// Engine evaluates policies about a request, as [cedar.Authorize] does. nil
// stands for that one; tests hand in others, to see what becomes of a decision
// when the engine is broken.
type Engine func(cedar.PolicyIterator, types.EntityGetter, cedar.Request) (cedar.Decision, cedar.Diagnostic)

func (e Engine) orCedar() Engine {
	if e == nil {
		return cedar.Authorize
	}
	return e
}
