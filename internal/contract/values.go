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
	args    []*argument
	present []bool
	// texts are the forms in which values stand in templates.
	texts []string
	// canonical is the canonical text of all arguments.
	canonical string
	// raw are the parts of canonical, when the effect needs them.
	raw []string
}

func newValues(args []*argument) *values {
	return &values{args: args, present: make([]bool, len(args)), texts: make([]string, len(args))}
}

// cut fills raw from the canonical text, and the texts of structures with it.
func (v *values) cut() {
	v.raw = make([]string, len(v.args))
	d := jsontext.NewDecoder(strings.NewReader(v.canonical))
	_, _ = d.ReadToken() // the text is an object that has been checked
	for d.PeekKind() == jsontext.KindString {
		name, _ := d.ReadToken()
		i := slices.IndexFunc(v.args, func(a *argument) bool { return a.name == name.String() })
		value, _ := d.ReadValue()
		v.raw[i] = string(value)
		if t := v.args[i].spec.json; t == jsonObject || t == jsonArray {
			v.texts[i] = v.raw[i]
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

// render returns the word, and false when one of its arguments is absent: then
// there is no such word.
func (w word) render(v *values, scratch []byte) (text []byte, present bool, err *snapshot.Error) {
	text = scratch[:0]
	last := ""
	for _, p := range w {
		if p.arg == constant {
			text = append(text, p.text...)
			continue
		}
		if !v.present[p.arg] {
			return text, false, nil
		}
		a, value := v.args[p.arg], v.texts[p.arg]
		last = a.name
		if len(text) == 0 && !a.dash && value != "" && value[0] == '-' {
			return text, false, refuse(snapshot.StageEffect, ReasonOptionInjection, a.name)
		}
		text = append(text, value...)
		if len(text) > MaxWordBytes {
			break
		}
	}
	if len(text) > MaxWordBytes {
		return text, false, refuse(snapshot.StageEffect, ReasonArgTooLong, last)
	}
	return text, true, nil
}

// literal returns the text of a word without arguments.
func (w word) literal() (string, bool) {
	text := ""
	for _, p := range w {
		if p.arg != constant {
			return "", false
		}
		text += p.text
	}
	return text, true
}
