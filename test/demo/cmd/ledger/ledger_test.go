// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func call(t *testing.T, h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w
}

func listed(t *testing.T, h http.Handler, target string) []Entry {
	t.Helper()
	var out struct{ Entries []Entry }
	w := call(t, h, http.MethodGet, target, "")
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("GET %s: %v: %s", target, err, w.Body)
	}
	return out.Entries
}

func TestLedger_ListsEntriesInOrderOfArrival(t *testing.T) {
	h := NewLedger(func() time.Time { return noon }).Handler()
	for _, body := range []string{
		`{"tool":"restart","detail":"web","callID":"a"}`,
		`{"tool":"scale","detail":"worker replicas=3","callID":"b"}`,
	} {
		if w := call(t, h, http.MethodPost, "/entries", body); w.Code != http.StatusCreated {
			t.Fatalf("POST: status %d, want 201: %s", w.Code, w.Body)
		}
	}
	want := []Entry{
		{Sequence: 1, Time: noon, Tool: "restart", Detail: "web", CallID: "a"},
		{Sequence: 2, Time: noon, Tool: "scale", Detail: "worker replicas=3", CallID: "b"},
	}
	if diff := cmp.Diff(want, listed(t, h, "/entries")); diff != "" {
		t.Errorf("all entries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:], listed(t, h, "/entries?callID=b")); diff != "" {
		t.Errorf("entries of call b (-want +got):\n%s", diff)
	}
}

func TestLedger_ListsNothingAsAnEmptyArray(t *testing.T) {
	w := call(t, NewLedger(time.Now).Handler(), http.MethodGet, "/entries", "")
	if got := strings.TrimSpace(w.Body.String()); got != `{"entries":[]}` {
		t.Errorf("body %s", got)
	}
}

func TestLedger_RefusesWhatItCannotRecord(t *testing.T) {
	cases := map[string]struct {
		method, body string
		want         int
	}{
		"a body that is not JSON":   {http.MethodPost, `restart`, http.StatusBadRequest},
		"an unknown member":         {http.MethodPost, `{"tool":"restart","when":"now"}`, http.StatusBadRequest},
		"an entry without a tool":   {http.MethodPost, `{"detail":"web"}`, http.StatusBadRequest},
		"a body over the limit":     {http.MethodPost, `{"tool":"` + strings.Repeat("x", maxEntryBytes) + `"}`, http.StatusRequestEntityTooLarge},
		"another method than these": {http.MethodDelete, ``, http.StatusMethodNotAllowed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := NewLedger(time.Now).Handler()
			if w := call(t, h, tc.method, "/entries", tc.body); w.Code != tc.want {
				t.Errorf("status %d, want %d", w.Code, tc.want)
			}
			if got := listed(t, h, "/entries"); len(got) != 0 {
				t.Errorf("%d entries were recorded, want none", len(got))
			}
		})
	}
}

func TestLedger_RefusesEntriesWhenFull(t *testing.T) {
	l := NewLedger(time.Now)
	l.entries = make([]Entry, maxEntries)
	if w := call(t, l.Handler(), http.MethodPost, "/entries", `{"tool":"restart"}`); w.Code != http.StatusInsufficientStorage {
		t.Errorf("status %d, want 507", w.Code)
	}
}
