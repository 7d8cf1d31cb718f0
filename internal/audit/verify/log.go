// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
)

// Options say how a log is to be checked.
type Options struct {
	// Keys verify checkpoints and records. Required.
	Keys *attest.Keyring
	// Origin is the name the log must have; when empty, its checkpoint's own.
	Origin string
	// Remembered are checkpoints that were seen before. The log must contain
	// what they signed. Without one, a log that was cut back to an earlier
	// state, or replaced by another one of the same key, looks whole.
	Remembered [][]byte
	// Visit is called for each record that was found right, in order. The root
	// is checked at the end only, so what it does must be harmless.
	Visit func(index uint64, e *audit.Entry) error
}

// errStop ends the walk over the entries after a finding.
var errStop = errors.New("stop")

// Log checks a whole log: the checkpoint's signature, the signature, order and
// place of each record, hash tiles and root, and the remembered checkpoints.
//
// What is wrong with the log is in the report. The error says that the check
// could not be carried out.
func Log(ctx context.Context, src Source, o Options) (*Report, error) {
	c := &checker{src: src, keys: o.Keys, visit: o.Visit, report: &Report{
		Records: map[audit.RecordType]uint64{}, Findings: []Finding{},
	}}
	if err := c.begin(ctx, o); err != nil {
		return nil, err
	}
	if c.at == nil {
		return c.report, nil
	}
	err := c.walk(ctx)
	if err == nil {
		err = c.finish(ctx)
	}
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	c.blameSkips()
	c.report.Verified = c.verified
	return c.report, nil
}

type skip struct {
	index    uint64
	from, to uint64 // the numbers in between are missing
}

type checker struct {
	src    Source
	keys   *attest.Keyring
	visit  func(uint64, *audit.Entry) error
	report *Report

	at         *Checkpoint
	remembered []*Checkpoint // those that lie within the log, by size
	agreed     uint64        // the largest remembered size that agrees

	tree     *compact.Range
	tiles    tileChecker
	reader   *Reader
	verified uint64
	last     *audit.Record
	writers  map[string]bool
	skips    []skip
}

// begin reads the checkpoints. It leaves c.at nil when there is nothing to
// check against.
func (c *checker) begin(ctx context.Context, o Options) error {
	text, err := c.src.ReadCheckpoint(ctx)
	if errors.Is(err, os.ErrNotExist) {
		c.report.find(ReasonCheckpointMissing, 0, "the log has no checkpoint")
		return nil
	}
	if err != nil && !errors.Is(err, errTooLarge) {
		return fmt.Errorf("reading the checkpoint: %w", err)
	}
	at, err := ParseCheckpoint(text, o.Keys, o.Origin)
	if err != nil {
		c.report.find(checkpointReason(err), 0, "%v", err)
		return nil
	}
	c.at, c.report.Checkpoint = at, text
	c.report.Origin, c.report.Size, c.report.Root = at.Origin, at.Size, hex.EncodeToString(at.Root[:])
	c.tree = (&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)
	c.tiles = tileChecker{src: c.src, report: c.report}
	c.reader = NewReader(c.src, c.keys, at)
	c.writers = map[string]bool{}
	return c.remember(o)
}

func checkpointReason(err error) Reason {
	switch {
	case errors.Is(err, ErrCheckpointKey):
		return ReasonUntrustedKey
	case errors.Is(err, ErrCheckpointSignature):
		return ReasonBadSignature
	case errors.Is(err, ErrCheckpointOrigin):
		return ReasonForeignLog
	default:
		return ReasonCheckpointMalformed
	}
}

func (c *checker) remember(o Options) error {
	for i, text := range o.Remembered {
		r, err := ParseCheckpoint(text, o.Keys, "")
		if err == nil && r.Origin != c.at.Origin {
			err = ErrCheckpointOrigin
		}
		if errors.Is(err, ErrCheckpointMalformed) {
			return fmt.Errorf("remembered checkpoint %d: %w", i, err)
		}
		if err != nil {
			c.report.find(checkpointReason(err), 0, "remembered checkpoint %d: %v", i, err)
			continue
		}
		if r.Size > c.at.Size {
			c.report.find(ReasonTruncated, c.at.Size, "a remembered checkpoint covers %d records, the log only %d", r.Size, c.at.Size)
			continue
		}
		c.remembered = append(c.remembered, r)
	}
	slices.SortStableFunc(c.remembered, func(a, b *Checkpoint) int { return cmp.Compare(a.Size, b.Size) })
	return c.compareRemembered()
}

