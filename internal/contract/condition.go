// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"strings"
)

// comparison compares the text of an argument with a constant. An absent
// argument has the empty text, as in ToolClad.
type comparison struct {
	argument string
	constant string
	negated  bool
}

var errCondition = errors.New("is not a condition; compare with name == 'text' or name != 'text', joined by and")

// parseCondition reads comparisons joined by "and". There is nothing else in
// the language, and nothing is ever evaluated as code.
func parseCondition(text string) ([]comparison, error) {
	p := conditionParser{rest: text}
	var all []comparison
	for {
		c, ok := p.comparison()
		if !ok {
			return nil, errCondition
		}
		all = append(all, c)
		switch word := p.word(); {
		case word == "" && p.atEnd():
			return all, nil
		case word != "and":
			return nil, errCondition
		}
	}
}

// conditionParser reads tokens from the front of a text.
type conditionParser struct{ rest string }

func (p *conditionParser) skipBlanks() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

func (p *conditionParser) atEnd() bool {
	p.skipBlanks()
	return p.rest == ""
}

// word reads letters, digits and the characters of numbers.
func (p *conditionParser) word() string {
	p.skipBlanks()
	n := 0
	for n < len(p.rest) && isWordByte(p.rest[n]) {
		n++
	}
	word := p.rest[:n]
	p.rest = p.rest[n:]
	return word
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.+-", c) >= 0
}

// comparison reads name, operator and constant.
func (p *conditionParser) comparison() (comparison, bool) {
	c := comparison{argument: p.word()}
	p.skipBlanks()
	switch {
	case !isName(c.argument) || len(p.rest) < 2:
		return c, false
	case p.rest[:2] == "!=":
		c.negated = true
	case p.rest[:2] != "==":
		return c, false
	}
	p.rest = p.rest[2:]
	constant, ok := p.constant()
	c.constant = constant
	return c, ok
}

// constant reads a quoted text without escapes, or a bare word.
func (p *conditionParser) constant() (string, bool) {
	p.skipBlanks()
	if p.rest != "" && (p.rest[0] == '\'' || p.rest[0] == '"') {
		text, rest, closed := strings.Cut(p.rest[1:], p.rest[:1])
		p.rest = rest
		return text, closed
	}
	word := p.word()
	return word, word != ""
}

// holds decides one comparison.
func (c comparison) holds(text string) bool { return (text == c.constant) != c.negated }

// CheckCondition reports whether a text is a condition that a conditional can
// have: comparisons of names with constants, joined by "and".
func CheckCondition(text string) error {
	_, err := parseCondition(text)
	return err
}
