// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that the whole of a value must match. It is
// compiled when the first value is held against it: compiled expressions are
// by far the largest part of a contract, and of a thousand tools few are in
// use.
type pattern struct {
	// text is the expression as its author wrote it.
	text string
	// whole returns the expression anchored at both ends.
	whole func() *regexp.Regexp
}

// newPattern checks an expression. Checking it anchored as well keeps an
// expression out whose parts would end the anchoring.
func newPattern(text string) (*pattern, error) {
	anchored := `\A(?:` + text + `)\z`
	for _, expression := range []string{text, anchored} {
		if _, err := regexp.Compile(expression); err != nil {
			return nil, err
		}
	}
	return &pattern{text: text, whole: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(anchored) })}, nil
}

// matches reports whether the whole of a value matches.
func (p *pattern) matches(value string) bool { return p.whole().MatchString(value) }
