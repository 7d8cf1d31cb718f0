// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api/layout"
	"github.com/transparency-dev/tessera/client"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/audit/verify"
)

func TestProve_VerifiesForEveryRecord(t *testing.T) {
	k := keys(t, 1)
	entries := newBuilder(t, k).open("a").denials(299).out
	for _, size := range []int{1, 2, 7, 256, 257, 300} {
		dir := writeLog(t, k, entries[:size])
		src := verify.DirSource(dir)
		for _, index := range []int{0, 1, size / 2, size - 1} {
			if index >= size {
				continue
			}
			p, err := verify.Prove(t.Context(), src, k, origin, uint64(index))
			if err != nil {
				t.Fatalf("record %d of %d: %v", index, size, err)
			}
			e, err := p.Verify(k, origin)
			if err != nil || e.Record.Position.Seq != uint64(index) {
				t.Fatalf("record %d of %d: %v", index, size, err)
			}
			// Tessera's own client makes the same proof.
			builder, err := client.NewProofBuilder(t.Context(), uint64(size), src.ReadTile)
			if err != nil {
				t.Fatal(err)
			}
			want, err := builder.InclusionProof(t.Context(), uint64(index))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(p.Hashes, want, bytes.Equal) {
				t.Errorf("record %d of %d: the hashes differ from Tessera's", index, size)
			}
			checkWithGoSumDB(t, p, size)
		}
	}
}

// checkWithGoSumDB verifies a proof with the implementation of the Go checksum
// database, which shares no code with the Merkle library used here.
func checkWithGoSumDB(t *testing.T, p *verify.Proof, size int) {
	t.Helper()
	tree, err := tlog.ParseTree([]byte("go.sum database tree\n" + strings.SplitN(p.Checkpoint, "\n", 2)[1]))
	if err != nil {
		t.Fatal(err)
	}
	record := make(tlog.RecordProof, len(p.Hashes))
	for i, h := range p.Hashes {
		record[i] = tlog.Hash(h)
	}
	if err := tlog.CheckRecord(record, int64(size), tree.Hash, int64(p.Index), tlog.RecordHash([]byte(p.Entry))); err != nil {
		t.Errorf("record %d of %d: %v", p.Index, size, err)
	}
}

func TestProof_ShowsOnlyWhatItWasMadeFor(t *testing.T) {
	k := keys(t, 1)
	entries := newBuilder(t, k).open("a").denials(20).out
	valid, err := verify.Prove(t.Context(), verify.DirSource(writeLog(t, k, entries)), k, "", 5)
	if err != nil {
		t.Fatal(err)
	}
	otherLog := &builder{t: t, keys: k, origin: "assent.test/other"}
	foreign := newTree(t, otherLog.open("a").denials(1).out)
	edit := func(f func(*verify.Proof)) verify.Proof {
		p := *valid
		p.Hashes = slices.Clone(valid.Hashes)
		f(&p)
		return p
	}
	tests := map[string]struct {
		proof  verify.Proof
		keys   *attest.Keyring
		origin string
		want   error
	}{
		"unchanged, as the control": {*valid, k, origin, nil},
		"another index":             {edit(func(p *verify.Proof) { p.Index = 6 }), k, "", verify.ErrNotIncluded},
		"an index beyond the log":   {edit(func(p *verify.Proof) { p.Index = 21 }), k, "", verify.ErrNotIncluded},
		"another record":            {edit(func(p *verify.Proof) { p.Entry = string(entries[6]) }), k, "", verify.ErrNotIncluded},
		"a hash less":               {edit(func(p *verify.Proof) { p.Hashes = p.Hashes[1:] }), k, "", verify.ErrNotIncluded},
		"a hash that is changed":    {edit(func(p *verify.Proof) { p.Hashes[0] = bytes.Repeat([]byte{1}, 32) }), k, "", verify.ErrNotIncluded},
		"another key":               {*valid, keys(t, 2), "", verify.ErrCheckpointKey},
		"another origin":            {*valid, k, "assent.test/other", verify.ErrCheckpointOrigin},
		"no checkpoint":             {edit(func(p *verify.Proof) { p.Checkpoint = "" }), k, "", verify.ErrCheckpointMalformed},
		"a record of another log": {verify.Proof{
			Checkpoint: string(foreign.checkpoint(t, k, origin)), Index: 0, Entry: string(foreign.entries[0]),
			Hashes: [][]byte{rfc6962.DefaultHasher.HashLeaf(foreign.entries[1])},
		}, k, "", verify.ErrCheckpointOrigin},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := tc.proof.Verify(tc.keys, tc.origin); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
	noRecord := newTree(t, [][]byte{[]byte("{}")})
	p := verify.Proof{Checkpoint: string(noRecord.checkpoint(t, k, origin)), Entry: "{}"}
	if _, err := p.Verify(k, ""); attest.ReasonOf(err) != attest.ReasonWrongType {
		t.Errorf("an entry that is no record: %v", err)
	}
}

func TestProve_RefusesDamagedLogs(t *testing.T) {
	k := keys(t, 1)
	entries := genuine(t)
	damaged := func(f func(dir string)) verify.Source {
		dir := writeLog(t, k, entries)
		f(dir)
		return verify.DirSource(dir)
	}
	remove := func(path string) verify.Source {
		return damaged(func(dir string) {
			if err := os.Remove(filepath.Join(dir, path)); err != nil {
				t.Fatal(err)
			}
		})
	}
	tests := map[string]struct {
		src   verify.Source
		index uint64
		want  error
	}{
		"an index beyond the log": {damaged(func(string) {}), uint64(len(entries)), verify.ErrNoSuchRecord},
		"no checkpoint":           {remove("checkpoint"), 0, os.ErrNotExist},
		"no bundle":               {remove(layout.EntriesPath(0, 0)), 0, os.ErrNotExist},
		"no tile":                 {remove(layout.TilePath(1, 0, 2)), 600, os.ErrNotExist},
		"a changed tile": {damaged(func(dir string) {
			writeFile(t, dir, layout.TilePath(1, 0, 2), bytes.Repeat([]byte{1}, 64))
		}), 600, verify.ErrNotIncluded},
		"an emptied bundle": {damaged(func(dir string) { writeFile(t, dir, layout.EntriesPath(0, 0), nil) }), 3, nil},
		"a cut tile":        {damaged(func(dir string) { writeFile(t, dir, layout.TilePath(1, 0, 2), []byte{1}) }), 600, nil},
		"no checkpoint text": {damaged(func(dir string) {
			writeFile(t, dir, "checkpoint", nil)
		}), 3, verify.ErrCheckpointMalformed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := verify.Prove(t.Context(), tc.src, k, "", tc.index)
			if p != nil || err == nil || (tc.want != nil && !errors.Is(err, tc.want)) {
				t.Errorf("proof %v, error %v, want %v", p != nil, err, tc.want)
			}
		})
	}
}

