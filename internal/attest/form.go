// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The constant parts of the only accepted texts, in their order.
const (
	statementHead = `{"_type":"` + statementType + `","predicate":`
	statementName = `"},"name":`
	statementTail = `}]}`

	envelopeHead = `{"payload":"`
	envelopeSig  = `","sig":"`
	envelopeTail = `"}]}`
)

func statementMiddle(kind PayloadKind) string {
	return `,"predicateType":"` + kind.PredicateType() + `","subject":[{"digest":{"sha256":"`
}

func envelopeMiddle(kind PayloadKind) string {
	return `","payloadType":"` + kind.PayloadType() + `","signatures":[{"keyid":"`
}

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

// statementText is the only form in which a statement is accepted: RFC 8785
// text around a predicate that is RFC 8785 text itself. The name must be valid
// UTF-8 and the digest hex.
func statementText(kind PayloadKind, name, sha256Hex string, predicateText []byte) []byte {
	b := make([]byte, 0, len(predicateText)+len(name)+320)
	b = append(b, statementHead...)
	b = append(b, predicateText...)
	b = append(b, statementMiddle(kind)...)
	b = append(b, sha256Hex...)
	b = append(b, statementName...)
	// It fails for text that is not UTF-8 only.
	b, _ = jsontext.AppendQuote(b, name)
	return append(b, statementTail...)
}

// envelopeText is the only form in which an envelope is accepted: RFC 8785
// text with exactly one signature. All parts are plain ASCII without
// characters that JSON escapes.
func envelopeText(kind PayloadKind, payload []byte, keyID string, sig []byte) string {
	var b strings.Builder
	b.Grow(len(payload)*4/3 + 320)
	b.WriteString(envelopeHead)
	b.WriteString(base64.StdEncoding.EncodeToString(payload))
	b.WriteString(envelopeMiddle(kind))
	b.WriteString(keyID)
	b.WriteString(envelopeSig)
	b.WriteString(base64.StdEncoding.EncodeToString(sig))
	b.WriteString(envelopeTail)
	return b.String()
}

const (
	keyIDLength  = 64
	sha256Length = 64
)

// cutEnvelope takes an envelope apart that is exactly what [envelopeText]
// writes: there is one such text only, so that it can be cut instead of parsed.
func cutEnvelope(kind PayloadKind, text string) (payload []byte, keyID string, sig []byte, ok bool) {
	rest, ok := strings.CutPrefix(text, envelopeHead)
	if !ok || len(text) > kind.MaxBytes() {
		return nil, "", nil, false
	}
	encoded, rest, found := strings.Cut(rest, envelopeMiddle(kind))
	if !found || len(rest) < keyIDLength {
		return nil, "", nil, false
	}
	keyID, rest = rest[:keyIDLength], rest[keyIDLength:]
	rest, hasSig := strings.CutPrefix(rest, envelopeSig)
	rest, hasTail := strings.CutSuffix(rest, envelopeTail)
	payload, payloadOK := fromBase64(encoded)
	sig, sigOK := fromBase64(rest)
	return payload, keyID, sig, hasSig && hasTail && payloadOK && sigOK && isHex(keyID, keyIDLength)
}

// fromBase64 accepts the one spelling that the encoder would choose. The
// decoder skips line breaks, which the length gives away.
func fromBase64(text string) ([]byte, bool) {
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	return data, err == nil && base64.StdEncoding.EncodedLen(len(data)) == len(text)
}

// whyNoEnvelope says what is wrong with a text that is not what [envelopeText]
// writes.
func whyNoEnvelope(kind PayloadKind, text string) error {
	var e envelope
	if err := parse(string(kind), []byte(text), kind.MaxBytes(), &e); err != nil {
		return err
	}
	if e.PayloadType != kind.PayloadType() {
		return &VerifyError{ReasonWrongType, string(kind), "the envelope has another payload type"}
	}
	if len(e.Signatures) != 1 {
		return &VerifyError{ReasonMalformed, string(kind), "the envelope must have exactly one signature"}
	}
	return &VerifyError{ReasonMalformed, string(kind), "payload, key ID or signature is not in canonical form"}
}

// cutStatement takes a statement apart that is exactly what [statementText]
// writes around some JSON value. Whoever reads the predicate has to refuse a
// value that is not canonical, and then the whole is.
func cutStatement(kind PayloadKind, payload []byte) (predicateText []byte, about Subject, ok bool) {
	rest, hasHead := bytes.CutPrefix(payload, []byte(statementHead))
	middle := statementMiddle(kind)
	// The predicate may hold anything; the subject holds no such text.
	at := bytes.LastIndex(rest, []byte(middle))
	if !hasHead || at < 0 {
		return nil, Subject{}, false
	}
	predicateText, rest = rest[:at], rest[at+len(middle):]
	if len(rest) < sha256Length {
		return nil, Subject{}, false
	}
	digest, rest := string(rest[:sha256Length]), rest[sha256Length:]
	rest, hasName := bytes.CutPrefix(rest, []byte(statementName))
	quoted, hasTail := bytes.CutSuffix(rest, []byte(statementTail))
	name, err := jsontext.AppendUnquote(nil, quoted)
	if !hasName || !hasTail || err != nil || !isHex(digest, sha256Length) {
		return nil, Subject{}, false
	}
	again, err := jsontext.AppendQuote(nil, name)
	ok = err == nil && bytes.Equal(again, quoted) && jsontext.Value(predicateText).IsValid()
	return predicateText, Subject{Name: string(name), SHA256: digest}, ok
}

// whyNoStatement says what is wrong with a payload that is not what
// [statementText] writes.
func whyNoStatement(kind PayloadKind, payload []byte) error {
	var st statement
	if err := parse(string(kind), payload, kind.MaxBytes(), &st); err != nil {
		return err
	}
	if st.Type != statementType || st.PredicateType != kind.PredicateType() {
		return &VerifyError{ReasonWrongType, string(kind), "the payload is another type of statement"}
	}
	if len(st.Subject) != 1 || !isHex(st.Subject[0].Digest.SHA256, sha256Length) {
		return &VerifyError{ReasonMalformed, string(kind), "the statement must have one subject with one SHA-256 digest"}
	}
	return notCanonical(string(kind))
}
