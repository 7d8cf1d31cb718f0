// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import "bytes"

// decodesTo reports whether the canonical text, read back, is exactly the tree
// and nothing else. The reader knows only what canonical text may look like and
// shares no code with the decoder in front or with either canonicaliser, except
// for the conversion of numbers.
func (t *tree) decodesTo(text []byte) bool {
	r := reader{text}
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
type reader struct{ rest []byte }

// step consumes one step of a tree and reports whether the text has it here.
func (r *reader) step(t *tree, s step) bool {
	switch s.kind {
	case kindNumber:
		return r.number(t.numbers[s.index])
	case kindString:
		return r.text(t.text(s.index))
	case kindName:
		return r.text(t.text(s.index)) && r.skip(':')
	case kindNull, kindFalse, kindTrue:
		return r.skipAll(word(s.kind))
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

// skipAll consumes some characters.
func (r *reader) skipAll(s string) bool {
	if len(r.rest) < len(s) || string(r.rest[:len(s)]) != s {
		return false
	}
	r.rest = r.rest[len(s):]
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

// text consumes a string token and compares its value. Canonical text has one
// way to write a string (RFC 8785 section 3.2.2.2), so any other is refused.
func (r *reader) text(want []byte) bool {
	if !r.skip('"') {
		return false
	}
	for len(want) > 0 {
		n := plain(want)
		if n > 0 {
			if !bytes.HasPrefix(r.rest, want[:n]) {
				return false
			}
			r.rest, want = r.rest[n:], want[n:]
			continue
		}
		if !r.skipAll(escape(want[0])) {
			return false
		}
		want = want[1:]
	}
	return r.skip('"')
}

// plain counts the bytes at the beginning that stand for themselves.
func plain(s []byte) int {
	for i, c := range s {
		if c < ' ' || c == '"' || c == '\\' {
			return i
		}
	}
	return len(s)
}

// escape returns how a character that must be escaped is written.
func escape(c byte) string {
	switch c {
	case '"':
		return `\"`
	case '\\':
		return `\\`
	case '\b':
		return `\b`
	case '\t':
		return `\t`
	case '\n':
		return `\n`
	case '\f':
		return `\f`
	case '\r':
		return `\r`
	}
	const digits = "0123456789abcdef"
	return `\u00` + digits[c>>4:c>>4+1] + digits[c&15:c&15+1]
}
