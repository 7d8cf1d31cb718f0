// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// rootOf is the first span of a trace. It follows from the trace's ID: whoever
// has that can hang a span below it.
func rootOf(id trace.TraceID) trace.SpanID {
	sum := sha256.Sum256(append([]byte("assent.dev/root-span/v1\n"), id[:]...))
	return trace.SpanID(sum[:len(trace.SpanID{})])
}

// parent is the first span of a trace as the other spans refer to it.
func parent(id trace.TraceID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: rootOf(id), TraceFlags: trace.FlagsSampled, Remote: true})
}

// rootKey marks, in a context, the trace whose first span is to be made.
type rootKey struct{}

// ids draws the IDs of spans.
type ids struct{}

// NewIDs implements [sdktrace.IDGenerator] for spans without a parent.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if id, ok := ctx.Value(rootKey{}).(trace.TraceID); ok {
		return id, rootOf(id)
	}
	var id trace.TraceID
	_, _ = rand.Read(id[:])
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements [sdktrace.IDGenerator].
func (ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	var id trace.SpanID
	_, _ = rand.Read(id[:])
	return id
}

// traceparentLength is that of version 00 of W3C Trace Context.
const traceparentLength = 55

// linked reads the trace that a client names in traceparent's form. What does
// not have exactly that form is nothing.
func linked(traceparent string) (trace.SpanContext, bool) {
	if len(traceparent) != traceparentLength || traceparent[:3] != "00-" {
		return trace.SpanContext{}, false
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	sc := trace.SpanContextFromContext(ctx)
	return sc, sc.IsValid()
}
