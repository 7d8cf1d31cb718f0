// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/assent-dev/assent/snapshot"
)

// Two marks that no error may show: one in every name and string around a
// fault, one in numbers.
const (
	canary       = "canary"
	canaryDigits = "31415926"
)

// checkNoLeak prints an error and what it wraps in every common way.
func checkNoLeak(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("accepted")
	}
	var refusal *snapshot.Error
	if !errors.As(err, &refusal) {
		t.Fatalf("%T is not a refusal", err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		for _, e := range []error{err, refusal} {
			text := fmt.Sprintf(format, e)
			if strings.Contains(text, canary) || strings.Contains(text, canaryDigits) {
				t.Errorf("%s shows input: %s", format, text)
			}
		}
	}
}

func TestErrors_NeverContainInput_Vectors(t *testing.T) {
	t.Parallel()
	for _, v := range jsonVectors(t) {
		if v.Accept {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			input := string(v.Input)
			for _, text := range []string{
				`{"canary":` + input,
				`{"a canary":{"canary":` + input + `}}`,
				`["canary",31415926,` + input + `,"canary"]`,
				input + `canary`,
				strings.ReplaceAll(input, `"`, `"canary`),
				strings.ReplaceAll(input, `1`, canaryDigits),
			} {
				if _, err := snapshot.DecodeText(text); err != nil {
					checkNoLeak(t, err)
				}
			}
			for _, take := range []func(string) (*snapshot.Snapshot, error){
				snapshot.Parse,
				func(raw string) (*snapshot.Snapshot, error) { return snapshot.Prepare(raw, asIs) },
			} {
				_, err := take(`["canary",31415926,` + input + `,"canary"]`)
				if err != nil { // some vectors are only wrong as a whole text
					checkNoLeak(t, err)
				}
			}
		})
	}
}

func TestErrors_NeverContainInput_FaultsInsideTheCanary(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a word":                     `[canary]`,
		"a name twice":               `{"canary":1,"canary":2}`,
		"a nested name twice":        `{"canary":{"canary":1,"canary":2}}`,
		"an escape":                  `["canary\x"]`,
		"half a surrogate pair":      `["canary\ud800"]`,
		"ill-formed UTF-8":           "[\"canary\xff\"]",
		"a noncharacter":             `{"canary\uffff":1}`,
		"a replacement character":    `{"canary\ufffd":1}`,
		"a number out of range":      `[31415926e400]`,
		"a number that becomes zero": `[31415926e-400]`,
		"another integer":            `[314159265358979323846]`,
		"a number that is too long":  `[` + strings.Repeat(canaryDigits, 101) + `]`,
		"a string that is too long":  `["` + strings.Repeat(canary, 6000) + `"]`,
		"a string without an end":    `["canary`,
		"more behind the value":      `{} canary`,
		"no separator":               `["canary" "canary"]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := snapshot.Decode(text)
			checkNoLeak(t, err)
			_, err = snapshot.Parse(text)
			checkNoLeak(t, err)
			_, err = snapshot.ProposalHash(canary, canary, text)
			checkNoLeak(t, err)
		})
	}
}

// canaryType would show itself if an error printed a value or its type.
type canaryType struct{ canary string }

func TestErrors_NeverContainInput_Trees(t *testing.T) {
	t.Parallel()
	cycle := map[string]any{}
	cycle[canary] = cycle
	shared := []any{canary}
	for name, tree := range map[string]any{
		"a foreign type":             canaryType{canary},
		"a pointer":                  &canaryType{canary},
		"NaN":                        math.NaN(),
		"an integer":                 int64(3141592653589793238),
		"ill-formed UTF-8":           "canary\xff",
		"a noncharacter":             "canary\uFFFF",
		"an ill-formed name":         map[string]any{"canary\xff": 1},
		"a string that is too long":  strings.Repeat(canary, 6000),
		"strings too long together":  []any{strings.Repeat(canary, 5000), strings.Repeat(canary, 5001), strings.Repeat(canary, 5002)},
		"a nil map":                  map[string]any(nil),
		"a cycle":                    cycle,
		"a repeated reference":       []any{shared, shared},
		"an error that quotes input": errors.New(canary),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			around := map[string]any{canary: []any{canary, 31415926, tree}}
			_, err := snapshot.New(around)
			checkNoLeak(t, err)
			_, err = snapshot.Hash(canary, around)
			if name != "a string that is too long" && name != "strings too long together" { // not for a record
				checkNoLeak(t, err)
			}
			_, err = snapshot.Prepare(`{"canary":31415926}`, func(any) (any, error) { return around, nil })
			checkNoLeak(t, err)
			checkNoLeak(t, mustNew(t, canary).Matches(around))
		})
	}
	_, err := snapshot.Hash(canary, map[string]any{"v": canary})
	checkNoLeak(t, err)
}

// An error of the schema step is the application's. Its text stays reachable for
// the application, but the refusal itself does not repeat it.
func TestErrors_NeverContainInput_SchemaStep(t *testing.T) {
	t.Parallel()
	_, err := snapshot.Prepare(`{}`, func(any) (any, error) { return nil, errors.New(canary) })
	if text := fmt.Sprintf("%v %s %q", err, err, err); strings.Contains(text, canary) {
		t.Errorf("the error shows input: %s", text)
	}
}
