// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/policy/cedartext"
)

func limits() cedartext.Limits {
	return cedartext.Limits{Bytes: 32 << 10, Nesting: 64, Weight: 64 << 10, PatternBytes: 1 << 10}
}

// wrap makes an expression the condition of a policy, whose braces are one
// level of nesting.
func wrap(expression string) string {
	return "permit (principal, action, resource) when { " + expression + " };"
}

func TestCheck_BoundsTextsBeforeAnythingRecurses(t *testing.T) {
	t.Parallel()
	at := func(line, column int, message string) *cedartext.Error {
		return &cedartext.Error{Pos: cedartext.Position{Line: line, Column: column}, Message: message}
	}
	const nested = "brackets are nested more than 64 deep; flatten the expression"
	tests := map[string]struct {
		text string
		want *cedartext.Error
	}{
		"a text of 32 KiB is accepted": {text: strings.Repeat(" ", 32<<10)},
		"one byte more is refused":     {strings.Repeat(" ", 32<<10+1), at(1, 1, "the text has 32769 bytes; split it, 32768 is the most")},
		"64 levels are accepted":       {text: wrap(strings.Repeat("(", 63) + "true" + strings.Repeat(")", 63))},
		"65 levels are refused":        {wrap(strings.Repeat("(", 64) + "true" + strings.Repeat(")", 64)), at(1, 108, nested)},
		"levels count for all brackets together": {
			wrap(strings.Repeat("[", 30) + strings.Repeat("{a:", 20) + strings.Repeat("(", 14) + "1"), at(1, 148, nested),
		},
		"closed brackets do not count":     {text: wrap(strings.Repeat("(true) && ", 100) + "true")},
		"brackets in strings do not count": {text: wrap(`"` + strings.Repeat("[", 100) + `\"[" == ""`)},
		"brackets in comments do not count": {
			text: "//" + strings.Repeat("[", 100) + "\n/*" + strings.Repeat("[", 100) + "*/ " + wrap("true"),
		},
		"brackets behind an unclosed comment are not code": {text: "/* " + strings.Repeat("[", 100)},
		"a path of 64 names behind has is accepted":        {text: wrap("context has a" + strings.Repeat(".a", 63))},
		"a path of 65 names is refused": {
			wrap("context has a" + strings.Repeat(".a", 64)), at(1, 53, `the path behind "has" has more than 64 names; shorten it`),
		},
		"some long paths are accepted": {
			text: wrap(strings.Repeat("context has a"+strings.Repeat(".a", 63)+" && ", 29) + "true"),
		},
		"many long paths are refused together": {
			wrap(strings.Repeat("context has a"+strings.Repeat(".a", 63)+" && ", 40) + "true"),
			at(1, 5772, "the text is too complex; split it into several objects"),
		},
		"a pattern of 1 KiB with its quotes is accepted": {text: wrap(`context.a like "` + strings.Repeat("x", 1022) + `"`)},
		"one byte more in a pattern is refused": {
			wrap(`context.a like "` + strings.Repeat("x", 1023) + `"`), at(1, 60, "the pattern is longer than 1024 bytes; shorten it"),
		},
		"a long text elsewhere is accepted": {text: wrap(`context.a == "` + strings.Repeat("x", 2000) + `"`)},
		"a byte that is no character is refused": {
			"// é\n// \xff", at(2, 4, "the text is not valid UTF-8 here; encode it as UTF-8, without NUL"),
		},
		"NUL is refused": {"// \x00", at(1, 4, "the text is not valid UTF-8 here; encode it as UTF-8, without NUL")},
		"a template is refused": {
			"permit (principal == ?principal, action, resource);",
			at(1, 22, "policy templates (?principal, ?resource) are not supported; name the entity"),
		},
		"a string that does not end on its line is refused": {
			wrap("\"a\nb\" == \"\""), at(1, 45, `the string is not closed on its line; add the missing "`),
		},
		"a string that does not end is refused": {`"a\`, at(1, 1, `the string is not closed on its line; add the missing "`)},
		"a sign without meaning is refused":     {wrap("1 = 1"), at(1, 47, `"=" has no meaning in a policy`)},
		"a single bar is refused":               {wrap("true | false"), at(1, 50, `"|" has no meaning in a policy`)},
		"a single ampersand is refused":         {wrap("true & false"), at(1, 50, `"&" has no meaning in a policy`)},
		"a foreign letter is refused as a word": {wrap("context.naïve1"), at(1, 53, `"naïve1" has no meaning in a policy`)},
		"columns count characters":              {"// é\n/* é */ #", at(2, 9, `"#" has no meaning in a policy`)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := cedartext.Check(tc.text, limits())
			if got != nil {
				got.Pos.Offset = 0
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Check (-want +got):\n%s", diff)
			}
		})
	}
}

func TestError_NamesThePlace(t *testing.T) {
	t.Parallel()
	err := &cedartext.Error{Pos: cedartext.Position{Line: 3, Column: 7}, Message: "wrong"}
	if got, want := err.Error(), "line 3, column 7: wrong"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}

func TestScan_GivesEachTokenWithItsPlace(t *testing.T) {
	t.Parallel()
	text := "a1::\"é\\\"\" >=\n 42 // x\n!= ! : <"
	type token struct {
		Kind         cedartext.Kind
		Text         string
		Line, Column int
	}
	want := []token{
		{cedartext.KindIdent, "a1", 1, 1},
		{cedartext.KindOperator, "::", 1, 3},
		{cedartext.KindString, `"é\""`, 1, 5},
		{cedartext.KindOperator, ">=", 1, 11},
		{cedartext.KindInt, "42", 2, 2},
		{cedartext.KindOperator, "!=", 3, 1},
		{cedartext.KindOperator, "!", 3, 4},
		{cedartext.KindOperator, ":", 3, 6},
		{cedartext.KindOperator, "<", 3, 8},
		{cedartext.KindEOF, "", 3, 9},
	}
	var got []token
	for _, tok := range cedartext.Scan(text) {
		got = append(got, token{tok.Kind, tok.Text, tok.Pos.Line, tok.Pos.Column})
		if text[tok.Pos.Offset:tok.End()] != tok.Text {
			t.Errorf("token %q does not lie at its offset", tok.Text)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Scan (-want +got):\n%s", diff)
	}
}

func TestStatements_CountsSemicolonsOutsideBrackets(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want int
	}{
		"nothing":                          {"", 0},
		"a comment":                        {"// permit;", 0},
		"two policies":                     {wrap("true") + wrap("false"), 2},
		"a semicolon in a string":          {wrap(`";" == ";"`), 1},
		"a semicolon inside an expression": {"permit (principal; action, resource);", 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := cedartext.Statements(tc.text); got != tc.want {
				t.Errorf("Statements = %d, want %d", got, tc.want)
			}
		})
	}
}
