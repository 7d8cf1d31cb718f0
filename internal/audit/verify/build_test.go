// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api/layout"
	"golang.org/x/mod/sumdb/note"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
)

// This file writes logs without the journal, so that tests can write ones that
// no journal would.

const origin = "assent.test/audit"

var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func keys(t testing.TB, seed byte, extra ...ed25519.PublicKey) *attest.Keyring {
	t.Helper()
	k, err := attest.NewKeyring(bytes.Repeat([]byte{seed}, ed25519.SeedSize), extra...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func idOf(s string) string { return digestOf(s)[:32] }

// builder makes entries as one writer after the other would.
type builder struct {
	t      testing.TB
	keys   *attest.Keyring
	origin string
	writer string
	seq    uint64
	out    [][]byte
}

func newBuilder(t testing.TB, k *attest.Keyring) *builder {
	return &builder{t: t, keys: k, origin: origin}
}

// open starts the turn of a writer.
func (b *builder) open(writer string) *builder {
	b.writer, b.seq = idOf(writer), 0
	return b.add(audit.Record{Data: audit.JournalOpened{Size: uint64(len(b.out)), Software: "test"}})
}

// add appends one record with the next number; large ones get their parts.
func (b *builder) add(r audit.Record) *builder {
	b.t.Helper()
	if r.ID == "" {
		r.ID = idOf(fmt.Sprint(b.writer, b.seq))
	}
	if r.Time.IsZero() {
		r.Time = at
	}
	draft, err := audit.NewDraft(r)
	if err != nil {
		b.t.Fatal(err)
	}
	var indexes []uint64
	for _, part := range draft.Parts() {
		indexes = append(indexes, uint64(len(b.out)))
		b.add(audit.Record{Data: part})
	}
	entry, err := draft.Seal(b.keys, audit.Position{Log: b.origin, Writer: b.writer, Seq: b.seq}, indexes)
	if err != nil {
		b.t.Fatal(err)
	}
	b.seq++
	b.out = append(b.out, []byte(entry))
	return b
}

// denials appends n small records.
func (b *builder) denials(n int) *builder {
	for range n {
		b.add(audit.Record{Data: audit.Denied{Reason: "PolicyDenied", Policies: []string{}}})
	}
	return b
}

// large appends a record whose data needs three parts.
func (b *builder) large() *builder {
	return b.add(audit.Record{Data: audit.IntegrityAlarm{Reason: "EnforcementDrift", Objects: longNames(80)}})
}

func longNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%01000d", i)
	}
	return names
}

// tree is what the files of a log are made from.
type tree struct {
	entries [][]byte
	tiles   map[compact.NodeID][]byte // by tile level and index
	root    []byte
}

func newTree(t testing.TB, entries [][]byte) tree {
	t.Helper()
	out := tree{entries: entries, tiles: map[compact.NodeID][]byte{}, root: rfc6962.DefaultHasher.EmptyRoot()}
	r := (&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)
	for _, e := range entries {
		err := r.Append(rfc6962.DefaultHasher.HashLeaf(e), func(id compact.NodeID, hash []byte) {
			if id.Level%8 == 0 {
				key := compact.NodeID{Level: id.Level / 8, Index: id.Index / 256}
				out.tiles[key] = append(out.tiles[key], hash...)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(entries) > 0 {
		root, err := r.GetRootHash(nil)
		if err != nil {
			t.Fatal(err)
		}
		out.root = root
	}
	return out
}

// write writes the tiles and bundles of the log.
func (tr tree) write(t testing.TB, dir string) {
	t.Helper()
	tr.writeEntries(t, dir)
	for id, hashes := range tr.tiles {
		writeFile(t, dir, layout.TilePath(uint64(id.Level), id.Index, uint8(len(hashes)/32%256)), hashes)
	}
}

func (tr tree) writeEntries(t testing.TB, dir string) {
	t.Helper()
	for first := 0; first < len(tr.entries); first += 256 {
		bundle := tr.entries[first:min(first+256, len(tr.entries))]
		var data []byte
		for _, e := range bundle {
			data = binary.BigEndian.AppendUint16(data, uint16(len(e)))
			data = append(data, e...)
		}
		writeFile(t, dir, layout.EntriesPath(uint64(first/256), uint8(len(bundle)%256)), data)
	}
}

// checkpoint signs the tree.
func (tr tree) checkpoint(t testing.TB, k *attest.Keyring, origin string) []byte {
	t.Helper()
	signer, err := k.NoteSigner(origin)
	if err != nil {
		t.Fatal(err)
	}
	text := log.Checkpoint{Origin: origin, Size: uint64(len(tr.entries)), Hash: tr.root}.Marshal()
	signed, err := note.Sign(&note.Note{Text: string(text)}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func writeFile(t testing.TB, dir, path string, data []byte) {
	t.Helper()
	path = filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeLog writes a complete log and returns its directory.
func writeLog(t testing.TB, k *attest.Keyring, entries [][]byte) string {
	t.Helper()
	dir := t.TempDir()
	tr := newTree(t, entries)
	tr.write(t, dir)
	writeFile(t, dir, "checkpoint", tr.checkpoint(t, k, origin))
	return dir
}

func signNote(t testing.TB, k *attest.Keyring, text string) []byte {
	t.Helper()
	signer, err := k.NoteSigner(origin)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := note.Sign(&note.Note{Text: text}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}
