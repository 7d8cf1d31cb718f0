// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	log "github.com/assent-dev/assent/internal/audit/journal"
)

// epochAnchor keeps beside a checkpoint the epoch it was stored in, in a place
// of its own, so that the checkpoint itself stays readable for anybody. What
// was remembered in an earlier epoch counts for nothing: that the operator
// raised it says that a person has looked into the restore.
type epochAnchor struct {
	log.Anchor
	mark  log.Anchor
	epoch int64
	// marked says that the place has this epoch.
	marked bool
}

// Load returns the checkpoint that was remembered in this epoch.
func (a *epochAnchor) Load(ctx context.Context) ([]byte, error) {
	stored, err := loadEpoch(ctx, a.mark)
	if err != nil {
		return nil, err
	}
	switch {
	case stored > a.epoch:
		return nil, fmt.Errorf("%w: --epoch is %d, but it was %d already", log.ErrRestored, a.epoch, stored)
	case stored < a.epoch:
		return nil, fmt.Errorf("the checkpoint is of epoch %d: %w", stored, os.ErrNotExist)
	}
	return a.Anchor.Load(ctx)
}

// Store remembers the checkpoint, and the epoch where it is new. The epoch
// comes last: with a crash in between, the checkpoint is one that the next
// start is told to forget.
func (a *epochAnchor) Store(ctx context.Context, checkpoint []byte) error {
	if err := a.Anchor.Store(ctx, checkpoint); err != nil || a.marked {
		return err
	}
	if err := storeEpoch(ctx, a.mark, a.epoch); err != nil {
		return err
	}
	a.marked = true
	return nil
}

// loadEpoch is 0 where nothing was stored.
func loadEpoch(ctx context.Context, from log.Anchor) (int64, error) {
	text, err := from.Load(ctx)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the epoch: %w", err)
	}
	epoch, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the epoch: %w", err)
	}
	return epoch, nil
}

func storeEpoch(ctx context.Context, to log.Anchor, epoch int64) error {
	if err := to.Store(ctx, []byte(strconv.FormatInt(epoch, 10)+"\n")); err != nil {
		return fmt.Errorf("writing the epoch: %w", err)
	}
	return nil
}
