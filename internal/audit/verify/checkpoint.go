// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	formats "github.com/transparency-dev/formats/log"
	"golang.org/x/mod/sumdb/note"

	"github.com/assent-dev/assent/internal/attest"
)

// Checkpoint is a signed statement that a log had Size records with this root.
type Checkpoint struct {
	Origin string
	Size   uint64
	Root   [sha256.Size]byte
	// Text is the signed note as it was read.
	Text []byte
}

// Errors about checkpoints.
var (
	// ErrCheckpointMalformed: the text is no checkpoint (C2SP tlog-checkpoint).
	ErrCheckpointMalformed = errors.New("not a checkpoint")
	// ErrCheckpointKey: no signature by a key that is trusted here.
	ErrCheckpointKey = errors.New("the checkpoint is not signed by a trusted key")
	// ErrCheckpointSignature: changed after it was signed.
	ErrCheckpointSignature = errors.New("the checkpoint does not match its signature")
	// ErrCheckpointOrigin: a checkpoint of another log.
	ErrCheckpointOrigin = errors.New("the checkpoint belongs to another log")
)

// ParseCheckpoint verifies a checkpoint with the keys. origin is the name of
// the log it must belong to; when empty, the checkpoint's own is taken.
func ParseCheckpoint(text []byte, keys *attest.Keyring, origin string) (*Checkpoint, error) {
	if len(text) > maxCheckpointBytes {
		return nil, ErrCheckpointMalformed
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if origin == "" {
		origin = first
	}
	if first != origin {
		return nil, ErrCheckpointOrigin
	}
	verifiers, err := keys.NoteVerifiers(origin)
	if err != nil {
		return nil, ErrCheckpointMalformed
	}
	signed, err := note.Open(text, note.VerifierList(verifiers...))
	if _, ok := errors.AsType[*note.UnverifiedNoteError](err); ok {
		return nil, ErrCheckpointKey
	}
	if _, ok := errors.AsType[*note.InvalidSignatureError](err); ok {
		return nil, ErrCheckpointSignature
	}
	if err != nil {
		return nil, ErrCheckpointMalformed
	}
	var c formats.Checkpoint
	rest, err := c.Unmarshal([]byte(signed.Text))
	if err != nil || len(rest) != 0 || len(c.Hash) != sha256.Size {
		return nil, ErrCheckpointMalformed
	}
	return &Checkpoint{Origin: origin, Size: c.Size, Root: [sha256.Size]byte(c.Hash), Text: text}, nil
}

// SplitCheckpoints takes a file of remembered checkpoints apart: signed notes
// one after the other, each beginning with the origin. A note ends with its
// signature lines, which begin with an em dash.
func SplitCheckpoints(data []byte) ([][]byte, error) {
	var out [][]byte
	var current strings.Builder
	inSignatures := false
	for line := range strings.Lines(string(data)) {
		signature := strings.HasPrefix(line, "\u2014 ")
		if inSignatures && !signature {
			out = append(out, []byte(current.String()))
			current.Reset()
		}
		inSignatures = signature
		if current.Len() == 0 && strings.TrimSpace(line) == "" {
			continue
		}
		current.WriteString(line)
	}
	if current.Len() > 0 {
		out = append(out, []byte(current.String()))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("remembered checkpoints: %w", ErrCheckpointMalformed)
	}
	return out, nil
}
