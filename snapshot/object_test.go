// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/snapshot"
)

// change is what a schema step of these tests does with one member.
type change func(value any) any

func keep(value any) any { return value }

// changeTexts makes another value of every string.
func changeTexts(value any) any {
	if text, ok := value.(string); ok {
		return strings.TrimSpace(text) + "\n\"é"
	}
	return value
}

// changeStructures puts every object and array into another one.
func changeStructures(value any) any {
	switch value.(type) {
	case []any, map[string]any:
		return map[string]any{"was": value, "is": []any{}}
	}
	return value
}

// byObject and byTree take a text the two ways with the same schema step: every
// member is changed, and one is added.
func byObject(raw string, do change, name string, added any) (*snapshot.Snapshot, error) {
	return snapshot.PrepareObject(raw, func(o *snapshot.Object) error {
		if o == nil {
			return &snapshot.Error{Stage: snapshot.StageSchema, Reason: "NoObject"}
		}
		taken := false
		for i := range o.Len() {
			taken = taken || o.Name(i) == name
			before := o.Value(i)
			if after := do(before); !reflect.DeepEqual(before, after) {
				o.Replace(i, after)
			}
		}
		if name != "" && !taken {
			o.Add(name, added)
		}
		return nil
	})
}

func byTree(raw string, do change, name string, added any) (*snapshot.Snapshot, error) {
	return snapshot.Prepare(raw, func(tree any) (any, error) {
		members, ok := tree.(map[string]any)
		if !ok {
			return nil, &snapshot.Error{Stage: snapshot.StageSchema, Reason: "NoObject"}
		}
		for name, value := range members {
			members[name] = do(value)
		}
		if _, taken := members[name]; name != "" && !taken {
			members[name] = added
		}
		return members, nil
	})
}

// checkSameWay holds the short way to the long one.
func checkSameWay(t *testing.T, raw string) {
	t.Helper()
	for _, do := range []change{keep, changeTexts, changeStructures} {
		for name, added := range map[string]any{"": nil, "b": 1.5, "\U00010000": "text", "\ufb33": []any{map[string]any{}, true}} {
			got, err := byObject(raw, do, name, added)
			want, wantErr := byTree(raw, do, name, added)
			var refused, wanted *snapshot.Error
			errors.As(err, &refused)
			errors.As(wantErr, &wanted)
			if wanted != nil && wanted.Reason == snapshot.ReasonTooLarge && refused != nil {
				refused.Path = wanted.Path // the short way looks at the whole text only
			}
			if diff := cmp.Diff(wanted, refused); diff != "" {
				t.Fatalf("%q: error (-Prepare +PrepareObject):\n%s", raw, diff)
			}
			if wanted == nil && (got.Canonical() != want.Canonical() || got.Digest() != want.Digest()) {
				t.Fatalf("%q:\n%s, want\n%s", raw, got.Canonical(), want.Canonical())
			}
		}
	}
}

func TestPrepareObject_IsTheSameAsPrepare(t *testing.T) {
	t.Parallel()
	for _, v := range jsonVectors(t) {
		checkSameWay(t, string(v.Input))
		checkSameWay(t, `{"c":`+string(v.Input)+`,"a":" x\n","b":{"\ufb33":[1,"é"]}}`)
	}
	g := newGenerator(2)
	for range 2000 {
		checkSameWay(t, g.document())
		checkSameWay(t, `{"\ue000":`+g.document()+`,"d":"\u0065"}`)
	}
}

// FuzzPrepareObject: the short way refuses and freezes exactly what the long one
// does.
func FuzzPrepareObject(f *testing.F) {
	seedTexts(f)
	f.Fuzz(checkSameWay)
}

