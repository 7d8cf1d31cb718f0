// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/contract/lint"
)

// Everything that the pages about contracts show happens, and every object on
// them compiles.
func TestContractPages_ShowWhatHappens(t *testing.T) {
	for page, commands := range map[string]int{"tool-manifest.md": 3, "argument-types.md": 1, "tool-scope.md": 2, "import.md": 2, "lint.md": 1} {
		t.Run(page, func(t *testing.T) {
			all := blocks(t, filepath.Join("..", "..", "docs", page))
			t.Chdir(t.TempDir())
			ran := 0
			for _, b := range all {
				switch {
				case b.file != "":
					if err := os.WriteFile(b.file, []byte(b.text), 0o600); err != nil {
						t.Fatal(err)
					}
					if strings.HasSuffix(b.file, ".yaml") {
						checkCompiles(t, b.file)
					}
				case b.language == "console":
					ran++
					checkConsole(t, b)
				default:
					t.Errorf("line %d: a %s block that nothing executes", b.line, b.language)
				}
			}
			if ran != commands {
				t.Errorf("the page has %d commands, want %d", ran, commands)
			}
		})
	}
}

// checkConsole runs the command of a block and compares what it prints.
func checkConsole(t *testing.T, b block) {
	t.Helper()
	command, want, _ := strings.Cut(strings.TrimPrefix(b.text, "$ "), "\n")
	got := execute(t, command)
	if head, cut := strings.CutSuffix(want, "...\n"); cut {
		want, got = head, got[:min(len(head), len(got))]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("line %d: %s (-page +output):\n%s", b.line, command, diff)
	}
}

func checkCompiles(t *testing.T, file string) {
	t.Helper()
	if got := runWith(t, "", "lint", "-f", file, "-o", "json"); strings.Contains(got.Out, "does-not-compile") || got.Err != "" {
		t.Errorf("%s: %+v", file, got)
	}
}

// The page about lint lists every rule with its level.
func TestLintPage_ListsEveryRule(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "lint.md"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.SplitSeq(string(text), "\n") {
		if fields := strings.Split(line, "|"); len(fields) == 5 && strings.HasPrefix(fields[1], " `") {
			listed = append(listed, strings.Trim(fields[1], " `")+" "+strings.TrimSpace(fields[2]))
		}
	}
	slices.Sort(listed)
	var rules []string
	for _, r := range lint.Rules() {
		rules = append(rules, r.ID+" "+string(r.Level))
	}
	if diff := cmp.Diff(rules, listed); diff != "" {
		t.Errorf("rules (-known +listed):\n%s", diff)
	}
}