// walk goes through the entries once, in order, one bundle in memory.
func (c *checker) walk(ctx context.Context) error {
	for c.verified < c.at.Size {
		if err := ctx.Err(); err != nil {
			return err
		}
		bundle := c.verified / bundleWidth
		want := min(bundleWidth, c.at.Size-bundle*bundleWidth)
		raw, err := readBundle(ctx, c.src, bundle, want)
		if err != nil {
			return err
		}
		for _, opened := range openAll(c.keys, raw) {
			if err := c.take(ctx, opened); err != nil {
				return c.explain(ctx, bundle, err)
			}
		}
		if uint64(len(raw)) < want {
			c.report.find(ReasonEntryMissing, c.verified, "the entry is not there")
			return errStop
		}
		if err := c.tiles.compareFull(ctx); err != nil {
			return err
		}
	}
	return nil
}

// explain looks, after a finding in a bundle, whether the bundle's tile shows
// that an earlier entry is the wrong one.
func (c *checker) explain(ctx context.Context, bundle uint64, err error) error {
	if !errors.Is(err, errStop) {
		return err
	}
	if tileErr := c.tiles.compareLeaves(ctx, bundle, c.at.Size); tileErr != nil && !errors.Is(tileErr, errStop) {
		return tileErr
	}
	return err
}

// opened is an entry after the part of the work that needs no order.
type opened struct {
	entry *audit.Entry
	err   error
	leaf  []byte
}

// openAll verifies signatures on all processors: that is nearly all the work.
func openAll(keys *attest.Keyring, raw [][]byte) []opened {
	out := make([]opened, len(raw))
	workers := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(raw); i += workers {
				out[i].entry, out[i].err = audit.OpenEntry(keys, string(raw[i]))
				out[i].leaf = rfc6962.DefaultHasher.HashLeaf(raw[i])
			}
		})
	}
	wg.Wait()
	return out
}

func (c *checker) take(ctx context.Context, o opened) error {
	index := c.verified
	if o.err != nil {
		c.report.find(entryReason(o.err), index, "%v", o.err)
		return errStop
	}
	if err := c.place(index, o.entry); err != nil {
		return err
	}
	if o.entry.Parts != nil {
		if err := c.reader.join(ctx, index, o.entry); err != nil {
			c.report.find(ReasonPartsMissing, index, "%v", err)
			return errStop
		}
	}
	if err := c.tree.Append(o.leaf, c.tiles.visit); err != nil {
		return fmt.Errorf("hashing record %d: %w", index, err)
	}
	c.verified++
	c.report.Records[o.entry.Type]++
	if err := c.compareRemembered(); err != nil {
		return err
	}
	if c.visit != nil {
		return c.visit(index, o.entry)
	}
	return nil
}

func entryReason(err error) Reason {
	reasons := map[attest.VerifyReason]Reason{
		attest.ReasonBadSignature: ReasonBadSignature,
		attest.ReasonUnknownKey:   ReasonUntrustedKey,
	}
	if reason, ok := reasons[attest.ReasonOf(err)]; ok {
		return reason
	}
	return ReasonEntryMalformed
}

// compareRemembered compares the root so far with the remembered checkpoints
// of this size.
func (c *checker) compareRemembered() error {
	for len(c.remembered) > 0 && c.remembered[0].Size == c.tree.End() {
		root, err := c.root()
		if err != nil {
			return err
		}
		if !bytes.Equal(root, c.remembered[0].Root[:]) {
			c.report.find(ReasonForked, c.agreed, "a remembered checkpoint of %d records has another root; up to %d records are known to agree", c.tree.End(), c.agreed)
		} else {
			c.agreed = c.tree.End()
			c.report.Remembered++
		}
		c.remembered = c.remembered[1:]
	}
	return nil
}

func (c *checker) root() ([]byte, error) {
	if c.tree.End() == 0 {
		return rfc6962.DefaultHasher.EmptyRoot(), nil
	}
	return c.tree.GetRootHash(nil)
}

// finish compares what is left when all entries are read.
func (c *checker) finish(ctx context.Context) error {
	if err := c.tiles.compareRest(ctx, c.at.Size); err != nil {
		return err
	}
	root, err := c.root()
	if err != nil {
		return err
	}
	if !bytes.Equal(root, c.at.Root[:]) {
		c.report.find(ReasonRootMismatch, c.agreed, "the entries are not those that the checkpoint signs; up to %d records are known to agree", c.agreed)
	}
	return nil
}
