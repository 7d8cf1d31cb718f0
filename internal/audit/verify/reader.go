// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/transparency-dev/tessera/api/layout"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
)

const bundleWidth = layout.EntryBundleWidth

var (
	// ErrNoSuchRecord says that the index lies beyond the checkpoint.
	ErrNoSuchRecord = errors.New("the log has no record with this index")
	// errEntryMissing: the checkpoint covers the entry, but it is not there.
	errEntryMissing = errors.New("the entry is missing from its bundle")
)

// Reader reads records of a log by index. It is not safe for concurrent use.
type Reader struct {
	src  Source
	keys *attest.Keyring
	size uint64

	cached  uint64
	entries [][]byte
}

// NewReader returns a reader of the records that a checkpoint covers.
func NewReader(src Source, keys *attest.Keyring, at *Checkpoint) *Reader {
	return &Reader{src: src, keys: keys, size: at.Size}
}

// Entry returns the record at an index with its signature verified and its
// parts joined. It says nothing about the record's place in the tree; that is
// what [Prove] is for.
func (r *Reader) Entry(ctx context.Context, index uint64) (*audit.Entry, error) {
	e, err := r.single(ctx, index)
	if err != nil || e.Parts == nil {
		return e, err
	}
	return e, r.join(ctx, index, e)
}

func (r *Reader) single(ctx context.Context, index uint64) (*audit.Entry, error) {
	raw, err := r.raw(ctx, index)
	if err != nil {
		return nil, err
	}
	e, err := audit.OpenEntry(r.keys, string(raw))
	if err != nil {
		return nil, fmt.Errorf("record %d: %w", index, err)
	}
	return e, nil
}

func (r *Reader) join(ctx context.Context, index uint64, e *audit.Entry) error {
	parts := make([]*audit.Entry, 0, len(e.Parts.Indexes))
	for _, at := range e.Parts.Indexes {
		if at >= index {
			return fmt.Errorf("record %d: a part does not come before it", index)
		}
		part, err := r.single(ctx, at)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	if err := e.Join(parts); err != nil {
		return fmt.Errorf("record %d: %w", index, err)
	}
	return nil
}

func (r *Reader) raw(ctx context.Context, index uint64) ([]byte, error) {
	if index >= r.size {
		return nil, ErrNoSuchRecord
	}
	bundle := index / bundleWidth
	if r.entries == nil || r.cached != bundle {
		data, err := r.src.ReadEntryBundle(ctx, bundle, layout.PartialTileSize(0, bundle, r.size))
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", index, err)
		}
		r.cached, r.entries = bundle, splitBundle(data)
	}
	if at := index % bundleWidth; at < uint64(len(r.entries)) {
		return r.entries[at], nil
	}
	return nil, fmt.Errorf("record %d: %w", index, errEntryMissing)
}

// splitBundle takes a tlog-tiles entry bundle apart. It returns the entries in
// front of the place where the bundle stops making sense, if it does.
func splitBundle(data []byte) [][]byte {
	entries := make([][]byte, 0, bundleWidth)
	for len(data) >= 2 {
		n := int(binary.BigEndian.Uint16(data))
		if len(data)-2 < n {
			break
		}
		entries = append(entries, data[2:2+n])
		data = data[2+n:]
	}
	return entries
}

// readBundle returns the entries of a bundle that should hold want of them.
// When that many are not there, it returns those that are.
func readBundle(ctx context.Context, src Source, bundle, want uint64) ([][]byte, error) {
	for n := want; n > 0; n-- {
		data, err := src.ReadEntryBundle(ctx, bundle, uint8(n%bundleWidth))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, errTooLarge) {
			// An earlier, shorter version may have been left.
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("entries from %d: %w", bundle*bundleWidth, err)
		}
		entries := splitBundle(data)
		return entries[:min(uint64(len(entries)), want)], nil
	}
	return nil, nil
}
