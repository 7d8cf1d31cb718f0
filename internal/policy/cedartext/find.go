// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartext

import "strings"

// FindName finds the first place in a policy where a type is named, or with an
// ID that is not empty the entity of that type. IDs with escapes are not found.
func (d *Document) FindName(p *Policy, path, id string) (Position, bool) {
	want := strings.Split(strings.ReplaceAll(path, "::", " :: "), " ")
	if id != "" {
		want = append(want, "::", `"`+id+`"`)
	}
	for i := p.First; i+len(want) <= p.Last; i++ {
		if d.matches(i, want) && !d.goesOn(i+len(want)) {
			return d.Tokens[i].Pos, true
		}
	}
	return Position{}, false
}

// matches says whether the tokens from an index on are these.
func (d *Document) matches(at int, want []string) bool {
	for i, text := range want {
		if d.Tokens[at+i].Text != text {
			return false
		}
	}
	return true
}

// goesOn says whether a path goes on with another name at an index.
func (d *Document) goesOn(at int) bool {
	return d.Tokens[at].Text == "::" && d.Tokens[at+1].Kind == KindIdent
}
