// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A limit whose test was renamed or removed would go on to look tested.
func TestLimits_NameTestsThatExist(t *testing.T) {
	table, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllSubmatch(table, -1)
	if len(names) < 20 {
		t.Fatalf("docs/limits.md names %d tests, which is too few to be read rightly", len(names))
	}
	tests := testSources(t)
	for _, name := range names {
		if !bytes.Contains(tests, []byte("func "+string(name[1])+"(")) {
			t.Errorf("docs/limits.md names %s, which does not exist", name[1])
		}
	}
}

// testSources is the text of every test of the module.
func testSources(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
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
