// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/snapshot"
)

func TestDecode_BuildsPlainTree(t *testing.T) {
	t.Parallel()
	got, err := snapshot.Decode(` {"s":"a\u00e9\n","n":-1.5e1,"z":0,"t":true,"f":false,"0":null,"a":[],"o":{},"aa":[[1],{"k":"v"}]} `)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"s": "aé\n", "n": -15.0, "z": 0.0, "t": true, "f": false, "0": nil,
		"a": []any{}, "o": map[string]any{}, "aa": []any{[]any{1.0}, map[string]any{"k": "v"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

// Every reason of the stage, with the position it is reported at.
func TestDecode_NamesReasonAndPosition(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", snapshot.MaxStringBytes+1)
	for name, c := range map[string]struct {
		raw  string
		why  snapshot.Reason
		path string
	}{
		"nothing":                                {"", snapshot.ReasonSyntax, ""},
		"a broken word":                          {`{"a":[true,tru]}`, snapshot.ReasonSyntax, "/0/1"},
		"a comma too many":                       {`[1,]`, snapshot.ReasonSyntax, "/1"},
		"an array that does not end":             {`[1`, snapshot.ReasonSyntax, "/1"},
		"an object that does not end":            {`{"a":1`, snapshot.ReasonSyntax, "/1"},
		"a name that does not end":               {`{"a":1,"b`, snapshot.ReasonSyntax, "/1"},
		"a member without a value":               {`{"a":1,"b":}`, snapshot.ReasonSyntax, "/1"},
		"a bracket where a name is due":          {`{[1]:2}`, snapshot.ReasonSyntax, "/0"},
		"the wrong bracket":                      {`[1}`, snapshot.ReasonSyntax, "/1"},
		"a second value":                         {`{} {}`, snapshot.ReasonTrailingData, ""},
		"a NUL behind the value":                 {"{}\x00", snapshot.ReasonTrailingData, ""},
		"a name twice":                           {`[{"a":1,"b":2,"a":1}]`, snapshot.ReasonDuplicateKey, "/0/2"},
		"a name twice, once escaped":             {`{"b":{"\u0061":1,"a":2}}`, snapshot.ReasonDuplicateKey, "/0/1"},
		"a name twice among many":                {manyMembers(), snapshot.ReasonDuplicateKey, "/150"},
		"a name twice among sorted ones":         {`{"a":1,"b":2,"b":3,"c":4}`, snapshot.ReasonDuplicateKey, "/2"},
		"a number of 801 bytes":                  {"[" + strings.Repeat("1", 801) + "]", snapshot.ReasonNumberTooLong, "/0"},
		"a number out of range":                  {`{"a":{"b":1e400}}`, snapshot.ReasonNumberRange, "/0/0"},
		"a number that becomes zero":             {`[1e-400]`, snapshot.ReasonUnderflow, "/0"},
		"a negative number that becomes zero":    {`[-1e-400]`, snapshot.ReasonNegativeZero, "/0"},
		"negative zero":                          {`[-0]`, snapshot.ReasonNegativeZero, "/0"},
		"an integer that would be another":       {`{"id":9007199254740993}`, snapshot.ReasonUnsafeInteger, "/0"},
		"the same in scientific notation":        {`[9.007199254740993e15]`, snapshot.ReasonUnsafeInteger, "/0"},
		"the same with a fraction of zeros":      {`[9007199254740993.000]`, snapshot.ReasonUnsafeInteger, "/0"},
		"half a surrogate pair":                  {`["a","\ud800x"]`, snapshot.ReasonLoneSurrogate, "/1"},
		"half a surrogate pair in a name":        {`{"\udc00":1}`, snapshot.ReasonLoneSurrogate, "/0"},
		"an escape that is cut short":            {`["\ud8`, snapshot.ReasonSyntax, "/0"},
		"an unknown escape":                      {`["\x41"]`, snapshot.ReasonSyntax, "/0"},
		"ill-formed UTF-8":                       {"[\"\xff\"]", snapshot.ReasonInvalidUTF8, ""},
		"a noncharacter":                         {`["ok","\ufdd0"]`, snapshot.ReasonNoncharacter, "/1"},
		"a noncharacter of the last plane":       {"{\"\U0010FFFF\":1}", snapshot.ReasonNoncharacter, "/0"},
		"a replacement character":                {`["` + "\uFFFD" + `"]`, snapshot.ReasonReplacementChar, "/0"},
		"an escaped replacement character":       {`{"a":"\ufffd"}`, snapshot.ReasonReplacementChar, "/0"},
		"a replacement character in a name":      {`{"\uFFFD":1}`, snapshot.ReasonReplacementChar, "/0"},
		"a string that is too long":              {`["` + long + `"]`, snapshot.ReasonStringTooLong, "/0"},
		"a name that is too long":                {`{"` + long + `":1}`, snapshot.ReasonStringTooLong, "/0"},
		"65 levels":                              {nested(65), snapshot.ReasonDepth, strings.Repeat("/0", 64)},
		"65 levels of objects":                   {strings.Repeat(`{"a":`, 65), snapshot.ReasonDepth, strings.Repeat("/0", 64)},
		"4097 elements":                          {list("1", 4097), snapshot.ReasonTooManyValues, "/4096"},
		"4097 values in all":                     {`{"a":` + list("1", 4095) + `,"b":1}`, snapshot.ReasonTooManyValues, "/1"},
		"one byte too many":                      {strings.Repeat(" ", snapshot.MaxBytes-1) + "{}", snapshot.ReasonTooLarge, ""},
		"ill-formed UTF-8 in a text too large":   {strings.Repeat("\xff", snapshot.MaxBytes+1), snapshot.ReasonTooLarge, ""},
		"a byte order mark":                      {"\uFEFF{}", snapshot.ReasonSyntax, ""},
		"an error behind a name that is doubled": {`{"a":1,"a":2,}`, snapshot.ReasonSyntax, "/2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := snapshot.Decode(c.raw)
			checkError(t, err, snapshot.Error{Stage: snapshot.StageDecode, Reason: c.why, Path: c.path})
			if tree != nil {
				t.Error("a tree was returned together with an error")
			}
		})
	}
}

// manyMembers returns an object of 200 members, backwards, in which member 150
// repeats member 50: too many for a sort to keep equal names in order by chance.
func manyMembers() string {
	var b strings.Builder
	for i := range 200 {
		name := 1000 - i
		if i == 150 {
			name = 1000 - 50
		}
		fmt.Fprintf(&b, `,"%d":%d`, name, i)
	}
	return "{" + b.String()[1:] + "}"
}

func TestDecode_AcceptsWhatIsExactlyAtALimit(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"64 KiB":                  strings.Repeat(" ", snapshot.MaxBytes-2) + "{}",
		"64 levels":               nested(snapshot.MaxDepth),
		"4096 elements":           list("1", snapshot.MaxValues),
		"4096 values in all":      `{"a":` + list("1", snapshot.MaxValues-2) + `,"b":1}`,
		"a string of 32 KiB":      `"` + strings.Repeat("x", snapshot.MaxStringBytes) + `"`,
		"32 KiB after unescaping": `"\u0061` + strings.Repeat("x", snapshot.MaxStringBytes-1) + `"`,
		"a name of 32 KiB":        `{"` + strings.Repeat("x", snapshot.MaxStringBytes) + `":1}`,
		"a number of 800 bytes":   "0." + strings.Repeat("1", snapshot.MaxNumberBytes-2),
		"2^53":                    "9007199254740992",
		"-2^53":                   "-9007199254740992",
		"the largest double":      "1.7976931348623157e308",
		"the smallest double":     "5e-324",
		"1e23, not a double":      "1e23",
		"a rounded quantity":      "9007199254740993.5",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := snapshot.Prepare(raw, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDecodeText_TakesReplacementCharactersAsData(t *testing.T) {
	t.Parallel()
	tree, err := snapshot.DecodeText(`{"a":"\ufffd"}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"a": "\uFFFD"}, tree); diff != "" {
		t.Error(diff)
	}
	if _, err := snapshot.DecodeText(`["\uffff"]`); err == nil {
		t.Error("a noncharacter was accepted")
	}
}

// The results of two calls must not meet in memory that is used again.
func TestDecode_ResultsStayApart(t *testing.T) {
	t.Parallel()
	first, err := snapshot.Decode(rawCall)
	if err != nil {
		t.Fatal(err)
	}
	second, err := snapshot.Decode(rawCall)
	if err != nil {
		t.Fatal(err)
	}
	scribble(second)
	if _, err := snapshot.Decode(`["` + strings.Repeat("z", 1000) + `"]`); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decodedCall(), first); diff != "" {
		t.Errorf("the first tree changed:\n%s", diff)
	}
}

// A text that is too large or too deep is refused before it is read: what it
// costs does not depend on how long it is. Not parallel, because it looks at the
// memory of the whole process.
func TestDecode_RefusesHugeInputInFlatMemory(t *testing.T) {
	for name, build := range map[string]func(bytes int) string{
		"white space": func(n int) string { return strings.Repeat(" ", n) },
		"brackets":    func(n int) string { return strings.Repeat("[", n) },
		"a string":    func(n int) string { return `"` + strings.Repeat("x", n) + `"` },
		"elements":    func(n int) string { return "[" + strings.Repeat("1,", n/2) + "1]" },
	} {
		if cost := decodeCost(t, build(10<<20)); cost > 1024 {
			t.Errorf("%s: refusing 10 MiB allocates %d bytes", name, cost)
		}
	}
	// Depth is found out while reading: at level 65, whatever follows.
	if cost := decodeCost(t, strings.Repeat("[", snapshot.MaxBytes)); cost > 64<<10 {
		t.Errorf("refusing 65536 levels allocates %d bytes", cost)
	}
}

// decodeCost returns how many bytes a refused decode allocates, in steady state.
func decodeCost(t *testing.T, raw string) uint64 {
	t.Helper()
	const runs = 20
	var before, after runtime.MemStats
	for range 2 { // the first round warms up
		runtime.ReadMemStats(&before)
		for range runs {
			if _, err := snapshot.Decode(raw); err == nil {
				t.Fatal("accepted")
			}
		}
		runtime.ReadMemStats(&after)
	}
	return (after.TotalAlloc - before.TotalAlloc) / runs
}
