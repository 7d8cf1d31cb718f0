// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// good is the record of one approved call that went well.
func good() []line {
	granted := line{kind: written, proposal: "p", phase: "Dispatching", grant: "g", receipts: []types.UID{"r"}, fingerprint: "f"}
	redeemed := granted
	redeemed.phase, redeemed.redeemer = "Running", "pod"
	ended := redeemed
	ended.phase, ended.reason = "Succeeded", "Succeeded"
	return []line{
		{kind: audited, proposal: "p", detail: "PolicyEvaluated", allowed: true, fingerprint: "f"},
		{kind: audited, proposal: "p", detail: "Dispatched"},
		granted,
		{kind: jobMade, proposal: "p"},
		redeemed,
		{kind: effected, proposal: "p", value: "web"},
		{kind: audited, proposal: "p", detail: "ToolCompleted"},
		ended,
	}
}

// Each row plants one violation in a good record, which must be found.
func TestCheck_FindsEachViolation(t *testing.T) {
	drop := func(i int) func([]line) []line {
		return func(l []line) []line { return slices.Delete(l, i, i+1) }
	}
	add := func(l line) func([]line) []line { return func(lines []line) []line { return append(lines, l) } }
	edit := func(i int, change func(*line)) func([]line) []line {
		return func(l []line) []line { change(&l[i]); return l }
	}
	insert := func(i int, l line) func([]line) []line {
		return func(lines []line) []line { return slices.Insert(lines, i, l) }
	}
	for name, tc := range map[string]struct {
		plant func([]line) []line
		want  []string
	}{
		"nothing":              {func(l []line) []line { return l }, nil},
		"a second effect":      {insert(6, line{kind: effected, proposal: "p", value: "web"}), []string{"I2: a second effect (call p)", "I4: success without exactly one effect (call p)"}},
		"an effect too early":  {func(l []line) []line { l[2], l[5] = l[5], l[2]; return l }, []string{"I1: a Job without a grant (call p)", "I1: an effect that was not granted and handed out (call p)"}},
		"an effect of nobody":  {add(line{kind: effected, proposal: "q"}), []string{"I1: an effect of no call (call q)"}},
		"another effect":       {edit(5, func(l *line) { l.value = "db" }), []string{"I4: another effect than was decided on (call p)"}},
		"no effect":            {drop(5), []string{"I4: success without exactly one effect (call p)"}},
		"an effect at the end": {func(l []line) []line { l[5], l[7] = l[7], l[5]; l[5], l[6] = l[6], l[5]; return l }, []string{"I6: an effect after the end (call p)"}},
		"a denial granted":     {edit(0, func(l *line) { l.allowed = false }), []string{"I1: a grant that policy did not allow (call p)"}},
		"another call's Allow": {edit(0, func(l *line) { l.fingerprint = "x" }), []string{"I1: a grant that policy did not allow (call p)"}},
		"a grant unrecorded":   {drop(1), []string{"I5: a grant without its record (call p)"}},
		"an end unrecorded":    {drop(6), []string{"I5: an end without its record (call p)"}},
		"no receipt":           {edit(2, func(l *line) { l.receipts = nil }), []string{"I3: a grant without a receipt (call p)"}},
		"a receipt twice":      {edit(2, func(l *line) { l.receipts = []types.UID{"r", "r"} }), []string{"I3: a receipt that was used before (call p)"}},
		"a second grant":       {edit(4, func(l *line) { l.grant, l.receipts = "h", []types.UID{"s"} }), []string{"I2: a second grant (call p)", "I2: a second grant (call p)", "I3: a receipt that was used before (call p)"}},
		"a second redemption":  {edit(7, func(l *line) { l.redeemer = "pod-2" }), []string{"I2: a second redemption (call p)"}},
		"a second Job":         {insert(4, line{kind: jobMade, proposal: "p"}), []string{"I2: a second Job (call p)"}},
		"an end that changed":  {add(line{kind: written, proposal: "p", phase: "Failed", grant: "g", redeemer: "pod"}), []string{"I6: an end that changed from Succeeded to Failed (call p)"}},
		"no end":               {drop(7), []string{"I6: no end (call p)"}},
		"a false never":        {edit(7, func(l *line) { l.phase, l.reason = "Failed", "NeverStarted" }), []string{"I4: an effect of a call that never started (call p)"}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := map[types.UID]expectation{"p": {value: "web", fingerprint: "f", needsApproval: true}}
			if diff := cmp.Diff(tc.want, check(tc.plant(good()), calls)); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}
