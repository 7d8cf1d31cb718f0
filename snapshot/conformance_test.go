// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/assent-dev/assent/snapshot"
)

func TestVectors_ExactAnswerAndExactBytes(t *testing.T) {
	t.Parallel()
	vectors := jsonVectors(t)
	if len(vectors) < 337 {
		t.Fatalf("only %d vectors", len(vectors))
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s, err := freezeText(string(v.Input))
			if (err == nil) != v.Accept {
				t.Fatalf("accepted %v, want %v (%s): %v", err == nil, v.Accept, v.Why, err)
			}
			if v.Accept && s.Canonical() != v.Canonical {
				t.Errorf("canonical text %q, want %q", s.Canonical(), v.Canonical)
			}
		})
	}
}

// The rule about U+FFFD is the only difference between raw arguments and other
// text, so it decides exactly the vectors that contain the character.
func TestVectors_RawArgumentsDifferOnlyInReplacementCharacters(t *testing.T) {
	t.Parallel()
	for _, v := range jsonVectors(t) {
		s, err := snapshot.Prepare(string(v.Input), nil)
		if v.Accept && strings.ContainsRune(v.Canonical, '\uFFFD') {
			if err == nil {
				t.Errorf("%s: U+FFFD accepted", v.Name)
			}
			continue
		}
		if (err == nil) != v.Accept {
			t.Errorf("%s: accepted %v, want %v: %v", v.Name, err == nil, v.Accept, err)
		} else if v.Accept && s.Canonical() != v.Canonical {
			t.Errorf("%s: canonical text %q, want %q", v.Name, s.Canonical(), v.Canonical)
		}
	}
}

func TestVectors_CanonicalTextIsItsOwnCanonicalText(t *testing.T) {
	t.Parallel()
	for _, v := range jsonVectors(t) {
		if !v.Accept {
			continue
		}
		s, err := snapshot.Parse(v.Canonical)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if s.Canonical() != v.Canonical {
			t.Errorf("%s: %q became %q", v.Name, v.Canonical, s.Canonical())
		}
	}
}

