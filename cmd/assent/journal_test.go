// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	log "github.com/assent-dev/assent/internal/audit/journal"
	"github.com/assent-dev/assent/internal/audit/verify"
)

// testJournal is an operator's journal in a folder of the test.
func testJournal(t *testing.T, folder string, epoch int64) *journal {
	t.Helper()
	keys, err := attest.NewKeyring(make([]byte, ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return &journal{
		dir: filepath.Join(folder, "log"), origin: "assent.test/audit", version: "test", timeout: time.Minute, epoch: epoch,
		keys: func() *attest.Keyring { return keys }, anchors: []string{filepath.Join(folder, "anchor")},
	}
}

// open opens the log once, as Start does, without waiting for better times.
func (j *journal) openOnce(ctx context.Context) (*log.Log, error) {
	l, err := log.Open(ctx, log.Options{
		Dir: j.dir, Origin: j.origin, Keys: j.keys(), Now: time.Now, Timeout: j.timeout, Software: j.version, Anchors: j.openAnchors(),
	})
	if err != nil {
		return nil, err
	}
	return l, j.noteEpoch(ctx, l)
}

// write opens the log, appends records and closes it.
func (j *journal) write(t *testing.T, records int) {
	t.Helper()
	l, err := j.openOnce(t.Context())
	if err != nil {
		t.Fatalf("opening the log in epoch %d: %v", j.epoch, err)
	}
	for range records {
		if _, err := l.Append(t.Context(), audit.Record{Time: time.Now(), Data: audit.IntegrityAlarm{Reason: "Test"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestJournal_ThatWasRestored_OpensInAHigherEpochOnly(t *testing.T) {
	folder := t.TempDir()
	testJournal(t, folder, 0).write(t, 1)
	backup := filepath.Join(t.TempDir(), "backup")
	restore := func() {
		if err := errors.Join(os.RemoveAll(filepath.Join(folder, "log")), os.CopyFS(filepath.Join(folder, "log"), os.DirFS(backup))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(backup, os.DirFS(filepath.Join(folder, "log"))); err != nil {
		t.Fatal(err)
	}
	testJournal(t, folder, 0).write(t, 3)
	restore()
	if _, err := testJournal(t, folder, 0).openOnce(t.Context()); !errors.Is(err, log.ErrRestored) {
		t.Fatalf("a restored log opened in its own epoch: got %v, want %v", err, log.ErrRestored)
	}
	testJournal(t, folder, 1).write(t, 3)
	testJournal(t, folder, 1).write(t, 1)
	if _, err := testJournal(t, folder, 0).openOnce(t.Context()); !errors.Is(err, log.ErrRestored) {
		t.Errorf("the epoch was lowered: got %v, want %v", err, log.ErrRestored)
	}
	restore()
	if _, err := testJournal(t, folder, 1).openOnce(t.Context()); !errors.Is(err, log.ErrRestored) {
		t.Errorf("a log restored a second time opened in the same epoch: got %v, want %v", err, log.ErrRestored)
	}
	testJournal(t, folder, 2).write(t, 0)
}

func TestJournal_RecordsANewEpochOnce(t *testing.T) {
	folder := t.TempDir()
	for _, epoch := range []int64{0, 2, 2, 3} {
		testJournal(t, folder, epoch).write(t, 0)
	}
	j := testJournal(t, folder, 3)
	var got []audit.EpochChanged
	report, err := verify.Log(t.Context(), verify.DirSource(j.dir), verify.Options{Keys: j.keys(), Visit: func(_ uint64, e *audit.Entry) error {
		if d, ok := e.Record.Data.(audit.EpochChanged); ok {
			d.By = attest.User{}
			got = append(got, d)
		}
		return nil
	}})
	if err != nil || !report.OK() {
		t.Fatalf("the log does not verify: %v %v", err, report)
	}
	if diff := cmp.Diff([]audit.EpochChanged{{From: 0, To: 2}, {From: 2, To: 3}}, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}
