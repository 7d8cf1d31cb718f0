// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartext

import (
	"fmt"
	"unicode/utf8"
)

// Limits bounds a policy text before it is parsed.
type Limits struct {
	// Bytes of the whole text.
	Bytes int
	// Nesting of brackets, and length of an attribute path behind "has".
	Nesting int
	// Weight of the text: its tokens, plus what "has" with a path unfolds to.
	Weight int
	// PatternBytes bounds the literal behind "like".
	PatternBytes int
}

// Error is something wrong with a text, with its place.
type Error struct {
	Pos     Position
	Message string
}

// Error gives line, column and message.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Pos.Line, e.Pos.Column, e.Message)
}

// Check returns nil if the text may be given to cedar-go.
//
// cedar-go's parser calls itself for each bracket and never stops doing so: a
// few hundred kilobytes of "[" end the process, and no recover can catch that.
// It also unfolds "x has a.b.c" into one test per prefix, each with a copy of
// the path, so that 8 KiB of it cost 600 MB. Both are refused here. The text is
// walked over once and nothing recurses.
func Check(text string, limits Limits) *Error {
	if len(text) > limits.Bytes {
		return &Error{Pos: Position{Line: 1, Column: 1}, Message: fmt.Sprintf(
			"the text has %d bytes; split it, %d is the most", len(text), limits.Bytes)}
	}
	if pos, ok := firstInvalid(text); ok {
		return &Error{Pos: pos, Message: "the text is not valid UTF-8 here; encode it as UTF-8, without NUL"}
	}
	tokens := Scan(text)
	if err := checkNesting(tokens, limits.Nesting); err != nil {
		return err
	}
	if err := checkPaths(tokens, limits); err != nil {
		return err
	}
	return checkWords(tokens, limits)
}

// firstInvalid finds the first byte that is not part of a character, or NUL.
func firstInvalid(text string) (Position, bool) {
	pos := Position{Line: 1, Column: 1}
	for pos.Offset < len(text) {
		r, size := utf8.DecodeRuneInString(text[pos.Offset:])
		if r == 0 || (r == utf8.RuneError && size == 1) {
			return pos, true
		}
		pos.Offset += size
		pos.Column++
		if r == '\n' {
			pos.Line++
			pos.Column = 1
		}
	}
	return Position{}, false
}

func checkNesting(tokens []Token, limit int) *Error {
	depth := 0
	for _, t := range tokens {
		if t.Kind != KindOperator {
			continue
		}
		switch t.Text {
		case "(", "[", "{":
			depth++
			if depth > limit {
				return &Error{Pos: t.Pos, Message: fmt.Sprintf("brackets are nested more than %d deep; flatten the expression", limit)}
			}
		case ")", "]", "}":
			depth--
		}
	}
	return nil
}

// checkPaths bounds "has a.b.c" by length, and the whole text by what all its
// paths unfold to.
func checkPaths(tokens []Token, limits Limits) *Error {
	weight := len(tokens)
	for i := range tokens {
		if tokens[i].Kind != KindIdent || tokens[i].Text != "has" {
			continue
		}
		length := pathLength(tokens[i+1:])
		if length > limits.Nesting {
			return &Error{Pos: tokens[i].Pos, Message: fmt.Sprintf("the path behind \"has\" has more than %d names; shorten it", limits.Nesting)}
		}
		weight += length * (length + 1) / 2
	}
	if weight > limits.Weight {
		return &Error{Pos: tokens[len(tokens)-1].Pos, Message: "the text is too complex; split it into several objects"}
	}
	return nil
}

// pathLength counts the names of "a.b.c" at the start of tokens.
func pathLength(tokens []Token) int {
	length := 0
	for i := 0; i < len(tokens) && tokens[i].Kind == KindIdent; i += 2 {
		length++
		if tokens[i+1].Text != "." {
			break
		}
	}
	return length
}

// checkWords refuses what cedar-go would describe poorly, or evaluate slowly.
func checkWords(tokens []Token, limits Limits) *Error {
	for i, t := range tokens {
		switch {
		case t.Kind == KindInvalid && t.Text == "?":
			return &Error{Pos: t.Pos, Message: "policy templates (?principal, ?resource) are not supported; name the entity"}
		case t.Kind == KindInvalid && t.Text[0] == '"':
			return &Error{Pos: t.Pos, Message: "the string is not closed on its line; add the missing \""}
		case t.Kind == KindInvalid:
			return &Error{Pos: t.Pos, Message: fmt.Sprintf("%q has no meaning in a policy", t.Text)}
		case t.Kind == KindString && len(t.Text) > limits.PatternBytes && tokens[max(i-1, 0)].Text == "like":
			return &Error{Pos: t.Pos, Message: fmt.Sprintf("the pattern is longer than %d bytes; shorten it", limits.PatternBytes)}
		}
	}
	return nil
}
