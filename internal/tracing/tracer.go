// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
)

// Names of the spans, one for each kind of step.
const (
	// Admission is the first span of each trace: the call is prepared and sealed.
	Admission = "assent.admission"
	// Validation is the second look of admission at what would be stored.
	Validation = "assent.validation"
	// Receipt is the admission of a person's decision on the call.
	Receipt = "assent.receipt"
	// Decision is an answer that moved the call.
	Decision = "assent.decision"
	// Commit is the grant: records, compare-and-swap and the Job.
	Commit = "assent.commit"
	// Redemption is a Pod's request for the call.
	Redemption = "assent.redemption"
	// Run is the effect itself, as long as the runner says that it took.
	Run = "assent.run"
	// Result is the runner's report.
	Result = "assent.result"
	// End is the last step of a call that was granted.
	End = "assent.end"
)

// Attributes of the spans. Those of Kubernetes have its own names.
const (
	keyProposal    = attribute.Key("assent.proposal.name")
	keyUID         = attribute.Key("assent.proposal.uid")
	keyFingerprint = attribute.Key("assent.fingerprint")
	keyOutcome     = attribute.Key("assent.outcome")
	keyReason      = attribute.Key("assent.reason")
)

// Call says which call a step is of. What is not known yet is empty.
type Call struct {
	// TraceID is the ID of the call's seal. Without it there is no span.
	TraceID              string
	Namespace, Name, UID string
	Fingerprint          string
}

// Step is one step of a call, which is over.
type Step struct {
	Name       string
	Begin, End time.Time
	// Outcome and Reason are words of Assent's own, such as phase and reason.
	Outcome, Reason string
	// Failed says that the step did not do what it is for.
	Failed bool
	// Parent is the W3C traceparent that the client sent along. It is linked
	// where it has that form, and ignored otherwise.
	Parent string
}

// Tracer makes spans. A nil Tracer makes none.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New makes a Tracer whose spans go to the processor. version is the
// operator's. The variables of the OpenTelemetry specification for resource,
// sampler and limits are honoured.
func New(ctx context.Context, to sdktrace.SpanProcessor, version string) (*Tracer, error) {
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("assent"), semconv.ServiceVersion(version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("reading OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(to), sdktrace.WithResource(about), sdktrace.WithIDGenerator(ids{}))
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/assent-dev/assent", trace.WithInstrumentationVersion(version))}, nil
}

// Step makes the span of a step.
func (t *Tracer) Step(c Call, s Step) {
	if t == nil {
		return
	}
	id, err := trace.TraceIDFromHex(c.TraceID)
	if err != nil {
		return
	}
	ctx := context.WithValue(context.Background(), rootKey{}, id)
	if s.Name != Admission {
		ctx = trace.ContextWithRemoteSpanContext(context.Background(), parent(id))
	}
	options := []trace.SpanStartOption{trace.WithTimestamp(s.Begin), trace.WithSpanKind(kindOf(s.Name)), trace.WithAttributes(attributes(c, s)...)}
	if from, ok := linked(s.Parent); ok {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: from}))
	}
	_, span := t.tracer.Start(ctx, s.Name, options...)
	if s.Failed {
		span.SetStatus(codes.Error, s.Reason)
	}
	span.End(trace.WithTimestamp(s.End))
}

// Close sends what has not been sent yet.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("sending the last spans: %w", err)
	}
	return nil
}

// kindOf says whether somebody outside of the operator asked for the step.
func kindOf(name string) trace.SpanKind {
	switch name {
	case Admission, Validation, Receipt, Redemption, Result:
		return trace.SpanKindServer
	default:
		return trace.SpanKindInternal
	}
}

func attributes(c Call, s Step) []attribute.KeyValue {
	var out []attribute.KeyValue
	for _, a := range []attribute.KeyValue{
		semconv.K8SNamespaceName(c.Namespace), keyProposal.String(c.Name), keyUID.String(c.UID), keyFingerprint.String(c.Fingerprint),
		keyOutcome.String(s.Outcome), keyReason.String(s.Reason),
	} {
		if a.Value.AsString() != "" {
			out = append(out, a)
		}
	}
	return out
}
