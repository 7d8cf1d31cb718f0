// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/snapshot"
)

func TestEncode_AgreesWithTheSnapshotCanonicaliser(t *testing.T) {
	all := samples(t)
	all["result"] = sampleResult()
	odd := sampleReceiptSeal()
	odd.Approver.Username = "\u20ac$\u000f\nA'\u0042\u0022\u005c\\\"/\u2028\U0001F600"
	odd.Approver.Extra = map[string][]string{"\ufb33": {}, "\U0001F600": {""}, "z": {"1", "2"}, "": {}}
	all["odd"] = odd
	for name, v := range all {
		text, err := attest.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		var tree map[string]any
		if err := json.Unmarshal(text, &tree); err != nil {
			t.Fatal(err)
		}
		want, err := snapshot.CanonicalObject(tree)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != want {
			t.Errorf("%s:\n got %s\nwant %s", name, text, want)
		}
	}
}

func TestEncode_RefusesWhatCanonicalJSONWouldChange(t *testing.T) {
	tests := map[string]struct {
		in   any
		want string
	}{
		"an integer above 2^53-1":          {struct{ N int64 }{1 << 53}, "an integer lies beyond 2^53-1 and would not survive canonical JSON"},
		"an integer below -2^53+1":         {struct{ N int64 }{-1 << 53}, "an integer lies beyond 2^53-1 and would not survive canonical JSON"},
		"an unsigned integer above 2^53-1": {struct{ N uint64 }{1 << 53}, "an integer lies beyond 2^53-1 and would not survive canonical JSON"},
		"a floating-point number":          {struct{ N float64 }{0.5}, "floating-point members are not allowed in signed structures"},
		"a year of five digits":            {struct{ T time.Time }{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "a time lies outside the years 0 to 9999"},
		"a year before zero":               {struct{ T time.Time }{time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)}, "a time lies outside the years 0 to 9999"},
		"text that is not UTF-8":           {struct{ S string }{"\xff"}, "a member cannot be represented in JSON (text that is not valid UTF-8?)"},
		"a duplicate in raw JSON":          {struct{ V rawValue }{rawValue(`{"a":1,"a":1}`)}, "a member cannot be represented in JSON (text that is not valid UTF-8?)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := attest.Encode(tc.in)
			if err == nil || !strings.HasSuffix(err.Error(), ": "+tc.want) {
				t.Errorf("Encode = %s, %v; want an error ending in %q", text, err, tc.want)
			}
		})
	}
	for _, v := range []any{struct{ N int64 }{1<<53 - 1}, struct{ N int64 }{-1<<53 + 1}, struct{ N uint64 }{1<<53 - 1}} {
		if _, err := attest.Encode(v); err != nil {
			t.Errorf("%v: %v", v, err)
		}
	}
}

type rawValue []byte

func (r rawValue) MarshalJSON() ([]byte, error) { return r, nil }

func TestDecode_LeavesItsTargetAloneOnFailure(t *testing.T) {
	target := attest.BatchRef{ID: "kept", Size: 7}
	err := attest.Decode("batch", []byte(`{"id":"new","size":1} `), 100, &target)
	if got := attest.ReasonOf(err); got != attest.ReasonMalformed {
		t.Errorf("reason %q, want Malformed", got)
	}
	if target != (attest.BatchRef{ID: "kept", Size: 7}) {
		t.Errorf("target became %+v", target)
	}
	if err := attest.Decode("batch", []byte(`{"id":"new","size":1}`), 21, &target); err != nil || target.ID != "new" {
		t.Errorf("at the limit: %+v, %v", target, err)
	}
	if got := attest.ReasonOf(attest.Decode("batch", []byte(`{"id":"new","size":1}`), 20, &target)); got != attest.ReasonMalformed {
		t.Errorf("above the limit: reason %q, want Malformed", got)
	}
}
