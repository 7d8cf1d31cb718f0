// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/audit/journal"
	"github.com/assent-dev/assent/internal/audit/verify"
)

// anchorServer keeps one object, as an object store would.
func anchorServer(t *testing.T) (*httptest.Server, *[]byte) {
	var mu sync.Mutex
	var object []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == http.MethodPut:
			object, _ = io.ReadAll(r.Body)
			w.WriteHeader(http.StatusNoContent)
		case object == nil:
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = w.Write(object)
		}
	}))
	t.Cleanup(server.Close)
	return server, &object
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestAnchors_RememberTheLastCheckpoint(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "anchor")
	server, object := anchorServer(t)
	l := openLog(t, dir, func(o *journal.Options) {
		o.Anchors = []journal.Anchor{journal.FileAnchor(file), journal.HTTPAnchor(server.URL+"/a", nil)}
	})
	appendOne(t, l, sampleRecord())
	if err := l.CheckAnchors(t.Context()); err != nil {
		t.Errorf("CheckAnchors: %v", err)
	}
	closeLog(t, l)
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	for name, text := range map[string][]byte{"file": stored, "HTTP": *object} {
		cp, err := verify.ParseCheckpoint(text, keys(t, 1), origin)
		if err != nil || cp.Size != 2 {
			t.Errorf("%s: %+v, %v", name, cp, err)
		}
	}
}

func TestAnchors_DetectARestoredLog(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "anchor")
	anchored := func(o *journal.Options) { o.Anchors = []journal.Anchor{journal.FileAnchor(file)} }
	first := openLog(t, dir, anchored)
	appendOne(t, first, sampleRecord())
	closeLog(t, first)
	backup := copyDir(t, dir)
	second := openLog(t, dir, anchored)
	appendOne(t, second, sampleRecord())
	closeLog(t, second)

	refused := func(name, dir string) {
		t.Helper()
		o := options(t, dir)
		anchored(&o)
		if _, err := journal.Open(t.Context(), o); !errors.Is(err, journal.ErrRestored) || !errors.Is(err, audit.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrRestored", name, err)
		}
	}
	refused("the backup", copyDir(t, backup))
	refused("an empty directory", t.TempDir())
	// A fork that has grown past what the anchor remembers.
	fork := copyDir(t, backup)
	other := openLog(t, fork, nil)
	for range 5 {
		appendOne(t, other, sampleRecord())
	}
	closeLog(t, other)
	refused("a fork", fork)
	// The log itself goes on.
	closeLog(t, openLog(t, dir, anchored))
}

type brokenAnchor struct{ load, store error }

func (a brokenAnchor) Load(context.Context) ([]byte, error) { return nil, a.load }
func (a brokenAnchor) Store(context.Context, []byte) error  { return a.store }

func TestAnchors_ThatCannotBeReadKeepTheLogClosed(t *testing.T) {
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	defer failing.Close()
	down := httptest.NewServer(nil)
	down.Close()
	garbage := filepath.Join(t.TempDir(), "anchor")
	if err := os.WriteFile(garbage, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, anchor := range map[string]journal.Anchor{
		"an error":          brokenAnchor{load: errors.New("denied")},
		"a refusing server": journal.HTTPAnchor(failing.URL, failing.Client()),
		"no server":         journal.HTTPAnchor(down.URL, nil),
		"no URL":            journal.HTTPAnchor("://", nil),
		"no checkpoint":     journal.FileAnchor(garbage),
	} {
		o := options(t, t.TempDir())
		o.Anchors = []journal.Anchor{anchor}
		if _, err := journal.Open(t.Context(), o); !errors.Is(err, audit.ErrUnavailable) || errors.Is(err, journal.ErrRestored) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
}

func TestAnchors_ReportWhatTheyCannotStore(t *testing.T) {
	reported := make(chan error, 100)
	l := openLog(t, t.TempDir(), func(o *journal.Options) {
		o.Anchors = []journal.Anchor{
			brokenAnchor{load: os.ErrNotExist, store: errors.New("denied")},
		}
		o.Report = func(err error) {
			select {
			case reported <- err:
			default:
			}
		}
	})
	appendOne(t, l, sampleRecord()) // an anchor that lags stops nothing
	closeLog(t, l)
	if err := <-reported; err == nil || err.Error() != "audit anchor 0: denied" {
		t.Errorf("reported %v", err)
	}
	missing := journal.FileAnchor(filepath.Join(t.TempDir(), "no", "such", "directory"))
	if err := missing.Store(t.Context(), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Store: %v", err)
	}
}
