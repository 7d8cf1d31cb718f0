// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"

	"github.com/assent-dev/assent/internal/attest"
)

func TestKeyID_IsTheDigestOfTheSubjectPublicKeyInfo(t *testing.T) {
	// The public key of RFC 8410 section 10.1; the digest is what openssl
	// prints for its DER form.
	public, err := hex.DecodeString("19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1")
	if err != nil {
		t.Fatal(err)
	}
	der := append([]byte{0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00}, public...)
	sum := sha256.Sum256(der)
	if got, want := attest.KeyID(public), hex.EncodeToString(sum[:]); got != want {
		t.Errorf("KeyID = %s, want %s", got, want)
	}
	if got := attest.KeyID(public[:31]); got != "" {
		t.Errorf("KeyID of 31 bytes = %q, want empty", got)
	}
}

func TestNewKeyring_RefusesBadKeys(t *testing.T) {
	if _, err := attest.NewKeyring(seed(1)[:31]); err == nil || err.Error() != "signing seed has 31 bytes; an Ed25519 seed has 32" {
		t.Errorf("short seed: %v", err)
	}
	if _, err := attest.NewKeyring(seed(1), publicOf(2), publicOf(3)[:1]); err == nil || err.Error() != "public key 1 has 1 bytes; an Ed25519 public key has 32" {
		t.Errorf("short public key: %v", err)
	}
	if _, err := keyring(t, 1).WithPrevious(nil); err == nil {
		t.Error("WithPrevious accepted an empty seed")
	}
}

func TestPublicKeys_ListsTheSigningKeyFirstAndCopies(t *testing.T) {
	for b := byte(1); b < 8; b++ { // IDs sort differently around each signing key
		k := keyring(t, b, publicOf(10), publicOf(11), publicOf(12))
		keys := k.PublicKeys()
		if len(keys) != 4 || !keys[0].Equal(publicOf(b)) {
			t.Fatalf("keyring %d: %d keys, the signing key is not first", b, len(keys))
		}
		for i := 2; i < len(keys); i++ {
			if attest.KeyID(keys[i-1]) >= attest.KeyID(keys[i]) {
				t.Errorf("keyring %d: verification keys are not in order of their IDs", b)
			}
		}
		keys[0][0] ^= 1
		if !k.PublicKeys()[0].Equal(publicOf(b)) {
			t.Error("a caller can change the keyring through PublicKeys")
		}
		if got := k.SigningKeyID(); got != attest.KeyID(publicOf(b)) {
			t.Errorf("SigningKeyID = %s", got)
		}
	}
}

func TestRotation_KeepsOldStatementsAndOldResultsValid(t *testing.T) {
	before := keyring(t, 1)
	seal := sampleReceiptSeal()
	text, err := before.Sign(attest.KindReceiptSeal, "r", seal.Fingerprint, seal)
	if err != nil {
		t.Fatal(err)
	}
	oldKey, err := before.ResultKey(before.SigningKeyID(), "u-p1", "u-pod1", "n")
	if err != nil {
		t.Fatal(err)
	}

	after := keyring(t, 2)
	var out attest.ReceiptSeal
	if got := attest.ReasonOf(after.Verify(attest.KindReceiptSeal, text, seal.Fingerprint, &out)); got != attest.ReasonUnknownKey {
		t.Errorf("without the previous key: reason %q, want UnknownKey", got)
	}
	if _, err := after.ResultKey(before.SigningKeyID(), "u-p1", "u-pod1", "n"); !errors.Is(err, attest.ErrNoSigningKey) {
		t.Errorf("derived from a seed that is not there: %v", err)
	}

	rotated, err := after.WithPrevious(seed(1))
	if err != nil {
		t.Fatal(err)
	}
	if rotated.SigningKeyID() != after.SigningKeyID() {
		t.Error("a previous seed became the signing key")
	}
	if err := rotated.Verify(attest.KindReceiptSeal, text, seal.Fingerprint, &out); err != nil {
		t.Errorf("with the previous key: %v", err)
	}
	got, err := rotated.ResultKey(before.SigningKeyID(), "u-p1", "u-pod1", "n")
	if err != nil || got != oldKey {
		t.Errorf("the previous result key differs (err %v)", err)
	}
}

// hkdf is RFC 5869 from its text, for keys of one block.
func hkdf(secret []byte, info string) []byte {
	extract := hmac.New(sha256.New, make([]byte, 32))
	extract.Write(secret)
	expand := hmac.New(sha256.New, extract.Sum(nil))
	expand.Write([]byte(info))
	expand.Write([]byte{1})
	return expand.Sum(nil)
}

