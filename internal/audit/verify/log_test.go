// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/transparency-dev/tessera/api/layout"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/audit/verify"
)

func check(t *testing.T, dir string, o verify.Options) *verify.Report {
	t.Helper()
	if o.Keys == nil {
		o.Keys = keys(t, 1)
	}
	report, err := verify.Log(t.Context(), verify.DirSource(dir), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// wantFirst asserts the first bad index and its reason; reason "" means none.
func wantFirst(t *testing.T, report *verify.Report, index uint64, reason verify.Reason) {
	t.Helper()
	got := report.FirstBad()
	if reason == "" {
		if got != nil {
			t.Fatalf("finding %+v, want none", *got)
		}
		return
	}
	if got == nil || got.Index != index || got.Reason != reason {
		t.Fatalf("findings %+v, want first %s at %d", report.Findings, reason, index)
	}
}

// genuine is the log that most tests damage: two writers, 600 small records,
// one large record with its parts in the middle.
func genuine(t testing.TB) [][]byte {
	genuineOnce.Do(func() {
		genuineEntries = newBuilder(t, keys(t, 1)).open("a").denials(300).large().open("b").denials(300).out
	})
	return genuineEntries
}

var (
	genuineOnce    sync.Once
	genuineEntries [][]byte
)

func TestLog_AcceptsGenuineLogsOfEverySize(t *testing.T) {
	entries := newBuilder(t, keys(t, 1)).open("a").denials(520).out
	for _, n := range []int{0, 1, 2, 3, 255, 256, 257, 511, 512, 513, 521} {
		dir := writeLog(t, keys(t, 1), entries[:n])
		report := check(t, dir, verify.Options{Origin: origin})
		wantFirst(t, report, 0, "")
		if report.Verified != uint64(n) || report.Size != uint64(n) {
			t.Errorf("size %d: verified %d of %d", n, report.Verified, report.Size)
		}
	}
}

func TestLog_CountsWhatItFinds(t *testing.T) {
	b := newBuilder(t, keys(t, 1)).open("a").denials(2)
	b.seq += 3 // three writes failed
	b.add(audit.Record{Time: at.Add(-time.Hour), Data: audit.Denied{Reason: "PolicyDenied"}})
	b.large().open("b").denials(1)
	dir := writeLog(t, keys(t, 1), b.out)
	var visited []audit.RecordType
	report := check(t, dir, verify.Options{Visit: func(index uint64, e *audit.Entry) error {
		if int(index) != len(visited) || e.Record.Data == nil {
			t.Errorf("visit %d out of order or without data", index)
		}
		visited = append(visited, e.Type)
		return nil
	}})
	wantFirst(t, report, 0, "")
	root := newTree(t, b.out).root
	want := &verify.Report{
		Origin: origin, Size: 10, Verified: 10, Root: hex.EncodeToString(root),
		Records: map[audit.RecordType]uint64{
			audit.TypeJournalOpened: 2, audit.TypeDenied: 4, audit.TypeRecordPart: 3, audit.TypeIntegrityAlarm: 1,
		},
		Writers: 2, Skipped: 3, ClockSteps: 1, Findings: []verify.Finding{},
		Checkpoint: report.Checkpoint,
	}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Error(diff)
	}
	if len(visited) != 10 || visited[7] != audit.TypeIntegrityAlarm {
		t.Errorf("visited %v", visited)
	}
}

func TestLog_NamesTheFirstBadIndex(t *testing.T) {
	k := keys(t, 1)
	entries := genuine(t)
	size := uint64(len(entries))
	whole := newTree(t, entries)
	edit := func(f func(e [][]byte) [][]byte) tree { return newTree(t, f(slices.Clone(entries))) }
	swap := func(i, j int) tree {
		return edit(func(e [][]byte) [][]byte { e[i], e[j] = e[j], e[i]; return e })
	}
	drop := func(i int) tree {
		return edit(func(e [][]byte) [][]byte { return slices.Delete(e, i, i+1) })
	}
	flip := func(i, at int) tree {
		return edit(func(e [][]byte) [][]byte { e[i] = slices.Clone(e[i]); e[i][at] ^= 1; return e })
	}
	flipSignature := func(i int) tree {
		return edit(func(e [][]byte) [][]byte {
			before, after, _ := bytes.Cut(e[i], []byte(`"sig":"`))
			other := byte('A')
			if after[0] == other {
				other = 'B'
			}
			e[i] = slices.Concat(before, []byte(`"sig":"`), []byte{other}, after[1:])
			return e
		})
	}
	foreign := newBuilder(t, keys(t, 2)).open("a").denials(6).out
	otherLog := &builder{t: t, keys: k, origin: "assent.test/other"}
	otherLog.open("a").denials(6)

	// rebuilt: the attacker also made the hash tiles fit, but has no key, so
	// the checkpoint stays. entries: only the entries were touched. signed: the
	// holder of the key wrote a log that no journal writes.
	tests := map[string]struct {
		tree   tree
		mode   string
		index  uint64
		reason verify.Reason
	}{
		"untouched, as the control":                               {whole, "rebuilt", 0, ""},
		"the last record removed":                                 {newTree(t, entries[:size-1]), "entries", size - 1, verify.ReasonEntryMissing},
		"the last record removed, tiles rebuilt":                  {newTree(t, entries[:size-1]), "rebuilt", size - 1, verify.ReasonEntryMissing},
		"the last 400 removed":                                    {newTree(t, entries[:size-400]), "entries", size - 400, verify.ReasonEntryMissing},
		"all removed":                                             {newTree(t, nil), "entries", 0, verify.ReasonEntryMissing},
		"two neighbours swapped":                                  {swap(40, 41), "entries", 40, verify.ReasonWrongOrder},
		"two neighbours swapped, tiles rebuilt":                   {swap(40, 41), "rebuilt", 40, verify.ReasonWrongOrder},
		"two far apart swapped":                                   {swap(40, 200), "entries", 40, verify.ReasonWrongOrder},
		"two far apart swapped, tiles rebuilt":                    {swap(40, 200), "rebuilt", 40, verify.ReasonWrongOrder},
		"two in different bundles swapped":                        {swap(40, 290), "entries", 40, verify.ReasonWrongOrder},
		"two in different bundles, tiles rebuilt":                 {swap(40, 290), "rebuilt", 40, verify.ReasonWrongOrder},
		"two of different writers swapped":                        {swap(290, 500), "rebuilt", 290, verify.ReasonWrongOrder},
		"the first two swapped":                                   {swap(0, 1), "rebuilt", 0, verify.ReasonWrongOrder},
		"the last two swapped":                                    {swap(int(size)-2, int(size)-1), "rebuilt", size - 2, verify.ReasonWrongOrder},
		"a record taken out of the middle":                        {drop(100), "entries", 100, verify.ReasonTileMismatch},
		"a record taken out, tiles rebuilt":                       {drop(100), "rebuilt", 100, verify.ReasonWrongOrder},
		"the first record taken out":                              {drop(0), "rebuilt", 0, verify.ReasonWrongOrder},
		"a record put in twice":                                   {edit(func(e [][]byte) [][]byte { return slices.Insert(e, 51, e[50]) }), "rebuilt", 51, verify.ReasonWrongOrder},
		"one byte of a payload flipped":                           {flip(77, 100), "rebuilt", 77, verify.ReasonBadSignature},
		"one byte of a signature flipped":                         {flipSignature(77), "entries", 77, verify.ReasonBadSignature},
		"the first byte of an entry flipped":                      {flip(0, 0), "rebuilt", 0, verify.ReasonEntryMalformed},
		"the last byte of the last entry flipped":                 {flip(int(size)-1, len(entries[size-1])-1), "rebuilt", size - 1, verify.ReasonEntryMalformed},
		"a record signed with another key":                        {edit(func(e [][]byte) [][]byte { e[5] = foreign[5]; return e }), "rebuilt", 5, verify.ReasonUntrustedKey},
		"a record of another log of the same key":                 {edit(func(e [][]byte) [][]byte { e[5] = otherLog.out[5]; return e }), "rebuilt", 5, verify.ReasonForeignLog},
		"an entry that is no record":                              {edit(func(e [][]byte) [][]byte { e[9] = []byte("{}"); return e }), "rebuilt", 9, verify.ReasonEntryMalformed},
		"an empty entry":                                          {edit(func(e [][]byte) [][]byte { e[9] = nil; return e }), "rebuilt", 9, verify.ReasonEntryMalformed},
		"a part of a large record replaced, signed":               {edit(func(e [][]byte) [][]byte { e[302] = newBuilderAt(t, "a", 302).denials(1).out[0]; return e }), "signed", 304, verify.ReasonPartsMissing},
		"a writer that comes back, signed":                        {newTree(t, newBuilder(t, k).open("a").denials(2).open("b").open("a").out), "signed", 4, verify.ReasonWrongOrder},
		"a writer without its first record, signed":               {newTree(t, newBuilderAt(t, "a", 3).denials(2).out), "signed", 0, verify.ReasonWrongOrder},
		"a first record in the middle of a turn, signed":          {newTree(t, newBuilder(t, k).open("a").denials(1).add(audit.Record{Data: audit.JournalOpened{Size: 2, Software: "test"}}).out), "signed", 2, verify.ReasonWrongOrder},
		"a record taken out before a writer began, tiles rebuilt": {newTree(t, slices.Delete(newBuilder(t, k).open("a").denials(9).open("b").denials(9).out, 4, 5)), "rebuilt", 4, verify.ReasonWrongOrder},
		"a first record for another size, signed":                 {newTree(t, slices.Concat(newBuilder(t, k).open("a").denials(2).out[:2], newBuilder(t, k).open("a").denials(2).open("b").out[3:])), "signed", 2, verify.ReasonWrongOrder},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			switch tc.mode {
			case "entries":
				whole.write(t, dir)
				if err := os.RemoveAll(filepath.Join(dir, "tile", "entries")); err != nil {
					t.Fatal(err)
				}
				tc.tree.writeEntries(t, dir)
			default:
				tc.tree.write(t, dir)
			}
			signed := whole
			if tc.mode == "signed" {
				signed = tc.tree
			}
			writeFile(t, dir, "checkpoint", signed.checkpoint(t, k, origin))
			wantFirst(t, check(t, dir, verify.Options{}), tc.index, tc.reason)
		})
	}
}

