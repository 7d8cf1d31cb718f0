// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/snapshot"
)

func TestNew_AcceptsTheDomain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tree any
		want string
	}{
		"null":                       {nil, "null"},
		"false":                      {false, "false"},
		"true":                       {true, "true"},
		"a string":                   {"a\"\\\b\f\n\r\t\x00\u2028é\U0001F600", "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0000\u2028é\U0001F600\""},
		"U+FFFD is data in a tree":   {"\uFFFD", "\"\uFFFD\""},
		"an empty array":             {[]any{}, "[]"},
		"an empty object":            {map[string]any{}, "{}"},
		"two empty slices":           {[]any{[]any{}, []any{}}, "[[],[]]"},
		"float64":                    {1.5, "1.5"},
		"float64, integer-valued":    {1e20, "100000000000000000000"},
		"int":                        {int(-1), "-1"},
		"int8":                       {int8(math.MinInt8), "-128"},
		"int16":                      {int16(math.MaxInt16), "32767"},
		"int32":                      {int32(math.MinInt32), "-2147483648"},
		"int64":                      {int64(1) << 53, "9007199254740992"},
		"int64 beyond 2^53 but kept": {int64(1e18), "1000000000000000000"},
		"uint":                       {uint(7), "7"},
		"uint8":                      {uint8(255), "255"},
		"uint16":                     {uint16(65535), "65535"},
		"uint32":                     {uint32(4294967295), "4294967295"},
		"uint64":                     {uint64(1) << 53, "9007199254740992"},
		"integer zero":               {0, "0"},
		"order of UTF-16":            {map[string]any{"\uFFFD": 1, "\U0010FFFD": 2, "\uE000": 3, "z": 4, "é": 5}, "{\"z\":4,\"é\":5,\"\U0010FFFD\":2,\"\uE000\":3,\"\uFFFD\":1}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := mustNew(t, c.tree).Canonical(); got != c.want {
				t.Errorf("text %s, want %s", got, c.want)
			}
		})
	}
}

func TestNew_NamesReasonAndPosition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tree any
		why  snapshot.Reason
		path string
	}{
		"NaN":                     {map[string]any{"b": math.NaN(), "a": 1}, snapshot.ReasonNumberRange, "/1"},
		"infinity":                {[]any{math.Inf(-1)}, snapshot.ReasonNumberRange, "/0"},
		"2^60, a double":          {int64(1) << 60, snapshot.ReasonUnsafeInteger, ""},
		"-2^60, a double":         {-int64(1) << 60, snapshot.ReasonUnsafeInteger, ""},
		"2^64-1":                  {uint64(math.MaxUint64), snapshot.ReasonUnsafeInteger, ""},
		"text kept, not a double": {uint64(12345678901234567000), snapshot.ReasonUnsafeInteger, ""},
		"float32":                 {float32(1), snapshot.ReasonUnsupportedType, ""},
		"complex128":              {complex(1, 0), snapshot.ReasonUnsupportedType, ""},
		"an error":                {errors.New("x"), snapshot.ReasonUnsupportedType, ""},
		"ill-formed UTF-8":        {"a\xc3(", snapshot.ReasonInvalidUTF8, ""},
		"ill-formed name":         {map[string]any{"a": 1, "\xff": 1}, snapshot.ReasonInvalidUTF8, "/1"},
		"a noncharacter":          {[]any{"\uFDEF"}, snapshot.ReasonNoncharacter, "/0"},
		"a noncharacter in a name": {
			map[string]any{"\U0001FFFE": 1}, snapshot.ReasonNoncharacter, "/0",
		},
		"a string that is too long": {
			strings.Repeat("x", snapshot.MaxStringBytes+1), snapshot.ReasonStringTooLong, "",
		},
		"strings that are too long together": {
			[]any{long("a"), long("b"), long("c")}, snapshot.ReasonTooLarge, "/2",
		},
		"text that grows while it is written": {
			[]any{strings.Repeat("\x01", snapshot.MaxBytes/6), "xx"}, snapshot.ReasonTooLarge, "",
		},
		"65 levels":                        {deepArrays(65), snapshot.ReasonDepth, strings.Repeat("/0", 64)},
		"64 levels around an empty array":  {deepWith(64, []any{}), snapshot.ReasonDepth, strings.Repeat("/0", 64)},
		"64 levels around an empty object": {deepWith(64, map[string]any{}), snapshot.ReasonDepth, strings.Repeat("/0", 64)},
		"64 levels around an object":       {deepWith(64, map[string]any{"a": 1}), snapshot.ReasonDepth, strings.Repeat("/0", 64)},
		"4097 elements":                    {make([]any, 4097), snapshot.ReasonTooManyValues, ""},
		"4097 values in all": {
			[]any{make([]any, 4094), map[string]any{"a": 1}}, snapshot.ReasonTooManyValues, "/1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := snapshot.New(c.tree)
			checkError(t, err, snapshot.Error{Stage: snapshot.StageSnapshot, Reason: c.why, Path: c.path})
		})
	}
}

