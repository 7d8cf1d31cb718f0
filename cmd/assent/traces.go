// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/assent-dev/assent/internal/tracing"
)

// lastSpans is how long the last spans may take to be sent.
const lastSpans = 3 * time.Second

// openTraces finds out whether there is a collector to tell of calls. What its
// exporter complains about goes through the operator's own log; the library
// knows no other way than a handler for the whole process.
func (op *operator) openTraces(ctx context.Context) error {
	logger := ctrl.Log.WithName("traces")
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Info("spans were not sent", "cause", err.Error()) }))
	var err error
	if op.tracer, err = tracing.Export(ctx, op.options.otlpEndpoint, version, os.Getenv); err != nil {
		return fmt.Errorf("preparing traces: %w", err)
	}
	return nil
}

// closeTraces sends the spans that were not sent yet.
func (op *operator) closeTraces() {
	ctx, cancel := context.WithTimeout(context.Background(), lastSpans)
	defer cancel()
	if err := op.tracer.Close(ctx); err != nil {
		ctrl.Log.WithName("traces").Info("spans were not sent", "cause", err.Error())
	}
}
