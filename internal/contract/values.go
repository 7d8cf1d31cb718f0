// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/snapshot"
)

// values are the accepted values of one call, by the position of the argument.
type values struct {
	args []*argument
	list []value
	// canonical is the canonical text of all arguments.
	canonical string
	// workspace is where plans find memory.
	workspace *workspace
}

// value is one argument of one call.
type value struct {
	present bool
	// sent is what the agent sent.
	sent any
	// text is the form in which the value stands in templates.
	text string
	// raw is the value's part of the canonical text, when the effect needs it.
	raw string
}

// cut fills raw from the canonical text, and the text of structures with it.
func (v *values) cut() {
	d := jsontext.NewDecoder(strings.NewReader(v.canonical))
	_, _ = d.ReadToken() // the text is an object that has been checked
	for d.PeekKind() == jsontext.KindString {
		name, _ := d.ReadToken()
		i := slices.IndexFunc(v.args, func(a *argument) bool { return a.name == name.String() })
		value, _ := d.ReadValue()
		v.list[i].raw = string(value)
		if v.args[i].isStructure() {
			v.list[i].text = v.list[i].raw
		}
	}
}

// compareUTF16 orders names as RFC 8785 section 3.2.3 does: by UTF-16 code
// units, which differs from the order of bytes beyond U+FFFF.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra != rb {
			return slices.Compare(utf16.AppendRune(nil, ra), utf16.AppendRune(nil, rb))
		}
		a, b = a[na:], b[nb:]
	}
	return len(a) - len(b)
}

// part is one part of a compiled template: a constant, or the value of an
// argument.
type part struct {
	text string
	// arg is the position of the argument, or constant.
	arg int
}

// constant marks parts that are no argument.
const constant = -1

// word is a compiled word of argv.
type word []part

// appendTo appends the word to a text, and returns false when one of its
// arguments is absent: then there is no such word.
func (w word) appendTo(text []byte, v *values) ([]byte, bool, *snapshot.Error) {
	start := len(text)
	for _, p := range w {
		if p.arg == constant {
			text = append(text, p.text...)
			continue
		}
		a, value := v.args[p.arg], &v.list[p.arg]
		if !value.present {
			return text[:start], false, nil
		}
		if len(text) == start && !a.dash && value.text != "" && value.text[0] == '-' {
			return text, false, refuse(snapshot.StageEffect, ReasonOptionInjection, a.name)
		}
		text = append(text, value.text...)
		if len(text)-start > MaxWordBytes { // at once: a template may repeat a value often
			return text, false, refuse(snapshot.StageEffect, ReasonArgTooLong, a.name)
		}
	}
	return text, true, nil
}

// literal returns the text of a word without arguments.
func (w word) literal() (string, bool) {
	var text strings.Builder
	for _, p := range w {
		if p.arg != constant {
			return "", false
		}
		text.WriteString(p.text)
	}
	return text.String(), true
}
