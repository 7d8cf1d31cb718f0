// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/assent-dev/assent/internal/attest"
)

// keyVerifier is all that the generic DSSE library needs to know about a key.
type keyVerifier struct{ public ed25519.PublicKey }

func (v keyVerifier) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(v.public, data, sig) {
		return errors.New("bad signature")
	}
	return nil
}
func (v keyVerifier) KeyID() (string, error)   { return attest.KeyID(v.public), nil }
func (v keyVerifier) Public() crypto.PublicKey { return v.public }

// TestEnvelope_VerifiesWithGenericLibraries reads every kind of statement with
// the DSSE and in-toto libraries alone. encoding/json stands for a tool that
// knows nothing of Assent.
func TestEnvelope_VerifiesWithGenericLibraries(t *testing.T) {
	k := keyring(t, 1)
	verifier, err := dsse.NewEnvelopeVerifier(keyVerifier{publicOf(1)})
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := dsse.NewEnvelopeVerifier(keyVerifier{publicOf(2)})
	if err != nil {
		t.Fatal(err)
	}
	all := samples(t)
	all[attest.KindAuditRecord] = struct {
		Type string `json:"type"`
	}{"Denied"}
	for kind, value := range all {
		digest := fingerprintOf(value)
		if digest == "" {
			digest = digestOf("record")
		}
		text, err := k.Sign(kind, "call", digest, value)
		if err != nil {
			t.Fatal(err)
		}
		var e dsse.Envelope
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		accepted, payload, err := verifier.VerifyAndDecode(t.Context(), &e)
		if err != nil || len(accepted) != 1 || accepted[0].KeyID != attest.KeyID(publicOf(1)) {
			t.Fatalf("%s: %v", kind, err)
		}
		if _, err := foreign.Verify(t.Context(), &e); err == nil {
			t.Errorf("%s verifies with a foreign key", kind)
		}
		var st intoto.Statement
		if err := protojson.Unmarshal(payload, &st); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if err := st.Validate(); err != nil {
			t.Errorf("%s: in-toto: %v", kind, err)
		}
		if st.GetType() != intoto.StatementTypeUri || st.GetPredicateType() != kind.PredicateType() {
			t.Errorf("%s: types %s, %s", kind, st.GetType(), st.GetPredicateType())
		}
		if diff := cmp.Diff(map[string]string{"sha256": digest}, st.GetSubject()[0].GetDigest()); diff != "" {
			t.Errorf("%s: subject %s", kind, diff)
		}
	}
}

func TestEnvelope_FromAGenericSignerIsAcceptedInCanonicalForm(t *testing.T) {
	signer, err := dsse.NewEnvelopeSigner(keySigner{ed25519.NewKeyFromSeed(seed(1))})
	if err != nil {
		t.Fatal(err)
	}
	e, err := signer.SignPayload(t.Context(), attest.KindReceiptSeal.PayloadType(), []byte(statementJSON(t)))
	if err != nil {
		t.Fatal(err)
	}
	var out attest.ReceiptSeal
	text := envelopeJSON(e.PayloadType, e.Payload, e.Signatures[0].KeyID, e.Signatures[0].Sig)
	if err := keyring(t, 1).Verify(attest.KindReceiptSeal, text, sampleReceiptSeal().Fingerprint, &out); err != nil {
		t.Error(err)
	}
}

type keySigner struct{ private ed25519.PrivateKey }

func (s keySigner) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(s.private, data), nil
}

func (s keySigner) KeyID() (string, error) {
	return attest.KeyID(s.private.Public().(ed25519.PublicKey)), nil
}

// TestKinds_AreDistinctAndFollowInToto holds the names that other tools see.
func TestKinds_AreDistinctAndFollowInToto(t *testing.T) {
	form := regexp.MustCompile(`^application/vnd\.in-toto\.[a-z-]+\+json$`)
	seen := map[string]bool{}
	for _, kind := range []attest.PayloadKind{attest.KindProposalSeal, attest.KindReceiptSeal, attest.KindTicket, attest.KindAuditRecord} {
		if !form.MatchString(kind.PayloadType()) {
			t.Errorf("%s: payload type %s is not in the form of the in-toto envelope specification", kind, kind.PayloadType())
		}
		if seen[kind.PayloadType()] || seen[kind.PredicateType()] || kind.MaxBytes() == 0 {
			t.Errorf("%s shares a type or has no limit", kind)
		}
		seen[kind.PayloadType()], seen[kind.PredicateType()] = true, true
	}
	if got, want := attest.KindTicket.PredicateType(), "https://assent.dev/ticket/v1alpha1"; got != want {
		t.Errorf("predicate type %s, want %s", got, want)
	}
}

// TestDocumentedRecipe_VerifiesWithOpenSSL runs the shell commands that
// docs/signatures.md gives to people without Assent.
func TestDocumentedRecipe_VerifiesWithOpenSSL(t *testing.T) {
	for _, tool := range []string{"sh", "openssl", "jq", "base64"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: the documented commands were not run", tool)
		}
	}
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "signatures.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)<!-- tested -->\n```sh\n(.*?)```").FindSubmatch(doc)
	if block == nil {
		t.Fatal("docs/signatures.md has no tested recipe")
	}
	seal := sampleReceiptSeal()
	valid, err := keyring(t, 1).Sign(attest.KindReceiptSeal, "r", seal.Fingerprint, seal)
	if err != nil {
		t.Fatal(err)
	}
	run := func(envelope string) (string, error) {
		dir := t.TempDir()
		for name, data := range map[string][]byte{
			"envelope.json": []byte(envelope), "signing.pub": attest.EncodePublicKeysPEM(publicOf(1)),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", string(block[1]))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run(valid)
	if err != nil || !strings.Contains(out, "Signature Verified Successfully") || !strings.Contains(out, seal.Fingerprint) {
		t.Errorf("the valid envelope: %v\n%s", err, out)
	}
	if !strings.Contains(out, attest.KeyID(publicOf(1))) {
		t.Errorf("the key ID printed is not the one in the envelope:\n%s", out)
	}
	if out, err := run(strings.Replace(valid, "receipt-seal", "ticket", 1)); err == nil {
		t.Errorf("an envelope with another payload type passed:\n%s", out)
	}
}
