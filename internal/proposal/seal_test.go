// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/proposal"
)

func TestVerifySeal_ReturnsWhatWasSealed(t *testing.T) {
	k := keyring(t, 1)
	p := sealed(t, k, commandManifest())
	got, err := proposal.VerifySeal(k, p)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := proposal.SessionRef(session())
	if err != nil {
		t.Fatal(err)
	}
	if got.SealID != sealID || got.Epoch != 4 || !got.IssuedAt.Equal(now) || got.Tool != "change" || got.CallID != "c1" {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff(ref, got.Session); diff != "" {
		t.Errorf("session (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(proposal.UserOf(p.Spec.Requester), got.Requester); diff != "" {
		t.Errorf("requester (-want +got):\n%s", diff)
	}
}

func TestVerifySeal_RefusesASealThatIsNotForThisObject(t *testing.T) {
	k := keyring(t, 1)
	receipt := receiptOf(t, k, sealed(t, k, commandManifest()), "r", "alice")
	for name, edit := range map[string]func(*v1alpha1.ToolProposal){
		"no seal":                           func(p *v1alpha1.ToolProposal) { p.Spec.Seal = "" },
		"text":                              func(p *v1alpha1.ToolProposal) { p.Spec.Seal = "approved" },
		"a receipt's seal":                  func(p *v1alpha1.ToolProposal) { p.Spec.Seal = receipt.Spec.Seal },
		"another key's seal":                func(p *v1alpha1.ToolProposal) { p.Spec.Seal = sealed(t, keyring(t, 2), commandManifest()).Spec.Seal },
		"another call's seal":               func(p *v1alpha1.ToolProposal) { p.Spec.Seal = sealed(t, k, httpManifest()).Spec.Seal },
		"in another namespace":              func(p *v1alpha1.ToolProposal) { p.Namespace = "elsewhere" },
		"made long before the object":       func(p *v1alpha1.ToolProposal) { p.CreationTimestamp = metav1.NewTime(now.Add(61 * time.Second)) },
		"made long after the object":        func(p *v1alpha1.ToolProposal) { p.CreationTimestamp = metav1.NewTime(now.Add(-61 * time.Second)) },
		"in an object created at no time":   func(p *v1alpha1.ToolProposal) { p.CreationTimestamp = metav1.Time{} },
		"for a call that names no session":  func(p *v1alpha1.ToolProposal) { p.Spec.SessionRef = nil },
		"without who asked":                 func(p *v1alpha1.ToolProposal) { p.Spec.Requester = nil },
		"without what was prepared":         func(p *v1alpha1.ToolProposal) { p.Spec.Prepared = nil },
		"with hashes of another call":       func(p *v1alpha1.ToolProposal) { p.Spec.Prepared.ProposalHash = p.Spec.Prepared.Fingerprint },
		"with arguments that are not canon": func(p *v1alpha1.ToolProposal) { p.Spec.Prepared.ArgsCanonicalJSON = `{"target": "web"}` },
		"with an effect that is none":       func(p *v1alpha1.ToolProposal) { p.Spec.Prepared.Effect = v1alpha1.Effect{} },
	} {
		t.Run(name, func(t *testing.T) {
			p := sealed(t, k, commandManifest())
			edit(p)
			got, err := proposal.VerifySeal(k, p)
			if !errors.Is(err, proposal.ErrUnsealed) || got != nil && err == nil {
				t.Errorf("got %v, want ErrUnsealed", err)
			}
		})
	}
}

func TestVerifySeal_AcceptsTheWindowsEdges(t *testing.T) {
	k := keyring(t, 1)
	for _, d := range []time.Duration{-proposal.AcceptanceWindow, 0, proposal.AcceptanceWindow} {
		p := sealed(t, k, commandManifest())
		p.CreationTimestamp = metav1.NewTime(now.Add(d))
		if _, err := proposal.VerifySeal(k, p); err != nil {
			t.Errorf("%v: %v", d, err)
		}
	}
}

func TestVerifySeal_TellsAnotherEncodingFromNoSeal(t *testing.T) {
	k := keyring(t, 1)
	p := sealed(t, k, commandManifest())
	statement, err := proposal.VerifySeal(k, p)
	if err != nil {
		t.Fatal(err)
	}
	statement.Encoding = "v0"
	if p.Spec.Seal, err = k.Sign(attest.KindProposalSeal, "toolproposal", statement.Fingerprint, *statement); err != nil {
		t.Fatal(err)
	}
	if got, err := proposal.VerifySeal(k, p); !errors.Is(err, proposal.ErrOldEncoding) || got != nil {
		t.Errorf("got %v, %v, want nothing and ErrOldEncoding", got, err)
	}
}

func TestVerifySeal_AcceptsThePreviousKeyDuringARotation(t *testing.T) {
	old := keyring(t, 1)
	p := sealed(t, old, commandManifest())
	next, err := attest.NewKeyring(make([]byte, 32), old.PublicKeys()...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := proposal.VerifySeal(next, p); err != nil {
		t.Errorf("with the previous public key: %v", err)
	}
	if _, err := proposal.VerifySeal(keyring(t, 3), p); !errors.Is(err, proposal.ErrUnsealed) {
		t.Errorf("without it: %v, want ErrUnsealed", err)
	}
}

func TestSeal_NeedsWhatItIsFor(t *testing.T) {
	k := keyring(t, 1)
	p := sealed(t, k, commandManifest())
	p.Spec.Prepared = nil
	if err := proposal.Seal(k, p, proposal.Stamp{}); !errors.Is(err, proposal.ErrUnsealed) {
		t.Errorf("a call that was not prepared: %v", err)
	}
	r := receiptOf(t, k, sealed(t, k, commandManifest()), "r", "alice")
	r.Spec.Approver = nil
	if err := proposal.SealReceipt(k, r, proposal.Stamp{}); !errors.Is(err, proposal.ErrUnsealed) {
		t.Errorf("a receipt of nobody: %v", err)
	}
	if _, err := proposal.VerifyReceiptSeal(k, r); !errors.Is(err, proposal.ErrUnsealed) {
		t.Errorf("verifying a receipt of nobody: %v", err)
	}
}

func TestBindingOf_ChangesWithTheSituation(t *testing.T) {
	k := keyring(t, 1)
	p := sealed(t, k, commandManifest())
	seal, err := proposal.VerifySeal(k, p)
	if err != nil {
		t.Fatal(err)
	}
	first, err := proposal.BindingOf(p, seal).Hash()
	if err != nil {
		t.Fatal(err)
	}
	p.UID = "another"
	second, err := proposal.BindingOf(p, seal).Hash()
	if err != nil || first == second {
		t.Errorf("a new object of the name has the binding of the old one (%v)", err)
	}
}

func BenchmarkSeal(b *testing.B) {
	k := keyring(b, 1)
	p := sealed(b, k, commandManifest())
	stamp := proposal.Stamp{Namespace: namespace, SealID: sealID, Session: session(), Now: now}
	b.Run("seal", func(b *testing.B) {
		for b.Loop() {
			if err := proposal.Seal(k, p, stamp); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			// A keyring remembers the envelopes that it has found good.
			k, err := attest.NewVerifier(k.PublicKeys()...)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := proposal.VerifySeal(k, p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify again", func(b *testing.B) {
		for b.Loop() {
			if _, err := proposal.VerifySeal(k, p); err != nil {
				b.Fatal(err)
			}
		}
	})
}
