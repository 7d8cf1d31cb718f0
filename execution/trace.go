// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package execution

import (
	"errors"
	"time"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/tracing"
)

// trace tells of one request of a runner about a call with a seal of ours.
func (s *Server) trace(name, traceID string, p *v1alpha1.ToolProposal, began time.Time, err error) {
	step := tracing.Step{Name: name, Begin: began, End: s.Now(), Outcome: "Accepted"}
	if err != nil {
		step.Outcome, step.Reason, step.Failed = "Refused", "InternalError", true
	}
	if r, is := errors.AsType[*refusal](err); is {
		step.Reason = r.reason
	}
	call := tracing.Call{TraceID: traceID, Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}
	if p.Spec.Prepared != nil {
		call.Fingerprint = p.Spec.Prepared.Fingerprint
	}
	s.Tracer.Step(call, step)
}
