// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/controllers"
)

// metrics gives the fixture's operator metrics and returns what reads them:
// one line for each sample, histograms by their count.
func (f *fixture) metrics(queue controllers.Queue, drift func() string) func() []string {
	f.t.Helper()
	registry := prometheus.NewRegistry()
	var err error
	if f.shared.Metrics, err = controllers.NewMetrics(registry, queue, drift); err != nil {
		f.t.Fatal(err)
	}
	return func() []string {
		f.t.Helper()
		if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
			f.t.Errorf("the metrics do not follow Prometheus' rules: %v %v", problems, err)
		}
		families, err := registry.Gather()
		if err != nil {
			f.t.Fatal(err)
		}
		return samples(families)
	}
}

func samples(families []*dto.MetricFamily) []string {
	var out []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if h := m.GetHistogram(); h != nil {
				value = float64(h.GetSampleCount())
			}
			if value != 0 {
				out = append(out, fmt.Sprintf("%s{%s} %g", family.GetName(), strings.Join(labels, ","), value))
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestMetrics_CountEachCallOnce(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.tool("change", humanApproval)
	f.tool("forbidden")
	f.policy("rules", permitAll+` forbid (principal, action, resource == Tool::"forbidden");`)
	read := f.metrics(
		func() map[v1alpha1.Phase]int { return map[v1alpha1.Phase]int{v1alpha1.PhaseRunning: 3} },
		func() string { return "the webhook is gone" },
	)
	again := func(p *v1alpha1.ToolProposal) *v1alpha1.ToolProposal { return f.step(f.step(p)) }
	again(f.propose("forbidden", `{"target":"web"}`))
	waiting := again(f.propose("change", `{"target":"web"}`))
	if err := f.as(approver).Create(f.ctx, newReceipt(waiting)); err != nil {
		t.Fatal(err)
	}
	again(waiting)
	running := f.redeemed(again(f.propose("restart", `{"target":"web"}`)))
	f.setClock(time.Hour)
	again(running)
	want := []string{
		"assent_approval_wait_seconds{} 1",
		// Denied: admitted, evaluated, denied. Granted after approval: admitted,
		// evaluated, receipt, dispatched. Run: three, redeemed and completed.
		"assent_audit_append_seconds{} 12",
		"assent_decisions_total{answer=Allow,effect=command,reason=Permitted} 2",
		"assent_decisions_total{answer=Deny,effect=command,reason=Forbidden} 1",
		"assent_enforcement_drift{} 1",
		"assent_open_proposals{phase=Running} 3",
		"assent_policy_decisions_total{answer=Allow,policy=" + f.namespace + "/rules#0,reason=Permitted} 2",
		"assent_policy_decisions_total{answer=Deny,policy=" + f.namespace + "/rules#1,reason=Forbidden} 1",
		"assent_proposals_total{effect=command,phase=Denied,reason=Forbidden} 1",
		"assent_proposals_total{effect=command,phase=Indeterminate,reason=ResultLost} 1",
		"assent_run_seconds{effect=command,phase=Indeterminate} 1",
		"assent_start_seconds{} 1",
	}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

func TestMetrics_CountRecordsThatTheLogDidNotTake(t *testing.T) {
	f := newFixture(t)
	f.tool("restart")
	f.policy("allow", permitAll)
	read := f.metrics(func() map[v1alpha1.Phase]int { return nil }, func() string { return "" })
	log := f.record()
	log.fail = refuseAll
	f.step(f.propose("restart", `{"target":"web"}`))
	if diff := cmp.Diff([]string{"assent_audit_errors_total{cause=unavailable} 1"}, read()); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}
