// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestExport_IsOffUnlessACollectorIsNamed(t *testing.T) {
	const endpoint = "http://127.0.0.1:4318"
	for name, tc := range map[string]struct {
		endpoint string
		env      map[string]string
		want     bool
	}{
		"nothing is said":             {"", nil, false},
		"by the flag":                 {endpoint, nil, true},
		"by the environment":          {"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, true},
		"for traces":                  {"", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint}, true},
		"but the SDK is disabled":     {endpoint, map[string]string{"OTEL_SDK_DISABLED": "true"}, false},
		"but there is to be no trace": {endpoint, map[string]string{"OTEL_TRACES_EXPORTER": "none"}, false},
		"with the protocol it speaks": {endpoint, map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tracer, err := Export(t.Context(), tc.endpoint, "dev", environment(tc.env))
			if err != nil {
				t.Fatal(err)
			}
			if got := tracer != nil; got != tc.want {
				t.Errorf("got traces: %v, want %v", got, tc.want)
			}
			if err := tracer.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestExport_RefusesWhatItCannotSendTo(t *testing.T) {
	for name, endpoint := range map[string]string{
		"no scheme": "collector:4318", "another scheme": "grpc://collector:4317", "no host": "http://", "no URL": "http://[",
		"a user": "http://u:canary@collector:4318", "a query": "http://collector:4318?canary=1",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Export(t.Context(), endpoint, "dev", environment(nil)); !errors.Is(err, ErrEndpoint) {
				t.Errorf("got %v, want %v", err, ErrEndpoint)
			}
		})
	}
	for name, variable := range map[string]string{"any protocol": "OTEL_EXPORTER_OTLP_PROTOCOL", "that of traces": "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		t.Run(name, func(t *testing.T) {
			_, err := Export(t.Context(), "http://127.0.0.1:4318", "dev", environment(map[string]string{variable: "grpc"}))
			if err == nil {
				t.Error("a protocol that is not spoken was accepted")
			}
		})
	}
}

func TestExport_SendsSpansToTheCollectorsPath(t *testing.T) {
	got := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var request collector.ExportTraceServiceRequest
		if err := errors.Join(err, proto.Unmarshal(body, &request)); err != nil {
			got <- err.Error()
			return
		}
		got <- req.URL.Path + " " + request.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0].GetName()
	}))
	t.Cleanup(server.Close)
	tracer, err := Export(t.Context(), server.URL+"/otlp/", "dev", environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	tracer.Step(Call{TraceID: traceID}, Step{Name: Decision, Begin: noon, End: noon})
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := <-got, "/otlp/v1/traces assent.decision"; got != want {
		t.Errorf("the collector got %q, want %q", got, want)
	}
}
