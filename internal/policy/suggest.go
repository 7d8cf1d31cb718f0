// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
)

// suggestType names a known type that somebody may have meant.
func (c *checks) suggestType(t types.EntityType) string {
	known := append(slices.Sorted(maps.Keys(c.resourceTypes)), typeUser, typeServiceAccount, typeGroup)
	for _, one := range known {
		if _, name := splitPath(string(one)); name == string(t) {
			return didYouMean(string(one))
		}
	}
	return didYouMean(string(closest(t, known)))
}

func (c *checks) suggestAction(uid types.EntityUID) string {
	known := make([]string, 0, len(c.ordered))
	for _, a := range c.ordered {
		known = append(known, a.uid.String())
	}
	return didYouMean(closest(uid.String(), known))
}

func (c *checks) suggestTool(uid types.EntityUID) string {
	known := make([]string, 0, len(c.resources))
	for one := range c.resources {
		known = append(known, one.String())
	}
	slices.Sort(known)
	return didYouMean(closest(uid.String(), known))
}

func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%s%s?", suggestion, name)
}

// suggestion introduces a name that somebody may have meant.
const suggestion = "; did you mean "

// closest gives the name that differs least from the one wanted, if it differs
// in at most a third of its letters.
func closest[T ~string](wanted T, known []T) T {
	var best T
	limit := max(1, len(wanted)/3) + 1
	for _, name := range known {
		if distance := editDistance(strings.ToLower(string(wanted)), strings.ToLower(string(name)), limit); distance < limit {
			best, limit = name, distance
		}
	}
	return best
}

// editDistance is how many letters must be put in, taken out or replaced, or
// limit if that is less.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], limit)
}
