// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is the kind of a token.
type Kind int

// The kinds of tokens. Reserved words are identifiers here: where they may
// stand is the parser's business.
const (
	KindEOF Kind = iota
	KindIdent
	KindInt
	KindString
	KindOperator
	KindInvalid
)

// Position is a place in a text.
type Position struct {
	// Offset in bytes, from 0.
	Offset int
	// Line, from 1.
	Line int
	// Column in characters, from 1.
	Column int
}

// Token is one word of the text, with the text itself: a string keeps its
// quotes and escapes.
type Token struct {
	Kind Kind
	Text string
	Pos  Position
}

// End is the offset of the first byte after the token.
func (t Token) End() int { return t.Pos.Offset + len(t.Text) }

// scanner walks over a text that is valid UTF-8.
type scanner struct {
	text string
	pos  Position
}

// Scan splits a text into tokens; the last one is always of KindEOF. Comments
// and white space are dropped. What is no token becomes one of KindInvalid, and
// scanning goes on behind it: the caller wants to see every bracket, however
// broken the rest is.
func Scan(text string) []Token {
	return scanFrom(text, Position{Line: 1, Column: 1})
}

// scanFrom scans what follows a place, and counts on from there.
func scanFrom(text string, from Position) []Token {
	s := &scanner{text: text, pos: from}
	tokens := make([]Token, 0, (len(text)-from.Offset)/4+1)
	for {
		s.skipBlank()
		start := s.pos
		kind := s.next()
		tokens = append(tokens, Token{Kind: kind, Text: text[start.Offset:s.pos.Offset], Pos: start})
		if kind == KindEOF {
			return tokens
		}
	}
}

// peek returns the character at the given distance in bytes, or 0.
func (s *scanner) peek(distance int) byte {
	if i := s.pos.Offset + distance; i < len(s.text) {
		return s.text[i]
	}
	return 0
}

// advance moves over one character and returns it.
func (s *scanner) advance() rune {
	r, size := utf8.DecodeRuneInString(s.text[s.pos.Offset:])
	s.pos.Offset += size
	s.pos.Column++
	if r == '\n' {
		s.pos.Line++
		s.pos.Column = 1
	}
	return r
}

func (s *scanner) done() bool { return s.pos.Offset >= len(s.text) }

// skipBlank moves over white space and comments of both kinds: cedar-go also
// knows the bracketed kind.
func (s *scanner) skipBlank() {
	for !s.done() {
		switch c := s.peek(0); {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			s.advance()
		case c == '/' && s.peek(1) == '/':
			s.skipTo("\n")
		case c == '/' && s.peek(1) == '*':
			s.skip(2)
			s.skipTo("*/")
			s.skip(2)
		default:
			return
		}
	}
}

// skipTo moves to where a text begins, or to the end.
func (s *scanner) skipTo(end string) {
	for !s.done() && !strings.HasPrefix(s.text[s.pos.Offset:], end) {
		s.advance()
	}
}

func (s *scanner) skip(count int) {
	for range count {
		if !s.done() {
			s.advance()
		}
	}
}

// next moves over one token and says what it was.
func (s *scanner) next() Kind {
	if s.done() {
		return KindEOF
	}
	first := s.advance()
	switch {
	case first == '"':
		return s.scanString()
	case isDigit(first):
		for !s.done() && isDigit(rune(s.peek(0))) {
			s.advance()
		}
		return KindInt
	case isIdentStart(first):
		return s.scanIdent(first)
	default:
		return s.scanOperator(first)
	}
}

func (s *scanner) scanString() Kind {
	for !s.done() {
		switch s.advance() {
		case '"':
			return KindString
		case '\\':
			s.skip(1)
		case '\n':
			return KindInvalid
		}
	}
	return KindInvalid
}

// scanIdent takes a word with a foreign letter as a whole, so that it causes
// one message instead of many; Cedar's own identifiers are ASCII.
func (s *scanner) scanIdent(first rune) Kind {
	kind := KindIdent
	for r := first; ; {
		if r >= utf8.RuneSelf {
			kind = KindInvalid
		}
		if s.done() {
			return kind
		}
		r, _ = utf8.DecodeRuneInString(s.text[s.pos.Offset:])
		if !isIdentStart(r) && !isDigit(r) {
			return kind
		}
		s.advance()
	}
}

func (s *scanner) scanOperator(first rune) Kind {
	second := s.peek(0)
	switch first {
	case '@', '.', ',', ';', '(', ')', '{', '}', '[', ']', '+', '-', '*':
		return KindOperator
	case ':':
		return s.optional(second == ':')
	case '!', '<', '>':
		return s.optional(second == '=')
	case '=':
		return s.required(second == '=')
	case '|':
		return s.required(second == '|')
	case '&':
		return s.required(second == '&')
	default:
		return KindInvalid
	}
}

func (s *scanner) optional(more bool) Kind {
	if more {
		s.advance()
	}
	return KindOperator
}

func (s *scanner) required(more bool) Kind {
	if !more {
		return KindInvalid
	}
	s.advance()
	return KindOperator
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func isIdentStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }
