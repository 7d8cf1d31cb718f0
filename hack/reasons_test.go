// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A reason or a condition that is declared and never set promises something.
func TestReasons_AreEachGivenSomewhere(t *testing.T) {
	declared, err := filepath.Glob("../api/v1alpha1/*.go")
	if err != nil {
		t.Fatal(err)
	}
	code := productSources(t)
	n := 0
	for _, file := range declared {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^(?:const|\t)?\s*((?:Reason|Condition)[A-Za-z]+)\s+= "([A-Za-z]+)"`).FindAllSubmatch(text, -1) {
			n++
			// Packages that know nothing of the API have the words themselves.
			if !regexp.MustCompile(`v1alpha1\.`+string(m[1])+`\b`).Match(code) && !bytes.Contains(code, []byte(`"`+string(m[2])+`"`)) {
				t.Errorf("%s is declared, and nothing gives it", m[1])
			}
		}
	}
	if n < 60 {
		t.Errorf("%d reasons and conditions were found, which is too few to be read rightly", n)
	}
}

// productSources is the text of everything that is built, but the API itself.
func productSources(t *testing.T) []byte {
	t.Helper()
	var out []byte
	for _, folder := range []string{"cmd", "controllers", "execution", "internal", "webhook"} {
		out = append(out, sources(t, filepath.Join("..", folder), func(path string) bool { return !strings.HasSuffix(path, "_test.go") })...)
	}
	return out
}
