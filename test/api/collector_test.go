// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/assent-dev/assent/internal/tracing"
)

// collector takes the spans of all operators of the package, as an
// OpenTelemetry collector on loopback does.
type collector struct {
	tracer *tracing.Tracer
	queue  sdktrace.SpanProcessor

	mu       sync.Mutex
	spans    []*otlp.Span
	problems []error
}

func newCollector(ctx context.Context) (*collector, error) {
	c := &collector{}
	web := httptest.NewServer(http.HandlerFunc(c.take))
	context.AfterFunc(ctx, web.Close)
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(web.URL+"/v1/traces"))
	if err != nil {
		return nil, err
	}
	c.queue = sdktrace.NewBatchSpanProcessor(exporter, sdktrace.WithBlocking())
	c.tracer, err = tracing.New(ctx, c.queue, "test")
	return c, err
}

func (c *collector) take(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var request collectortrace.ExportTraceServiceRequest
	err = errors.Join(err, proto.Unmarshal(body, &request))
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.problems = append(c.problems, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, r := range request.GetResourceSpans() {
		for _, s := range r.GetScopeSpans() {
			c.spans = append(c.spans, s.GetSpans()...)
		}
	}
}

// in are the spans of a namespace so far, by the time they began.
func (c *collector) in(f *fixture) []*otlp.Span {
	f.t.Helper()
	if err := c.queue.ForceFlush(f.ctx); err != nil {
		f.t.Fatalf("sending spans: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.problems) > 0 {
		f.t.Fatalf("the collector could not read: %v", c.problems)
	}
	var out []*otlp.Span
	for _, s := range c.spans {
		if attributeOf(s, "k8s.namespace.name") == f.namespace {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b *otlp.Span) int { return int(a.GetStartTimeUnixNano()) - int(b.GetStartTimeUnixNano()) })
	return out
}

// of are the spans of one trace.
func (c *collector) of(f *fixture, traceID string) []*otlp.Span {
	f.t.Helper()
	return slices.DeleteFunc(c.in(f), func(s *otlp.Span) bool { return hex.EncodeToString(s.GetTraceId()) != traceID })
}

func attributeOf(s *otlp.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}
