// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/policy"
)

// block is a fenced block of a page.
type block struct {
	language string
	file     string
	text     string
	line     int
}

var fence = regexp.MustCompile("^```(\\S+)(?: file=(\\S+))?$")

// blocks reads the fenced blocks of a page.
func blocks(t *testing.T, path string) []block {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	var current *block
	for i, line := range strings.Split(string(text), "\n") {
		switch m := fence.FindStringSubmatch(line); {
		case current == nil && m != nil:
			current = &block{language: m[1], file: m[2], line: i + 1}
		case current != nil && line == "```":
			all = append(all, *current)
			current = nil
		case current != nil:
			current.text += line + "\n"
		}
	}
	return all
}

// words splits a command line; quotes do not occur in it.
func words(line string) []string { return strings.Fields(line) }

// execute runs one command line of a page and gives what it prints. The only
// pipe that pages use is tail.
func execute(t *testing.T, line string) string {
	t.Helper()
	line, tail, _ := strings.Cut(line, " | tail -n ")
	args := words(line)
	if len(args) < 2 || args[0] != "kubectl" || args[1] != "assent" {
		t.Fatalf("the page runs %q, which this test cannot", line)
	}
	var out, errs bytes.Buffer
	run(args[2:], Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	text := out.String() + errs.String()
	if tail == "" {
		return text
	}
	count, err := strconv.Atoi(tail)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "") + "\n"
}

// Everything that the page about policies shows happens.
func TestPolicyPage_ShowsWhatHappens(t *testing.T) {
	page := blocks(t, filepath.Join("..", "..", "docs", "policy.md"))
	t.Chdir(t.TempDir())
	commands := 0
	for _, b := range page {
		switch {
		case b.file != "":
			if err := os.WriteFile(b.file, []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		case b.language == "console":
			commands++
			command, want, _ := strings.Cut(strings.TrimPrefix(b.text, "$ "), "\n")
			got := execute(t, command)
			if head, cut := strings.CutSuffix(want, "...\n"); cut {
				want, got = head, got[:min(len(head), len(got))]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("line %d: %s (-page +output):\n%s", b.line, command, diff)
			}
		case b.language == "cedar":
			checkCedar(t, b)
		default:
			t.Errorf("line %d: a %s block that nothing executes", b.line, b.language)
		}
	}
	if commands < 7 {
		t.Errorf("the page has %d commands", commands)
	}
}

// checkCedar decides the calls of the table behind the two forms of a limit.
func checkCedar(t *testing.T, b block) {
	t.Helper()
	tool := policy.Tool{
		Namespace: "bank", Name: "transfer", EffectKind: policy.EffectCommand,
		Arguments: []policy.Argument{{Name: "limit", Kind: "integer"}},
	}
	c, problems := policy.Compile(policy.Source{
		Namespace: "bank", Name: "p", Text: "@permit_all permit (principal, action, resource);\n" + b.text,
	}, policy.Limits{})
	if len(problems) > 0 {
		t.Fatalf("line %d: %v", b.line, problems)
	}
	set, err := policy.NewSet(policy.Limits{}, c)
	if err != nil {
		t.Fatal(err)
	}
	set = set.WithTools("bank", []policy.Tool{tool})
	absent, advised := policy.Allow, 1
	if strings.Contains(b.text, "unless") {
		absent, advised = policy.Deny, 0
	}
	problems = set.Problems("bank")
	for _, problem := range problems {
		if problem.Severity != policy.SeverityWarning || !strings.Contains(problem.Message, "leaves limit out") {
			t.Errorf("line %d: %v", b.line, problem)
		}
	}
	if len(problems) != advised {
		t.Errorf("line %d: %d warnings, want %d", b.line, len(problems), advised)
	}
	for args, want := range map[string]policy.Answer{`{"limit":100}`: policy.Allow, `{"limit":101}`: policy.Deny, `{}`: absent} {
		got := set.Decide(policy.Call{Tool: tool, ArgsCanonicalJSON: args, Effect: policy.EffectView{Kind: policy.EffectCommand}}, policy.Options{})
		if got.Answer != want {
			t.Errorf("line %d, %s: %s, want %s", b.line, args, fmt.Sprint(got), want)
		}
	}
}
