// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/assent-dev/assent/api/v1alpha1"
)

const (
	// maxCountedPolicies bounds the policies that are counted one by one; each
	// has a series for each reason that it was named with.
	maxCountedPolicies = 1000
	// otherPolicies stands for those beyond. No ID of a policy is without "/".
	otherPolicies = "other"
)

// policyCounter counts which policies determined answers.
type policyCounter struct {
	vec *prometheus.CounterVec

	mu      sync.Mutex
	counted map[string]bool
}

func newPolicyCounter() *policyCounter {
	return &policyCounter{
		counted: map[string]bool{},
		vec: prometheus.NewCounterVec(opts("policy_decisions_total", "Answers that calls ended or were dispatched with, by the policy that determined them, answer and reason."),
			[]string{"policy", "answer", "reason"}),
	}
}

// decided counts each policy that an answer names.
func (c *policyCounter) decided(d *v1alpha1.Decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range d.Policies {
		if !c.counted[id] && len(c.counted) >= maxCountedPolicies {
			id = otherPolicies
		} else {
			c.counted[id] = true
		}
		c.vec.WithLabelValues(id, d.Answer, d.Reason).Inc()
	}
}

// keep drops the series of all policies that are not in force any more.
func (c *policyCounter) keep(inForce func(id string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.counted {
		if !inForce(id) {
			delete(c.counted, id)
			c.vec.DeletePartialMatch(prometheus.Labels{"policy": id})
		}
	}
}
