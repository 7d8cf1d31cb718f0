// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"

	"github.com/assent-dev/assent/snapshot"
)

// seedTexts gives a fuzz target all vectors and some documents.
func seedTexts(f *testing.F) {
	f.Helper()
	for _, v := range jsonVectors(f) {
		f.Add(string(v.Input))
	}
	g := newGenerator(1)
	for range 200 {
		f.Add(g.document())
	}
}

// FuzzDecode: whatever the text, there is an answer, and an accepted text goes
// the whole way and comes back the same.
func FuzzDecode(f *testing.F) {
	seedTexts(f)
	f.Fuzz(func(t *testing.T, raw string) {
		tree, err := snapshot.Decode(raw)
		direct, errDirect := snapshot.Prepare(raw, nil)
		if err != nil {
			var refused *snapshot.Error
			if !errors.As(err, &refused) || refused.Stage != snapshot.StageDecode {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(err, errDirect); diff != "" {
				t.Fatalf("Decode and Prepare differ:\n%s", diff)
			}
			return
		}
		s, err := snapshot.New(tree)
		if diff := cmp.Diff(err, errDirect); diff != "" {
			t.Fatalf("New and Prepare differ:\n%s", diff)
		}
		if err != nil {
			var refused *snapshot.Error
			if !errors.As(err, &refused) || refused.Reason != snapshot.ReasonTooLarge {
				t.Fatalf("a decoded tree is refused: %v", err)
			}
			return
		}
		again, err := snapshot.Parse(s.Canonical())
		if err != nil || again.Digest() != s.Digest() || direct.Canonical() != s.Canonical() {
			t.Fatalf("%q: %q, %v", s.Canonical(), direct.Canonical(), err)
		}
		// Not cmp: it takes exponential time for arrays in arrays.
		if view := s.View(); !reflect.DeepEqual(tree, view) {
			t.Fatalf("the view is not the tree:\n%v\n%v", view, tree)
		}
		if err := s.Matches(s.View()); err != nil {
			t.Fatal(err)
		}
	})
}

// profile holds the reasons for which a text that RFC 8785 takes is refused.
var profile = map[snapshot.Reason]bool{
	snapshot.ReasonTooLarge: true, snapshot.ReasonTooManyValues: true, snapshot.ReasonStringTooLong: true,
	snapshot.ReasonDepth: true, snapshot.ReasonNumberTooLong: true, snapshot.ReasonNoncharacter: true,
	snapshot.ReasonNegativeZero: true, snapshot.ReasonUnderflow: true, snapshot.ReasonUnsafeInteger: true,
}

// FuzzCanonical: jcs alone, jsontext alone and this package say the same about
// every text, except where this package is deliberately stricter.
func FuzzCanonical(f *testing.F) {
	seedTexts(f)
	f.Fuzz(func(t *testing.T, text string) {
		byJCS, errJCS := jcs.Transform([]byte(text))
		byJSONText, errJSONText := formatCanonical([]byte(text))
		s, err := freezeText(text)
		if err != nil {
			var refused *snapshot.Error
			if !errors.As(err, &refused) {
				t.Fatalf("%T", err)
			}
			if errJCS == nil && !profile[refused.Reason] {
				t.Fatalf("refused for %s, but jcs makes %q of it", refused.Reason, byJCS)
			}
			if errJSONText == nil && !profile[refused.Reason] && refused.Reason != snapshot.ReasonNumberRange {
				t.Fatalf("refused for %s, but jsontext makes %q of it", refused.Reason, byJSONText)
			}
			return
		}
		if errJCS != nil || string(byJCS) != s.Canonical() {
			t.Fatalf("jcs: %q (%v), want %q", byJCS, errJCS, s.Canonical())
		}
		if errJSONText != nil || string(byJSONText) != s.Canonical() {
			t.Fatalf("jsontext: %q (%v), want %q", byJSONText, errJSONText, s.Canonical())
		}
	})
}

// formatCanonical canonicalises with jsontext alone.
func formatCanonical(text []byte) ([]byte, error) {
	return jsontext.AppendFormat(make([]byte, 0, len(text)), text,
		jsontext.CanonicalizeRawInts(true),
		jsontext.CanonicalizeRawFloats(true),
		jsontext.ReorderRawObjects(true))
}

// FuzzDetach: New takes a Go value exactly if it is a plain tree, and then does
// not depend on it any more.
func FuzzDetach(f *testing.F) {
	for _, program := range []string{"", "[]", "{}", "\x01", "[\x02[\x01is", "{\x02tn", "[\x01=\x00", "{\x01{\x01=\x01", "[\x02[\x01t=\x01", "[\x02[\x00=\x01"} {
		f.Add([]byte(program))
	}
	for i := range strange {
		f.Add([]byte{'[', 1, '!', byte(i)})
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		b := graphBuilder{program: program}
		value := b.value(0)
		s, err := snapshot.New(value)
		again, errAgain := snapshot.New(value)
		if diff := cmp.Diff(err, errAgain); diff != "" {
			t.Fatalf("the second answer differs:\n%s", diff)
		}
		if (err == nil) == b.odd {
			t.Fatalf("odd value %v: %v", b.odd, err)
		}
		if err != nil {
			return
		}
		view, text := s.View(), s.Canonical()
		if want := floats(value); !reflect.DeepEqual(view, want) {
			t.Fatalf("the view is not the value:\n%v\n%v", view, want)
		}
		scribble(value)
		if again.Canonical() != text || s.Matches(view) != nil {
			t.Fatal("the snapshot follows its source")
		}
	})
}

