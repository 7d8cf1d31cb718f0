// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/policy/cedartext"
)

// Parts of the errors of cedar-go's parser.
var (
	inputPosition = regexp.MustCompile(`<input>:(\d+):(\d+)`)
	inputPrefix   = regexp.MustCompile(`^(?:parser error: )?(?:parse error at )?(?:<input>:\d+:\d+)?(?: "[^"]*")?:? ?`)
	namedPart     = regexp.MustCompile("`([^`]+)`|@(\\w+)|duplicate key: (\\w+)|^(\\w+) expects")
)

// literalProblem gives place and message of what cedar-go refused although the
// grammar allows it: a number that is too large, an unknown function. cedar-go's
// errors point behind what is wrong, so that it is looked for before that.
func (c *Compiled) literalProblem(document *cedartext.Document, err error) Problem {
	if literal, ok := cedartext.Suspect(document.Tokens); ok {
		return c.problem(literal.Pos, literal.Message)
	}
	pos := cedartext.Position{Line: 1, Column: 1}
	if m := inputPosition.FindStringSubmatch(err.Error()); m != nil {
		pos.Line, _ = strconv.Atoi(m[1])
		pos.Column, _ = strconv.Atoi(m[2])
	}
	message := inputPrefix.ReplaceAllString(err.Error(), "")
	if m := namedPart.FindStringSubmatch(message); m != nil {
		pos = lastBefore(c.source.Text, strings.Join(m[1:], ""), pos)
	}
	return c.problem(pos, message)
}

// lastBefore finds the last word in front of a place.
func lastBefore(text, word string, limit cedartext.Position) cedartext.Position {
	best := limit
	for _, t := range cedartext.Scan(text) {
		if t.Pos.Line > limit.Line || (t.Pos.Line == limit.Line && t.Pos.Column >= limit.Column) {
			break
		}
		if t.Text == word {
			best = t.Pos
		}
	}
	return best
}
