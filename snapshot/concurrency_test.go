// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/snapshot"
)

// A schema step may keep its output and change it as soon as the snapshot is
// made. The race detector would see a snapshot that still reads it.
func TestConcurrency_SchemaStepChangesItsOutputLater(t *testing.T) {
	t.Parallel()
	var owned any
	s, err := snapshot.Prepare(rawCall, func(tree any) (any, error) {
		owned = tree
		return tree, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for range 100 {
			scribble(owned)
		}
	})
	for range 100 {
		if diff := cmp.Diff(decodedCall(), s.View()); diff != "" {
			t.Errorf("view:\n%s", diff)
			break
		}
	}
	done.Wait()
}

// Everything at once on one snapshot, while others come and go: nothing is
// shared that may be written.
func TestConcurrency_SixtyFourGoroutinesOverOneSnapshot(t *testing.T) {
	t.Parallel()
	const goroutines, rounds = 64, 20
	s := mustNew(t, decodedCall())
	wantText, wantDigest := s.Canonical(), s.Digest()
	var done sync.WaitGroup
	for g := range goroutines {
		done.Go(func() {
			for i := range rounds {
				view := s.View()
				if err := s.Matches(view); err != nil {
					t.Error(err)
				}
				scribble(view)
				if err := s.Matches(view); err == nil {
					t.Error("a changed view matches")
				}
				if s.Canonical() != wantText || s.Digest() != wantDigest {
					t.Error("the snapshot changed")
				}
				own := `[` + strconv.Itoa(g) + `,` + strconv.Itoa(i) + `]`
				if other, err := snapshot.Prepare(own, asIs); err != nil || other.Canonical() != own {
					t.Errorf("another snapshot: %v %v", other, err)
				}
				if _, err := snapshot.ProposalHash("a", "t", own); err != nil {
					t.Error(err)
				}
				if _, err := snapshot.Decode(`{"a":[` + own); err == nil {
					t.Error("half a text was accepted")
				}
			}
		})
	}
	done.Wait()
}
