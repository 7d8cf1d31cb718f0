// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/proposal"
)

func steps(spans []*otlp.Span) []string {
	var out []string
	for _, s := range spans {
		out = append(out, fmt.Sprintf("%s %s/%s", s.GetName(), attributeOf(s, "assent.outcome"), attributeOf(s, "assent.reason")))
	}
	return out
}

func TestTrace_HasEveryStepOfACallBelowItsAdmission(t *testing.T) {
	f := newFixture(t)
	log := f.record()
	f.tool("change", humanApproval)
	f.policy("allow", permitAll)
	p := f.newProposal("change", web)
	p.Annotations = map[string]string{v1alpha1.AnnotationTraceParent: "00-aaaabbbbccccddddeeeeffff00001111-1234567890abcdef-01"}
	if err := f.as(agent).Create(f.ctx, p); err != nil {
		t.Fatal(err)
	}
	p = f.step(f.step(p))
	if err := f.as(approver).Create(f.ctx, newReceipt(p)); err != nil {
		t.Fatal(err)
	}
	p = f.step(p)
	runner := f.runnerFor(p)
	stranger := f.runnerFor(p)
	key := runner.mustRedeem()
	if status, _ := stranger.redeem(); status != 409 {
		t.Fatalf("a second Pod: got %d, want 409", status)
	}
	f.step(p)
	if status := runner.deliver(key, runner.report(func(r *attest.Result) { r.DurationMillis = 1 })); status/100 != 2 {
		t.Fatalf("reporting: got %d", status)
	}
	if p = f.step(f.step(p)); !p.Status.Phase.Terminal() {
		t.Fatalf("the call has not ended: %s", outcome(p))
	}
	traceID := proposal.TraceID(server.keys, p)
	spans := server.traces.of(f, traceID)
	byName := map[string]int{}
	for _, s := range steps(spans) {
		byName[s]++
	}
	want := map[string]int{
		"assent.admission Accepted/":                              1,
		"assent.validation Accepted/":                             1,
		"assent.decision AwaitingApproval/AwaitingApproval":       1,
		"assent.receipt Accepted/":                                1,
		"assent.decision Dispatching/Granted":                     1,
		"assent.commit Dispatching/Granted":                       1,
		"assent.redemption Accepted/":                             1,
		"assent.redemption Refused/the call was redeemed already": 1,
		"assent.result Accepted/":                                 1,
		"assent.run Succeeded/" + p.Status.Reason:                 1,
		"assent.end Succeeded/" + p.Status.Reason:                 1,
	}
	if diff := cmp.Diff(want, byName); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	root := spans[0]
	for _, s := range spans {
		if s.GetName() == "assent.admission" {
			root = s
		}
	}
	for _, s := range spans {
		if s != root && string(s.GetParentSpanId()) != string(root.GetSpanId()) {
			t.Errorf("%s is below %x, want %x", s.GetName(), s.GetParentSpanId(), root.GetSpanId())
		}
		if s.GetName() == "assent.end" && (attributeOf(s, "assent.proposal.uid") != string(p.UID) || attributeOf(s, "assent.fingerprint") != p.Spec.Prepared.Fingerprint) {
			t.Errorf("the end does not name the call: %v", s.GetAttributes())
		}
	}
	if len(root.GetLinks()) != 1 || hex.EncodeToString(root.GetLinks()[0].GetTraceId()) != "aaaabbbbccccddddeeeeffff00001111" {
		t.Errorf("the admission has links %v, want the agent's trace", root.GetLinks())
	}
	for _, r := range log.records {
		if r.TraceID != traceID {
			t.Errorf("record %s is of trace %q, want %q", r.Type(), r.TraceID, traceID)
		}
	}
}

func TestTrace_OfACallThatIsLookedAtAgain_DoesNotGrow(t *testing.T) {
	f := newFixture(t)
	f.tool("change", humanApproval)
	f.policy("allow", permitAll)
	p := f.step(f.propose("change", web))
	before := len(server.traces.in(f))
	for range 3 {
		f.step(p)
	}
	if after := len(server.traces.in(f)); after != before || before == 0 {
		t.Errorf("%d spans became %d", before, after)
	}
}

func TestTrace_OfARefusedCall_SaysWhyInOneWord(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	if err := f.as(agent).Create(f.ctx, f.newProposal("restart", `{"target":"`+canary+`1"}`)); err == nil {
		t.Fatal("the call was accepted")
	}
	if diff := cmp.Diff([]string{"assent.admission Refused/PatternMismatch"}, steps(server.traces.in(f))); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

func TestTrace_OfADryRun_IsNone(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	if err := f.as(agent).Create(f.ctx, f.newProposal("restart", web), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if got := steps(server.traces.in(f)); len(got) != 0 {
		t.Errorf("a dry run made spans: %v", got)
	}
}
