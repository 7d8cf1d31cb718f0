// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCapture_ShowsTheBeginningAsText(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		output string
		show   int64
		want   string
		cut    bool
	}{
		"nothing":                                {"", 10, "", false},
		"all of it":                              {"hello", 10, "hello", false},
		"exactly as much as is shown":            {"hello", 5, "hello", false},
		"one byte more":                          {"hello!", 5, "hello", true},
		"nothing is shown":                       {"hello", 0, "", true},
		"a character of two bytes at the cut":    {"abcdé", 5, "abcd", true},
		"a character of three bytes at the cut":  {"ab€cd", 4, "ab", true},
		"a character of four bytes at the cut":   {"a😀b", 4, "a", true},
		"a character that just fits":             {"ab€", 5, "ab€", false},
		"a character that just fits, and more":   {"ab€d", 5, "ab€", true},
		"a byte that is no text":                 {"a\xffb", 10, "a\uFFFDb", false},
		"bytes that grow when they are replaced": {"\xff\x00\xff\x00\xff", 5, "\uFFFD\x00", true},
		"a broken character at the very end":     {"ab\xe2\x82", 10, "ab\uFFFD", false},
		"a surrogate":                            {"a\xed\xa0\x80b", 10, "a\uFFFDb", false},
		"NUL and escape sequences stay":          {"\x00\x1b[2K", 10, "\x00\x1b[2K", false},
		"only continuation bytes":                {strings.Repeat("\x80", 40), 8, "\uFFFD", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCapture(1<<20, tc.show)
			for i := range len(tc.output) { // in the smallest pieces
				if _, err := c.Write([]byte{tc.output[i]}); err != nil {
					t.Fatal(err)
				}
			}
			got, cut := c.text(tc.show)
			if got != tc.want || cut != tc.cut {
				t.Errorf("text = %q, %v; want %q, %v", got, cut, tc.want, tc.cut)
			}
			sum := sha256.Sum256([]byte(tc.output))
			if c.sum() != hex.EncodeToString(sum[:]) || c.length != int64(len(tc.output)) {
				t.Errorf("digest or length is not of the whole output")
			}
		})
	}
}

func FuzzCapture_TextIsValidAndNeverLongerThanShown(f *testing.F) {
	f.Add([]byte("a€😀\xff"), uint8(3), uint8(2))
	f.Add([]byte("\xe2\x82\xac\xe2\x82"), uint8(4), uint8(1))
	f.Add([]byte("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"), uint8(3), uint8(0))
	f.Fuzz(func(t *testing.T, output []byte, show, step uint8) {
		c := newCapture(1<<20, int64(show))
		for rest := output; len(rest) > 0; {
			n := min(len(rest), int(step)+1)
			_, _ = c.Write(rest[:n])
			rest = rest[n:]
		}
		text, cut := c.text(int64(show))
		if !utf8.ValidString(text) || len(text) > int(show) {
			t.Fatalf("%d bytes, valid %v, limit %d", len(text), utf8.ValidString(text), show)
		}
		// A run of bytes that are no text is shown as one replacement, so that
		// a cut within it leaves the text as it is.
		whole := strings.ToValidUTF8(string(output), "\uFFFD")
		if !strings.HasPrefix(whole, text) || (!cut && text != whole) {
			t.Fatalf("text %q of %q, cut %v", text, whole, cut)
		}
		if cut && len(output) <= int(show) && len(whole) <= int(show) {
			t.Fatalf("text %q of %q is said to be cut", text, whole)
		}
	})
}

func TestCapture_TakesUpToTheLimitAndThenFails(t *testing.T) {
	t.Parallel()
	c := newCapture(4, 100)
	if n, err := c.Write([]byte("abc")); n != 3 || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
	if n, err := c.Write([]byte("def")); n != 1 || err != errOutputTooLarge { //nolint:errorlint // exactly this error
		t.Fatalf("Write over the limit = %d, %v", n, err)
	}
	text, cut := c.text(100)
	sum := sha256.Sum256([]byte("abcd"))
	if text != "abcd" || !cut || c.length != 4 || c.sum() != hex.EncodeToString(sum[:]) {
		t.Errorf("text %q, cut %v, length %d", text, cut, c.length)
	}
}