func TestConsistent_FollowsTheTree(t *testing.T) {
	k := keys(t, 1)
	entries := genuine(t)
	src := verify.DirSource(writeLog(t, k, entries))
	size := uint64(len(entries))
	parsed := func(text []byte) *verify.Checkpoint {
		c, err := verify.ParseCheckpoint(text, k, origin)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, n := range []int{0, 1, 5, 255, 256, 257, 512, 600, len(entries)} {
		same, err := verify.Consistent(t.Context(), src, parsed(newTree(t, entries[:n]).checkpoint(t, k, origin)), size)
		if err != nil || !same {
			t.Errorf("state of %d records: %v, %v; want consistent", n, same, err)
		}
		other := slices.Clone(entries[:n])
		if n > 0 {
			other[n-1] = []byte("other")
			same, err = verify.Consistent(t.Context(), src, parsed(newTree(t, other).checkpoint(t, k, origin)), size)
			if err != nil || same {
				t.Errorf("another log of %d records: %v, %v; want inconsistent", n, same, err)
			}
		}
	}
	whole := parsed(newTree(t, entries).checkpoint(t, k, origin))
	if same, err := verify.Consistent(t.Context(), src, whole, size-1); err != nil || same {
		t.Errorf("a longer log: %v, %v; want inconsistent", same, err)
	}
	if _, err := verify.Consistent(t.Context(), verify.DirSource(t.TempDir()), whole, size); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no files: %v", err)
	}
}

func TestReader_JoinsLargeRecords(t *testing.T) {
	k := keys(t, 1)
	entries := genuine(t)
	src := verify.DirSource(writeLog(t, k, entries))
	text, err := src.ReadCheckpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cp, err := verify.ParseCheckpoint(text, k, "")
	if err != nil {
		t.Fatal(err)
	}
	r := verify.NewReader(src, k, cp)
	e, err := r.Entry(t.Context(), 304)
	if err != nil {
		t.Fatal(err)
	}
	want := audit.IntegrityAlarm{Reason: "EnforcementDrift", Objects: longNames(80)}
	if diff := cmp.Diff(audit.Data(want), e.Record.Data); diff != "" {
		t.Error(diff)
	}
	if e, err := r.Entry(t.Context(), 600); err != nil || e.Type != audit.TypeDenied {
		t.Errorf("record 600: %v", err)
	}
	if _, err := r.Entry(t.Context(), uint64(len(entries))); !errors.Is(err, verify.ErrNoSuchRecord) {
		t.Errorf("beyond the end: %v", err)
	}
	foreign := verify.NewReader(src, keys(t, 2), cp)
	if _, err := foreign.Entry(t.Context(), 1); attest.ReasonOf(err) != attest.ReasonUnknownKey {
		t.Errorf("another key: %v", err)
	}
}

func TestReader_RefusesDamagedParts(t *testing.T) {
	k := keys(t, 1)
	entries := slices.Clone(genuine(t))
	entries[302] = bytes.Replace(entries[302], []byte(`"payload":"e`), []byte(`"payload":"f`), 1)
	src := verify.DirSource(writeLog(t, k, entries))
	text, err := src.ReadCheckpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cp, err := verify.ParseCheckpoint(text, k, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verify.NewReader(src, k, cp).Entry(t.Context(), 304); attest.ReasonOf(err) != attest.ReasonBadSignature {
		t.Errorf("error %v", err)
	}
}

func TestReader_RefusesPartsThatDoNotComeBefore(t *testing.T) {
	k := keys(t, 1)
	b := newBuilder(t, k).open("a")
	draft, err := audit.NewDraft(audit.Record{ID: idOf("x"), Time: at, Data: audit.IntegrityAlarm{Reason: "r", Objects: longNames(80)}})
	if err != nil {
		t.Fatal(err)
	}
	entry, err := draft.Seal(k, audit.Position{Log: origin, Writer: b.writer, Seq: 1}, []uint64{0, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	src := verify.DirSource(writeLog(t, k, append(b.out, []byte(entry))))
	text, err := src.ReadCheckpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cp, err := verify.ParseCheckpoint(text, k, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verify.NewReader(src, k, cp).Entry(t.Context(), 1); err == nil || err.Error() != "record 1: a part does not come before it" {
		t.Errorf("error %v", err)
	}
}