func TestPrepareObject_ShowsMembersInCanonicalOrder(t *testing.T) {
	t.Parallel()
	const raw = `{"\ufb33":"a\u0062","😀":"plain","b":[1,{"x":"y"}],"a":7}`
	type member struct {
		Name   string
		Value  any
		Text   string
		IsText bool
	}
	var got []member
	s, err := snapshot.PrepareObject(raw, func(o *snapshot.Object) error {
		for i := range o.Len() {
			text, isText := o.Text(i)
			got = append(got, member{o.Name(i), o.Value(i), text, isText})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []member{
		{"a", 7.0, "", false},
		{"b", []any{1.0, map[string]any{"x": "y"}}, "", false},
		{"😀", "plain", "plain", true},
		{"\ufb33", "ab", "ab", true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if want := "{\"a\":7,\"b\":[1,{\"x\":\"y\"}],\"😀\":\"plain\",\"\ufb33\":\"ab\"}"; s.Canonical() != want {
		t.Errorf("%s, want %s", s.Canonical(), want)
	}
}

func TestPrepareObject_RefusesWhatItsStepSets(t *testing.T) {
	t.Parallel()
	cycle := map[string]any{}
	cycle["self"] = cycle
	shared := []any{1.0}
	many := slices.Repeat([]any{nil}, snapshot.MaxValues-2)
	deep := any(nil)
	for range snapshot.MaxDepth {
		deep = []any{deep}
	}
	const raw = `{"a":"x","b":[[1],{"c":2}]}`
	at := func(reason snapshot.Reason, path string) snapshot.Error {
		return snapshot.Error{Stage: snapshot.StageSnapshot, Reason: reason, Path: path}
	}
	for name, c := range map[string]struct {
		step func(o *snapshot.Object)
		want snapshot.Error
	}{
		"a type without a text":         {func(o *snapshot.Object) { o.Replace(0, struct{}{}) }, at(snapshot.ReasonUnsupportedType, "/0")},
		"an ill-formed string":          {func(o *snapshot.Object) { o.Add("c", "\xff") }, at(snapshot.ReasonInvalidUTF8, "/2")},
		"an ill-formed name":            {func(o *snapshot.Object) { o.Add("\xff", nil) }, at(snapshot.ReasonInvalidUTF8, "/2")},
		"a name that is there":          {func(o *snapshot.Object) { o.Add("a", "y") }, at(snapshot.ReasonDuplicateKey, "/1")},
		"a name that was added":         {func(o *snapshot.Object) { o.Add("c", 1); o.Add("c", 1) }, at(snapshot.ReasonDuplicateKey, "/3")},
		"a cycle":                       {func(o *snapshot.Object) { o.Replace(1, cycle) }, at(snapshot.ReasonCycle, "/1/0")},
		"an array in two members":       {func(o *snapshot.Object) { o.Replace(0, shared); o.Replace(1, shared) }, at(snapshot.ReasonRepeatedReference, "")},
		"an object in two members":      {func(o *snapshot.Object) { m := map[string]any{}; o.Replace(0, m); o.Replace(1, m) }, at(snapshot.ReasonRepeatedReference, "/1")},
		"too many members and elements": {func(o *snapshot.Object) { o.Replace(0, append(many, nil)) }, at(snapshot.ReasonTooManyValues, "/0")},
		"elements beside those kept":    {func(o *snapshot.Object) { o.Replace(0, many[:len(many)-3]) }, at(snapshot.ReasonTooManyValues, "/0")},
		"too many members":              {func(o *snapshot.Object) { addMembers(o, snapshot.MaxValues) }, at(snapshot.ReasonTooManyValues, "")},
		"arrays that are too deep":      {func(o *snapshot.Object) { o.Replace(0, deep) }, at(snapshot.ReasonDepth, "/0"+strings.Repeat("/0", snapshot.MaxDepth-1))},
		"too long a string":             {func(o *snapshot.Object) { o.Replace(0, strings.Repeat("a", snapshot.MaxStringBytes+1)) }, at(snapshot.ReasonStringTooLong, "/0")},
		"too much in all":               {func(o *snapshot.Object) { addTexts(o, 3, snapshot.MaxStringBytes) }, at(snapshot.ReasonTooLarge, "/3")},
		"negative zero":                 {func(o *snapshot.Object) { o.Replace(0, math.Copysign(0, -1)) }, at(snapshot.ReasonNegativeZero, "/0")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := snapshot.PrepareObject(raw, func(o *snapshot.Object) error { c.step(o); return nil })
			checkError(t, err, c.want)
		})
	}
}

func addMembers(o *snapshot.Object, n int) {
	for i := range n {
		o.Add(fmt.Sprint("m", i), nil)
	}
}

func addTexts(o *snapshot.Object, n, size int) {
	for i := range n {
		o.Add(fmt.Sprint("t", i), strings.Repeat("a", size))
	}
}

// What is replaced counts no more.
func TestPrepareObject_LimitsWhatIsLeft(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", snapshot.MaxStringBytes-10)
	raw := `{"a":"` + long + `","b":"` + long + `"}`
	s, err := snapshot.PrepareObject(raw, func(o *snapshot.Object) error {
		for i := range o.Len() {
			text, _ := o.Text(i)
			o.Replace(i, text+"b")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"a":"` + long + `b","b":"` + long + `b"}`; s.Canonical() != want {
		t.Errorf("%d bytes, want %d", len(s.Canonical()), len(want))
	}
	raw = `{"a":` + list("1", snapshot.MaxValues-1) + `}`
	if _, err = snapshot.PrepareObject(raw, func(o *snapshot.Object) error {
		o.Replace(0, slices.Repeat([]any{2}, snapshot.MaxValues-1))
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestPrepareObject_ReportsTheRefusalsOfItsStep(t *testing.T) {
	t.Parallel()
	_, err := snapshot.PrepareObject(`[]`, func(o *snapshot.Object) error {
		if o != nil {
			t.Error("an array is no object")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	refused := snapshot.Error{Stage: snapshot.StageScope, Reason: "Outside", Path: "target"}
	_, err = snapshot.PrepareObject(`{}`, func(*snapshot.Object) error { return &refused })
	checkError(t, err, refused)
	_, err = snapshot.PrepareObject(`{}`, func(*snapshot.Object) error { return errors.New(canary) })
	checkError(t, err, snapshot.Error{Stage: snapshot.StageSchema, Reason: snapshot.ReasonSchema})
	checkNoLeak(t, err)
	_, err = snapshot.PrepareObject(`{"a":1,"a":2}`, func(*snapshot.Object) error { t.Error("called"); return nil })
	checkError(t, err, snapshot.Error{Stage: snapshot.StageDecode, Reason: snapshot.ReasonDuplicateKey, Path: "/1"})
}

// A step that keeps the object can neither read nor change another call with it.
func TestPrepareObject_LeavesAnEmptyObjectBehind(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]error{"accepted": nil, "refused": errors.New("no")} {
		var kept *snapshot.Object
		var value any
		_, err := snapshot.PrepareObject(`{"a":["secret"],"b":1}`, func(o *snapshot.Object) error {
			kept, value = o, o.Value(0)
			o.Replace(1, "x")
			return fail
		})
		if (err == nil) != (fail == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if kept.Len() != 0 {
			t.Errorf("%s: %d members are left", name, kept.Len())
		}
		kept.Add("a", "late")
		if s, err := snapshot.PrepareObject(`{"z":1}`, func(*snapshot.Object) error { return nil }); err != nil || s.Canonical() != `{"z":1}` {
			t.Errorf("%s: another call became %v, %v", name, s, err)
		}
		if diff := cmp.Diff([]any{"secret"}, value); diff != "" {
			t.Errorf("%s: a value that was kept changed:\n%s", name, diff)
		}
	}
}

// What the step sets is copied: it may change it as soon as the snapshot is made.
func TestPrepareObject_CopiesWhatItsStepSets(t *testing.T) {
	t.Parallel()
	mine := map[string]any{"a": []any{1.0}}
	s, err := snapshot.PrepareObject(`{}`, func(o *snapshot.Object) error {
		o.Add("m", mine)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before := s.Canonical()
	maps.DeleteFunc(mine, func(string, any) bool { return true })
	if s.Canonical() != before || before != `{"m":{"a":[1]}}` {
		t.Errorf("%s, before %s", s.Canonical(), before)
	}
}
