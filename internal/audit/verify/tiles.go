// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/tessera/api/layout"
)

// tileChecker collects the hashes that the tiles of a log must contain, at most
// one unfinished tile for each level, and compares them with the files.
type tileChecker struct {
	src    Source
	report *Report

	open []tile // by level
	full []tile // waiting to be compared
}

type tile struct {
	level, index uint64
	hashes       []byte
}

// visit receives each node of the tree once. Tiles hold every eighth level.
func (t *tileChecker) visit(id compact.NodeID, hash []byte) {
	if id.Level%layout.TileHeight != 0 {
		return
	}
	level := uint64(id.Level / layout.TileHeight)
	for uint64(len(t.open)) <= level {
		t.open = append(t.open, tile{level: uint64(len(t.open))})
	}
	current := &t.open[level]
	current.hashes = append(current.hashes, hash...)
	if len(current.hashes) == maxTileBytes {
		t.full = append(t.full, *current)
		*current = tile{level: level, index: current.index + 1}
	}
}

// compareFull compares the tiles that were finished since the last call.
func (t *tileChecker) compareFull(ctx context.Context) error {
	for _, one := range t.full {
		if err := t.compare(ctx, one, 0, true); err != nil {
			return err
		}
	}
	t.full = t.full[:0]
	return nil
}

// compareRest compares the unfinished tiles of a complete tree of this size.
func (t *tileChecker) compareRest(ctx context.Context, size uint64) error {
	for _, one := range t.open {
		if len(one.hashes) == 0 {
			continue
		}
		if err := t.compare(ctx, one, layout.PartialTileSize(one.level, one.index, size), true); err != nil {
			return err
		}
	}
	return nil
}

// compareLeaves compares the leaves seen so far of an unfinished bundle with
// its tile, if that is there. size is that of the whole tree.
func (t *tileChecker) compareLeaves(ctx context.Context, bundle, size uint64) error {
	if len(t.open) == 0 || t.open[0].index != bundle {
		return nil
	}
	return t.compare(ctx, t.open[0], layout.PartialTileSize(0, bundle, size), false)
}

func (t *tileChecker) compare(ctx context.Context, want tile, partial uint8, required bool) error {
	got, err := t.src.ReadTile(ctx, want.level, want.index, partial)
	missing := errors.Is(err, os.ErrNotExist) || errors.Is(err, errTooLarge)
	if err != nil && !missing {
		return fmt.Errorf("reading a hash tile: %w", err)
	}
	if missing && !required {
		return nil
	}
	for i := range len(want.hashes) / sha256.Size {
		low, high := i*sha256.Size, (i+1)*sha256.Size
		if len(got) >= high && bytes.Equal(got[low:high], want.hashes[low:high]) {
			continue
		}
		index := (want.index*layout.TileWidth + uint64(i)) << (layout.TileHeight * want.level)
		t.report.find(ReasonTileMismatch, index, "the hash tile of level %d does not match the entries", want.level)
		return errStop
	}
	return nil
}
