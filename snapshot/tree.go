// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// kind says what a step through a tree is. Most kinds are the character that a
// JSON text has in their place.
type kind byte

const (
	kindNull        kind = 'n'
	kindFalse       kind = 'f'
	kindTrue        kind = 't'
	kindNumber      kind = '0'
	kindString      kind = '"'
	kindName        kind = ':'
	kindBeginArray  kind = '['
	kindEndArray    kind = ']'
	kindBeginObject kind = '{'
	kindEndObject   kind = '}'
)

// step is one step through a tree. Index leads to the number or text of the
// step; at the beginning of a container it counts the elements or members.
type step struct {
	kind  kind
	index int32
}

// tree is a detached and validated tree: its steps in canonical order, members
// sorted, and apart from them the strings and numbers, which never move. It
// contains no pointer to anything, so it is detached by construction, and costs
// a fraction of what maps cost; the self-check can follow it with one finger in
// the text.
type tree struct {
	steps   []step
	texts   []extent
	bytes   []byte // in which all texts lie
	numbers []float64
}

// index converts a position in one of the lists.
func index(n int) int32 {
	return int32(n) //nolint:gosec // the limits of records keep it below 2^23
}

// extent is where a text lies among the bytes of a tree.
type extent struct{ from, to int32 }

func (t *tree) add(k kind) { t.steps = append(t.steps, step{kind: k}) }

// addText adds the bytes between two offsets as a text.
func (t *tree) addText(k kind, from, to int) {
	t.steps = append(t.steps, step{kind: k, index: index(len(t.texts))})
	t.texts = append(t.texts, extent{index(from), index(to)})
}

// text returns a text by its index.
func (t *tree) text(index int32) []byte {
	e := t.texts[index]
	return t.bytes[e.from:e.to]
}

func (t *tree) addNumber(f float64) {
	t.steps = append(t.steps, step{kind: kindNumber, index: index(len(t.numbers))})
	t.numbers = append(t.numbers, f)
}

// decoded builds a fresh Go value from the tree that was decoded from a text.
func (t *tree) decoded(source string) any {
	b := builder{tree: t, text: t.immutable(source)}
	return b.value()
}

// immutable returns the bytes of a tree that was decoded from a text: the text
// itself, unless escapes made it necessary to write something behind it.
func (t *tree) immutable(source string) string {
	if len(t.bytes) == len(source) {
		return source
	}
	return string(t.bytes)
}

// builder walks through a tree and builds what it passes.
type builder struct {
	tree *tree
	text string // all texts; the strings that are built are parts of it
	next int
}

// string returns a text by its index.
func (b *builder) string(index int32) string {
	e := b.tree.texts[index]
	return b.text[e.from:e.to]
}

// value builds the value that the next step begins.
func (b *builder) value() any {
	s := b.tree.steps[b.next]
	b.next++
	switch s.kind {
	case kindNumber:
		return b.tree.numbers[s.index]
	case kindString:
		return b.string(s.index)
	case kindBeginArray:
		return b.array(int(s.index))
	case kindBeginObject:
		return b.object(int(s.index))
	case kindNull:
		return nil
	default:
		return s.kind == kindTrue
	}
}

func (b *builder) array(n int) any {
	elements := make([]any, n)
	for i := range elements {
		elements[i] = b.value()
	}
	b.next++ // the end of the array
	return elements
}

func (b *builder) object(n int) any {
	members := make(map[string]any, n)
	for range n {
		name := b.string(b.tree.steps[b.next].index)
		b.next++
		members[name] = b.value()
	}
	b.next++ // the end of the object
	return members
}

// member is where a member lies among the steps of a tree.
type member struct {
	name     int32 // index of the text
	from, to int32 // its steps, name included
	ordinal  int32 // its position in the source
}

// order sorts the members of an object, whose steps are the last ones of the
// tree, and refuses it when a name occurs twice.
func (t *tree) order(members []member, scratch *[]step) *fault {
	inOrder := true
	for i := 1; i < len(members) && inOrder; i++ {
		inOrder = compareUTF16(t.text(members[i-1].name), t.text(members[i].name)) < 0
	}
	if inOrder {
		return nil
	}
	start := members[0].from
	body := t.steps[start:]
	*scratch = append((*scratch)[:0], body...)
	slices.SortFunc(members, t.compareMembers)
	moved := body[:0]
	for i, m := range members {
		if i > 0 && bytes.Equal(t.text(members[i-1].name), t.text(m.name)) {
			return refuse(ReasonDuplicateKey).under(int(m.ordinal))
		}
		moved = append(moved, (*scratch)[m.from-start:m.to-start]...)
	}
	return nil
}

// compareMembers orders by name and, where names are equal, by position, so
// that the repetition is reported and not the original.
func (t *tree) compareMembers(a, b member) int {
	if c := compareUTF16(t.text(a.name), t.text(b.name)); c != 0 {
		return c
	}
	return int(a.ordinal - b.ordinal)
}

// encode appends the tree to an empty text as canonical JSON, as one of the two canonicalisers
// that must agree: strings and numbers by jsontext, order by [compareUTF16]. It
// stops when the text exceeds the limit, because the output of a schema step
// has no limit of its own.
func (t *tree) encode(text []byte, lim limits) ([]byte, *fault) {
	before := kindBeginArray // nothing yet, so no comma
	for _, s := range t.steps {
		if needsComma(before, s.kind) {
			text = append(text, ',')
		}
		text = t.appendStep(text, s)
		if len(text) > lim.bytes {
			return text, refuse(ReasonTooLarge)
		}
		before = s.kind
	}
	return text, nil
}

// needsComma reports whether a comma separates two neighbouring steps.
func needsComma(before, after kind) bool {
	begins := before == kindBeginArray || before == kindBeginObject || before == kindName
	return !begins && after != kindEndArray && after != kindEndObject
}

// appendStep writes one step; a name brings its colon. Strings are well-formed,
// so AppendQuote cannot fail.
func (t *tree) appendStep(text []byte, s step) []byte {
	switch s.kind {
	case kindNumber:
		return appendNumber(text, t.numbers[s.index])
	case kindString:
		text, _ = jsontext.AppendQuote(text, t.text(s.index))
		return text
	case kindName:
		text, _ = jsontext.AppendQuote(text, t.text(s.index))
		return append(text, ':')
	case kindNull, kindFalse, kindTrue:
		return append(text, word(s.kind)...)
	default:
		return append(text, byte(s.kind))
	}
}

// word returns the text of a kind that is a word.
func word(k kind) string {
	switch k {
	case kindNull:
		return "null"
	case kindFalse:
		return "false"
	default:
		return "true"
	}
}
