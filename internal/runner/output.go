// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"strings"
	"unicode/utf8"
)

// errOutputTooLarge stops a copy at the limit of what is read.
var errOutputTooLarge = errors.New("output is longer than the ticket allows")

// capture takes one output stream: the digest and length of everything that
// was read, and a copy of the beginning. Memory does not depend on how much a
// tool writes.
type capture struct {
	limit int64
	keep  int

	digest hash.Hash
	length int64
	kept   []byte
	over   bool
}

// newCapture reads at most limit bytes and can show at most show bytes of text.
func newCapture(limit, show int64) *capture {
	// A few bytes more than shown, so that a cut inside a character is seen
	// as a cut and not as a broken character.
	return &capture{limit: limit, keep: int(show) + utf8.UTFMax, digest: sha256.New()}
}

// Write takes p up to the limit. What exceeds it is neither digested nor
// counted, and the error makes the writer stop.
func (c *capture) Write(p []byte) (int, error) {
	if room := c.limit - c.length; int64(len(p)) > room {
		c.over = true
		p = p[:room]
	}
	c.digest.Write(p)
	c.length += int64(len(p))
	if room := c.keep - len(c.kept); room > 0 {
		c.kept = append(c.kept, p[:min(room, len(p))]...)
	}
	if c.over {
		return len(p), errOutputTooLarge
	}
	return len(p), nil
}

// sum is the SHA-256, in hex, of what was read.
func (c *capture) sum() string { return hex.EncodeToString(c.digest.Sum(nil)) }

// text returns the beginning of the output as valid UTF-8 of at most show
// bytes, cut between characters, and whether anything is missing from it.
// Bytes that are not UTF-8 become U+FFFD; the digest still covers them.
func (c *capture) text(show int64) (string, bool) {
	more := c.over || c.length > int64(len(c.kept))
	kept := c.kept
	if more {
		kept = kept[:len(kept)-partialRune(kept)]
	}
	s := strings.ToValidUTF8(string(kept), "\uFFFD")
	if int64(len(s)) <= show {
		return s, more
	}
	end := int(show)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end], true
}

// partialRune is how many bytes at the end of b begin a character that is not
// complete.
func partialRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		tail := b[len(b)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
