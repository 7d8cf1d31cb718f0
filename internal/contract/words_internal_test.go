// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/snapshot"
)

// wordTexts calls check with texts in which one character stands at each
// position of two words of eight bytes and of what is left over, alone and
// followed by others.
func wordTexts(check func(text string)) {
	characters := []string{"é", "\u2028", "\ufffd", "\U0001f600", "\u00a2", "\u00dc"}
	for c := range byte(0x80) {
		characters = append(characters, string(rune(c)))
	}
	const longest = 19
	for _, c := range characters {
		for n := range longest {
			for _, rest := range []string{"", "a", "!\"#\\", "\x1f !", strings.Repeat("z", 9)} {
				check(strings.Repeat("a", n) + c + rest)
			}
		}
	}
}

func TestAppendString_EscapesEachByteAtEachPosition(t *testing.T) {
	t.Parallel()
	wordTexts(func(text string) {
		want, err := jsontext.AppendQuote(nil, text)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendString(nil, text); string(got) != string(want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	})
}

func TestCheckText_RefusesEachByteAtEachPosition(t *testing.T) {
	t.Parallel()
	wordTexts(func(text string) {
		want := refusal("")
		if i := strings.IndexAny(text, metacharacters+"\x00"); i >= 0 {
			want = ReasonShellMetacharacter
			if text[i] == 0 {
				want = ReasonNul
			}
		}
		if got := checkText(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	})
}

// A number has one spelling wherever a call shows it.
func TestFormatNumber_IsTheCanonicalText(t *testing.T) {
	t.Parallel()
	for _, f := range []float64{0, 1, -1, 0.5, 0.1, 1e21, 1e-7, 123456789.25, maxSafeInteger, maxSafeInteger + 1, 5e-324, -1.5e300} {
		s, err := snapshot.New(f)
		if err != nil {
			t.Fatal(err)
		}
		if got := formatNumber(f); got != s.Canonical() {
			t.Errorf("%v: %s, want %s", f, got, s.Canonical())
		}
	}
}
