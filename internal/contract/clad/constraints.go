// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package clad

import (
	"regexp/syntax"

	"github.com/assent-dev/assent/internal/contract"
)

// constraints converts the keys that arguments and types share. base is the
// type that they narrow.
func (r *reader) constraints(key, base string, c constraints) contract.ArgumentConstraints {
	for _, s := range c.Sanitize {
		if s != "injection" {
			r.fail(key+".sanitize", "has %q; only injection is known, and it is always on", s)
		}
	}
	out := contract.ArgumentConstraints{
		Allowed: c.Allowed, Clamp: c.Clamp, ScopeCheck: c.ScopeCheck, Schemes: c.Schemes,
		Min: r.scalar(key+".min", first(c.MinFloat, c.Min)), Max: r.scalar(key+".max", first(c.MaxFloat, c.Max)),
		Pattern: r.pattern(key+".pattern", c.Pattern),
	}
	switch base {
	case contract.KindURL:
		if out.Schemes == nil {
			out.Schemes = []string{"http", "https"} // what ToolClad accepts without a list
		}
	case contract.KindIPAddress, contract.KindCIDR:
		out.ScopeCheck = true // ToolClad checks them without being told
	case contract.KindScopeTarget:
		out.ScopeCheck = false // it is always on
	}
	return out
}

func first(values ...any) any {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}

// pattern converts a regular expression: ToolClad looks for a match anywhere in
// the value, here the whole value has to match. Only a pattern that is anchored
// at both ends means the same in both.
func (r *reader) pattern(key, text string) string {
	if text == "" {
		return ""
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		r.fail(key, "is not a regular expression of RE2: %v", err)
		return text
	}
	if parsed.Op == syntax.OpConcat && parsed.Sub[0].Op == syntax.OpBeginText && parsed.Sub[len(parsed.Sub)-1].Op == syntax.OpEndText {
		return text
	}
	return `(?s:.*)(?:` + text + `)(?s:.*)`
}