func TestNew_AcceptsWhatIsExactlyAtALimit(t *testing.T) {
	t.Parallel()
	for name, tree := range map[string]any{
		"64 levels":          deepArrays(snapshot.MaxDepth),
		"63 levels around":   deepWith(snapshot.MaxDepth-1, map[string]any{}),
		"4096 elements":      make([]any, snapshot.MaxValues),
		"a string of 32 KiB": long("x"),
		"64 KiB": []any{
			long("x"), long("y")[:snapshot.MaxStringBytes-len(`["",""]`)],
		},
	} {
		if _, err := snapshot.New(tree); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	exact := []any{long("x"), long("y")[:snapshot.MaxStringBytes-len(`["",""]`)]}
	if n := len(mustNew(t, exact).Canonical()); n != snapshot.MaxBytes {
		t.Errorf("the text has %d bytes, the test wants %d", n, snapshot.MaxBytes)
	}
}

// long returns a string of the greatest permitted length.
func long(s string) string { return strings.Repeat(s, snapshot.MaxStringBytes/len(s)) }

// deepArrays returns n arrays inside each other.
func deepArrays(n int) any { return deepWith(n-1, []any{}) }

// deepWith returns a value inside n arrays.
func deepWith(n int, inner any) any {
	for range n {
		inner = []any{inner}
	}
	return inner
}

// A graph in which every node is used twice has 2^63 paths. The walk must stop
// at what it has seen or at the limit of values.
func TestNew_StopsInSharedGraphs(t *testing.T) {
	t.Parallel()
	var slices, maps any = []any{1.0}, map[string]any{"x": 1.0}
	for range 60 {
		slices = []any{slices, slices}
		maps = map[string]any{"a": maps, "b": maps}
	}
	if _, err := snapshot.New(slices); err == nil {
		t.Error("a graph of slices was accepted")
	}
	_, err := snapshot.New(maps)
	checkError(t, err, snapshot.Error{
		Stage: snapshot.StageSnapshot, Reason: snapshot.ReasonRepeatedReference,
		Path: strings.Repeat("/0", 59) + "/1",
	})
}

func TestSnapshot_DigestIsSHA256OfTheText(t *testing.T) {
	t.Parallel()
	s := mustNew(t, decodedCall())
	sum := sha256.Sum256([]byte(s.Canonical()))
	if want := hex.EncodeToString(sum[:]); s.Digest() != want {
		t.Errorf("digest %s, want %s", s.Digest(), want)
	}
	if got := mustNew(t, map[string]any{}).Digest(); got != "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" {
		t.Errorf("digest of {} is %s", got)
	}
}

func TestSnapshot_PrintingShowsNoArguments(t *testing.T) {
	t.Parallel()
	s := mustNew(t, "canary")
	for _, format := range []string{"%v", "%+v", "%s"} {
		if text := fmt.Sprintf(format, s); strings.Contains(text, "canary") || !strings.Contains(text, s.Digest()) {
			t.Errorf("%s prints %s", format, text)
		}
	}
}

func TestView_PanicsOnASnapshotOfUnknownOrigin(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a zero Snapshot has a view")
		}
	}()
	new(snapshot.Snapshot).View()
}

