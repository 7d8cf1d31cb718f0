// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
)

// Persons returns a function that maps a username to the person behind it, for
// [ApprovalRules.SamePerson]. One person often has several usernames, from a
// certificate and from single sign-on for example, and must not approve their
// own call by changing between them.
//
// A username that known lists is the person given there. Otherwise pattern, an
// RE2 expression with exactly one group, is matched against the whole username,
// and the group is the person. Any other username is its own person. Both may
// be empty. Names that come out the same are the same person, whichever way
// they came.
func Persons(pattern string, known map[string]string) (func(username string) string, error) {
	for username, person := range known {
		if username == "" || person == "" {
			return nil, errors.New("neither a username nor the person behind it may be empty")
		}
	}
	known = maps.Clone(known)
	if pattern == "" {
		return func(username string) string { return personIn(known, nil, username) }, nil
	}
	expression, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return nil, fmt.Errorf("compiling the expression for usernames: %w", err)
	}
	if expression.NumSubexp() != 1 {
		return nil, fmt.Errorf("the expression for usernames must have exactly one group, which is the person; it has %d", expression.NumSubexp())
	}
	return func(username string) string { return personIn(known, expression, username) }, nil
}

func personIn(known map[string]string, expression *regexp.Regexp, username string) string {
	if person, ok := known[username]; ok {
		return person
	}
	if expression == nil {
		return username
	}
	if m := expression.FindStringSubmatch(username); m != nil && m[1] != "" {
		return m[1]
	}
	return username
}