// newBuilderAt continues as a writer that has already written seq records.
func newBuilderAt(t testing.TB, writer string, seq uint64) *builder {
	b := newBuilder(t, keys(t, 1))
	b.writer, b.seq = idOf(writer), seq
	return b
}

func TestLog_JudgesCheckpoints(t *testing.T) {
	k := keys(t, 1)
	entries := newBuilder(t, k).open("a").denials(30).out
	tr := newTree(t, entries)
	own := tr.checkpoint(t, k, origin)
	flipped := bytes.Replace(own, []byte("\n31\n"), []byte("\n30\n"), 1)
	other := newTree(t, newBuilder(t, k).open("z").denials(30).out)
	tests := map[string]struct {
		checkpoint []byte
		origin     string
		keys       *attest.Keyring
		reason     verify.Reason
	}{
		"the log's own":                         {own, origin, k, ""},
		"none":                                  {nil, "", k, verify.ReasonCheckpointMissing},
		"an empty one":                          {[]byte{}, "", k, verify.ReasonCheckpointMalformed},
		"one with another size than was signed": {flipped, "", k, verify.ReasonBadSignature},
		"one without a signature":               {own[:bytes.LastIndex(own, []byte("\u2014"))], "", k, verify.ReasonCheckpointMalformed},
		"one of a key that is not given":        {own, "", keys(t, 2), verify.ReasonUntrustedKey},
		"one that a foreign key signed":         {tr.checkpoint(t, keys(t, 2), origin), "", k, verify.ReasonUntrustedKey},
		"that of another log, origin given":     {tr.checkpoint(t, k, "assent.test/other"), origin, k, verify.ReasonForeignLog},
		"that of another log, origin not given": {tr.checkpoint(t, k, "assent.test/other"), "", k, verify.ReasonForeignLog},
		"that of another log of the same name":  {other.checkpoint(t, k, origin), "", k, verify.ReasonRootMismatch},
		"one that is too long":                  {bytes.Repeat(own, 1000), "", k, verify.ReasonCheckpointMalformed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tr.write(t, dir)
			if tc.checkpoint != nil {
				writeFile(t, dir, "checkpoint", tc.checkpoint)
			}
			wantFirst(t, check(t, dir, verify.Options{Origin: tc.origin, Keys: tc.keys}), 0, tc.reason)
		})
	}
}

