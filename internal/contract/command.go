// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"github.com/assent-dev/assent/snapshot"
)

// commandPlan is a compiled command.
type commandPlan struct {
	items []argvItem
	// call is what is the same in every call: all but the words.
	call CommandCall
	// tail is the canonical text of what follows the words.
	tail string
}

// newCommandPlan writes what is the same in every call once.
func newCommandPlan(items []argvItem, call CommandCall) *commandPlan {
	rest := appendCommand(nil, &call)
	return &commandPlan{items: items, call: call, tail: "]," + string(rest[len("{"):]) + "}"}
}

// argvItem is one word, or the words of a mapping or a conditional.
type argvItem struct {
	word        word
	mapping     *mapping
	conditional *conditional
}

// mapping is a compiled mapping.
type mapping struct {
	arg   int
	words map[string][]word
}

// conditional is a compiled conditional.
type conditional struct {
	when  []condition
	words []word
}

// condition is a comparison with its argument looked up.
type condition struct {
	arg int
	comparison
}

// render resolves the command for one call.
func (p *commandPlan) render(v *values) (Effect, string, *snapshot.Error) {
	b := argvBuilder{values: v, text: append(v.workspace.buffer[:0], `{"command":{"argv":[`...), spans: v.workspace.spans[:0]}
	for i := range p.items {
		item := &p.items[i]
		if item.mapping == nil && item.conditional == nil {
			b.add(item.word)
			continue
		}
		words, err := item.expand(v)
		if err != nil {
			return Effect{}, "", err
		}
		for _, w := range words {
			b.add(w)
		}
	}
	b.text = append(b.text, p.tail...)
	v.workspace.buffer, v.workspace.spans = b.text, b.spans
	if b.err != nil {
		return Effect{}, "", b.err
	}
	text, call := string(b.text), p.call
	call.Argv = b.argv(text)
	return Effect{Command: &call}, text, nil
}

// argvBuilder writes words into the canonical text of the effect until one of
// them is refused. Nearly every word stands there as it is, so that it need not
// be written, nor kept, twice.
type argvBuilder struct {
	values *values
	text   []byte
	spans  []wordSpan
	// size is the length of all words without escapes.
	size int
	err  *snapshot.Error
}

// wordSpan is where a word stands in the canonical text, without its quotes.
type wordSpan struct {
	from, to int
	// word is set when the text has escapes, so that the word is not what
	// stands there.
	word word
}

func (b *argvBuilder) add(w word) {
	if b.err != nil {
		return
	}
	before := len(b.text)
	if len(b.spans) > 0 {
		b.text = append(b.text, ',')
	}
	b.text = append(b.text, '"')
	from := len(b.text)
	text, size, err := w.appendTo(b.text, b.values)
	if size == absent {
		b.text, b.err = b.text[:before], err
		return
	}
	span := wordSpan{from: from, to: len(text)}
	if span.to-span.from != size {
		span.word = w
	}
	text = append(text, '"')
	b.text, b.spans, b.size = text, append(b.spans, span), b.size+size
	switch {
	case len(b.spans) > MaxWords:
		b.err = refuse(snapshot.StageEffect, ReasonTooManyWords, "")
	case b.size > MaxEffectBytes:
		b.err = refuse(snapshot.StageEffect, ReasonEffectTooLarge, "")
	}
}

// argv returns the words, of which text is the canonical text.
func (b *argvBuilder) argv(text string) []string {
	argv := make([]string, len(b.spans))
	for i, s := range b.spans {
		if argv[i] = text[s.from:s.to]; s.word != nil {
			argv[i] = s.word.text(b.values)
		}
	}
	return argv
}

// expand returns the words that a mapping or a conditional stands for in one
// call.
func (item *argvItem) expand(v *values) ([]word, *snapshot.Error) {
	if m := item.mapping; m != nil {
		if !v.list[m.arg].present {
			return nil, nil
		}
		words, known := m.words[v.list[m.arg].text]
		if !known {
			return nil, refuse(snapshot.StageEffect, ReasonUnmappedValue, v.args[m.arg].name)
		}
		return words, nil
	}
	for _, c := range item.conditional.when {
		if !c.holds(v.list[c.arg].text) { // the text of an absent argument is empty
			return nil, nil
		}
	}
	return item.conditional.words, nil
}
