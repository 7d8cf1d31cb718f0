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
	// member is the position of what the agent sent, or notSent.
	member int
	// text is the form in which the value stands in templates.
	text string
	// raw is the value's part of the canonical text, when the effect needs it.
	raw string
}

// notSent is the position of an argument that the agent left out.
const notSent = -1

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

// absent is the size of a word that is not there.
const absent = -1

// appendTo appends the word to the inside of a JSON string, and returns how long
// it is without escapes: [absent] when one of its arguments is absent, because
// then there is no such word, or when it is refused.
func (w word) appendTo(text []byte, v *values) ([]byte, int, *snapshot.Error) {
	size, name := 0, ""
	for _, p := range w {
		part := p.text
		if p.arg != constant {
			a, value := v.args[p.arg], &v.list[p.arg]
			part, name = value.text, a.name
			switch {
			case !value.present:
				return text, absent, nil
			case size == 0 && !a.dash && part != "" && part[0] == '-':
				return text, absent, refuse(snapshot.StageEffect, ReasonOptionInjection, name)
			}
		}
		if size += len(part); size > MaxWordBytes { // at once: a template may repeat a value often
			return text, absent, refuse(snapshot.StageEffect, ReasonArgTooLong, name)
		}
		text = appendInString(text, part)
	}
	return text, size, nil
}

// text returns the word without escapes. All of its arguments are present.
func (w word) text(v *values) string {
	var text strings.Builder
	for _, p := range w {
		if p.arg == constant {
			text.WriteString(p.text)
		} else {
			text.WriteString(v.list[p.arg].text)
		}
	}
	return text.String()
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
