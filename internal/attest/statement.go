// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// statement is an in-toto Statement v1. The predicate stays text here, so that
// one function reads statements of every kind.
type statement struct {
	Type          string         `json:"_type"`
	Subject       []subject      `json:"subject"`
	PredicateType string         `json:"predicateType"`
	Predicate     jsontext.Value `json:"predicate"`
}

type subject struct {
	Name   string `json:"name"`
	Digest digest `json:"digest"`
}

type digest struct {
	SHA256 string `json:"sha256"`
}

type envelope struct {
	Payload     string      `json:"payload"`
	PayloadType string      `json:"payloadType"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"`
}

// predicate is implemented by the structures of this package. It ties a Go
// type to its kind and its fingerprint to the subject, so that neither side
// can sign or accept a statement that says two different things.
type predicate interface {
	payloadKind() PayloadKind
	// subjectDigest is the fingerprint. It needs no check of its own: it is
	// compared with a subject that was checked.
	subjectDigest() string
	check() error
}

// Subject is what a verified statement is about and who signed it.
type Subject struct {
	// Name is informative, as in-toto says; nothing is decided on it.
	Name string
	// SHA256 is the lower-case hex digest of the subject.
	SHA256 string
	// KeyID is the key whose signature was verified.
	KeyID string
}

// Sign returns a DSSE envelope, as canonical JSON, over an in-toto Statement
// whose subject is (subjectName, subjectSHA256) and whose predicate is the
// given structure.
//
// A predicate of this package must belong to kind, carry subjectSHA256 as its
// fingerprint and hold valid fields; otherwise nothing is signed.
func (k *Keyring) Sign(kind PayloadKind, subjectName, subjectSHA256 string, predicateValue any) (string, error) {
	private, ok := k.private[k.signingID]
	if !ok {
		return "", ErrNoSigningKey
	}
	if err := checkSubject(kind, subjectName, subjectSHA256, predicateValue); err != nil {
		return "", fmt.Errorf("signing %s: %w", kind, err)
	}
	predicateText, err := Encode(predicateValue)
	if err != nil {
		return "", fmt.Errorf("signing %s: %w", kind, err)
	}
	payload := statementText(kind, subjectName, subjectSHA256, predicateText)
	sig := ed25519.Sign(private, dsse.PAE(kind.PayloadType(), payload))
	text := envelopeText(kind, payload, k.signingID, sig)
	if len(text) > kind.MaxBytes() {
		return "", fmt.Errorf("signing %s: the envelope has %d bytes, at most %d are allowed", kind, len(text), kind.MaxBytes())
	}
	return text, nil
}

func checkSubject(kind PayloadKind, name, sha256Hex string, value any) error {
	if kind.MaxBytes() == 0 {
		return fmt.Errorf("there is no such kind of statement")
	}
	if name == "" || len(name) > maxNameBytes {
		return fmt.Errorf("subject name must have 1 to %d bytes", maxNameBytes)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("subject name must be UTF-8")
	}
	if !isHex(sha256Hex, 64) {
		return fmt.Errorf("subject digest must be 64 lower-case hex digits")
	}
	p, ok := value.(predicate)
	if !ok {
		return nil
	}
	if p.payloadKind() != kind {
		return fmt.Errorf("a predicate of kind %s was given", p.payloadKind())
	}
	if p.subjectDigest() != sha256Hex {
		return fmt.Errorf("the predicate's fingerprint is not the subject's digest")
	}
	return p.check()
}

// statementText is the only form in which a statement is accepted: RFC 8785
// text around a predicate that is RFC 8785 text itself. The name must be valid
// UTF-8 and the digest hex.
func statementText(kind PayloadKind, name, sha256Hex string, predicateText []byte) []byte {
	b := make([]byte, 0, len(predicateText)+len(name)+320)
	b = append(b, `{"_type":"`+statementType+`","predicate":`...)
	b = append(b, predicateText...)
	b = append(b, `,"predicateType":"`...)
	b = append(b, kind.PredicateType()...)
	b = append(b, `","subject":[{"digest":{"sha256":"`...)
	b = append(b, sha256Hex...)
	b = append(b, `"},"name":`...)
	// It fails for text that is not UTF-8 only.
	b, _ = jsontext.AppendQuote(b, name)
	return append(b, `}]}`...)
}

// envelopeText is the only form in which an envelope is accepted: RFC 8785
// text with exactly one signature. All parts are plain ASCII without
// characters that JSON escapes.
func envelopeText(kind PayloadKind, payload []byte, keyID string, sig []byte) string {
	var b strings.Builder
	b.Grow(len(payload)*4/3 + 320)
	b.WriteString(`{"payload":"`)
	b.WriteString(base64.StdEncoding.EncodeToString(payload))
	b.WriteString(`","payloadType":"`)
	b.WriteString(kind.PayloadType())
	b.WriteString(`","signatures":[{"keyid":"`)
	b.WriteString(keyID)
	b.WriteString(`","sig":"`)
	b.WriteString(base64.StdEncoding.EncodeToString(sig))
	b.WriteString(`"}]}`)
	return b.String()
}

