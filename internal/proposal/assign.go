// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"slices"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// assign gives receipts to requirements so that as many places as possible are
// filled, each by a different receipt, and returns the receipts that were
// used. Somebody in two groups must not fill the place that only they could
// not leave to another, so this looks for augmenting paths rather than taking
// the first that fits (maximum bipartite matching; at most 16 receipts).
func assign(receipts []*v1alpha1.ApprovalReceipt, requirements []Requirement) []*v1alpha1.ApprovalReceipt {
	if len(requirements) == 0 {
		return receipts[:min(len(receipts), 1)]
	}
	m := matching{receipts: receipts, takenBy: map[int]int{}}
	for _, req := range requirements {
		for range req.Count {
			m.places = append(m.places, req.Group)
		}
	}
	for i := range receipts {
		m.place(i, map[int]bool{})
	}
	used := make([]*v1alpha1.ApprovalReceipt, 0, len(m.takenBy))
	for i, r := range receipts {
		if m.has(i) {
			used = append(used, r)
		}
	}
	return used
}

type matching struct {
	receipts []*v1alpha1.ApprovalReceipt
	// places holds the group of each place that must be filled.
	places []string
	// takenBy maps a place to the receipt that fills it.
	takenBy map[int]int
}

// place finds a place for the receipt, moving others if it must.
func (m *matching) place(receipt int, tried map[int]bool) bool {
	for p, group := range m.places {
		if tried[p] || !slices.Contains(m.receipts[receipt].Spec.Approver.Groups, group) {
			continue
		}
		tried[p] = true
		other, taken := m.takenBy[p]
		if !taken || m.place(other, tried) {
			m.takenBy[p] = receipt
			return true
		}
	}
	return false
}

func (m *matching) has(receipt int) bool {
	for _, r := range m.takenBy {
		if r == receipt {
			return true
		}
	}
	return false
}
