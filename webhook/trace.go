// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/tracing"
)

// trace tells of an admission that began at the given time. A dry run is no
// call and leaves no span.
func (c *Config) trace(req *request, name, traceID string, p *v1alpha1.ToolProposal, began time.Time, err error) {
	if c.Tracer == nil || req.DryRun {
		return
	}
	call := tracing.Call{TraceID: traceID, Namespace: req.Namespace, Name: displayName(p), UID: string(p.UID)}
	if p.Spec.Prepared != nil {
		call.Fingerprint = p.Spec.Prepared.Fingerprint
	}
	step := tracing.Step{Name: name, Begin: began, End: c.Now(), Outcome: "Accepted"}
	if err != nil {
		step.Outcome, step.Reason, step.Failed = "Refused", reasonOf(err), true
	}
	if name == tracing.Admission {
		step.Parent = p.Annotations[v1alpha1.AnnotationTraceParent]
	}
	c.Tracer.Step(call, step)
}

// reasonOf is the word for a refusal. Other errors are the operator's own
// trouble, whose text may be anything.
func reasonOf(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "InternalError"
	}
	if d := status.Status().Details; d != nil && len(d.Causes) > 0 {
		return string(d.Causes[0].Type)
	}
	return string(status.Status().Reason)
}
