// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"errors"
	"iter"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/gowebpki/jcs"
)

// The authority is the only part that Assent did not write. Whatever goes wrong
// in it, no snapshot comes out.
func TestSelfCheck_FailsClosedWhenTheAuthorityErrs(t *testing.T) {
	t.Parallel()
	source := map[string]any{"a": []any{1.0, "x\n"}, "b": nil}
	if _, err := standard().freeze(source); err != nil {
		t.Fatal(err)
	}
	replace := func(old, changed string) func([]byte) ([]byte, error) {
		return func(text []byte) ([]byte, error) {
			text, err := jcs.Transform(text)
			return bytes.Replace(text, []byte(old), []byte(changed), 1), err
		}
	}
	for name, authority := range map[string]func([]byte) ([]byte, error){
		"it fails":               func([]byte) ([]byte, error) { return nil, errors.New("broken") },
		"it fails, yet answers":  func(text []byte) ([]byte, error) { return text, errors.New("broken") },
		"it returns nothing":     func([]byte) ([]byte, error) { return nil, nil },
		"it changes a number":    replace("1", "2"),
		"it changes a string":    replace("x", "y"),
		"it drops a member":      replace(`,"b":null`, ""),
		"it keeps white space":   replace(",", ", "),
		"it escapes differently": replace(`\n`, `\u000a`),
		"it writes 1 as 1.0":     replace("1", "1.0"),
		"it adds a line end":     func(text []byte) ([]byte, error) { return append(text, '\n'), nil },
	} {
		c := standard()
		c.authority = authority
		checkSelfCheck(t, name, c, source)
	}
}

// Two implementations may have the same fault. Then the text is not the tree.
func TestSelfCheck_FailsClosedWhenBothErr(t *testing.T) {
	t.Parallel()
	c := standard()
	c.witness = func(*tree, []byte, limits) ([]byte, *fault) { return []byte(`{"a":2}`), nil }
	checkSelfCheck(t, "both write another value", c, map[string]any{"a": 1.0})
}

func checkSelfCheck(t *testing.T, name string, c canonicalizer, source any) {
	t.Helper()
	_, err := c.freeze(source)
	if got, ok := errors.AsType[*Error](err); !ok || got.Stage != StageSnapshot || got.Reason != ReasonSelfCheck {
		t.Errorf("%s: %v", name, err)
	}
}

// The other half of the self-check must not lean on the first one, so it is
// tested alone, on texts that denote something else or nothing.
func TestDecodesTo_RecognisesOnlyTheTree(t *testing.T) {
	t.Parallel()
	w := borrow()
	source := map[string]any{
		"a": []any{1.0, "x\ny", true, false, nil, 0.5, 1e23}, "b": map[string]any{}, "c": []any{}, "d": "p\u2028q",
	}
	if f := w.walker.detach(source, argumentLimits()); f != nil {
		t.Fatal(f.why)
	}
	const right = "{\"a\":[1,\"x\\ny\",true,false,null,0.5,1e+23],\"b\":{},\"c\":[],\"d\":\"p\u2028q\"}"
	if !w.tree.decodesTo([]byte(right)) {
		t.Fatal("the right text is refused")
	}
	for old, changed := range map[string]string{
		`[1,`:      `[2,`,
		`[1,"`:     `["`,
		`1,"x`:     `,"x`,
		`1,"x\ny"`: `1 "x\ny"`,
		`0.5`:      `0x5`,
		`\ny`:      `\ty`,
		`\ny"`:     `y"`,
		`x\ny`:     `x\\ny`,
		`"x\ny"`:   `"x\ny`,
		`\n`:       "\n",
		`"x\n`:     `'x\n`,
		`true`:     `trux`,
		`false`:    `fals`,
		`null`:     `NULL`,
		`1e+23`:    `1e+24`,
		`"b":{}`:   `"b":[]`,
		`"b":`:     `"b" `,
		`"b"`:      `"B"`,
		`,"c"`:     `"c"`,
		`[],"d"`:   `["d"`,
		"\u2028":   `\u2029`,
		`q"}`:      `q"}}`,
		`"}`:       `"`,
	} {
		wrong := strings.Replace(right, old, changed, 1)
		if wrong == right {
			t.Errorf("%q does not occur", old)
		}
		if w.tree.decodesTo([]byte(wrong)) {
			t.Errorf("%s is taken for %s", wrong, right)
		}
	}
	for n := range len(right) {
		if w.tree.decodesTo([]byte(right[:n])) {
			t.Errorf("%q is taken for the whole text", right[:n])
		}
	}
}

