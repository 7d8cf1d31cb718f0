// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"regexp"
	"testing"
)

// A patch is applied to whatever is there when it arrives, also to an object
// that was decided on anew or created anew since. Every write carries the
// resourceVersion that was read instead.
var unconditional = regexp.MustCompile(`\bclient\.(MergeFrom\w*|RawPatch|Apply\w*|Merge|StrategicMergeFrom)\b|\.(Patch|Apply|DeleteAllOf)\(`)

func TestWrites_AreNeverUnconditional(t *testing.T) {
	for _, found := range unconditional.FindAllString(string(productSources(t)), -1) {
		t.Errorf("something shipped writes by %q: use an update with the resourceVersion that was read", found)
	}
	for _, code := range []string{
		"c.Status().Patch(ctx, p, client.MergeFrom(old))", "c.Apply(ctx, p)", "c.Patch(ctx, p, client.Apply)", "c.DeleteAllOf(ctx, p)",
	} {
		if !unconditional.MatchString(code) {
			t.Errorf("%s is not found", code)
		}
	}
}
