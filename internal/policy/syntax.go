// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"regexp"
	"strconv"

	"github.com/assent-dev/assent/internal/policy/cedartext"
)

var inputPosition = regexp.MustCompile(`<input>:(\d+):(\d+)`)

// syntaxProblem gives place and message of an error of cedar-go's parser.
func (c *Compiled) syntaxProblem(err error) Problem {
	pos := cedartext.Position{Line: 1, Column: 1}
	if m := inputPosition.FindStringSubmatch(err.Error()); m != nil {
		pos.Line, _ = strconv.Atoi(m[1])
		pos.Column, _ = strconv.Atoi(m[2])
	}
	return c.problem(pos, err.Error())
}
