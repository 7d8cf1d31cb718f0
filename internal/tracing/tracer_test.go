// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

const traceID = "0102030405060708090a0b0c0d0e0f10"

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func recording(t *testing.T) (*Tracer, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	tracer, err := New(t.Context(), spans, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return tracer, spans
}

func describe(spans []sdktrace.ReadOnlySpan) []string {
	var out []string
	for _, s := range spans {
		var attributes []string
		for _, a := range s.Attributes() {
			attributes = append(attributes, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
		}
		out = append(out, fmt.Sprintf("%s %s %s %s %s", s.Name(), s.SpanKind(), s.EndTime().Sub(s.StartTime()), s.Status().Code, strings.Join(attributes, " ")))
	}
	return out
}

func TestSteps_OfOneCallAreOneTraceBelowItsAdmission(t *testing.T) {
	// The two stand for two replicas, which know nothing of each other.
	first, spans := recording(t)
	second, more := recording(t)
	call := Call{TraceID: traceID, Namespace: "agents", Name: "fetch-1"}
	first.Step(call, Step{Name: Admission, Begin: noon, End: noon.Add(time.Second), Outcome: "Accepted"})
	call.UID, call.Fingerprint = "u", "f"
	second.Step(call, Step{Name: Decision, Begin: noon, End: noon.Add(time.Minute), Outcome: "Denied", Reason: "Forbidden"})
	second.Step(call, Step{Name: Commit, Begin: noon, End: noon, Failed: true, Reason: "Granted"})
	all := append(spans.Ended(), more.Ended()...)
	want := []string{
		"assent.admission server 1s Unset k8s.namespace.name=agents assent.proposal.name=fetch-1 assent.outcome=Accepted",
		"assent.decision internal 1m0s Unset k8s.namespace.name=agents assent.proposal.name=fetch-1 assent.proposal.uid=u assent.fingerprint=f assent.outcome=Denied assent.reason=Forbidden",
		"assent.commit internal 0s Error k8s.namespace.name=agents assent.proposal.name=fetch-1 assent.proposal.uid=u assent.fingerprint=f assent.reason=Granted",
	}
	if diff := cmp.Diff(want, describe(all)); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	root := all[0].SpanContext()
	if all[0].Parent().IsValid() {
		t.Error("the admission has a parent")
	}
	seen := []trace.SpanID{root.SpanID()}
	for _, s := range all[1:] {
		if s.SpanContext().TraceID().String() != traceID || s.Parent().SpanID() != root.SpanID() {
			t.Errorf("%s is of trace %s below %s, want %s below %s", s.Name(), s.SpanContext().TraceID(), s.Parent().SpanID(), traceID, root.SpanID())
		}
		if slices.Contains(seen, s.SpanContext().SpanID()) {
			t.Errorf("%s has the ID of another span", s.Name())
		}
		seen = append(seen, s.SpanContext().SpanID())
	}
	if got, want := all[0].Resource().String(), "service.name=assent,service.version=1.2.3"; !strings.Contains(got, want) {
		t.Errorf("resource %s, want %s in it", got, want)
	}
}

func TestStep_LinksTheClientsTraceAndNeverContinuesIt(t *testing.T) {
	const theirs = "00-aaaabbbbccccddddeeeeffff00001111-1234567890abcdef-01"
	for name, tc := range map[string]struct {
		parent string
		linked bool
	}{
		"a valid one":               {theirs, true},
		"one that is not sampled":   {theirs[:len(theirs)-1] + "0", true},
		"none":                      {"", false},
		"no hexadecimal":            {strings.Replace(theirs, "a", "g", 1), false},
		"upper case":                {strings.ToUpper(theirs), false},
		"no trace":                  {"00-" + strings.Repeat("0", 32) + "-1234567890abcdef-01", false},
		"no span":                   {"00-aaaabbbbccccddddeeeeffff00001111-0000000000000000-01", false},
		"another version":           {"01" + theirs[2:], false},
		"the version that is none":  {"ff" + theirs[2:], false},
		"more than there should be": {theirs + "-canary", false},
		"less":                      {theirs[:54], false},
		"text":                      {strings.Repeat("canary\n", 1000), false},
	} {
		t.Run(name, func(t *testing.T) {
			tracer, spans := recording(t)
			tracer.Step(Call{TraceID: traceID}, Step{Name: Admission, Begin: noon, End: noon, Parent: tc.parent})
			s := spans.Ended()[0]
			if got := s.SpanContext().TraceID().String(); got != traceID {
				t.Errorf("the span is of trace %s, want %s", got, traceID)
			}
			var got []string
			for _, l := range s.Links() {
				got = append(got, l.SpanContext.TraceID().String()+"-"+l.SpanContext.SpanID().String())
			}
			var want []string
			if tc.linked {
				want = []string{"aaaabbbbccccddddeeeeffff00001111-1234567890abcdef"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStep_WithoutATraceIDOrATracer_MakesNoSpan(t *testing.T) {
	tracer, spans := recording(t)
	for _, id := range []string{"", "short", strings.Repeat("0", 32), strings.Repeat("z", 32)} {
		tracer.Step(Call{TraceID: id}, Step{Name: Decision})
	}
	if n := len(spans.Ended()); n != 0 {
		t.Errorf("%d spans were made", n)
	}
	var none *Tracer
	none.Step(Call{TraceID: traceID}, Step{Name: Decision})
	if err := none.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
