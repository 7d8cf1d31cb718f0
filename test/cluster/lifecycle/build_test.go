// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newModule is a module with the three programs, each of them trivial.
func newModule(t *testing.T) BuildOptions {
	t.Helper()
	source := t.TempDir()
	files := map[string]string{"go.mod": "module example.org/cluster\n\ngo 1.26\n", "go.sum": ""}
	for _, command := range commands {
		files["cmd/"+command+"/main.go"] = "package main\n\nfunc main() {}\n"
	}
	for name, content := range files {
		writeFile(t, filepath.Join(source, name), content)
	}
	return BuildOptions{Source: source, Cache: filepath.Join(t.TempDir(), "cache"), Progress: io.Discard}
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBuild_DependsOnRequirementsAndSources(t *testing.T) {
	t.Parallel()
	o := newModule(t)
	key := func() string {
		key, err := builder{BuildOptions: o}.key(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	for _, test := range []struct {
		name, file string
		want       bool
	}{
		{"a requirement", "go.sum", true},
		{"a program's source", "cmd/assent-dns/main.go", true},
		{"a new file of a program", "cmd/assent-kube/new.go", true},
		{"the tool itself", "lifecycle/new.go", false},
	} {
		before := key()
		writeFile(t, filepath.Join(o.Source, test.file), "package main // "+test.name+"\n")
		if changed := key() != before; changed != test.want {
			t.Errorf("%s: asks for a new build: %t, want %t", test.name, changed, test.want)
		}
	}
}

func TestBuild_BuildsOnceForAllWhoAskAtTheSameTime(t *testing.T) {
	t.Parallel()
	o := newModule(t)
	progress := &syncWriter{}
	o.Progress = progress
	var wait sync.WaitGroup
	results := make([]Binaries, 3)
	for i := range results {
		wait.Go(func() {
			var err error
			if results[i], err = Build(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, result := range results {
		if !result.complete() {
			t.Errorf("the result %v has missing files", result)
		}
	}
	if built := strings.Count(progress.String(), "assent-kube built in"); built != 1 {
		t.Errorf("the big program was built %d times, want once", built)
	}
}

// syncWriter collects lines of several goroutines.
type syncWriter struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *syncWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *syncWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func TestBuild_SaysWhatDoesNotCompile(t *testing.T) {
	t.Parallel()
	o := newModule(t)
	writeFile(t, filepath.Join(o.Source, "cmd/assent-kube/main.go"), "package main\n\nfunc main() { undefined() }\n")
	_, err := Build(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "compiling assent-kube") || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("error %v, want it to name the program and show the compiler's message", err)
	}
}

func TestRemoveUnused_KeepsWhatWasUsedLately(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	b := builder{BuildOptions: BuildOptions{Cache: t.TempDir()}}
	for name, age := range map[string]time.Duration{"old": keepUnused, "lately": keepUnused - time.Second} {
		b.folder = filepath.Join(b.Cache, name)
		writeFile(t, filepath.Join(b.folder, "assent-kube"), "")
		if err := b.markUsed(now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(b.Cache, "lock"), "")
	if err := b.removeUnused(now); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(b.Cache)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	slices.Sort(left)
	if diff := cmp.Diff([]string{"lately", "lock"}, left); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
