// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/snapshot"
)

// This file is the test matrix and the invariants of RFC-0016, "Authorized Tool
// Argument Snapshots", one test each. The runtime that the RFC speaks about is
// reduced to what matters here: attempt below.

// outcome is what became of one attempt to run a call.
type outcome struct {
	schemaCalls int
	policyView  any // as the policy left it
	policyHash  string
	executed    bool
	executeView any
	suspended   *suspended
	denied      snapshot.Reason
	err         error
}

// suspended is a proposal that waits for an approval.
type suspended struct {
	canonical, hash string
	view            any
}

// verdict is the answer of a policy.
type verdict int

const (
	allow verdict = iota
	requireApproval
)

const (
	testAgent = "system:serviceaccount:agents:writer"
	testTool  = "write_file"
)

// attempt is one execution attempt: decode, schema, snapshot, policy, tool.
func attempt(raw string, schema func(any) (any, error), policy func(view any, hash string) verdict) (o outcome) {
	counted := func(tree any) (any, error) {
		o.schemaCalls++
		return schema(tree)
	}
	s, err := snapshot.Prepare(raw, counted)
	if err != nil {
		o.err = err
		return o
	}
	hash, err := snapshot.ProposalHash(testAgent, testTool, s.Canonical())
	if err != nil {
		o.err = err
		return o
	}
	o.policyView, o.policyHash = s.View(), hash
	answer := policy(o.policyView, hash)
	if err := s.Matches(o.policyView); err != nil {
		var changed *snapshot.Error
		errors.As(err, &changed)
		o.denied = changed.Reason
		return o
	}
	if answer == requireApproval {
		o.suspended = &suspended{canonical: s.Canonical(), hash: hash, view: s.View()}
		return o
	}
	o.executed, o.executeView = true, s.View()
	return o
}

func asIs(tree any) (any, error) { return tree, nil }

func allowAll(any, string) verdict { return allow }

const rawCall = `{"path": "/srv/a", "flags": ["x", {"y": 1}], "mode": 420}`

func decodedCall() any {
	return map[string]any{
		"path":  "/srv/a",
		"flags": []any{"x", map[string]any{"y": 1.0}},
		"mode":  420.0,
	}
}

// scribble changes every container that it can reach.
func scribble(view any) {
	switch v := view.(type) {
	case map[string]any:
		for _, value := range v {
			scribble(value)
		}
		v["path"], v["added"] = "/etc/shadow", true
	case []any:
		for i := range v {
			scribble(v[i])
			v[i] = "changed"
		}
	}
}

func TestRFC0016_Row1_PolicyAndHandlerReceiveDistinctEqualObjects(t *testing.T) {
	t.Parallel()
	o := attempt(rawCall, asIs, allowAll)
	if diff := cmp.Diff(o.policyView, o.executeView); diff != "" {
		t.Fatalf("views differ (-policy +execution):\n%s", diff)
	}
	scribble(o.policyView)
	if diff := cmp.Diff(decodedCall(), o.executeView); diff != "" {
		t.Errorf("the execution view shares memory with the policy view:\n%s", diff)
	}
}

func TestRFC0016_Row2_RetainedReferenceCannotReachExecution(t *testing.T) {
	t.Parallel()
	var retained any
	o := attempt(rawCall, asIs, func(view any, _ string) verdict {
		retained = view
		return allow
	})
	scribble(retained)
	if diff := cmp.Diff(decodedCall(), o.executeView); diff != "" {
		t.Errorf("execution view changed:\n%s", diff)
	}
}

func TestRFC0016_Row3_SchemaStepReturnsApplicationOwnedAlias(t *testing.T) {
	t.Parallel()
	owned := decodedCall()
	var policySaw string
	o := attempt(`{}`, func(any) (any, error) { return owned, nil }, func(view any, _ string) verdict {
		scribble(owned) // after the snapshot, before execution
		policySaw = mustNew(t, view).Canonical()
		return allow
	})
	if want := mustNew(t, decodedCall()).Canonical(); policySaw != want {
		t.Errorf("policy saw %s, want %s", policySaw, want)
	}
	if diff := cmp.Diff(decodedCall(), o.executeView); diff != "" {
		t.Errorf("execution view changed:\n%s", diff)
	}
}