func TestCompareUTF16_OrdersLikeUTF16(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(8785, 323))
	alphabet := []rune("\x00aZ~\u007f\u0080é\u07ff\u0800\ud7ff\ue000\ufb33\ufffd\U00010000\U0001f600\U0001f602\U0010fffd")
	word := func() string {
		runes := make([]rune, random.IntN(4))
		for i := range runes {
			runes[i] = alphabet[random.IntN(len(alphabet))]
		}
		return string(runes)
	}
	for range 200_000 {
		a, b := word(), word()
		want := slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		if got := compareUTF16(a, b); (got < 0) != (want < 0) || (got > 0) != (want > 0) {
			t.Fatalf("%+q and %+q: got %d, want %d", a, b, got, want)
		}
	}
}

// Errors about ill-formed names must not depend on the order of a map, so that
// the order is total for all bytes.
func TestRankUTF16_IsOneToOne(t *testing.T) {
	t.Parallel()
	var seen [256]bool
	for b := range 256 {
		rank := rankUTF16(byte(b))
		if seen[rank] {
			t.Fatalf("rank %d occurs twice", rank)
		}
		seen[rank] = true
	}
}

func TestCheckText_FindsEveryNoncharacter(t *testing.T) {
	t.Parallel()
	found := 0
	for r := rune(0); r <= 0x10FFFF; r++ {
		if r >= 0xD800 && r <= 0xDFFF {
			continue
		}
		want := Reason("")
		switch {
		case r == 0xFFFD:
			want = ReasonReplacementChar
		case r >= 0xFDD0 && r <= 0xFDEF, r%0x10000 >= 0xFFFE:
			want = ReasonNoncharacter
			found++
		}
		if got := checkText([]byte("é"+string(r)+"z"), refuseReplacement); got != want {
			t.Fatalf("U+%04X: %q, want %q", r, got, want)
		}
		before := "0123456789abcdefg"[:r%17] // another position for the neighbours of each
		if got := checkText([]byte(before+string(r)+"z"), refuseReplacement); got != want {
			t.Fatalf("U+%04X after %d bytes: %q, want %q", r, len(before), got, want)
		}
		if got := checkText([]byte(string(r)), allowReplacement); got != want && r != 0xFFFD || r == 0xFFFD && got != "" {
			t.Fatalf("U+%04X as data: %q", r, got)
		}
	}
	if found != 66 {
		t.Errorf("%d noncharacters, Unicode has 66", found)
	}
}

func TestAddressSet_ReportsEachAddressOnce(t *testing.T) {
	t.Parallel()
	var s addressSet
	random := rand.New(rand.NewPCG(1, 2))
	known := map[uintptr]bool{}
	for range 20_000 {
		address := uintptr(random.IntN(8000)+1) * 16
		if got := s.add(address); got == known[address] {
			t.Fatalf("address %d: new %v, known %v", address, got, known[address])
		}
		known[address] = true
	}
	s.reset()
	if !s.add(16) || s.add(16) {
		t.Error("a set that was reset does not start empty")
	}
	if s.reset(); len(s.slots) > 2*minSlots {
		t.Errorf("a set of one address keeps %d slots", len(s.slots))
	}
}

