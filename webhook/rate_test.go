// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func TestRate_LimitsEachRequesterAlone(t *testing.T) {
	r := NewRate(2, 3)
	for i := range 3 {
		if !r.Allow("flood", noon) {
			t.Fatalf("request %d of the burst was refused", i)
		}
	}
	if r.Allow("flood", noon) {
		t.Error("more than the burst was allowed")
	}
	if !r.Allow("other", noon) {
		t.Error("somebody else was refused")
	}
	if !r.Allow("flood", noon.Add(500*time.Millisecond)) || r.Allow("flood", noon.Add(500*time.Millisecond)) {
		t.Error("two per second do not give one after half a second")
	}
}

func TestRate_IsBoundedAndForgetsTheSilentOnesFirst(t *testing.T) {
	r := NewRate(1, 1)
	r.Allow("silent", noon)
	for i := range 2 * maxRequesters {
		r.Allow(fmt.Sprint(i), noon.Add(time.Second))
		r.Allow("busy", noon.Add(time.Second))
	}
	if n := len(r.buckets); n > maxRequesters {
		t.Errorf("%d requesters are remembered, want at most %d", n, maxRequesters)
	}
	if _, ok := r.buckets["silent"]; ok {
		t.Error("the one who was silent for longest is remembered")
	}
}

func TestRate_WithoutOneEverythingIsAllowed(t *testing.T) {
	if !(*Rate)(nil).Allow("anybody", noon) {
		t.Error("refused")
	}
}