func TestRFC0016_Row4_ImmediateMutationIsDenied(t *testing.T) {
	t.Parallel()
	for name, mutate := range map[string]func(view map[string]any){
		"a value is replaced":            func(v map[string]any) { v["mode"] = 511.0 },
		"a member is added":              func(v map[string]any) { v["x"] = nil },
		"a member is removed":            func(v map[string]any) { delete(v, "mode") },
		"a nested element is replaced":   func(v map[string]any) { v["flags"].([]any)[0] = "z" },
		"a value has another type":       func(v map[string]any) { v["mode"] = "420" },
		"the view is no snapshot value":  func(v map[string]any) { v["f"] = func() {} },
		"the view contains itself":       func(v map[string]any) { v["self"] = v },
		"a number becomes negative zero": func(v map[string]any) { v["mode"] = math.Copysign(0, -1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := attempt(rawCall, asIs, func(view any, _ string) verdict {
				mutate(view.(map[string]any))
				return allow
			})
			if o.denied != snapshot.ReasonPolicyMutatedArguments || o.executed {
				t.Errorf("denied %q, executed %v", o.denied, o.executed)
			}
		})
	}
	if snapshot.ReasonPolicyMutatedArguments != "policy_mutated_arguments" {
		t.Errorf("reason is spelt %q", snapshot.ReasonPolicyMutatedArguments)
	}
}

func TestRFC0016_Row5_LateMutationChangesNothing(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{})
	var done sync.WaitGroup
	o := attempt(rawCall, asIs, func(view any, _ string) verdict {
		done.Go(func() {
			<-proceed
			scribble(view)
		})
		return allow
	})
	close(proceed)
	done.Wait()
	if diff := cmp.Diff(decodedCall(), o.executeView); diff != "" || !o.executed {
		t.Errorf("executed %v, view changed:\n%s", o.executed, diff)
	}
}

func TestRFC0016_Row6_UnsupportedOutputFailsBeforePolicy(t *testing.T) {
	t.Parallel()
	o := attempt(`{}`, func(any) (any, error) {
		return map[string]any{"when": time.Unix(0, 0)}, nil
	}, func(any, string) verdict {
		t.Error("policy was asked")
		return allow
	})
	checkError(t, o.err, snapshot.Error{
		Stage: snapshot.StageSnapshot, Reason: snapshot.ReasonUnsupportedType, Path: "/0",
	})
	if o.executed || o.suspended != nil || o.denied != "" {
		t.Errorf("a failed snapshot led to %+v", o)
	}
}

func TestRFC0016_Row7_SchemaRunsExactlyOnce(t *testing.T) {
	t.Parallel()
	if o := attempt(rawCall, asIs, allowAll); o.schemaCalls != 1 || !o.executed {
		t.Errorf("schema ran %d times, executed %v", o.schemaCalls, o.executed)
	}
	// A schema step that is not idempotent would show a second run.
	o := attempt(`{"n":1}`, func(tree any) (any, error) {
		m := tree.(map[string]any)
		m["n"] = m["n"].(float64) + 1
		return m, nil
	}, allowAll)
	if diff := cmp.Diff(map[string]any{"n": 2.0}, o.executeView); diff != "" {
		t.Errorf("execution view:\n%s", diff)
	}
	if o := attempt(`{"a":1,"a":1}`, asIs, allowAll); o.schemaCalls != 0 {
		t.Errorf("schema ran %d times on text that cannot be decoded", o.schemaCalls)
	}
}

func TestRFC0016_Row8_SuspendedProposalReusesFingerprint(t *testing.T) {
	t.Parallel()
	var evaluated string
	o := attempt(rawCall, asIs, func(_ any, hash string) verdict {
		evaluated = hash
		return requireApproval
	})
	if o.suspended == nil || o.suspended.hash != evaluated || o.executed {
		t.Fatalf("suspended %+v, evaluated hash %s", o.suspended, evaluated)
	}
	scribble(o.policyView)
	if diff := cmp.Diff(decodedCall(), o.suspended.view); diff != "" {
		t.Errorf("the view of the proposal is not independent:\n%s", diff)
	}
	scribble(o.suspended.view)
	s, err := snapshot.Parse(o.suspended.canonical)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decodedCall(), s.View()); diff != "" {
		t.Errorf("a change of the view reached the text:\n%s", diff)
	}
}

