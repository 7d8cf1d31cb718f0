// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/audit/journal"
)

const origin = "assent.test/audit"

var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func keys(t testing.TB, seed byte) *attest.Keyring {
	t.Helper()
	k, err := attest.NewKeyring(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func options(t testing.TB, dir string) journal.Options {
	return journal.Options{
		Dir: dir, Origin: origin, Keys: keys(t, 1), Software: "test",
		Now: func() time.Time { return at },
		// A busy test machine must not look like a stalled disk.
		Timeout: time.Minute,
	}
}

func openLog(t testing.TB, dir string, edit func(*journal.Options)) *journal.Log {
	t.Helper()
	o := options(t, dir)
	if edit != nil {
		edit(&o)
	}
	l, err := journal.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeLog(t, l) })
	return l
}

func closeLog(t testing.TB, l *journal.Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// sampleRecord makes an entry of about 1.5 KB.
func sampleRecord() audit.Record {
	return audit.Record{
		Time:        at,
		Proposal:    &attest.ObjectRef{Namespace: "agents", Name: "p-1", UID: "0b5c7a1e-0000-4000-8000-000000000001"},
		Fingerprint: digestOf("fingerprint"),
		Data: audit.Dispatched{
			JobName: "assent-0b5c7a1e", TemplateHash: digestOf("template"), ContractHash: digestOf("contract"),
			Binding: digestOf("binding"), Deadline: at.Add(time.Minute),
		},
	}
}
