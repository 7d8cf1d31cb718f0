// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"crypto/ed25519"
	"fmt"
	"unicode/utf8"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

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
	k.checked.add(digestOf(kind, text))
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
	predicateText, found, ok := cutStatement(kind, payload)
	if !ok {
		return Subject{}, whyNoStatement(kind, payload)
	}
	found.KeyID = keyID
	if want != nil && found.SHA256 != *want {
		return Subject{}, &VerifyError{ReasonWrongSubject, string(kind), "the statement is about another call"}
	}
	if err := openPredicate(kind, predicateText, found.SHA256, out); err != nil {
		return Subject{}, err
	}
	return found, nil
}

func (k *Keyring) openEnvelope(kind PayloadKind, text string) (payload []byte, keyID string, err error) {
	payload, keyID, sig, ok := cutEnvelope(kind, text)
	if !ok {
		return nil, "", whyNoEnvelope(kind, text)
	}
	public, ok := k.public[keyID]
	if !ok {
		return nil, "", &VerifyError{ReasonUnknownKey, string(kind), "signed with a key that is not trusted here; check the published public keys"}
	}
	sum := digestOf(kind, text)
	if k.checked.knows(sum) {
		return payload, keyID, nil
	}
	if !ed25519.Verify(public, dsse.PAE(kind.PayloadType(), payload), sig) {
		return nil, "", &VerifyError{ReasonBadSignature, string(kind), "the signature does not match the content"}
	}
	k.checked.add(sum)
	return payload, keyID, nil
}

func openPredicate(kind PayloadKind, text []byte, subjectSHA256 string, out any) error {
	return decodeChecked(string(kind), text, kind.MaxBytes(), out, func(decoded any) error {
		p, ok := decoded.(predicate)
		if !ok {
			return nil
		}
		if p.payloadKind() != kind {
			return &VerifyError{ReasonWrongType, string(kind), "the caller expects a predicate of another kind"}
		}
		if p.subjectDigest() != subjectSHA256 {
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
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == n
}
