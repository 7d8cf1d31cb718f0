// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/audit"
)

// Metrics are what the operator counts and times. No label holds the name of an
// object or anything else that a user chooses, so that their number is bounded
// and nothing secret can get into one. The exception is the ID of a policy:
// only the platform team makes policies, and what policyCounter keeps is bounded.
type Metrics struct {
	proposals    *prometheus.CounterVec
	decisions    *prometheus.CounterVec
	policies     *policyCounter
	approvalWait prometheus.Histogram
	startTime    prometheus.Histogram
	runTime      *prometheus.HistogramVec
	auditLag     prometheus.Histogram
	auditErrors  *prometheus.CounterVec
}

// Queue counts the calls that have not ended, by phase.
type Queue func() map[v1alpha1.Phase]int

// NewMetrics registers the metrics. queue is asked whenever they are read, and
// drift says what differs from what was installed.
func NewMetrics(registry prometheus.Registerer, queue Queue, drift func() string) (*Metrics, error) {
	m := &Metrics{
		proposals:    prometheus.NewCounterVec(opts("proposals_total", "Calls that ended, by the kind of their effect, phase and reason."), []string{"effect", "phase", "reason"}),
		decisions:    prometheus.NewCounterVec(opts("decisions_total", "Answers of the policy that calls ended or were dispatched with, by the kind of their effect, answer and reason."), []string{"effect", "answer", "reason"}),
		policies:     newPolicyCounter(),
		approvalWait: prometheus.NewHistogram(times("approval_wait_seconds", "Time from the creation of a call that needed people to its grant or end.", 1, 4, 10)),
		startTime:    prometheus.NewHistogram(times("start_seconds", "Time from the grant of a call until its runner fetched it.", 0.1, 2, 12)),
		runTime:      prometheus.NewHistogramVec(times("run_seconds", "Time from the moment a runner fetched a call to its end.", 0.05, 2, 16), []string{"effect", "phase"}),
		auditLag:     prometheus.NewHistogram(times("audit_append_seconds", "Time until an audit record was durable.", 0.001, 2, 15)),
		auditErrors:  prometheus.NewCounterVec(opts("audit_errors_total", "Audit records that the log did not take, by cause."), []string{"cause"}),
	}
	for _, c := range []prometheus.Collector{
		m.proposals, m.decisions, m.policies.vec, m.approvalWait, m.startTime, m.runTime, m.auditLag, m.auditErrors,
		&queueCollector{queue: queue, desc: prometheus.NewDesc("assent_open_proposals", "Calls that have not ended, by phase.", []string{"phase"}, nil)},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: "enforcement_drift", Help: "1 while something differs from what was installed and nothing is granted."}, func() float64 {
			if drift() != "" {
				return 1
			}
			return 0
		}),
	} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

const namespace = "assent"

func opts(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}
}

func times(name, help string, start, factor float64, count int) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(start, factor, count)}
}

// transition counts what a stored status says for the first time.
func (m *Metrics) transition(old, next *v1alpha1.ToolProposal, now time.Time) {
	if m == nil {
		return
	}
	ended := next.Status.Phase.Terminal() && !old.Status.Phase.Terminal()
	if granted := next.Status.Dispatch != nil && old.Status.Dispatch == nil; granted || (ended && next.Status.Dispatch == nil) {
		m.decided(next, now)
	}
	if ended {
		m.ended(next, now)
	}
}

// decided counts the answer that a call was granted or ended with.
func (m *Metrics) decided(p *v1alpha1.ToolProposal, now time.Time) {
	d := p.Status.Decision
	if d == nil {
		return
	}
	m.decisions.WithLabelValues(effectOf(p), d.Answer, d.Reason).Inc()
	m.policies.decided(d)
	if p.Status.Approvals != nil {
		m.approvalWait.Observe(now.Sub(p.CreationTimestamp.Time).Seconds())
	}
}

func (m *Metrics) ended(p *v1alpha1.ToolProposal, now time.Time) {
	m.proposals.WithLabelValues(effectOf(p), string(p.Status.Phase), reasonLabel(p)).Inc()
	r := p.Status.RedeemedBy
	if r == nil || p.Status.Dispatch == nil {
		return
	}
	m.startTime.Observe(r.Time.Sub(p.Status.Dispatch.Time.Time).Seconds())
	m.runTime.WithLabelValues(effectOf(p), string(p.Status.Phase)).Observe(now.Sub(r.Time.Time).Seconds())
}

// reasonLabel is the reason of the end in the words of this project. What a
// runner calls a failure is its own word.
func reasonLabel(p *v1alpha1.ToolProposal) string {
	if r := p.Status.Result; r != nil && r.Reason != "" && p.Status.Reason == r.Reason {
		return v1alpha1.ReasonToolFailed
	}
	return p.Status.Reason
}

func effectOf(p *v1alpha1.ToolProposal) string {
	if p.Spec.Prepared == nil {
		return "unknown"
	}
	switch e := p.Spec.Prepared.Effect; {
	case e.Command != nil:
		return "command"
	case e.HTTP != nil:
		return "http"
	case e.MCP != nil:
		return "mcp"
	}
	return "unknown"
}

// forgetPolicies drops what was counted of policies that are gone.
func (m *Metrics) forgetPolicies(inForce func(id string) bool) {
	if m != nil {
		m.policies.keep(inForce)
	}
}

// appended notes that records were appended together: each waited as long.
func (m *Metrics) appended(took time.Duration, records int, err error) {
	switch {
	case m == nil:
	case err == nil:
		for range records {
			m.auditLag.Observe(took.Seconds())
		}
	case errors.Is(err, audit.ErrUnavailable):
		m.auditErrors.WithLabelValues("unavailable").Inc()
	default:
		m.auditErrors.WithLabelValues("invalid").Inc()
	}
}

// queueCollector reports the queue as it is when it is asked.
type queueCollector struct {
	queue Queue
	desc  *prometheus.Desc
}

// Describe implements [prometheus.Collector].
func (q *queueCollector) Describe(out chan<- *prometheus.Desc) { out <- q.desc }

// Collect implements [prometheus.Collector].
func (q *queueCollector) Collect(out chan<- prometheus.Metric) {
	counts := q.queue()
	for _, phase := range []v1alpha1.Phase{
		v1alpha1.PhasePending, v1alpha1.PhaseAwaitingApproval, v1alpha1.PhaseDispatching, v1alpha1.PhaseRunning,
	} {
		out <- prometheus.MustNewConstMetric(q.desc, prometheus.GaugeValue, float64(counts[phase]), string(phase))
	}
}
