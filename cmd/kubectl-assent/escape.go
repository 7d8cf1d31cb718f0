// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text that approvers look at was written by the agent they guard against. It
// must not move the cursor, hide, or change the order in which it is read, and
// it must be shown to its last character.

// escapeText shows everything that is not plainly visible as \uXXXX, in pairs
// beyond the basic plane, so that JSON text stays JSON text for the same value.
func escapeText(s string) string { return escape(s, plain) }

// escapeName is for names that people compare: every character outside ASCII
// is escaped, since many look like one inside.
func escapeName(s string) string {
	return escape(s, func(r rune) bool { return r >= ' ' && r <= '~' })
}

// quoteText is a string as JSON text, escaped: two different strings never
// look the same.
func quoteText(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return "(a text that cannot be shown)"
	}
	return escapeText(strings.TrimSuffix(b.String(), "\n"))
}

func escape(s string, visible func(rune) bool) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			// Not UTF-8: no character at all, so the byte itself is shown.
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case visible(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[size:]
	}
	return b.String()
}

// plain says that a character is shown as itself by any terminal, in the place
// where it stands.
func plain(r rune) bool {
	switch {
	case r <= '~':
		return r >= ' '
	case !unicode.IsPrint(r), unicode.In(r, unicode.Mn, unicode.Me):
		// Controls, formats, spaces of other kinds, private and unassigned
		// characters, and marks that alter the character before them.
		return false
	}
	return !unicode.Is(blank, r) && !unicode.Is(rightToLeft, r)
}

// blank are characters that count as letters or symbols and show nothing.
var blank = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x115F, Hi: 0x1160, Stride: 1}, // Hangul fillers
	{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // Braille pattern blank
	{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
	{Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1}, // halfwidth Hangul filler
}}

// rightToLeft are the blocks whose characters reorder what stands around them
// (Unicode Standard Annex 9, section 3.2: the default ranges of R and AL).
var rightToLeft = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x0590, Hi: 0x08FF, Stride: 1}, {Lo: 0xFB1D, Hi: 0xFDFF, Stride: 1}, {Lo: 0xFE70, Hi: 0xFEFF, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x10800, Hi: 0x10FFF, Stride: 1}, {Lo: 0x1E800, Hi: 0x1EFFF, Stride: 1}},
}
