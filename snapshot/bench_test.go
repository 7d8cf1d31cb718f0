// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	cyberphone "github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
)

// benchDocument is one input that all implementations are measured on.
type benchDocument struct {
	name string
	text string
}

// benchDocuments are three realistic calls and the two shapes that cost most
// per byte, at the limit of elements.
func benchDocuments() []benchDocument {
	return []benchDocument{
		{"200B", realistic(200)},
		{"4KiB", realistic(4 << 10)},
		{"64KiB", realistic(64 << 10)},
		{"ones", "[" + strings.Repeat("1,", MaxValues-1) + "1]"},
		{"empties", "[" + strings.Repeat("{},", MaxValues-1) + "{}]"},
	}
}

// realistic returns a call as a model would write it, of just under size bytes.
func realistic(size int) string {
	const (
		head  = `{"path": "/srv/data", "mode": 420, "recursive": true, "rate": 0.25, "items": [`
		tail  = `]}`
		entry = `{"name": "report-%d.txt", "note": "Größe \"%d\"\nand a second line of text, as people write them", "bytes": %d, "ratio": %d.5e-3, "tags": ["a", "b"]}`
	)
	var b strings.Builder
	b.WriteString(head)
	for i := 0; ; i++ {
		next := fmt.Sprintf(entry, i, i*7, i*104729, i)
		if i > 0 {
			next = ", " + next
		}
		if b.Len()+len(next)+len(tail) > size {
			break
		}
		b.WriteString(next)
	}
	b.WriteString(tail)
	return b.String()
}

// formatCanonical canonicalises with jsontext.
func formatCanonical(text []byte) ([]byte, error) {
	return jsontext.AppendFormat(make([]byte, 0, len(text)), text,
		jsontext.CanonicalizeRawInts(true),
		jsontext.CanonicalizeRawFloats(true),
		jsontext.ReorderRawObjects(true))
}

func BenchmarkPipeline(b *testing.B) {
	identity := func(tree any) (any, error) { return tree, nil }
	subjects := []struct {
		name string
		run  func(text []byte) error
	}{
		{"pipeline", func(text []byte) error { _, err := Prepare(string(text), identity); return err }},
		{"jcs", func(text []byte) error { _, err := jcs.Transform(text); return err }},
		{"jsontext", func(text []byte) error { _, err := formatCanonical(text); return err }},
		{"cyberphone", func(text []byte) error { _, err := cyberphone.Transform(text); return err }},
		{"sha256", func(text []byte) error { sha256.Sum256(text); return nil }},
	}
	for _, d := range benchDocuments() {
		text := []byte(d.text)
		for _, s := range subjects {
			b.Run(d.name+"/"+s.name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					if err := s.run(text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
