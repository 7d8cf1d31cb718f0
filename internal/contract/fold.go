// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/snapshot"
)

// fold adds the constraints of one link. Each of them narrows what the links
// before it accept; flags hold as soon as one link sets them, so that nobody
// gets rid of a scope check by deriving a type.
func (r *resolver) fold(a *argument, l link) {
	c := l.constraints
	r.checkApplies(a, l)
	r.foldBounds(a, l)
	a.scoped = a.scoped || c.ScopeCheck
	a.dash = a.dash || c.AllowLeadingDash
	a.sensitive = a.sensitive || c.Sensitive
	if c.Allowed != nil {
		a.allowed = append(a.allowed, r.allowedSet(l))
	}
	if c.Pattern != "" {
		a.patterns = append(a.patterns, r.pattern(l.field+"pattern", c.Pattern))
	}
	if c.Schemes != nil {
		a.schemes = r.schemes(l, a.schemes)
	}
	if c.Schema != "" {
		a.schemas = append(a.schemas, r.schema(ReasonInvalidArgument, l.field+"schema", c.Schema))
		a.schemaText = append(a.schemaText, c.Schema)
	}
}

// foldBounds adds what limits numbers and lengths.
func (r *resolver) foldBounds(a *argument, l link) {
	c := l.constraints
	a.bounds.clamp = a.bounds.clamp || c.Clamp
	if c.Min != nil {
		a.bounds.min = math.Max(a.bounds.min, r.bound(a, l.field+"min", *c.Min))
	}
	if c.Max != nil {
		a.bounds.max = math.Min(a.bounds.max, r.bound(a, l.field+"max", *c.Max))
	}
	if c.MaxLength != nil {
		a.maxLength = min(a.maxLength, r.length(l.field+"maxLength", *c.MaxLength))
	}
}

// checkApplies refuses constraints that would do nothing for the type: their
// author expects an effect.
func (r *resolver) checkApplies(a *argument, l link) {
	c := l.constraints
	for _, f := range []struct {
		set  bool
		can  constraint
		name string
	}{
		{c.Allowed != nil, canAllow, "allowed"},
		{c.Pattern != "", canMatch, "pattern"},
		{c.Min != nil, canBound, "min"},
		{c.Max != nil, canBound, "max"},
		{c.Clamp, canBound, "clamp"},
		{c.Schemes != nil, canScheme, "schemes"},
		{c.ScopeCheck, canScope, "scopeCheck"},
		{c.MaxLength != nil, canLimit, "maxLength"},
		{c.AllowLeadingDash, canDash, "allowLeadingDash"},
		{c.Schema != "", canSchema, "schema"},
	} {
		if f.set && a.spec.applies&f.can == 0 {
			r.add(ReasonInvalidArgument, l.field+f.name, "does not apply to the type %s; remove it", a.kind)
		}
	}
}

func (r *resolver) allowedSet(l link) map[string]bool {
	set := make(map[string]bool, len(l.constraints.Allowed))
	for i, text := range l.constraints.Allowed {
		field := l.field + "allowed[" + strconv.Itoa(i) + "]"
		switch {
		case set[text]:
			r.add(ReasonInvalidArgument, field, "occurs twice")
		case strings.IndexByte(text, 0) >= 0:
			r.add(ReasonInvalidArgument, field, "contains NUL")
		}
		set[text] = true
	}
	return set
}

// pattern compiles a regular expression so that it has to match the whole
// value. It is compiled alone first: otherwise "a)|(b" would leave the group
// that anchors it.
func (r *resolver) pattern(field, text string) *pattern {
	if known := r.patterns[text]; known != nil {
		return known
	}
	if len(text) > MaxPatternBytes {
		r.add(ReasonInvalidArgument, field, "is longer than %d bytes", MaxPatternBytes)
		return nil
	}
	p, err := newPattern(text)
	if err != nil {
		r.add(ReasonInvalidArgument, field, "is not a regular expression of RE2: %v", err)
		return nil
	}
	r.patterns[text] = p
	return p
}

// bound reads min or max. A number that JSON cannot keep would not be the
// bound that its author wrote.
func (r *resolver) bound(a *argument, field string, v IntOrString) float64 {
	grammar := numberText
	if a.spec.json == jsonInteger {
		grammar = integerText
	}
	text := v.Text()
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !grammar.MatchString(text) {
		r.add(ReasonInvalidArgument, field, "is not a number that the type %s can have", a.kind)
		return 0
	}
	return f
}

func (r *resolver) length(field string, n int32) int {
	if n < 1 || n > MaxTextBytes {
		r.add(ReasonInvalidArgument, field, "must lie between 1 and %d", MaxTextBytes)
	}
	return int(n)
}

// schemes returns the URL schemes that this link and those before it list.
func (r *resolver) schemes(l link, before []string) []string {
	var common []string
	for i, s := range l.constraints.Schemes {
		if !isScheme(s) {
			r.add(ReasonInvalidArgument, l.field+"schemes["+strconv.Itoa(i)+"]", "is not a URL scheme in lower case")
		}
		if before == nil || slices.Contains(before, s) {
			common = append(common, s)
		}
	}
	if common == nil {
		r.add(ReasonInvalidArgument, l.field+"schemes", "leaves no scheme that the types before it accept")
	}
	return common
}

// isScheme reports whether s is a URL scheme (RFC 3986 section 3.1) in lower
// case.
func isScheme(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return s != "" && strings.IndexByte(letters, s[0]) >= 0 && strings.Trim(s, letters+"0123456789+-.") == ""
}

// setDefault checks a default as a value of the agent's and keeps the result.
func (r *resolver) setDefault(a *argument, field string, v *IntOrString) {
	if v == nil {
		return
	}
	field += ".default"
	var value any = v.Text()
	structure := a.isStructure()
	if structure {
		tree, err := snapshot.DecodeText(v.Text())
		if err != nil {
			r.add(ReasonInvalidArgument, field, "is not a JSON text: %v", err)
			return
		}
		value = tree
	}
	accepted, why := a.accept(value)
	if why != "" {
		r.add(ReasonInvalidArgument, field, "is not accepted by the argument itself: %s", adviceFor(why))
		return
	}
	a.fallback = accepted
	if structure {
		a.fallback = v.Text()
	}
}

// adviceFor says what a reason means.
func adviceFor(why refusal) string { return string(why) + ", " + advice[why] }
