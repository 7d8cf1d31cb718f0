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
	argv := make([]string, 0, len(p.items)+8)
	scratch := make([]byte, 0, 256)
	for i := range p.items {
		words, err := p.items[i].expand(v)
		if err != nil {
			return Effect{}, err
		}
		for _, w := range words {
			text, present, err := w.render(v, scratch)
			if err != nil {
				return Effect{}, err
			}
			if present {
				argv = append(argv, string(text))
			}
			scratch = text
		}
	}
	if len(argv) > MaxWords {
		return Effect{}, refuse(snapshot.StageEffect, ReasonTooManyWords, "")
	}
	return Effect{Command: &CommandCall{Image: p.image, Argv: argv, Env: p.env, WorkingDir: p.workingDir}}, nil
}

// expand returns the words that an item stands for in one call.
func (item *argvItem) expand(v *values) ([]word, *snapshot.Error) {
	switch {
	case item.mapping != nil:
		m := item.mapping
		if !v.present[m.arg] {
			return nil, nil
		}
		words, known := m.words[v.texts[m.arg]]
		if !known {
			return nil, refuse(snapshot.StageEffect, ReasonUnmappedValue, v.args[m.arg].name)
		}
		return words, nil
	case item.conditional != nil:
		for _, c := range item.conditional.when {
			if !c.holds(v.texts[c.arg]) { // the text of an absent argument is empty
				return nil, nil
			}
		}
		return item.conditional.words, nil
	default:
		return []word{item.word}, nil
	}
}
