// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"github.com/assent-dev/assent/snapshot"
)

// commandPlan is a compiled command.
type commandPlan struct {
	image      string
	items      []argvItem
	env        []ResolvedVariable
	workingDir string
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
func (p *commandPlan) render(v *values) (Effect, *snapshot.Error) {
	b := argvBuilder{values: v, ends: v.workspace.ends[:0], text: v.workspace.argv[:0]}
	for i := range p.items {
		item := &p.items[i]
		if item.mapping == nil && item.conditional == nil {
			b.add(item.word)
			continue
		}
		words, err := item.expand(v)
		if err != nil {
			return Effect{}, err
		}
		for _, w := range words {
			b.add(w)
		}
	}
	v.workspace.argv, v.workspace.ends = b.text, b.ends
	argv, err := b.argv()
	if err != nil {
		return Effect{}, err
	}
	return Effect{Command: &CommandCall{Image: p.image, Argv: argv, Env: p.env, WorkingDir: p.workingDir}}, nil
}

// argvBuilder collects words until one of them is refused. It keeps them in one
// text, so that a command costs two allocations and not one per word.
type argvBuilder struct {
	values *values
	text   []byte
	// ends are where words end in text.
	ends []int
	err  *snapshot.Error
}

func (b *argvBuilder) add(w word) {
	if b.err != nil {
		return
	}
	text, present, err := w.appendTo(b.text, b.values)
	b.text, b.err = text, err
	if present {
		b.ends = append(b.ends, len(text))
	}
	switch {
	case b.err != nil:
	case len(b.ends) > MaxWords:
		b.err = refuse(snapshot.StageEffect, ReasonTooManyWords, "")
	case len(text) > MaxEffectBytes:
		b.err = refuse(snapshot.StageEffect, ReasonEffectTooLarge, "")
	}
}

// argv returns the words.
func (b *argvBuilder) argv() ([]string, *snapshot.Error) {
	if b.err != nil {
		return nil, b.err
	}
	text, start := string(b.text), 0
	argv := make([]string, len(b.ends))
	for i, end := range b.ends {
		argv[i], start = text[start:end], end
	}
	return argv, nil
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
