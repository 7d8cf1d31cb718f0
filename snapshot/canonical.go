// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
)

// canonicalizer holds two independent implementations of RFC 8785. The first
// one writes the text that counts; the second one must agree with it. They are
// fields so that tests can break either one.
type canonicalizer struct {
	authority func(text []byte) ([]byte, error)
	witness   func(text []byte) ([]byte, error)
}

// standard returns the implementations in use. jsontext is the witness and
// never the authority: left alone it turns 1e400 into 1.7976931348623157e+308.
func standard() canonicalizer {
	return canonicalizer{authority: jcs.Transform, witness: formatCanonical}
}

// formatCanonical canonicalises with jsontext.
func formatCanonical(text []byte) ([]byte, error) {
	return jsontext.AppendFormat(make([]byte, 0, len(text)), text,
		jsontext.CanonicalizeRawInts(true),
		jsontext.CanonicalizeRawFloats(true),
		jsontext.ReorderRawObjects(true))
}

// canonical turns a tree into its canonical text: detached, validated,
// canonicalised and checked. A text that fails the self-check is not returned.
func (c canonicalizer) canonical(tree any, lim limits) (string, *fault) {
	items, f := detach(tree, lim)
	if f != nil {
		return "", f
	}
	plain, f := encode(items, lim)
	if f != nil {
		return "", f
	}
	text, err := c.authority(plain)
	if err != nil {
		return "", refuse(ReasonSelfCheck)
	}
	if len(text) > lim.bytes {
		return "", refuse(ReasonTooLarge)
	}
	second, err := c.witness(plain)
	if err != nil || !bytes.Equal(text, second) || !decodesTo(text, items) {
		return "", refuse(ReasonSelfCheck)
	}
	return string(text), nil
}

// encode writes items as JSON for the canonicalisers to read. It stops as soon
// as the text exceeds the limit: the tree of a schema step has no size limit of
// its own.
func encode(items []item, lim limits) ([]byte, *fault) {
	text := make([]byte, 0, min(lim.bytes, 8*len(items)))
	for i := range items {
		if i > 0 && needsComma(items[i-1].kind, items[i].kind) {
			text = append(text, ',')
		}
		text = appendItem(text, &items[i])
		if len(text) > lim.bytes {
			return nil, refuse(ReasonTooLarge)
		}
	}
	return text, nil
}

// needsComma reports whether a comma separates two neighbouring items.
func needsComma(before, after kind) bool {
	switch before {
	case kindBeginArray, kindBeginObject, kindName:
		return false
	}
	return after != kindEndArray && after != kindEndObject
}

// appendItem writes one item; a name brings its colon.
func appendItem(text []byte, i *item) []byte {
	switch i.kind {
	case kindNumber:
		return appendNumber(text, i.number)
	case kindString:
		return appendString(text, i.text)
	case kindName:
		return append(appendString(text, i.text), ':')
	default:
		return append(text, fixedText[i.kind]...)
	}
}

// fixedText holds the kinds that are written the same way every time.
var fixedText = [...]string{
	kindNull:        "null",
	kindFalse:       "false",
	kindTrue:        "true",
	kindBeginArray:  "[",
	kindEndArray:    "]",
	kindBeginObject: "{",
	kindEndObject:   "}",
}

// appendString quotes well-formed UTF-8, for which AppendQuote cannot fail.
func appendString(text []byte, s string) []byte {
	text, _ = jsontext.AppendQuote(text, s)
	return text
}

// decodesTo reports whether the canonical text, decoded, is exactly the tree
// that was detached, and nothing follows it.
func decodesTo(text []byte, items []item) bool {
	f := follower{tokens: jsontext.NewDecoder(bytes.NewBuffer(text))}
	for i := range items {
		if !f.follow(&items[i]) {
			return false
		}
	}
	return f.tokens.InputOffset() == int64(len(text))
}

// follower reads a text token by token next to the items it should consist of.
type follower struct {
	tokens  *jsontext.Decoder
	scratch []byte // for unquoted strings
}

// follow reads one token and reports whether it is the item.
func (f *follower) follow(i *item) bool {
	switch i.kind {
	case kindNumber:
		token, err := f.tokens.ReadValue()
		return err == nil && token.Kind() == jsontext.KindNumber && isNumber(token, i.number)
	case kindString, kindName:
		token, err := f.tokens.ReadValue()
		return err == nil && token.Kind() == jsontext.KindString && f.unquotesTo(token, i.text)
	default:
		token, err := f.tokens.ReadToken()
		return err == nil && token.Kind() == jsontext.Kind(fixedText[i.kind][0])
	}
}

// isNumber reports whether a number token decodes to want.
func isNumber(token []byte, want float64) bool {
	got, why := parseNumber(token)
	return why == "" && got == want
}

// unquotesTo reports whether a string token decodes to want.
func (f *follower) unquotesTo(token []byte, want string) bool {
	f.scratch, _ = jsontext.AppendUnquote(f.scratch[:0], token) // read as a string, so it is one
	return string(f.scratch) == want
}

// digest returns the lower-case hexadecimal SHA-256 of text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