func TestParse_AcceptsOnlyTheTextItself(t *testing.T) {
	t.Parallel()
	s := mustNew(t, decodedCall())
	again, err := snapshot.Parse(s.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	if again.Canonical() != s.Canonical() || again.Digest() != s.Digest() {
		t.Errorf("%s became %s", s.Canonical(), again.Canonical())
	}
	for name, c := range map[string]struct {
		text string
		why  snapshot.Reason
	}{
		"white space":        {"{} ", snapshot.ReasonNotCanonical},
		"another order":      {`{"b":1,"a":2}`, snapshot.ReasonNotCanonical},
		"another number":     {`[1.0]`, snapshot.ReasonNotCanonical},
		"another escape":     {`["\u0061"]`, snapshot.ReasonNotCanonical},
		"a second name":      {`{"a":1,"a":1}`, snapshot.ReasonDuplicateKey},
		"no JSON":            {`{`, snapshot.ReasonSyntax},
		"more behind it":     {`{}{}`, snapshot.ReasonTrailingData},
		"a text too large":   {strings.Repeat(" ", snapshot.MaxBytes+1), snapshot.ReasonTooLarge},
		"canonical too long": {list("1e20", 4000), snapshot.ReasonTooLarge},
	} {
		_, err := snapshot.Parse(c.text)
		t.Run(name, func(t *testing.T) {
			var got *snapshot.Error
			if !errors.As(err, &got) || got.Stage != snapshot.StageSnapshot || got.Reason != c.why {
				t.Errorf("error %v, want reason %s at stage snapshot", err, c.why)
			}
		})
	}
	if _, err := snapshot.Parse("[\"\uFFFD\"]"); err != nil {
		t.Errorf("U+FFFD in canonical text: %v", err)
	}
}

func TestPrepare_LimitsTheCanonicalTextToo(t *testing.T) {
	t.Parallel()
	// 1e20 grows from 4 to 21 bytes.
	_, err := snapshot.Prepare(list("1e20", 4000), nil)
	checkError(t, err, snapshot.Error{Stage: snapshot.StageSnapshot, Reason: snapshot.ReasonTooLarge})
}

func TestPrepare_WithAndWithoutSchemaStepAgree(t *testing.T) {
	t.Parallel()
	for _, v := range jsonVectors(t) {
		plain, errPlain := snapshot.Prepare(string(v.Input), nil)
		through, errThrough := snapshot.Prepare(string(v.Input), asIs)
		if diff := cmp.Diff(errPlain, errThrough); diff != "" {
			t.Errorf("%s: errors differ:\n%s", v.Name, diff)
		} else if errPlain == nil && plain.Canonical() != through.Canonical() {
			t.Errorf("%s: %s or %s", v.Name, plain.Canonical(), through.Canonical())
		}
	}
}

func TestPrepare_KeepsRefusalsOfTheSchemaStep(t *testing.T) {
	t.Parallel()
	refusal := &snapshot.Error{Stage: snapshot.StageScope, Reason: "OutOfScope", Path: "target"}
	for name, cause := range map[string]error{
		"as it is": refusal,
		"wrapped":  fmt.Errorf("argument canary: %w", refusal),
	} {
		_, err := snapshot.Prepare(`{}`, func(any) (any, error) { return nil, cause })
		checkError(t, err, *refusal)
		if !errors.Is(err, cause) {
			t.Errorf("%s: the cause is lost", name)
		}
		if err.Error() != refusal.Error() {
			t.Errorf("%s: text %q", name, err)
		}
	}
}

func TestPrepare_HidesForeignErrorsOfTheSchemaStep(t *testing.T) {
	t.Parallel()
	cause := errors.New("value canary is not a port")
	_, err := snapshot.Prepare(`{}`, func(any) (any, error) { return nil, cause })
	checkError(t, err, snapshot.Error{Stage: snapshot.StageSchema, Reason: snapshot.ReasonSchema})
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("the error quotes the argument: %v", err)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
}

func TestMatches_ComparesValuesNotObjects(t *testing.T) {
	t.Parallel()
	s := mustNew(t, decodedCall())
	if err := s.Matches(s.View()); err != nil {
		t.Error(err)
	}
	if err := s.Matches(decodedCall()); err != nil {
		t.Errorf("an equal value from elsewhere: %v", err)
	}
	checkError(t, s.Matches(nil), snapshot.Error{
		Stage: snapshot.StageSnapshot, Reason: snapshot.ReasonPolicyMutatedArguments,
	})
}
