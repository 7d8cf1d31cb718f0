// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/attest"
)

// remembering returns a verifier that has found a seal good, and the seal.
func remembering(t *testing.T) (*attest.Keyring, string) {
	t.Helper()
	seal := sampleProposalSeal()
	text, err := keyring(t, 1).Sign(attest.KindProposalSeal, "p", seal.Fingerprint, seal)
	if err != nil {
		t.Fatal(err)
	}
	k, err := attest.NewVerifier(publicOf(1))
	if err != nil {
		t.Fatal(err)
	}
	if k.Remembers(attest.KindProposalSeal, text) {
		t.Fatal("a new keyring remembers a seal")
	}
	if got := reasonOfVerify(k, attest.KindProposalSeal, text); got != "" {
		t.Fatalf("a genuine seal is refused: %s", got)
	}
	if !k.Remembers(attest.KindProposalSeal, text) {
		t.Fatal("a seal that was found good is not remembered")
	}
	return k, text
}

func reasonOfVerify(k *attest.Keyring, kind attest.PayloadKind, text string) string {
	var out attest.ProposalSeal
	return string(attest.ReasonOf(k.Verify(kind, text, sampleProposalSeal().Fingerprint, &out)))
}

func TestVerify_RefusesWhatResemblesASealThatItRemembers(t *testing.T) {
	k, text := remembering(t)
	// The signature's first character, in a position where each change leaves it
	// canonical base64.
	at := strings.Index(text, `"sig":"`) + len(`"sig":"`)
	other := "A"
	if text[at:at+1] == other {
		other = "B"
	}
	foreign, err := keyring(t, 2).Sign(attest.KindProposalSeal, "p", sampleProposalSeal().Fingerprint, sampleProposalSeal())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		kind attest.PayloadKind
		text string
		want attest.VerifyReason
	}{
		"another signature":  {attest.KindProposalSeal, text[:at] + other + text[at+1:], attest.ReasonBadSignature},
		"another key":        {attest.KindProposalSeal, foreign, attest.ReasonUnknownKey},
		"another kind":       {attest.KindReceiptSeal, text, attest.ReasonWrongType},
		"a space at its end": {attest.KindProposalSeal, text + " ", attest.ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reasonOfVerify(k, tc.kind, tc.text); got != string(tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	var out attest.ProposalSeal
	if got := attest.ReasonOf(k.Verify(attest.KindProposalSeal, text, strings.Repeat("0", 64), &out)); got != attest.ReasonWrongSubject {
		t.Errorf("a remembered seal of another call: got %q, want %q", got, attest.ReasonWrongSubject)
	}
}

func TestVerify_RefusesABadSignatureAgain(t *testing.T) {
	_, text := remembering(t)
	k := keyring(t, 2, publicOf(1))
	at := strings.Index(text, `"sig":"`) + len(`"sig":"`)
	other := "A"
	if text[at:at+1] == other {
		other = "B"
	}
	for range 2 {
		if got := reasonOfVerify(k, attest.KindProposalSeal, text[:at]+other+text[at+1:]); got != string(attest.ReasonBadSignature) {
			t.Errorf("got %q, want %q", got, attest.ReasonBadSignature)
		}
	}
}

func TestKeyring_ForgetsWhatItLookedAtLongAgo(t *testing.T) {
	k, first := remembering(t)
	for i := range 2 * attest.RememberedEnvelopes {
		k.Remember(i)
		if i%attest.RememberedEnvelopes == 0 && reasonOfVerify(k, attest.KindProposalSeal, first) != "" {
			t.Fatal("a genuine seal is refused")
		}
	}
	if !k.Remembers(attest.KindProposalSeal, first) {
		t.Error("a seal that is looked at again and again was forgotten")
	}
	for i := range 3 * attest.RememberedEnvelopes {
		k.Remember(-i - 1)
	}
	if k.Remembers(attest.KindProposalSeal, first) {
		t.Error("a seal is remembered for ever")
	}
	if got, limit := k.RememberedCount(), 2*attest.RememberedEnvelopes; got > limit {
		t.Errorf("%d envelopes are remembered, want at most %d", got, limit)
	}
}

func TestKeyring_RemembersWhatItSignedItself(t *testing.T) {
	k, seal := keyring(t, 1), sampleProposalSeal()
	text, err := k.Sign(attest.KindProposalSeal, "p", seal.Fingerprint, seal)
	if err != nil || !k.Remembers(attest.KindProposalSeal, text) {
		t.Errorf("a seal is not remembered by who made it (%v)", err)
	}
	later, err := k.WithPrevious(seed(2))
	if err != nil || later.Remembers(attest.KindProposalSeal, text) {
		t.Errorf("a keyring of other keys remembers it as well (%v)", err)
	}
}
