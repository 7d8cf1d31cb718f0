// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"strings"

	"github.com/assent-dev/assent/internal/contract/scope"
	"github.com/assent-dev/assent/snapshot"
)

// refusal is why a value is not accepted; empty when it is.
type refusal = snapshot.Reason

// metacharacters are refused in free texts, as ToolClad documents it: although
// no shell ever sees a value, tools start shells of their own.
const metacharacters = ";|&$`(){}[]<>!\n\r"

// refusedBytes marks with one the bytes that no free text may contain.
var refusedBytes = func() (table [256]byte) {
	for i := range len(metacharacters) {
		table[metacharacters[i]] = 1
	}
	table[0] = 1
	return table
}()

// checkText refuses what no free text may contain. It looks at the text as it
// was sent: trimming first would accept a line end at the end.
func checkText(text string) refusal {
	for i := skipAccepted(text); i < len(text); i++ {
		switch {
		case refusedBytes[text[i]] == 0:
		case text[i] == 0:
			return ReasonNul
		default:
			return ReasonShellMetacharacter
		}
	}
	return ""
}

// skipAccepted returns a position before which nothing is refused. It decides
// about eight bytes at once, because nearly all of them are accepted.
func skipAccepted(text string) int {
	i := 0
	for ; len(text)-i >= 8; i += 8 {
		w, t := text[i:i+8], &refusedBytes
		if t[w[0]]|t[w[1]]|t[w[2]]|t[w[3]]|t[w[4]]|t[w[5]]|t[w[6]]|t[w[7]] != 0 {
			break
		}
	}
	return i
}

// normaliseString trims, as ToolClad documents it.
func normaliseString(_ *argument, text string) (string, refusal) {
	if why := checkText(text); why != "" {
		return "", why
	}
	return strings.TrimSpace(text), ""
}

// normaliseEnum changes nothing: a value is in the list byte for byte, or not.
func normaliseEnum(_ *argument, text string) (string, refusal) { return text, "" }

// normalisePath accepts relative paths that stay below their root. Segments
// that only lengthen a path are dropped, so that a policy or a pattern sees one
// spelling; parent segments are refused and not resolved, because what they
// lead to depends on symbolic links.
func normalisePath(_ *argument, text string) (string, refusal) {
	if why := checkText(text); why != "" {
		return "", why
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", ""
	case text[0] == '/' || text[0] == '\\' || len(text) > 1 && text[1] == ':':
		return "", ReasonAbsolutePath
	case isPlainPath(text):
		return text, ""
	case hasParentSegment(text):
		return "", ReasonPathTraversal
	}
	return dropEmptySegments(text), ""
}

// isPlainPath reports whether a relative path needs no second look: no escapes,
// no backslashes, and no segment that is empty or begins with a point.
func isPlainPath(text string) bool {
	before := byte('/')
	for i := range len(text) {
		c := text[i]
		if c == '%' || c == '\\' || before == '/' && (c == '/' || c == '.') {
			return false
		}
		before = c
	}
	return true
}

// dropEmptySegments removes "." and empty segments. A slash at the end stays:
// it tells a directory from a file for many programs.
func dropEmptySegments(text string) string {
	var kept []string
	for segment := range strings.SplitSeq(text, "/") {
		if segment != "" && segment != "." {
			kept = append(kept, segment)
		}
	}
	if len(kept) == 0 {
		return "."
	}
	path := strings.Join(kept, "/")
	if strings.HasSuffix(text, "/") {
		path += "/"
	}
	return path
}

// maxEscapeDepth is how often a text may be percent-encoded. Nobody encodes that
// often with good intent, and looking deeper would take quadratic time.
const maxEscapeDepth = 8

// hasParentSegment reports whether a path contains "..", with either separator,
// plain or percent-encoded, once or several times. It also says so of a text
// that is encoded too often to know.
func hasParentSegment(text string) bool {
	for range maxEscapeDepth {
		for segment := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' || r == '\\' }) {
			if segment == ".." {
				return true
			}
		}
		decoded := decodePercent(text)
		if decoded == text {
			return false
		}
		text = decoded
	}
	return true
}

// decodePercent decodes the escapes that are well-formed and keeps the rest.
func decodePercent(text string) string {
	if strings.IndexByte(text, '%') < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2]) {
			b.WriteByte(unhex(text[i+1])<<4 | unhex(text[i+2]))
			i += 2
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}

// normaliseOptions accepts Metasploit options: KEY VALUE pairs, with or without
// the word set before them, separated by semicolons.
func normaliseOptions(_ *argument, text string) (string, refusal) {
	if why := checkText(strings.ReplaceAll(text, ";", "")); why != "" {
		return "", why
	}
	var pairs []string
	for pair := range strings.SplitSeq(text, ";") {
		pair = strings.TrimSpace(pair)
		if pair == "" {
			continue
		}
		key, value, found := strings.Cut(strings.TrimPrefix(pair, "set "), " ")
		if !found || strings.TrimSpace(value) == "" || !isOptionKey(key) {
			return "", ReasonInvalidOptions
		}
		pairs = append(pairs, pair)
	}
	return strings.Join(pairs, "; "), ""
}

// isOptionKey reports whether key is an upper-case name.
func isOptionKey(key string) bool {
	for i := range len(key) {
		c := key[i]
		if (c < 'A' || c > 'Z') && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return key != ""
}

// normaliseTarget accepts an address, a range or a host name.
func normaliseTarget(_ *argument, text string) (string, refusal) {
	return normaliseNetwork(text, scope.ParseTarget)
}

func normaliseAddress(_ *argument, text string) (string, refusal) {
	return normaliseNetwork(text, scope.ParseAddress)
}

func normaliseRange(_ *argument, text string) (string, refusal) {
	return normaliseNetwork(text, scope.ParseRange)
}

// normaliseNetwork trims nothing: white space is in no address (RFC 1035).
func normaliseNetwork(text string, parse func(string) (scope.Target, scope.Reason)) (string, refusal) {
	if why := checkText(text); why != "" {
		return "", why
	}
	t, why := parse(text)
	if why != "" {
		return "", refusal(why)
	}
	return t.String(), ""
}
