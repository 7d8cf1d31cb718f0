// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/binary"
	"unicode/utf8"
)

// replacement says whether U+FFFD is data or a sign of destroyed input.
type replacement bool

const (
	allowReplacement  replacement = true
	refuseReplacement replacement = false
)

// firstSuspect is the smallest byte that starts a character which needs a
// look: U+F000 and above, where all noncharacters and U+FFFD lie.
const firstSuspect = 0xEF

// Eight bytes are ASCII when none of their high bits is set.
const (
	wordLength = 8
	nonASCII   = 0x8080808080808080
)

// checkText returns the reason why a well-formed string is outside the domain,
// or "" when it is inside.
func checkText(s []byte, fffd replacement) Reason {
	i := 0
	for ; len(s)-i >= wordLength; i += wordLength {
		if binary.LittleEndian.Uint64(s[i:])&nonASCII != 0 {
			break
		}
	}
	for ; i < len(s); i++ {
		if s[i] >= firstSuspect {
			return checkRunes(s[i:], fffd)
		}
	}
	return ""
}

// checkRunes looks at each character; s starts at a character boundary.
func checkRunes(s []byte, fffd replacement) Reason {
	for len(s) > 0 {
		r, size := utf8.DecodeRune(s)
		s = s[size:]
		switch {
		case r == utf8.RuneError && fffd == refuseReplacement:
			return ReasonReplacementChar
		case isNoncharacter(r):
			return ReasonNoncharacter
		}
	}
	return ""
}

// isNoncharacter reports the 66 code points that Unicode keeps for internal
// use and that RFC 7493 section 2.1 therefore bans from interchange.
func isNoncharacter(r rune) bool {
	const lastTwoOfPlane = 0xFFFE
	return r&lastTwoOfPlane == lastTwoOfPlane || (r >= 0xFDD0 && r <= 0xFDEF)
}

// compareUTF16 orders names as RFC 8785 section 3.2.3 asks, by UTF-16 code
// unit, without converting them. UTF-8 order differs from it in one place: the
// characters beyond U+FFFF, which are surrogates in UTF-16, come before
// U+E000 to U+FFFF. It is a total order for ill-formed strings as well, so that
// errors about them do not depend on map order.
func compareUTF16[T string | []byte](a, b T) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return int(rankUTF16(a[i])) - int(rankUTF16(b[i]))
		}
	}
	return len(a) - len(b)
}

// rankUTF16 moves the lead bytes EE and EF (U+E000 to U+FFFF) behind F0 to FF.
func rankUTF16(b byte) byte {
	const (
		firstMoved = 0xEE
		moved      = 2
	)
	switch {
	case b < firstMoved:
		return b
	case b < firstMoved+moved:
		return b + (0xFF - firstMoved - moved + 1)
	default:
		return b - moved
	}
}