func TestLog_ComparesRememberedCheckpoints(t *testing.T) {
	k := keys(t, 1)
	entries := genuine(t)
	cut := func(n int) []byte { return newTree(t, entries[:n]).checkpoint(t, k, origin) }
	// A fork: restored at 300 records, then continued differently.
	fork := newBuilder(t, k)
	fork.out = slices.Clone(entries[:300])
	fork.open("c").denials(400)
	forked := func(n int) []byte { return newTree(t, fork.out[:n]).checkpoint(t, k, origin) }
	tests := map[string]struct {
		entries    [][]byte
		remembered [][]byte
		index      uint64
		reason     verify.Reason
		agree      uint64
	}{
		"none":                                    {entries, nil, 0, "", 0},
		"earlier states of this log":              {entries, [][]byte{cut(300), cut(0), cut(1), cut(256), cut(len(entries))}, 0, "", 5},
		"the same one twice":                      {entries, [][]byte{cut(300), cut(300)}, 0, "", 2},
		"a log cut back to a genuine prefix":      {entries[:500], [][]byte{cut(501)}, 500, verify.ReasonTruncated, 0},
		"a log cut back to nothing":               {nil, [][]byte{cut(1)}, 0, verify.ReasonTruncated, 0},
		"a fork, with an early and a late memory": {fork.out, [][]byte{cut(250), cut(301)}, 250, verify.ReasonForked, 1},
		"a fork, with a late memory only":         {fork.out, [][]byte{cut(600)}, 0, verify.ReasonForked, 0},
		"a fork, with a memory before it":         {fork.out, [][]byte{cut(300)}, 0, "", 1},
		"memories of both branches":               {entries, [][]byte{cut(299), forked(400), cut(500)}, 299, verify.ReasonForked, 2},
		"one of a foreign key":                    {entries, [][]byte{newTree(t, entries).checkpoint(t, keys(t, 2), origin)}, 0, verify.ReasonUntrustedKey, 0},
		"one of another log":                      {entries, [][]byte{newTree(t, entries).checkpoint(t, k, "assent.test/other")}, 0, verify.ReasonForeignLog, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			report := check(t, writeLog(t, k, tc.entries), verify.Options{Remembered: tc.remembered})
			wantFirst(t, report, tc.index, tc.reason)
			if report.Remembered != tc.agree {
				t.Errorf("%d remembered checkpoints agree, want %d", report.Remembered, tc.agree)
			}
		})
	}
	_, err := verify.Log(t.Context(), verify.DirSource(writeLog(t, k, entries)), verify.Options{Keys: k, Remembered: [][]byte{[]byte(origin + "\n")}})
	if !errors.Is(err, verify.ErrCheckpointMalformed) {
		t.Errorf("a remembered text that is none: %v, want ErrCheckpointMalformed", err)
	}
}

