// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"crypto/rand"
	"net/http"
	"testing"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/job"
)

// Keys and certificates change while calls are on their way, and replicas hear
// of it one after the other. The Job of a call keeps those that it began with.
func TestRedeem_AfterKeysAndCertificatesChanged_GivesTheCall(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	before := f.shared.Settings
	f.shared.Settings = func() job.Settings {
		s := before()
		s.Endpoint.CA, s.Endpoint.PublicKeys = s.Endpoint.CA+"\n", s.Endpoint.PublicKeys+"\n"
		return s
	}
	r := f.runnerFor(p)
	f.wantOutcome(f.step(p), "Dispatching/Granted")
	r.mustRedeem()
	f.wantOutcome(f.step(p), "Running/Redeemed")
}

// A key that is replaced without overlap, since it was stolen perhaps, signs
// tickets that the Pods on their way take for forgeries.
func TestRedeem_WithAKeyThatThePodDoesNotKnow_IsRefusedSoThatTheCallNeverStarted(t *testing.T) {
	f := callFixture(t)
	p, _ := f.dispatched("restart", web)
	r := f.runnerFor(p)
	seed, err := attest.GenerateSeed(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	replaced, err := attest.NewKeyring(seed)
	if err != nil {
		t.Fatal(err)
	}
	if replaced, err = replaced.WithPrevious(server.seed); err != nil {
		t.Fatal(err)
	}
	f.shared.Keys = func() *attest.Keyring { return replaced }
	r.endpoint = f.endpoint()
	if status, _ := r.redeem(); status != http.StatusConflict {
		t.Errorf("got %d, want 409", status)
	}
	f.clock.advance(f.shared.Settings().StartTimeout)
	f.wantOutcome(f.step(p), "Failed/NeverStarted")
}
