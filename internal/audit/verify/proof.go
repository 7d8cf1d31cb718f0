// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api/layout"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
)

// Proof shows, on its own, that a record is in a log.
type Proof struct {
	// Index of the record.
	Index uint64 `json:"index"`
	// Checkpoint is the signed checkpoint that the proof leads to.
	Checkpoint string `json:"checkpoint"`
	// Hashes is the inclusion proof of RFC 6962 section 2.1.1, in base64.
	Hashes [][]byte `json:"hashes"`
	// Entry is the signed record.
	Entry string `json:"entry"`
}

// ErrNotIncluded says that the proof does not lead from the record to the checkpoint.
var ErrNotIncluded = errors.New("the proof does not show that the record is in the log")

// Prove makes the inclusion proof of a record for the log's checkpoint.
func Prove(ctx context.Context, src Source, keys *attest.Keyring, origin string, index uint64) (*Proof, error) {
	text, err := src.ReadCheckpoint(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the checkpoint: %w", err)
	}
	at, err := ParseCheckpoint(text, keys, origin)
	if err != nil {
		return nil, err
	}
	raw, err := NewReader(src, keys, at).raw(ctx, index)
	if err != nil {
		return nil, err
	}
	nodes, err := proof.Inclusion(index, at.Size)
	if err != nil {
		return nil, fmt.Errorf("inclusion proof: %w", err)
	}
	hashes := make([][]byte, 0, len(nodes.IDs))
	for _, id := range nodes.IDs {
		hash, err := node(ctx, src, id, at.Size)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, hash)
	}
	hashes, err = nodes.Rehash(hashes, rfc6962.DefaultHasher.HashChildren)
	if err != nil {
		return nil, fmt.Errorf("inclusion proof: %w", err)
	}
	p := &Proof{Index: index, Checkpoint: string(text), Hashes: hashes, Entry: string(raw)}
	// A proof that would not verify is not handed out: then the log is damaged.
	if _, err := p.Verify(keys, origin); err != nil {
		return nil, err
	}
	return p, nil
}

// Verify checks the proof without the log and returns the record. The data of a
// large record is not in the proof; see [audit.Entry]. origin is the name the
// log must have, or empty.
func (p *Proof) Verify(keys *attest.Keyring, origin string) (*audit.Entry, error) {
	at, err := ParseCheckpoint([]byte(p.Checkpoint), keys, origin)
	if err != nil {
		return nil, err
	}
	leaf := rfc6962.DefaultHasher.HashLeaf([]byte(p.Entry))
	if err := proof.VerifyInclusion(rfc6962.DefaultHasher, p.Index, at.Size, leaf, p.Hashes, at.Root[:]); err != nil {
		return nil, ErrNotIncluded
	}
	e, err := audit.OpenEntry(keys, p.Entry)
	if err != nil {
		return nil, err
	}
	if e.Record.Position.Log != at.Origin {
		return nil, ErrCheckpointOrigin
	}
	return e, nil
}

// Consistent reports whether the log with this source contains the tree that a
// checkpoint signs, from its hash tiles alone. size is how many records the log
// has.
func Consistent(ctx context.Context, src Source, with *Checkpoint, size uint64) (bool, error) {
	if with.Size > size {
		return false, nil
	}
	factory := &compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	var hashes [][]byte
	for _, id := range compact.RangeNodes(0, with.Size, nil) {
		hash, err := node(ctx, src, id, size)
		if err != nil {
			return false, err
		}
		hashes = append(hashes, hash)
	}
	root := rfc6962.DefaultHasher.EmptyRoot()
	if with.Size > 0 {
		r, err := factory.NewRange(0, with.Size, hashes)
		if err != nil {
			return false, fmt.Errorf("hashing the tiles: %w", err)
		}
		if root, err = r.GetRootHash(nil); err != nil {
			return false, fmt.Errorf("hashing the tiles: %w", err)
		}
	}
	return [sha256.Size]byte(root) == with.Root, nil
}

// node returns the hash of a node of the tree of this size.
func node(ctx context.Context, src Source, id compact.NodeID, size uint64) ([]byte, error) {
	level, index, nodeLevel, nodeIndex := layout.NodeCoordsToTileAddress(uint64(id.Level), id.Index)
	data, err := src.ReadTile(ctx, level, index, layout.PartialTileSize(level, index, size))
	if err != nil {
		return nil, fmt.Errorf("reading a hash tile: %w", err)
	}
	first := nodeIndex << nodeLevel
	last := first + 1<<nodeLevel
	if last*sha256.Size > uint64(len(data)) {
		return nil, errors.New("a hash tile is shorter than the log's size demands")
	}
	r := (&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)
	for i := first; i < last; i++ {
		if err := r.Append(data[i*sha256.Size:(i+1)*sha256.Size], nil); err != nil {
			return nil, fmt.Errorf("hashing a tile: %w", err)
		}
	}
	return r.GetRootHash(nil)
}