func TestRFC0016_Row9_ResumeMatchesOnlyTheSameHash(t *testing.T) {
	t.Parallel()
	approved := attempt(rawCall, asIs, func(any, string) verdict { return requireApproval }).suspended.hash
	for name, c := range map[string]struct {
		raw  string
		same bool
	}{
		"the same text":                      {rawCall, true},
		"other white space and order":        {`{"mode":4.2e2,"flags":["x",{"y":1.0}],"path":"\u002fsrv\/a"}`, true},
		"another value":                      {strings.Replace(rawCall, "420", "421", 1), false},
		"another type":                       {strings.Replace(rawCall, "420", `"420"`, 1), false},
		"a member more":                      {strings.Replace(rawCall, "{", `{"z":null,`, 1), false},
		"other order in an array":            {strings.Replace(rawCall, `"x", {"y": 1}`, `{"y": 1}, "x"`, 1), false},
		"a look-alike in another Unicode":    {strings.Replace(rawCall, "srv/a", "srv/\u0430", 1), false},
		"a decomposed form of the same text": {strings.Replace(rawCall, "srv/a", "srv/a\u0301", 1), false},
	} {
		o := attempt(c.raw, asIs, allowAll)
		if o.err != nil || (o.policyHash == approved) != c.same {
			t.Errorf("%s: hash equal %v, want %v (%v)", name, o.policyHash == approved, c.same, o.err)
		}
	}
}

func TestRFC0016_Row10_PrototypeNamesAreData(t *testing.T) {
	t.Parallel()
	const raw = `{"__proto__":{"admin":true},"constructor":1,"prototype":null,"toString":"x","":0}`
	o := attempt(raw, asIs, allowAll)
	want := map[string]any{
		"__proto__": map[string]any{"admin": true}, "constructor": 1.0,
		"prototype": nil, "toString": "x", "": 0.0,
	}
	if diff := cmp.Diff(want, o.executeView); diff != "" {
		t.Errorf("view:\n%s", diff)
	}
	without := attempt(`{"constructor":1,"prototype":null,"toString":"x","":0}`, asIs, allowAll)
	if o.policyHash == without.policyHash {
		t.Error("__proto__ is not part of the hash")
	}
}

// Where the RFC speaks of JavaScript, the Go counterpart stands in: accessors
// are methods that a serialiser would call, symbol keys are keys that are not
// strings, sparse arrays are arrays and slices of other types, host objects are
// structs, pointers, channels and functions.
func TestRFC0016_Row11_EverythingElseFailsDeterministically(t *testing.T) {
	t.Parallel()
	shared := map[string]any{"a": 1.0}
	cycle := map[string]any{}
	cycle["self"] = []any{cycle}
	ring := make([]any, 1)
	ring[0] = ring
	backing := []any{1.0, 2.0, 3.0}
	for name, c := range map[string]struct {
		tree any
		why  snapshot.Reason
		path string
	}{
		"negative zero":               {[]any{math.Copysign(0, -1)}, snapshot.ReasonNegativeZero, "/0"},
		"a lone surrogate, as UTF-8":  {[]any{"\xed\xa0\x80"}, snapshot.ReasonInvalidUTF8, "/0"},
		"an alias of a map":           {[]any{shared, shared}, snapshot.ReasonRepeatedReference, "/1"},
		"an alias of an empty map":    {aliasOfEmptyMap(), snapshot.ReasonRepeatedReference, "/1"},
		"an alias of a slice":         {[]any{backing, backing}, snapshot.ReasonRepeatedReference, ""},
		"slices that overlap":         {[]any{backing[:2], backing[1:]}, snapshot.ReasonRepeatedReference, ""},
		"a cycle over a map":          {cycle, snapshot.ReasonCycle, "/0/0"},
		"a cycle over a slice":        {ring, snapshot.ReasonCycle, "/0"},
		"an accessor: MarshalJSON":    {[]any{marshaler{t}}, snapshot.ReasonUnsupportedType, "/0"},
		"an accessor: MarshalText":    {[]any{textMarshaler{t}}, snapshot.ReasonUnsupportedType, "/0"},
		"an accessor: String":         {[]any{stringer{t}}, snapshot.ReasonUnsupportedType, "/0"},
		"a symbol key: map[any]any":   {map[any]any{"a": 1}, snapshot.ReasonUnsupportedType, ""},
		"a symbol key: map[int]any":   {map[int]any{0: 1}, snapshot.ReasonUnsupportedType, ""},
		"keys of a named string type": {map[name]any{"a": 1}, snapshot.ReasonUnsupportedType, ""},
		"a sparse array: [2]any":      {[2]any{1.0}, snapshot.ReasonUnsupportedType, ""},
		"a sparse array: []string":    {[]string{"a"}, snapshot.ReasonUnsupportedType, ""},
		"a sparse array: nil slice":   {[]any(nil), snapshot.ReasonTypedNil, ""},
		"undefined: nil map":          {map[string]any(nil), snapshot.ReasonTypedNil, ""},
		"undefined: nil pointer":      {(*int)(nil), snapshot.ReasonUnsupportedType, ""},
		"a date":                      {time.Unix(0, 0), snapshot.ReasonUnsupportedType, ""},
		"a struct":                    {struct{ A int }{1}, snapshot.ReasonUnsupportedType, ""},
		"a pointer to a value":        {new("x"), snapshot.ReasonUnsupportedType, ""},
		"a function":                  {func() {}, snapshot.ReasonUnsupportedType, ""},
		"a channel":                   {make(chan int), snapshot.ReasonUnsupportedType, ""},
		"bytes":                       {[]byte("{}"), snapshot.ReasonUnsupportedType, ""},
		"a named string type":         {name("x"), snapshot.ReasonUnsupportedType, ""},
		"a bigint beyond a double":    {int64(1)<<53 + 1, snapshot.ReasonUnsafeInteger, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 { // the same answer every time, whatever order maps have
				_, err := snapshot.New(c.tree)
				checkError(t, err, snapshot.Error{Stage: snapshot.StageSnapshot, Reason: c.why, Path: c.path})
			}
		})
	}
}