func TestLog_ChecksEveryTile(t *testing.T) {
	k := keys(t, 1)
	entries := genuine(t)
	tests := map[string]struct {
		path  string
		at    int
		index uint64
	}{
		"a full tile of leaves":    {layout.TilePath(0, 0, 0), 32 * 17, 17},
		"a partial tile of leaves": {layout.TilePath(0, 2, uint8(len(entries)-512)), 32 * 3, 515},
		"a tile of inner nodes":    {layout.TilePath(1, 0, 2), 32, 256},
	}
	for name, tc := range tests {
		path := func(dir string) string { return filepath.Join(dir, tc.path) }
		t.Run(name+" flipped", func(t *testing.T) {
			dir := writeLog(t, k, entries)
			data, err := os.ReadFile(path(dir))
			if err != nil {
				t.Fatal(err)
			}
			data[tc.at] ^= 1
			writeFile(t, dir, tc.path, data)
			wantFirst(t, check(t, dir, verify.Options{}), tc.index, verify.ReasonTileMismatch)
		})
		t.Run(name+" cut", func(t *testing.T) {
			dir := writeLog(t, k, entries)
			if err := os.Truncate(path(dir), int64(tc.at)); err != nil {
				t.Fatal(err)
			}
			wantFirst(t, check(t, dir, verify.Options{}), tc.index, verify.ReasonTileMismatch)
		})
		t.Run(name+" removed", func(t *testing.T) {
			dir := writeLog(t, k, entries)
			if err := os.Remove(path(dir)); err != nil {
				t.Fatal(err)
			}
			if report := check(t, dir, verify.Options{}); report.OK() || report.FirstBad().Reason != verify.ReasonTileMismatch {
				t.Errorf("findings %+v, want TileMismatch", report.Findings)
			}
		})
	}
}

func TestLog_AcceptsFullResourcesInPlaceOfPartialOnes(t *testing.T) {
	k := keys(t, 1)
	entries := newBuilder(t, k).open("a").denials(299).out
	dir := writeLog(t, k, entries)
	// The checkpoint is older than the files: the writer has gone on and has
	// already removed the partial files of its size.
	older := newTree(t, entries[:200])
	writeFile(t, dir, "checkpoint", older.checkpoint(t, k, origin))
	report := check(t, dir, verify.Options{})
	wantFirst(t, report, 0, "")
	if report.Verified != 200 {
		t.Errorf("verified %d, want 200", report.Verified)
	}
}

