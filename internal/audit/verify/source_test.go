// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/audit/verify"
)

func TestOpenSource_ReadsTheSameLogFromADirectoryAndAServer(t *testing.T) {
	k := keys(t, 1)
	dir := writeLog(t, k, genuine(t))
	server := httptest.NewServer(http.StripPrefix("/logs/a", http.FileServer(http.Dir(dir))))
	defer server.Close()
	var reports []*verify.Report
	for _, location := range []string{dir, server.URL + "/logs/a", server.URL + "/logs/a/"} {
		src, err := verify.OpenSource(location, nil)
		if err != nil {
			t.Fatal(err)
		}
		report, err := verify.Log(t.Context(), src, verify.Options{Keys: k})
		if err != nil {
			t.Fatal(err)
		}
		wantFirst(t, report, 0, "")
		reports = append(reports, report)
	}
	if diff := cmp.Diff(reports[0], reports[1]); diff != "" {
		t.Error(diff)
	}
}

func TestOpenSource_RefusesWhatIsNoLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		file:            "audit log: give the directory of the log, or a URL",
		"http://[::1/x": "audit log: the URL is not valid",
	}
	for location, want := range tests {
		if _, err := verify.OpenSource(location, nil); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", location, err, want)
		}
	}
	if _, err := verify.OpenSource(file+"-missing", nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestHTTPSource_TellsMissingFromFailing(t *testing.T) {
	status := http.StatusNotFound
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer server.Close()
	src, err := verify.OpenSource(server.URL, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{http.StatusNotFound, http.StatusGone} {
		status = code
		if _, err := src.ReadCheckpoint(t.Context()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("status %d: %v, want ErrNotExist", code, err)
		}
	}
	for _, code := range []int{http.StatusForbidden, http.StatusInternalServerError} {
		status = code
		if _, err := src.ReadTile(t.Context(), 0, 0, 3); err == nil || errors.Is(err, os.ErrNotExist) {
			t.Errorf("status %d: %v, want another error", code, err)
		}
	}
	server.Close()
	if _, err := src.ReadCheckpoint(t.Context()); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("no server: %v", err)
	}
}

func TestHTTPSource_BoundsWhatItReads(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), 70<<10))
	}))
	defer server.Close()
	src, err := verify.OpenSource(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := src.ReadCheckpoint(t.Context()); err == nil || data != nil {
		t.Errorf("a checkpoint of 70 KiB was read (%v)", err)
	}
}

func TestSplitCheckpoints_TakesNotesApart(t *testing.T) {
	k := keys(t, 1)
	a := string(newTree(t, nil).checkpoint(t, k, origin))
	b := string(newTree(t, genuine(t)[:3]).checkpoint(t, k, origin))
	tests := map[string]struct {
		in   string
		want []string
	}{
		"one":                    {a, []string{a}},
		"two":                    {a + b, []string{a, b}},
		"two with blank lines":   {"\n" + a + "\n\n" + b + "\n", []string{a, b}},
		"two signatures on one":  {a + "\u2014 witness AAAA\n" + b, []string{a + "\u2014 witness AAAA\n", b}},
		"something that is none": {"hello", []string{"hello"}},
	}
	for name, tc := range tests {
		got, err := verify.SplitCheckpoints([]byte(tc.in))
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, g := range got {
			texts = append(texts, string(g))
		}
		if diff := cmp.Diff(tc.want, texts); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, in := range []string{"", "\n \n"} {
		if _, err := verify.SplitCheckpoints([]byte(in)); !errors.Is(err, verify.ErrCheckpointMalformed) {
			t.Errorf("%q: %v, want ErrCheckpointMalformed", in, err)
		}
	}
}

func TestParseCheckpoint_RefusesOtherNotes(t *testing.T) {
	k := keys(t, 1)
	valid := string(newTree(t, nil).checkpoint(t, k, origin))
	sign := func(text string) []byte { return signNote(t, k, text) }
	tests := map[string][]byte{
		"an extension line":       sign(origin + "\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\nmore\n"),
		"a short root":            sign(origin + "\n0\nAAAA\n"),
		"no size":                 sign(origin + "\n\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"),
		"only a name":             sign(origin + "\n"),
		"a name with a space":     []byte("two words" + strings.TrimPrefix(valid, origin)),
		"nothing but new lines":   []byte("\n\n\n"),
		"a signature without end": []byte(valid + "\u2014 witness " + strings.Repeat("AAAA", 17<<10) + "\n"),
	}
	for name, text := range tests {
		if _, err := verify.ParseCheckpoint(text, k, ""); !errors.Is(err, verify.ErrCheckpointMalformed) {
			t.Errorf("%s: %v, want ErrCheckpointMalformed", name, err)
		}
	}
	c, err := verify.ParseCheckpoint([]byte(valid), k, "")
	if err != nil || c.Origin != origin || c.Size != 0 || string(c.Text) != valid {
		t.Errorf("valid: %+v, %v", c, err)
	}
}
