// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// ErrEndpoint says that spans cannot be sent to what was configured.
var ErrEndpoint = errors.New("the OTLP endpoint must be http://host:port or https://host:port, with no user in it")

// Export makes a Tracer that sends its spans by OTLP over HTTP to the collector
// at endpoint, or where that is empty to the one that OTEL_EXPORTER_OTLP_ENDPOINT
// or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT name. Without any of them, and where
// OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER say so, it returns nil. getenv reads
// those; the other variables of the specification are read by its SDK.
func Export(ctx context.Context, endpoint, version string, getenv func(string) string) (*Tracer, error) {
	if !enabled(endpoint, getenv) {
		return nil, nil //nolint:nilnil // a nil Tracer traces nothing
	}
	if protocol := protocolOf(getenv); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: spans are sent by http/protobuf only", protocol)
	}
	var options []otlptracehttp.Option
	if endpoint != "" {
		u, err := tracesURL(endpoint)
		if err != nil {
			return nil, err
		}
		options = append(options, otlptracehttp.WithEndpointURL(u))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("making the OTLP exporter: %w", err)
	}
	return New(ctx, sdktrace.NewBatchSpanProcessor(exporter), version)
}

// tracesURL is where a collector takes traces (OTLP specification, "OTLP/HTTP
// Request").
func tracesURL(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return "", ErrEndpoint
	}
	return u.JoinPath("v1", "traces").String(), nil
}

func enabled(endpoint string, getenv func(string) string) bool {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return endpoint != "" || getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

func protocolOf(getenv func(string) string) string {
	if own := getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"); own != "" {
		return own
	}
	return getenv("OTEL_EXPORTER_OTLP_PROTOCOL")
}