func frame(parts ...string) string {
	var b []byte
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	return string(b)
}

func TestDeriveKey_IsHKDFOverFramedParts(t *testing.T) {
	got, err := keyring(t, 1).DeriveKey("result", "uid", "", "nonce")
	if err != nil {
		t.Fatal(err)
	}
	want := hkdf(seed(1), frame("assent.dev/derive/v1", "result", "uid", "", "nonce"))
	if !bytes.Equal(got[:], want) {
		t.Errorf("DeriveKey = %x, want %x", got, want)
	}
	replica, err := keyring(t, 1, publicOf(9)).DeriveKey("result", "uid", "", "nonce")
	if err != nil || replica != got {
		t.Errorf("another replica derives another key (err %v)", err)
	}
}

func TestDeriveKey_SeparatesLabelsPartsAndSeeds(t *testing.T) {
	k := keyring(t, 1)
	seen := map[[32]byte]string{}
	for _, in := range [][]string{
		{"a", "b", "c"}, {"a", "bc"}, {"a", "b", "c", ""}, {"ab", "c"}, {"abc"}, {"a", "c", "b"}, {"a"}, {"", "a"}, {"a", ""},
	} {
		key, err := k.DeriveKey(in[0], in[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := seen[key]; taken {
			t.Errorf("%q and %s give the same key", in, other)
		}
		seen[key] = strings.Join(in, "|")
	}
	other, err := keyring(t, 2).DeriveKey("a", "b", "c")
	if _, taken := seen[other]; taken || err != nil {
		t.Errorf("another seed gives the same key (err %v)", err)
	}
}

func TestDeriveKey_NeedsASeed(t *testing.T) {
	v, err := attest.NewVerifier(publicOf(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.DeriveKey("a"); !errors.Is(err, attest.ErrNoSigningKey) {
		t.Errorf("DeriveKey: %v, want ErrNoSigningKey", err)
	}
	if _, err := v.NoteSigner("log"); !errors.Is(err, attest.ErrNoSigningKey) {
		t.Errorf("NoteSigner: %v, want ErrNoSigningKey", err)
	}
	if got := v.SigningKeyID(); got != "" {
		t.Errorf("SigningKeyID = %q, want empty", got)
	}
}

func TestRandomValues_UseAllOfTheirSource(t *testing.T) {
	source := func() *bytes.Reader { return bytes.NewReader(seed(7)) }
	s, err := attest.GenerateSeed(source())
	if err != nil || !bytes.Equal(s, seed(7)) {
		t.Errorf("GenerateSeed = %x, %v", s, err)
	}
	nonce, err := attest.NewNonce(source())
	if err != nil || nonce != strings.Repeat("07", 32) {
		t.Errorf("NewNonce = %s, %v", nonce, err)
	}
	id, err := attest.NewSealID(source())
	if err != nil || id != strings.Repeat("07", 16) {
		t.Errorf("NewSealID = %s, %v", id, err)
	}
	broken := iotest.ErrReader(errors.New("no entropy"))
	_, errSeed := attest.GenerateSeed(broken)
	_, errNonce := attest.NewNonce(broken)
	_, errID := attest.NewSealID(broken)
	for name, err := range map[string]error{"GenerateSeed": errSeed, "NewNonce": errNonce, "NewSealID": errID} {
		if err == nil || !strings.HasSuffix(err.Error(), "no entropy") {
			t.Errorf("%s without entropy: %v", name, err)
		}
	}
}

func TestNote_SignsCheckpointsThatOnlyThisOriginAndKeyVerify(t *testing.T) {
	k := keyring(t, 1, publicOf(2))
	signer, err := k.NoteSigner("assent.example/log")
	if err != nil {
		t.Fatal(err)
	}
	signed, err := note.Sign(&note.Note{Text: "assent.example/log\n0\n\n"}, signer)
	if err != nil {
		t.Fatal(err)
	}
	verifiers, err := k.NoteVerifiers("assent.example/log")
	if err != nil || len(verifiers) != 2 {
		t.Fatalf("NoteVerifiers: %d, %v", len(verifiers), err)
	}
	if verifiers[0].KeyHash() != signer.KeyHash() {
		t.Error("the signing key's verifier is not first")
	}
	if _, err := note.Open(signed, note.VerifierList(verifiers...)); err != nil {
		t.Errorf("Open: %v", err)
	}
	foreign := map[string]func() ([]note.Verifier, error){
		"another key":    func() ([]note.Verifier, error) { return keyring(t, 3).NoteVerifiers("assent.example/log") },
		"another origin": func() ([]note.Verifier, error) { return k.NoteVerifiers("assent.example/other") },
	}
	for name, make := range foreign {
		verifiers, err := make()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := note.Open(signed, note.VerifierList(verifiers...)); err == nil {
			t.Errorf("%s verifies the checkpoint", name)
		}
	}
}

func TestNote_RefusesOriginsThatAreNoNoteNames(t *testing.T) {
	k := keyring(t, 1)
	for _, origin := range []string{"", "two words", "with+plus"} {
		if _, err := k.NoteSigner(origin); err == nil {
			t.Errorf("NoteSigner accepted %q", origin)
		}
		if _, err := k.NoteVerifiers(origin); err == nil {
			t.Errorf("NoteVerifiers accepted %q", origin)
		}
	}
}

func TestPEM_RoundTrips(t *testing.T) {
	text := attest.EncodePublicKeysPEM(publicOf(1), publicOf(2))
	keys, err := attest.ParsePublicKeysPEM(append([]byte("\n"), append(text, "\n \n"...)...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]ed25519.PublicKey{publicOf(1), publicOf(2)}, keys); diff != "" {
		t.Error(diff)
	}
	private, err := attest.EncodeSeedPEM(seed(1))
	if err != nil {
		t.Fatal(err)
	}
	got, err := attest.ParseSeedPEM(private)
	if err != nil || !bytes.Equal(got, seed(1)) {
		t.Errorf("seed changed on the way (err %v)", err)
	}
	if _, err := attest.EncodeSeedPEM(seed(1)[:5]); err == nil {
		t.Error("EncodeSeedPEM accepted 5 bytes")
	}
}

// otherKeysPEM returns an elliptic curve key pair in the same containers.
func otherKeysPEM(t *testing.T) (public, private string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pub, errPublic := x509.MarshalPKIXPublicKey(key.Public())
	priv, errPrivate := x509.MarshalPKCS8PrivateKey(key)
	if errPublic != nil || errPrivate != nil {
		t.Fatal(errPublic, errPrivate)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: priv}))
}

func TestPEM_RefusesEverythingElse(t *testing.T) {
	public := string(attest.EncodePublicKeysPEM(publicOf(1)))
	privateBytes, err := attest.EncodeSeedPEM(seed(1))
	if err != nil {
		t.Fatal(err)
	}
	private := string(privateBytes)
	garbled := func(s string) string { return strings.Replace(s, "MC", "AA", 1) }
	ecPublic, ecPrivate := otherKeysPEM(t)

	publicTests := map[string]struct{ in, want string }{
		"nothing":                   {"", `public keys: no PEM block "PUBLIC KEY"`},
		"text in front":             {"key:\n" + public, `public keys: expected only PEM blocks "PUBLIC KEY"`},
		"text behind":               {public + "key", `public keys: expected only PEM blocks "PUBLIC KEY"`},
		"a private key":             {private, `public keys: expected only PEM blocks "PUBLIC KEY"`},
		"a cut block":               {public[:60], "public keys: block 0 is not well-formed PEM"},
		"headers":                   {strings.Replace(public, "KEY-----\n", "KEY-----\nA: b\n\n", 1), "public keys: block 0 is not well-formed PEM"},
		"bytes that are no key":     {garbled(public), "public keys: block 0 is not a PKIX public key"},
		"an elliptic curve key":     {public + ecPublic, "public keys: block 1: the key is not an Ed25519 key"},
		"more than could be needed": {strings.Repeat(public, 600), "public keys: longer than 65536 bytes"},
	}
	for name, tc := range publicTests {
		if _, err := attest.ParsePublicKeysPEM([]byte(tc.in)); err == nil || err.Error() != tc.want {
			t.Errorf("public, %s: error %v, want %s", name, err, tc.want)
		}
	}
	privateTests := map[string]struct{ in, want string }{
		"nothing":               {"", `private key: no PEM block "PRIVATE KEY"`},
		"a public key":          {public, `private key: expected only PEM blocks "PRIVATE KEY"`},
		"two keys":              {private + private, "private key: give exactly one PEM block"},
		"bytes that are no key": {garbled(private), "private key: not a PKCS #8 private key"},
		"an elliptic curve key": {ecPrivate, "private key: the key is not an Ed25519 key"},
	}
	for name, tc := range privateTests {
		if _, err := attest.ParseSeedPEM([]byte(tc.in)); err == nil || err.Error() != tc.want {
			t.Errorf("private, %s: error %v, want %s", name, err, tc.want)
		}
	}
}
