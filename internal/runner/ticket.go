// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
)

// grant is a verified ticket with what is needed to act on it.
type grant struct {
	ticket attest.Ticket
	effect contract.Effect
	key    [32]byte
	keyID  string
}

// verify checks that the answer is permission for this Pod to run the call
// that was decided on: the signature, whom it is for, and that the call in it
// has the fingerprint that was signed. Nothing in the ticket is acted on
// before all of that holds.
//
// With a *refusal error the grant is filled as far as it can be trusted: a
// ticket that is signed, but for something else, still allows a report.
func (c Config) verify(answer attest.RedeemResponse, nonce string) (grant, error) {
	g := grant{key: answer.ResultKey, keyID: answer.KeyID}
	var t attest.Ticket
	if _, err := c.Tickets.Open(attest.KindTicket, answer.Ticket, &t); err != nil {
		return g, refuse(ReasonTicketInvalid, "the ticket does not verify: %w", err)
	}
	g.ticket = t
	if err := c.addressedToMe(t, nonce); err != nil {
		return g, err
	}
	if c.Fingerprint != "" && t.Fingerprint != c.Fingerprint {
		return g, refuse(ReasonFingerprintMismatch, "the ticket is for another call than the Pod was made for")
	}
	// Every hash is computed anew from the call in the ticket. The agent's
	// name, tool, arguments, contract and effect all enter.
	if err := t.CheckFingerprint(); err != nil {
		return g, refuse(ReasonFingerprintMismatch, "recomputing the fingerprint: %w", err)
	}
	effect, err := contract.DecodeEffect(t.Call.EffectJSON)
	if err != nil {
		return g, refuse(ReasonEffectInvalid, "decoding the effect: %w", err)
	}
	g.effect = effect
	return g, nil
}

func (c Config) addressedToMe(t attest.Ticket, nonce string) error {
	for _, binding := range []struct {
		what  string
		holds bool
	}{
		{"proposal", t.Proposal == c.Proposal},
		{"podUID", t.PodUID == c.PodUID},
		{"nonceDigest", t.NonceDigest == attest.NonceDigest(nonce)},
	} {
		if !binding.holds {
			return refuse(ReasonTicketForeign, "the ticket's %s is not this runner's", binding.what)
		}
	}
	return nil
}

// checkLimits refuses limits that a result could not keep.
func checkLimits(l attest.Limits) error {
	if l.StatusMaxBytes > attest.MaxResultTextBytes {
		return fmt.Errorf("limits.statusMaxBytes is more than the %d bytes that a result can carry", attest.MaxResultTextBytes)
	}
	return nil
}
