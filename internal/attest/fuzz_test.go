// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest_test

import (
	"crypto/ed25519"
	"testing"

	"github.com/assent-dev/assent/internal/attest"
)

// FuzzVerify looks for a panic, and for a second text that passes.
func FuzzVerify(f *testing.F) {
	k := keyring(f, 1)
	seal := sampleReceiptSeal()
	valid, err := k.Sign(attest.KindReceiptSeal, "r", seal.Fingerprint, seal)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add(forge(1, attest.KindReceiptSeal.PayloadType(), `{"_type":null}`))
	f.Add(`{"payload":"","payloadType":"","signatures":[{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var out attest.ReceiptSeal
		err := k.Verify(attest.KindReceiptSeal, text, seal.Fingerprint, &out)
		if err == nil && text != valid {
			t.Fatalf("a second text passes: %s", text)
		}
		if err != nil && attest.ReasonOf(err) == "" {
			t.Fatalf("an error without a reason: %v", err)
		}
	})
}

// FuzzPredicate signs what the fuzzer makes up, so that it reaches the checks
// behind the signature: what passes is exactly what Encode writes.
func FuzzPredicate(f *testing.F) {
	k := keyring(f, 1)
	for _, v := range samples(f) {
		f.Add(string(encoded(f, v)))
	}
	f.Fuzz(func(t *testing.T, predicate string) {
		payload := `{"_type":"https://in-toto.io/Statement/v1","predicate":` + predicate +
			`,"predicateType":"https://assent.dev/ticket/v1alpha1","subject":[{"digest":{"sha256":"` +
			digestOf("x") + `"},"name":"n"}]}`
		var out attest.Ticket
		_, err := k.Open(attest.KindTicket, forge(1, attest.KindTicket.PayloadType(), payload), &out)
		if err == nil && string(encoded(t, out)) != predicate {
			t.Fatalf("accepted in a second form: %s", predicate)
		}
		if err != nil && attest.ReasonOf(err) == "" {
			t.Fatalf("an error without a reason: %v", err)
		}
	})
}

// FuzzDecodeSignedResult covers the message that comes from inside the Pod.
func FuzzDecodeSignedResult(f *testing.F) {
	sealed, err := attest.SealResult([32]byte{1}, digestOf("k"), sampleResult())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encoded(f, sealed))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := attest.DecodeSignedResult(body)
		if err != nil {
			return
		}
		if string(encoded(t, s)) != string(body) {
			t.Fatal("accepted in a second form")
		}
		if _, err := attest.OpenResult([32]byte{1}, s); err == nil && s.Result != sealed.Result {
			t.Fatal("a forged result passes")
		}
	})
}

func BenchmarkSign(b *testing.B) {
	k, seal := keyring(b, 1), sampleProposalSeal()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Sign(attest.KindProposalSeal, "p", seal.Fingerprint, seal); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	k, seal := keyring(b, 1), sampleProposalSeal()
	text, err := k.Sign(attest.KindProposalSeal, "p", seal.Fingerprint, seal)
	if err != nil {
		b.Fatal(err)
	}
	verify := func(b *testing.B, k *attest.Keyring) {
		b.Helper()
		var out attest.ProposalSeal
		if err := k.Verify(attest.KindProposalSeal, text, seal.Fingerprint, &out); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			// A keyring remembers what it has found good.
			k, err := attest.NewVerifier(publicOfBench)
			if err != nil {
				b.Fatal(err)
			}
			verify(b, k)
		}
	})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			verify(b, k)
		}
	})
}

// BenchmarkEd25519 is what the two above cannot go below.
func BenchmarkEd25519(b *testing.B) {
	message := encoded(b, sampleProposalSeal())
	private := ed25519.NewKeyFromSeed(seed(1))
	sig := ed25519.Sign(private, message)
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			ed25519.Sign(private, message)
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			ed25519.Verify(publicOfBench, message, sig)
		}
	})
}

var publicOfBench = publicOf(1)