func TestLog_FindsADamagedBundle(t *testing.T) {
	k := keys(t, 1)
	entries := newBuilder(t, k).open("a").denials(30).out
	path := layout.EntriesPath(0, 31)
	offset := func(i int) int {
		n := 0
		for _, e := range entries[:i] {
			n += 2 + len(e)
		}
		return n
	}
	tests := map[string]struct {
		edit   func([]byte) []byte
		index  uint64
		reason verify.Reason
	}{
		"a length too small": {func(b []byte) []byte { b[offset(7)+1]--; return b }, 7, verify.ReasonEntryMalformed},
		"a length too large": {func(b []byte) []byte { b[offset(30)]++; return b }, 30, verify.ReasonEntryMissing},
		"cut in an entry":    {func(b []byte) []byte { return b[:offset(12)+50] }, 12, verify.ReasonEntryMissing},
		"cut in a length":    {func(b []byte) []byte { return b[:offset(12)+1] }, 12, verify.ReasonEntryMissing},
		"emptied":            {func([]byte) []byte { return nil }, 0, verify.ReasonEntryMissing},
		"far too long":       {func(b []byte) []byte { return append(b, make([]byte, 17<<20)...) }, 0, verify.ReasonEntryMissing},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := writeLog(t, k, entries)
			data, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, dir, path, tc.edit(data))
			wantFirst(t, check(t, dir, verify.Options{}), tc.index, tc.reason)
		})
	}
}

func TestLog_ReturnsWhatItCannotRead(t *testing.T) {
	k := keys(t, 1)
	dir := writeLog(t, k, genuine(t))
	broken := errors.New("broken pipe")
	for _, what := range []string{"checkpoint", "bundle", "tile"} {
		_, err := verify.Log(t.Context(), failingSource{verify.DirSource(dir), what, broken}, verify.Options{Keys: k})
		if !errors.Is(err, broken) {
			t.Errorf("%s: error %v, want the cause", what, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := verify.Log(ctx, verify.DirSource(dir), verify.Options{Keys: k}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	stop := errors.New("enough")
	_, err := verify.Log(t.Context(), verify.DirSource(dir), verify.Options{Keys: k, Visit: func(uint64, *audit.Entry) error { return stop }})
	if !errors.Is(err, stop) {
		t.Errorf("visit: %v, want its error", err)
	}
}

func TestLog_ReturnsWhatItCannotReadOfSingleTiles(t *testing.T) {
	k := keys(t, 1)
	entries := slices.Clone(genuine(t))
	whole := writeLog(t, k, entries)
	entries[560] = []byte("{}")
	damaged := t.TempDir()
	newTree(t, entries).write(t, damaged)
	writeFile(t, damaged, "checkpoint", newTree(t, genuine(t)).checkpoint(t, k, origin))
	broken := errors.New("broken pipe")
	tests := map[string]struct {
		dir          string
		level, index uint64
	}{
		"a full tile":                  {whole, 0, 1},
		"an unfinished tile":           {whole, 1, 0},
		"the tile of a damaged bundle": {damaged, 0, 2},
	}
	for name, tc := range tests {
		src := tileFailure{verify.DirSource(tc.dir), tc.level, tc.index, broken}
		if _, err := verify.Log(t.Context(), src, verify.Options{Keys: k}); !errors.Is(err, broken) {
			t.Errorf("%s: error %v, want the cause", name, err)
		}
	}
}

type tileFailure struct {
	verify.Source
	level, index uint64
	err          error
}

func (s tileFailure) ReadTile(ctx context.Context, level, index uint64, p uint8) ([]byte, error) {
	if level == s.level && index == s.index {
		return nil, s.err
	}
	return s.Source.ReadTile(ctx, level, index, p)
}

type failingSource struct {
	verify.Source
	what string
	err  error
}

func (s failingSource) ReadCheckpoint(ctx context.Context) ([]byte, error) {
	if s.what == "checkpoint" {
		return nil, s.err
	}
	return s.Source.ReadCheckpoint(ctx)
}

func (s failingSource) ReadEntryBundle(ctx context.Context, index uint64, p uint8) ([]byte, error) {
	if s.what == "bundle" {
		return nil, s.err
	}
	return s.Source.ReadEntryBundle(ctx, index, p)
}

func (s failingSource) ReadTile(ctx context.Context, level, index uint64, p uint8) ([]byte, error) {
	if s.what == "tile" {
		return nil, s.err
	}
	return s.Source.ReadTile(ctx, level, index, p)
}
