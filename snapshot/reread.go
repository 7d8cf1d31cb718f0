// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// decodesTo reports whether the canonical text, read back, is exactly the tree
// and nothing else. The reader knows only the grammar that canonical text uses
// and shares no code with the decoder in front or with either canonicaliser,
// except for the conversion of numbers and of strings with escapes.
func (t *tree) decodesTo(text []byte) bool {
	r := reader{rest: text}
	before := kindBeginArray
	for _, s := range t.steps {
		if needsComma(before, s.kind) && !r.skip(',') {
			return false
		}
		if !r.step(t, s) {
			return false
		}
		before = s.kind
	}
	return len(r.rest) == 0
}

// reader consumes a text.
type reader struct {
	rest    []byte
	scratch []byte // for strings with escapes
}

// step consumes one step of a tree and reports whether the text has it here.
func (r *reader) step(t *tree, s step) bool {
	switch s.kind {
	case kindNumber:
		return r.number(t.numbers[s.index])
	case kindString:
		return r.text(t.texts[s.index])
	case kindName:
		return r.text(t.texts[s.index]) && r.skip(':')
	case kindNull, kindFalse, kindTrue:
		w := word(s.kind)
		found := bytes.HasPrefix(r.rest, []byte(w))
		if found {
			r.rest = r.rest[len(w):]
		}
		return found
	default:
		return r.skip(byte(s.kind))
	}
}

// skip consumes one character.
func (r *reader) skip(c byte) bool {
	if len(r.rest) == 0 || r.rest[0] != c {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

// number consumes a number token and compares its value.
func (r *reader) number(want float64) bool {
	n := 0
	for n < len(r.rest) && isNumberByte(r.rest[n]) {
		n++
	}
	token := r.rest[:n]
	r.rest = r.rest[n:]
	if n == 0 {
		return false
	}
	got, why := parseNumber(token)
	return why == "" && got == want
}

// isNumberByte reports whether c may occur in a number token.
func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '.' || c == 'e' || c == '+'
}

// text consumes a string token and compares its value.
func (r *reader) text(want string) bool {
	// The common case: no escapes, so the token is the value in quotes.
	n := len(want)
	if len(r.rest) >= n+2 && r.rest[0] == '"' && string(r.rest[1:n+1]) == want && r.rest[n+1] == '"' && isPlain(want) {
		r.rest = r.rest[n+2:]
		return true
	}
	token := stringToken(r.rest)
	r.rest = r.rest[len(token):]
	var err error
	r.scratch, err = jsontext.AppendUnquote(r.scratch[:0], token)
	return err == nil && string(r.scratch) == want
}

// isPlain reports whether a string stands for itself between quotes.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '"' || s[i] == '\\' {
			return false
		}
	}
	return true
}

// stringToken returns the beginning of text up to the quote that closes the
// string, or all of it.
func stringToken(text []byte) []byte {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i+1]
		}
	}
	return text
}
