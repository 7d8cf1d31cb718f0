// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"regexp"
	"strings"
)

// messageGroup is one message of the validator, which repeats it for each
// action that it holds for.
type messageGroup struct {
	message string
	more    int
}

var contextAction = regexp.MustCompile(` in context for .*?( not found)?$`)

// grouped joins messages that differ in the action only.
func grouped(messages []string) []messageGroup {
	var groups []messageGroup
	seen := map[string]int{}
	for _, message := range messages {
		if message == inapplicable {
			continue
		}
		key := contextAction.ReplaceAllString(message, "")
		if i, ok := seen[key]; ok {
			groups[i].more++
			continue
		}
		seen[key] = len(groups)
		groups = append(groups, messageGroup{message: message})
	}
	return groups
}

// plainTypes says in plain words what the validator says in its own.
var plainTypes = strings.NewReplacer(
	"Set<__cedar::internal::AnyEntity>", "a set of entities",
	"__cedar::internal::AnyEntity", "an entity",
	"Set<__cedar::internal::Any>", "a set",
	"__cedar::internal::OpenRecord{}", "a record",
)

func (g messageGroup) words() string {
	words := plainTypes.Replace(g.message)
	if g.more > 0 {
		words += fmt.Sprintf(" (and the same for %d more actions)", g.more)
	}
	return words
}
