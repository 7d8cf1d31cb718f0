// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/gowebpki/jcs"
)

// canonicalizer holds two independent implementations of RFC 8785: the authority
// writes the text that counts, and the witness, which writes a tree to begin
// with, must have written the same. They are fields so that tests can break
// either one.
type canonicalizer struct {
	witness   func(t *tree, text []byte, lim limits) ([]byte, *fault)
	authority func(text []byte) ([]byte, error)
}

// standard returns the implementations in use.
func standard() canonicalizer {
	return canonicalizer{witness: (*tree).encode, authority: jcs.Transform}
}

// canonical turns a tree into its canonical text and checks the text. A text
// that fails the self-check is not returned. The digest is the lower-case
// hexadecimal SHA-256 of the text.
//
// The self-check has two halves: witness and authority must agree byte for byte,
// and the text, read back, must be the tree again.
func (c canonicalizer) canonical(w *workspace, lim limits) (text string, digest string, f *fault) {
	if w.text, f = c.witness(&w.tree, w.text[:0], lim); f != nil {
		return "", "", f
	}
	canonical, err := c.authority(w.text)
	if err != nil || !bytes.Equal(canonical, w.text) || !w.tree.decodesTo(canonical) {
		return "", "", refuse(ReasonSelfCheck)
	}
	sum := sha256.Sum256(canonical)
	return string(canonical), hex.EncodeToString(sum[:]), nil
}

// canonicalOf detaches a value and turns it into its canonical text.
func (c canonicalizer) canonicalOf(source any, lim limits) (text string, digest string, f *fault) {
	w := borrow()
	defer w.giveBack()
	if f := w.walker.detach(source, lim); f != nil {
		return "", "", f
	}
	return c.canonical(w, lim)
}
