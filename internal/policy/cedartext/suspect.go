// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartext

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var escapedRune = regexp.MustCompile(`\\u\{([0-9a-fA-F_]*)\}`)

// Suspect finds the first literal that the grammar accepts and Cedar does not:
// a number beyond 64 bits, or an escape that is no character.
func Suspect(tokens []Token) (*Error, bool) {
	for i, t := range tokens {
		negative := i > 0 && tokens[i-1].Text == "-"
		if t.Kind == KindInt && !fits(t.Text, negative) {
			return &Error{Pos: t.Pos, Message: "the number does not fit into 64 bits; use a smaller one"}, true
		}
		if t.Kind == KindString && !escapesFit(t.Text) {
			return &Error{Pos: t.Pos, Message: "the text holds an escape that is no Unicode character; correct the digits in \\u{}"}, true
		}
	}
	return nil, false
}

// fits says whether digits are a Long, which reaches one further down than up.
func fits(digits string, negative bool) bool {
	value, err := strconv.ParseUint(digits, 10, 64)
	return err == nil && (value < 1<<63 || (value == 1<<63 && negative))
}

func escapesFit(text string) bool {
	for _, m := range escapedRune.FindAllStringSubmatch(text, -1) {
		value, err := strconv.ParseInt(strings.ReplaceAll(m[1], "_", ""), 16, 32)
		if err != nil || value > utf8.MaxRune || !utf8.ValidRune(rune(value)) {
			return false
		}
	}
	return true
}