func TestWorkspace_KeepsNothingOfTheLastCall(t *testing.T) {
	t.Parallel()
	w := borrow()
	if f := w.decoder.decode(`{"a":["canary",{"b":1}]}`, argumentLimits(), allowReplacement); f != nil {
		t.Fatal(f.why)
	}
	if f := w.decoder.value('['); f == nil { // leaves a container open
		t.Fatal("an array without an end was accepted")
	}
	type mark struct{ string }
	if f := w.walker.detach(map[string]any{"canary": []any{map[string]any{"a": 1}, mark{"canary"}}}, argumentLimits()); f == nil {
		t.Fatal("a foreign type was accepted")
	}
	w.giveBack()
	if w.walker.values != 0 || len(w.walker.open)+len(w.walker.spans)+len(w.walker.sorted)+w.walker.maps.count != 0 {
		t.Errorf("state of the walk is left over: %+v", w.walker)
	}
	for _, e := range w.walker.sorted[:cap(w.walker.sorted)] {
		if e.name != "" || e.value != nil {
			t.Errorf("the member %q is left over", e.name)
		}
	}
	for _, address := range w.walker.maps.slots {
		if address != 0 {
			t.Error("an address is left over")
		}
	}
	if w.decoder.depth != 0 || w.decoder.values != 0 || len(w.decoder.members) != 0 {
		t.Errorf("depth %d, %d values, %d members are left over",
			w.decoder.depth, w.decoder.values, len(w.decoder.members))
	}
	if len(w.tree.steps)+len(w.tree.texts)+len(w.tree.bytes)+len(w.tree.numbers) != 0 {
		t.Errorf("a tree is left over: %+v", w.tree)
	}
}

// What a schema step set, and many members, are not kept either.
func TestWorkspace_KeepsNoMembersOfAnObject(t *testing.T) {
	t.Parallel()
	for name, members := range map[string]string{"few": `"a":1`, "many": `"m` + strings.Join(slices.Collect(numbered(maxIdleSlots+1)), `":1,"m`) + `":1`} {
		w := borrow()
		if f := w.decoder.decode("{"+members+"}", argumentLimits(), refuseReplacement); f != nil {
			t.Fatal(f.why)
		}
		o := w.openObject("{" + members + "}")
		o.Replace(0, "secret")
		if f := w.assemble(o); f != nil {
			t.Fatal(f.why)
		}
		w.closeObject(o)
		if (w.slots == nil) != (name == "many") {
			t.Errorf("%s: memory for %d members is kept", name, cap(w.slots))
		}
		for _, s := range w.slots[:cap(w.slots)] {
			if s.name != "" || s.value != nil {
				t.Errorf("%s: the member %q is left over", name, s.name)
			}
		}
	}
}

// numbered returns the numbers below n.
func numbered(n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(strconv.Itoa(i)) {
				return
			}
		}
	}
}

// A record may be a thousand times larger than arguments; its memory must not
// stay in the pool for ever.
func TestWorkspace_LetsGoOfLargeMemory(t *testing.T) {
	t.Parallel()
	for name, enlarge := range map[string]func(*workspace){
		"steps": func(w *workspace) { w.tree.steps = make([]step, 1, maxIdleSteps+1) },
		"bytes": func(w *workspace) { w.tree.bytes = make([]byte, 1, maxIdleBytes+1) },
		"text":  func(w *workspace) { w.text = make([]byte, 1, maxIdleBytes+1) },
		"spare": func(w *workspace) { w.spare = make([]step, 1, maxIdleSteps+1) },
	} {
		w := borrow()
		w.tree.add(kindNull)
		enlarge(w)
		w.giveBack()
		if len(w.tree.steps) == 0 { // emptied, so it is in the pool
			t.Errorf("large %s were kept", name)
		}
	}
}

// Every reason has advice, so that no error ends in a bare word.
func TestError_EveryReasonSaysWhatToChange(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`Reason\w+ +Reason = "(\w+)"`).FindAllSubmatch(source, -1)
	if len(reasons) != len(advice) || len(reasons) < 25 {
		t.Errorf("%d reasons, %d pieces of advice", len(reasons), len(advice))
	}
	for _, r := range reasons {
		text := (&Error{Stage: StageDecode, Reason: Reason(r[1]), Path: "/0"}).Error()
		if !strings.HasPrefix(text, "refused at stage decode: "+string(r[1])+" at /0: ") {
			t.Errorf("%s: %s", r[1], text)
		}
	}
	if got := (&Error{Stage: StageScope, Reason: "Foreign"}).Error(); got != "refused at stage scope: Foreign" {
		t.Errorf("a foreign reason: %s", got)
	}
}