func aliasOfEmptyMap() any {
	m := map[string]any{}
	return []any{m, m}
}

type name string

// marshaler, textMarshaler and stringer fail the test when somebody calls them.
type (
	marshaler     struct{ t *testing.T }
	textMarshaler struct{ t *testing.T }
	stringer      struct{ t *testing.T }
)

func (m marshaler) MarshalJSON() ([]byte, error) {
	m.t.Error("MarshalJSON was called")
	return []byte("1"), nil
}

func (m textMarshaler) MarshalText() ([]byte, error) {
	m.t.Error("MarshalText was called")
	return []byte("1"), nil
}

func (s stringer) String() string {
	s.t.Error("String was called")
	return "1"
}

func TestRFC0016_Row12_PublishedVectorsWithNonASCIIOrder(t *testing.T) {
	t.Parallel()
	s, err := snapshot.Prepare(string(readFile(t, "testdata/jcs/input/weird.json")), asIs)
	if err != nil {
		t.Fatal(err)
	}
	if want := string(readFile(t, "testdata/jcs/output/weird.json")); s.Canonical() != want {
		t.Errorf("got %s, want %s", s.Canonical(), want)
	}
}

// Invariant 1 is row 7.

func TestRFC0016_Invariant2_OutputMustBeRepresentableBeforePolicy(t *testing.T) {
	t.Parallel()
	asked := false
	o := attempt(`{}`, func(any) (any, error) { return math.NaN(), nil }, func(any, string) verdict {
		asked = true
		return allow
	})
	checkError(t, o.err, snapshot.Error{Stage: snapshot.StageSnapshot, Reason: snapshot.ReasonNumberRange})
	if asked {
		t.Error("policy was asked")
	}
}

func TestRFC0016_Invariant3_TextIsTheSerialisationOfTheDetachedTree(t *testing.T) {
	t.Parallel()
	tree := decodedCall()
	s := mustNew(t, tree)
	scribble(tree)
	if diff := cmp.Diff(decodedCall(), s.View()); diff != "" {
		t.Errorf("the snapshot follows its source:\n%s", diff)
	}
	if want := `{"flags":["x",{"y":1}],"mode":420,"path":"/srv/a"}`; s.Canonical() != want {
		t.Errorf("text %s, want %s", s.Canonical(), want)
	}
}

func TestRFC0016_Invariants4And5_ViewsHaveTheCanonicalValue(t *testing.T) {
	t.Parallel()
	o := attempt(rawCall, asIs, allowAll)
	s := mustNew(t, decodedCall())
	for name, view := range map[string]any{"policy": o.policyView, "execution": o.executeView} {
		if err := s.Matches(view); err != nil {
			t.Errorf("%s view: %v", name, err)
		}
	}
}

func TestRFC0016_Invariants6And7_NoReferenceIsShared(t *testing.T) {
	t.Parallel()
	output := decodedCall()
	o := attempt(`{}`, func(any) (any, error) { return output, nil }, allowAll)
	views := []any{output, o.policyView, o.executeView}
	for i := range views {
		scribble(views[i])
		for j := i + 1; j < len(views); j++ {
			if diff := cmp.Diff(decodedCall(), views[j]); diff != "" {
				t.Errorf("a change of value %d reached value %d:\n%s", i, j, diff)
			}
		}
	}
}

func TestRFC0016_Invariant8_ProposalKeepsTheEvaluatedText(t *testing.T) {
	t.Parallel()
	o := attempt(rawCall, asIs, func(any, string) verdict { return requireApproval })
	again, err := snapshot.ProposalHash(testAgent, testTool, o.suspended.canonical)
	if err != nil {
		t.Fatal(err)
	}
	if again != o.policyHash || o.suspended.hash != o.policyHash {
		t.Errorf("hash %s, evaluated %s, stored %s", again, o.policyHash, o.suspended.hash)
	}
}
