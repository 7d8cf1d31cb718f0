// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"
)

// maxStates ends a search that has got out of hand.
const maxStates = 3_000_000

// origin is how a state was reached.
type origin struct {
	from state
	by   string
}

// search visits every state and returns how many there are and, if one breaks
// an invariant, the way to it.
func (w *world) search(t *testing.T, trace bool) (int, fault, []string) {
	t.Helper()
	first := initial()
	seen := map[state]struct{}{first: {}}
	origins := map[state]origin{}
	queue := []state{first}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		var bad *state
		w.next(s, func(by string, n state) {
			n.controllers = sorted(n.controllers)
			if _, ok := seen[n]; ok || bad != nil {
				return
			}
			seen[n] = struct{}{}
			if trace {
				origins[n] = origin{s, by}
			}
			if n.broken != fine {
				bad = &n
				return
			}
			queue = append(queue, n)
		})
		if bad != nil {
			return len(seen), bad.broken, way(origins, first, *bad)
		}
		if len(seen) > maxStates {
			t.Fatalf("more than %d states", maxStates)
		}
	}
	return len(seen), fine, nil
}

// sorted makes one of the two states that differ only in which controller is which.
func sorted(c [controllers]controller) [controllers]controller {
	if c[1].less(c[0]) {
		c[0], c[1] = c[1], c[0]
	}
	return c
}

func way(origins map[state]origin, first, to state) []string {
	var out []string
	for to != first {
		o, ok := origins[to]
		if !ok {
			return nil
		}
		out = append([]string{o.by}, out...)
		to = o.from
	}
	return out
}

func TestProtocol_KeepsItsInvariantsInEveryState(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			w := &world{scenario: sc}
			n, broken, _ := w.search(t, false)
			t.Logf("%d states", n)
			if broken != fine {
				_, _, steps := w.search(t, true)
				t.Fatalf("%s:\n%v", faultNames[broken], steps)
			}
		})
	}
}

func TestProtocol_BreaksWithoutAnyOfItsGuards(t *testing.T) {
	for g := range guards {
		t.Run(guardNames[g], func(t *testing.T) {
			for _, sc := range scenarios {
				w := &world{scenario: sc}
				w.without[g] = true
				n, broken, steps := w.search(t, true)
				if broken != fine {
					t.Logf("%s: %s, after %d states: %v", sc.name, faultNames[broken], n, steps)
					return
				}
			}
			t.Error("nothing breaks without it: it is not needed, or the model cannot see what it is for")
		})
	}
}