// Verify checks an envelope made by [Keyring.Sign] and reads its predicate
// into predicateOut, a pointer to a structure. It accepts only a statement of
// exactly this kind about exactly wantSubjectSHA256, signed by a key of the
// keyring; every error is a *[VerifyError].
//
// predicateOut is set as a whole on success and untouched on failure. What the
// statement says beyond its subject (namespace, expiry, epoch, names) is for
// the caller to compare with what is being decided.
func (k *Keyring) Verify(kind PayloadKind, envelope, wantSubjectSHA256 string, predicateOut any) error {
	_, err := k.open(kind, envelope, &wantSubjectSHA256, predicateOut)
	return err
}

// Open is [Keyring.Verify] for a reader that learns the subject from the
// statement, as a reader of the audit log does. The caller must bind the
// returned subject to something; a decision about a call uses Verify.
func (k *Keyring) Open(kind PayloadKind, envelope string, predicateOut any) (Subject, error) {
	return k.open(kind, envelope, nil, predicateOut)
}

func (k *Keyring) open(kind PayloadKind, text string, want *string, out any) (Subject, error) {
	payload, keyID, err := k.openEnvelope(kind, text)
	if err != nil {
		return Subject{}, err
	}
	var st statement
	if err := parse(string(kind), payload, kind.MaxBytes(), &st); err != nil {
		return Subject{}, err
	}
	if st.Type != statementType || st.PredicateType != kind.PredicateType() {
		return Subject{}, &VerifyError{ReasonWrongType, string(kind), "the payload is another type of statement"}
	}
	if len(st.Subject) != 1 || !isHex(st.Subject[0].Digest.SHA256, 64) {
		return Subject{}, &VerifyError{ReasonMalformed, string(kind), "the statement must have one subject with one SHA-256 digest"}
	}
	if !bytes.Equal(statementText(kind, st.Subject[0].Name, st.Subject[0].Digest.SHA256, st.Predicate), payload) {
		return Subject{}, notCanonical(string(kind))
	}
	found := Subject{Name: st.Subject[0].Name, SHA256: st.Subject[0].Digest.SHA256, KeyID: keyID}
	if want != nil && found.SHA256 != *want {
		return Subject{}, &VerifyError{ReasonWrongSubject, string(kind), "the statement is about another call"}
	}
	if err := openPredicate(kind, st, out); err != nil {
		return Subject{}, err
	}
	return found, nil
}

func (k *Keyring) openEnvelope(kind PayloadKind, text string) (payload []byte, keyID string, err error) {
	var e envelope
	if err := parse(string(kind), []byte(text), kind.MaxBytes(), &e); err != nil {
		return nil, "", err
	}
	if e.PayloadType != kind.PayloadType() {
		return nil, "", &VerifyError{ReasonWrongType, string(kind), "the envelope has another payload type"}
	}
	if len(e.Signatures) != 1 {
		return nil, "", &VerifyError{ReasonMalformed, string(kind), "the envelope must have exactly one signature"}
	}
	payload, errPayload := base64.StdEncoding.DecodeString(e.Payload)
	sig, errSig := base64.StdEncoding.DecodeString(e.Signatures[0].Sig)
	keyID = e.Signatures[0].KeyID
	// The base64 decoder skips line breaks and unused bits; comparing texts
	// leaves one spelling for each envelope.
	if errPayload != nil || errSig != nil || !isHex(keyID, 64) || envelopeText(kind, payload, keyID, sig) != text {
		return nil, "", &VerifyError{ReasonMalformed, string(kind), "payload, key ID or signature is not in canonical form"}
	}
	public, ok := k.public[keyID]
	if !ok {
		return nil, "", &VerifyError{ReasonUnknownKey, string(kind), "signed with a key that is not trusted here; check the published public keys"}
	}
	if !ed25519.Verify(public, dsse.PAE(e.PayloadType, payload), sig) {
		return nil, "", &VerifyError{ReasonBadSignature, string(kind), "the signature does not match the content"}
	}
	return payload, keyID, nil
}

func openPredicate(kind PayloadKind, st statement, out any) error {
	return decodeChecked(string(kind), st.Predicate, kind.MaxBytes(), out, func(decoded any) error {
		p, ok := decoded.(predicate)
		if !ok {
			return nil
		}
		if p.payloadKind() != kind {
			return &VerifyError{ReasonWrongType, string(kind), "the caller expects a predicate of another kind"}
		}
		if p.subjectDigest() != st.Subject[0].Digest.SHA256 {
			return &VerifyError{ReasonWrongSubject, string(kind), "the fingerprint inside differs from the subject"}
		}
		if err := p.check(); err != nil {
			return &VerifyError{ReasonMalformed, string(kind), err.Error()}
		}
		return nil
	})
}

// isHex reports whether s is n lower-case hexadecimal digits.
func isHex(s string, n int) bool {
	if len(s) != n || strings.ToLower(s) != s {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}
