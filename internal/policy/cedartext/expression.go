// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartext

// node makes an expression that ends before the next token.
func (p *parser) node(op string, first int, kids ...*Expr) *Expr {
	return &Expr{Op: op, First: first, Last: max(first, p.pos-1), Kids: kids}
}

func (p *parser) expression() *Expr {
	first := p.pos
	if !p.accept("if") {
		return p.chain("||", p.and)
	}
	condition := p.expression()
	p.expect("then", "after the condition of if")
	then := p.expression()
	p.expect("else", "after the first branch of if")
	otherwise := p.expression()
	return p.node("if", first, condition, then, otherwise)
}

func (p *parser) and() *Expr { return p.chain("&&", p.relation) }

// chain reads operands of one operator into one node.
func (p *parser) chain(op string, operand func() *Expr) *Expr {
	first := p.pos
	kids := []*Expr{operand()}
	for p.accept(op) {
		kids = append(kids, operand())
	}
	if len(kids) == 1 {
		return kids[0]
	}
	return p.node(op, first, kids...)
}

func (p *parser) relation() *Expr {
	first := p.pos
	left := p.add()
	switch op := p.peek().Text; {
	case p.accept("has"):
		p.hasPath()
		return p.node("has", first, left)
	case p.accept("like"):
		if t := p.next(); t.Kind != KindString {
			p.fail(t, "expected a pattern in double quotes after like, but %s", found(t))
		}
		return p.node("like", first, left)
	case p.accept("is"):
		p.path()
		if p.accept("in") {
			return p.node("is", first, left, p.add())
		}
		return p.node("is", first, left)
	case p.accept("<"), p.accept("<="), p.accept(">"), p.accept(">="), p.accept("!="), p.accept("=="), p.accept("in"):
		return p.node(op, first, left, p.add())
	default:
		return left
	}
}

// hasPath reads the name, or the path, behind has.
func (p *parser) hasPath() {
	if p.peek().Kind == KindString {
		p.next()
		return
	}
	p.name("an attribute name after has")
	for p.accept(".") {
		p.name("an attribute name")
	}
}

func (p *parser) add() *Expr {
	first := p.pos
	left := p.mult()
	for p.is("+") || p.is("-") {
		op := p.next().Text
		left = p.node(op, first, left, p.mult())
	}
	return left
}

func (p *parser) mult() *Expr {
	first := p.pos
	left := p.unary()
	for p.accept("*") {
		left = p.node("*", first, left, p.unary())
	}
	return left
}

func (p *parser) unary() *Expr {
	first := p.pos
	for p.is("!") || p.is("-") {
		p.next()
	}
	if p.pos == first {
		return p.member()
	}
	operand := p.member()
	return p.node("!", first, operand)
}

// member reads a primary and what is asked of it.
func (p *parser) member() *Expr {
	first := p.pos
	e := p.primary()
	for p.err == nil {
		switch {
		case p.accept("."):
			p.name("an attribute or a method after the point")
			if !p.is("(") {
				e = p.node(".", first, e)
				continue
			}
			kids := append([]*Expr{e}, p.list("(", ")")...)
			e = p.node("call", first, kids...)
		case p.accept("["):
			if t := p.next(); t.Kind != KindString {
				p.fail(t, "expected an attribute name in double quotes, but %s", found(t))
			}
			p.expect("]", "after the attribute name")
			e = p.node(".", first, e)
		default:
			return e
		}
	}
	return e
}

// list reads expressions between brackets.
func (p *parser) list(open, end string) []*Expr {
	p.expect(open, "here")
	var kids []*Expr
	for p.err == nil && !p.is(end) {
		kids = append(kids, p.expression())
		if !p.accept(",") {
			break
		}
	}
	p.expect(end, "or \",\" here")
	return kids
}

func (p *parser) primary() *Expr {
	first := p.pos
	t := p.peek()
	switch {
	case t.Kind == KindInt, t.Kind == KindString, p.is("true"), p.is("false"):
		p.next()
		return p.node("", first)
	case t.Kind == KindIdent:
		return p.word()
	case p.accept("("):
		inner := p.expression()
		p.expect(")", "after the expression in parentheses")
		return p.node("()", first, inner)
	case p.is("["):
		kids := p.list("[", "]")
		return p.node("[]", first, kids...)
	case p.is("{"):
		kids := p.record()
		return p.node("{}", first, kids...)
	default:
		p.fail(t, "expected an expression, but %s", found(t))
		return p.node("", first)
	}
}

// word reads a variable, an entity or a function call.
func (p *parser) word() *Expr {
	first := p.pos
	t := p.name("an expression")
	for p.accept("::") {
		if p.peek().Kind == KindString {
			p.next()
			return p.node("", first)
		}
		p.name("a type name, or the ID of an entity in double quotes")
	}
	switch {
	case p.is("("):
		kids := p.list("(", ")")
		return p.node("call", first, kids...)
	case p.err == nil && p.pos > first+1:
		p.fail(p.peek(), "expected the ID of an entity in double quotes, but %s", found(p.peek()))
	case p.err == nil && t.Text != "principal" && t.Text != "action" && t.Text != "resource" && t.Text != "context":
		p.fail(t, "%q is not known here; use principal, action, resource, context, a text in double quotes, or Type::\"id\"", t.Text)
	}
	return p.node("", first)
}

func (p *parser) record() []*Expr {
	p.expect("{", "here")
	var kids []*Expr
	for p.err == nil && !p.is("}") {
		if t := p.next(); t.Kind != KindString && (t.Kind != KindIdent || reserved(t.Text)) {
			p.fail(t, "expected an attribute name, but %s", found(t))
		}
		p.expect(":", "after the attribute name")
		kids = append(kids, p.expression())
		if !p.accept(",") {
			break
		}
	}
	p.expect("}", "or \",\" here")
	return kids
}
