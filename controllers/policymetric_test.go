// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/assent-dev/assent/api/v1alpha1"
)

func TestPolicyCounter_KeepsNoMoreThanItsBoundAndForgetsWhatIsGone(t *testing.T) {
	c := newPolicyCounter()
	decided := func(ids ...string) {
		c.decided(&v1alpha1.Decision{Answer: "Deny", Reason: "Forbidden", Policies: ids})
	}
	for i := range maxCountedPolicies {
		decided(fmt.Sprintf("a/p#%d", i))
	}
	decided("a/p#0", "b/late#0", "b/late#1")
	count := func(id string) float64 { return testutil.ToFloat64(c.vec.WithLabelValues(id, "Deny", "Forbidden")) }
	if got := testutil.CollectAndCount(c.vec); got != maxCountedPolicies+1 {
		t.Errorf("%d series, want %d", got, maxCountedPolicies+1)
	}
	if got := count("a/p#0"); got != 2 {
		t.Errorf("a policy that is known was counted %v times, want 2", got)
	}
	if got := count("other"); got != 2 {
		t.Errorf("policies beyond the bound were counted %v times, want 2", got)
	}

	c.keep(func(id string) bool { return id == "a/p#0" })
	if got := testutil.CollectAndCount(c.vec); got != 2 {
		t.Errorf("%d series are left, want that of one policy and the others'", got)
	}
	decided("b/late#0")
	if got := count("b/late#0"); got != 1 {
		t.Errorf("a policy that found room was counted %v times, want 1", got)
	}
}