func TestJCS_PublishedDocuments(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/jcs/input/*.json")
	if err != nil || len(inputs) != 6 {
		t.Fatalf("%d documents, want 6 (%v)", len(inputs), err)
	}
	for _, name := range inputs {
		want := readFile(t, filepath.Join("testdata/jcs/output", filepath.Base(name)))
		s, err := snapshot.Prepare(string(readFile(t, name)), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if s.Canonical() != string(want) {
			t.Errorf("%s: got %s, want %s", name, s.Canonical(), want)
		}
	}
}

func TestRFC8785_AppendixB(t *testing.T) {
	t.Parallel()
	// IEEE 754 bits and ECMAScript text, RFC 8785 Appendix B.
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0",
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		s, err := snapshot.New(math.Float64frombits(bits))
		if err != nil {
			t.Errorf("%016x: %v", bits, err)
		} else if s.Canonical() != want {
			t.Errorf("%016x: got %s, want %s", bits, s.Canonical(), want)
		}
	}
	for bits, why := range map[uint64]snapshot.Reason{
		0x8000000000000000: snapshot.ReasonNegativeZero, // Appendix B says 0; RFC-0016 refuses
		0x7fffffffffffffff: snapshot.ReasonNumberRange,
		0x7ff0000000000000: snapshot.ReasonNumberRange,
	} {
		_, err := snapshot.New(math.Float64frombits(bits))
		checkError(t, err, snapshot.Error{Stage: snapshot.StageSnapshot, Reason: why})
	}
}

// longRun is set for the run that may take minutes.
const longRun = "ASSENT_LONG_TESTS"

// The sequence and the hashes are published in the testdata/README.md of
// github.com/cyberphone/json-canonicalization.
func TestES6_NumberSequence(t *testing.T) {
	t.Parallel()
	hashes := map[int]string{
		1_000:      "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687",
		10_000:     "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892",
		100_000:    "22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7",
		1_000_000:  "49415fee2c56c77864931bd3624faad425c3c577d6d74e89a83bc725506dad16",
		10_000_000: "b9f8a44a91d46813b21b9602e72f112613c91408db0b8341fb94603d9db135e0",
	}
	last := 100_000
	if os.Getenv(longRun) != "" {
		last = 10_000_000
	} else if !testing.Short() {
		last = 1_000_000
	}
	const batch = 1000 // numbers per snapshot; divides every entry above
	next := es6Sequence(t)
	sum := sha256.New()
	for done := 0; done < last; {
		numbers := make([]float64, batch)
		for i := range numbers {
			numbers[i] = next()
		}
		sum.Write(es6Lines(t, numbers))
		done += batch
		if want, ok := hashes[done]; ok {
			if got := hex.EncodeToString(sum.Sum(nil)); got != want {
				t.Fatalf("%d lines: hash %s, want %s", done, got, want)
			}
		}
	}
}

// es6Lines returns the published lines for some numbers: bits, comma, text.
func es6Lines(t *testing.T, numbers []float64) []byte {
	t.Helper()
	tree := make([]any, len(numbers))
	for i, f := range numbers {
		tree[i] = f
		if f == 0 {
			tree[i] = 0.0 // the sequence contains -0, printed as 0
		}
	}
	text := mustNew(t, tree).Canonical()
	var lines bytes.Buffer
	for i, number := range strings.Split(strings.Trim(text, "[]"), ",") {
		fmt.Fprintf(&lines, "%x,%s\n", math.Float64bits(numbers[i]), number)
	}
	return lines.Bytes()
}

// es6Sequence returns a function that returns the next number each time: fixed
// ones, the smallest normal ones, and then whatever repeated hashing yields.
func es6Sequence(t *testing.T) func() float64 {
	t.Helper()
	var fixed []uint64
	for line := range strings.Lines(string(readFile(t, "testdata/es6_static.txt"))) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		bits, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		fixed = append(fixed, bits)
	}
	const smallestNormal = 0x0010000000000000
	for i := range uint64(2000) {
		fixed = append(fixed, smallestNormal+i)
	}
	var block [sha256.Size]byte
	var rest []byte
	return func() float64 {
		if len(fixed) > 0 {
			f := math.Float64frombits(fixed[0])
			fixed = fixed[1:]
			return f
		}
		for {
			if len(rest) == 0 {
				block = sha256.Sum256(block[:])
				rest = block[:]
			}
			f := math.Float64frombits(binary.LittleEndian.Uint64(rest))
			rest = rest[8:]
			if f != 0 && !math.IsNaN(f) && !math.IsInf(f, 0) {
				return f
			}
		}
	}
}

// Version 1.0.1 of jcs maps distinct documents to one text and dies of deep
// nesting. The decoder in front of it would hide that from every other test.
func TestGuard_LinkedJCSHasNoKnownCollisions(t *testing.T) {
	t.Parallel()
	for name, input := range map[string]string{
		"a byte that is not UTF-8":         "[\"\xff\"]",
		"a number with a leading zero":     "[01]",
		"a high surrogate, twice":          `["\ud800\ud800"]`,
		"an exchanged pair of surrogates":  `["\udc00\ud800"]`,
		"white space inside an array":      "[1 2]",
		"white space inside a word":        "[tr ue]",
		"white space inside a number":      "[- 1]",
		"one more level than 10000 levels": nested(10001),
	} {
		if text, err := jcs.Transform([]byte(input)); err == nil {
			t.Errorf("%s: accepted, as %.40q", name, text)
		}
	}
	if text, err := jcs.Transform([]byte(" \n42\t")); err != nil || string(text) != "42" {
		t.Errorf("white space around a scalar: %q, %v", text, err)
	}
}
