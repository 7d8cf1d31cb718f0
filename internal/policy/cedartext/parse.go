// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartext

import "fmt"

// Parse reads a text that passed [Check] by Cedar's grammar
// (docs.cedarpolicy.com/policies/syntax-grammar.html) and keeps every place. It
// serves messages only: where cedar-go and Parse disagree, cedar-go is right.
// The error is nil or an [*Error].
func Parse(text string) (*Document, *Error) {
	return ParseFrom(text, Position{Line: 1, Column: 1})
}

// ParseFrom reads what follows a place, and counts on from there. With a text
// that is cut behind a policy it reads that policy alone.
func ParseFrom(text string, from Position) (*Document, *Error) {
	p := &parser{tokens: scanFrom(text, from)}
	d := &Document{Text: text, Tokens: p.tokens}
	for p.peek().Kind != KindEOF {
		policy := p.policy()
		if p.err != nil {
			return nil, p.err
		}
		d.Policies = append(d.Policies, policy)
	}
	return d, nil
}

// parser stops at the first error: fail moves it to the end of the text, where
// every loop ends.
type parser struct {
	tokens []Token
	pos    int
	err    *Error
}

func (p *parser) peek() Token { return p.tokens[p.pos] }

func (p *parser) next() Token {
	t := p.tokens[p.pos]
	if p.pos < len(p.tokens)-1 {
		p.pos++
	}
	return t
}

func (p *parser) fail(t Token, format string, args ...any) {
	if p.err == nil {
		p.err = &Error{Pos: t.Pos, Message: fmt.Sprintf(format, args...)}
	}
	p.pos = len(p.tokens) - 1
}

// found describes a token for a message.
func found(t Token) string {
	if t.Kind == KindEOF {
		return "the text ends"
	}
	return fmt.Sprintf("found %q", t.Text)
}

// is says whether the next token is this operator or word.
func (p *parser) is(text string) bool {
	t := p.peek()
	return t.Text == text && (t.Kind == KindOperator || t.Kind == KindIdent)
}

// accept takes the next token if it is this one.
func (p *parser) accept(text string) bool {
	if !p.is(text) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(text, where string) {
	t := p.peek()
	if !p.accept(text) {
		p.fail(t, "expected %q %s, but %s", text, where, found(t))
	}
}

func (p *parser) policy() Policy {
	out := Policy{First: p.pos, Pos: p.peek().Pos}
	p.annotations()
	if t := p.next(); t.Kind != KindIdent || (t.Text != "permit" && t.Text != "forbid") {
		p.fail(t, "expected permit or forbid, but %s", found(t))
	}
	p.expect("(", "after permit or forbid")
	out.Principal = p.scope("principal")
	p.expect(",", "after the principal")
	out.Action = p.scope("action")
	p.expect(",", "after the action")
	out.Resource = p.scope("resource")
	p.accept(",")
	p.expect(")", "after the resource")
	for p.is("when") || p.is("unless") {
		unless := p.next().Text == "unless"
		p.expect("{", "after when or unless")
		body := p.expression()
		p.expect("}", "after the condition")
		out.Conditions = append(out.Conditions, Condition{Unless: unless, Body: body})
	}
	out.Last = p.pos
	p.expect(";", "at the end of the policy")
	return out
}

func (p *parser) annotations() {
	for p.accept("@") {
		if t := p.next(); t.Kind != KindIdent {
			p.fail(t, "expected a name after @, but %s", found(t))
		}
		if p.accept("(") {
			if t := p.next(); t.Kind != KindString {
				p.fail(t, "expected a text in double quotes, but %s", found(t))
			}
			p.expect(")", "after the annotation's text")
		}
	}
}

// scope reads one part of the scope.
func (p *parser) scope(name string) *Expr {
	first := p.pos
	p.expect(name, "in the scope")
	isType := name != "action" && p.accept("is")
	if isType {
		p.path()
	}
	switch {
	case !isType && p.accept("=="):
		p.entity()
	case p.accept("in"):
		p.scopeIn(name)
	}
	return p.node("scope", first)
}

func (p *parser) scopeIn(name string) {
	if name != "action" || !p.accept("[") {
		p.entity()
		return
	}
	for p.err == nil && !p.is("]") {
		p.entity()
		if !p.accept(",") {
			break
		}
	}
	p.expect("]", "after the list of actions")
}

// entity reads Type::"id".
func (p *parser) entity() {
	for t := p.name("a type name such as Tool"); p.err == nil; {
		p.expect("::", fmt.Sprintf("after %s, as in %s::\"id\"", t.Text, t.Text))
		if p.peek().Kind == KindString {
			p.next()
			return
		}
		t = p.name("the ID of an entity in double quotes")
	}
}

// path reads Name::Name.
func (p *parser) path() {
	p.name("a type name")
	for p.accept("::") {
		p.name("a type name")
	}
}

func (p *parser) name(what string) Token {
	t := p.next()
	if t.Kind != KindIdent || reserved(t.Text) {
		p.fail(t, "expected %s, but %s", what, found(t))
	}
	return t
}

// reserved lists the words that no name may be.
func reserved(word string) bool {
	switch word {
	case "true", "false", "if", "then", "else", "in", "like", "has", "is", "__cedar":
		return true
	}
	return false
}
