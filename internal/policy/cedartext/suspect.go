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
		switch t.Kind {
		case KindInt:
			negative := i > 0 && tokens[i-1].Text == "-"
			if value, err := strconv.ParseUint(t.Text, 10, 64); err != nil || value > 1<<63 || (value == 1<<63 && !negative) {
				return &Error{Pos: t.Pos, Message: "the number does not fit into 64 bits; use a smaller one"}, true
			}
		case KindString:
			for _, m := range escapedRune.FindAllStringSubmatch(t.Text, -1) {
				value, err := strconv.ParseUint(strings.ReplaceAll(m[1], "_", ""), 16, 32)
				if err != nil || !utf8.ValidRune(rune(value)) {
					return &Error{Pos: t.Pos, Message: "the text holds an escape that is no Unicode character; correct the digits in \\u{}"}, true
				}
			}
		}
	}
	return nil, false
}