// graphBuilder turns bytes into a Go value and knows whether it is a plain tree.
type graphBuilder struct {
	program    []byte
	containers []any
	odd        bool // outside the domain
	values     int
}

func (b *graphBuilder) next() byte {
	if len(b.program) == 0 {
		return 0
	}
	c := b.program[0]
	b.program = b.program[1:]
	return c
}

// strange values, each outside the domain.
var strange = []any{
	math.NaN(), math.Copysign(0, -1), int64(1)<<60 + 1, "\xff", "\uFFFF", []any(nil), map[string]any(nil),
	time.Unix(0, 0),
	struct{}{},
	new("x"),
	[]string{},
	float32(1), complex(1, 1),
}

func (b *graphBuilder) value(depth int) any {
	if b.values++; b.values > 500 || depth > 40 {
		return nil
	}
	switch c := b.next(); c {
	case '[':
		return b.array(depth)
	case '{':
		return b.object(depth)
	case '=':
		return b.alias()
	case '!':
		b.odd = true
		return strange[int(b.next())%len(strange)]
	case 's':
		return strings.Repeat("é\n", int(b.next())%5)
	case 't', 'f':
		return c == 't'
	case 'n', 0:
		return nil
	case 'i':
		return int(b.next())
	default:
		return float64(c) / 8
	}
}

func (b *graphBuilder) array(depth int) any {
	// The slice is complete before its elements are, so that they can refer to
	// the slice itself.
	elements := make([]any, int(b.next())%4)
	b.containers = append(b.containers, elements)
	for i := range elements {
		elements[i] = b.value(depth + 1)
	}
	return elements
}

func (b *graphBuilder) object(depth int) any {
	members := map[string]any{}
	b.containers = append(b.containers, members)
	for i := range int(b.next()) % 4 {
		members[string(rune('a'+i))] = b.value(depth + 1)
	}
	return members
}

// alias uses a container a second time. Without elements a slice shares nothing.
func (b *graphBuilder) alias() any {
	if len(b.containers) == 0 {
		return nil
	}
	c := b.containers[int(b.next())%len(b.containers)]
	if s, ok := c.([]any); !ok || len(s) > 0 {
		b.odd = true
	}
	return c
}

// floats returns the value as a view of it would be.
func floats(value any) any {
	switch v := value.(type) {
	case int:
		return float64(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = floats(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name := range v {
			out[name] = floats(v[name])
		}
		return out
	}
	return value
}
