// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A limit or an outcome whose test was renamed or removed would go on to look
// tested.
func TestPages_NameTestsThatExist(t *testing.T) {
	tests := testSources(t)
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]int{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllSubmatch(text, -1) {
			named[filepath.Base(page)]++
			if !bytes.Contains(tests, []byte("func "+string(name[1])+"(")) {
				t.Errorf("%s names %s, which does not exist", page, name[1])
			}
		}
	}
	for page, least := range map[string]int{"limits.md": 20, "threats.md": 30, "policy-threats.md": 30} {
		if named[page] < least {
			t.Errorf("%s names %d tests, which is too few to be read rightly", page, named[page])
		}
	}
}

// testSources is the text of every test of the module.
func testSources(t *testing.T) []byte {
	t.Helper()
	return sources(t, "..", func(path string) bool { return strings.HasSuffix(path, "_test.go") })
}

// sources is the text of all Go files below a folder whose path is wanted.
func sources(t *testing.T, folder string, wanted func(path string) bool) []byte {
	t.Helper()
	var out bytes.Buffer
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || !wanted(path):
			return nil
		}
		text, err := os.ReadFile(path)
		out.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The attacks on the path from a proposal to its grant, by the numbers of the
// threat model.
func TestThreats_HasARowForEachAttack(t *testing.T) {
	text, err := os.ReadFile("../docs/threats.md")
	if err != nil {
		t.Fatal(err)
	}
	attacks := []int{23, 24, 25, 28, 45, 46, 50, 51, 53, 59, 60, 63}
	for n := 1; n <= 18; n++ {
		attacks = append(attacks, n)
	}
	for _, n := range attacks {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^\| (A\d+, )*A%d(, A\d+)* \|.*Test`, n)).Match(text) {
			t.Errorf("docs/threats.md has no row with a test for A%d", n)
		}
	}
	for _, n := range []int{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 39, 40} {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^\| %d \|.*Test`, n)).Match(text) {
			t.Errorf("docs/threats.md has no row with a test for input %d", n)
		}
	}
}
