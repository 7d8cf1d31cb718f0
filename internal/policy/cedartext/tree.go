// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package cedartext

// Policy is one policy of a text, with the places that cedar-go forgets.
type Policy struct {
	// Pos is where the policy starts, with its annotations.
	Pos Position
	// Principal, Action and Resource are the parts of the scope.
	Principal, Action, Resource *Expr
	// Conditions in their order.
	Conditions []Condition
	// Last is the index of the last token, the semicolon, and First that of the
	// first one.
	First, Last int
}

// Condition is one when or unless clause.
type Condition struct {
	// Unless tells unless from when.
	Unless bool
	// Body is the expression between the braces.
	Body *Expr
}

// Expr is an expression with its place.
type Expr struct {
	// Op is what the expression does: "&&", "||", "if", "has", a relation, "."
	// for the access to an attribute, and so on; empty for what has no parts of
	// interest.
	Op string
	// First and Last are the indexes of the expression's tokens.
	First, Last int
	// Kids are the parts, in the order of the text.
	Kids []*Expr
}

// Document is a text with its tokens and policies.
type Document struct {
	Text     string
	Tokens   []Token
	Policies []Policy
}

// Pos is where an expression starts.
func (d *Document) Pos(e *Expr) Position { return d.Tokens[e.First].Pos }

// Source is the text of an expression.
func (d *Document) Source(e *Expr) string {
	return d.Text[d.Tokens[e.First].Pos.Offset:d.Tokens[e.Last].End()]
}

// Conjuncts lists what must all hold for an expression to hold: the parts of
// "&&", through parentheses.
func (e *Expr) Conjuncts() []*Expr {
	switch e.Op {
	case "()":
		if inner := e.Kids[0]; inner.Op == "&&" || inner.Op == "()" {
			return inner.Conjuncts()
		}
	case "&&":
		var all []*Expr
		for _, kid := range e.Kids {
			all = append(all, kid.Conjuncts()...)
		}
		return all
	}
	return []*Expr{e}
}
