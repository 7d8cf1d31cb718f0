// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func service(t *testing.T, status int, answer string) (string, *[]map[string]string) {
	t.Helper()
	var seen []map[string]string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var entry map[string]string
		if err := json.NewDecoder(r.Body).Decode(&entry); err != nil || r.Method != http.MethodPost || r.URL.Path != "/entries" {
			t.Errorf("unexpected request %s %s: %v", r.Method, r.URL.Path, err)
		}
		seen = append(seen, entry)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL, &seen
}

func TestRun_RecordsOnceAndPrintsTheEntry(t *testing.T) {
	url, seen := service(t, http.StatusCreated, `{"sequence":7}`)
	var out bytes.Buffer
	args := []string{"record", "--service", url, "--kind", "scale", "--target", "web", "--set", "replicas=3", "--call-id", "c1"}
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	want := []map[string]string{{"tool": "scale", "detail": "web replicas=3", "callID": "c1"}}
	if diff := cmp.Diff(want, *seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(`{"done":"scale","sequence":7,"settings":["replicas=3"],"target":"web"}`, strings.TrimSpace(out.String())); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestRun_FailsWithoutASecondTryWhenTheLedgerRefuses(t *testing.T) {
	url, seen := service(t, http.StatusInternalServerError, "")
	err := run(t.Context(), []string{"record", "--service", url, "--kind", "restart", "--target", "web"}, io.Discard)
	if err == nil || err.Error() != "the ledger answered 500 Internal Server Error" {
		t.Errorf("error %v", err)
	}
	if len(*seen) != 1 {
		t.Errorf("%d requests, want 1", len(*seen))
	}
}

func TestParse_RefusesIncompleteCommands(t *testing.T) {
	cases := map[string][]string{
		"nothing at all":            {},
		"another subcommand":        {"erase"},
		"no service":                {"record", "--kind", "restart", "--target", "web"},
		"no kind":                   {"record", "--service", "http://x", "--target", "web"},
		"no target":                 {"record", "--service", "http://x", "--kind", "restart"},
		"a word too many":           {"record", "--service", "http://x", "--kind", "restart", "--target", "web", "now"},
		"a setting without a value": {"record", "--service", "http://x", "--kind", "restart", "--target", "web", "--set", "x"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(args); err == nil || !strings.Contains(err.Error(), usage) {
				t.Errorf("error %v, want one with the usage", err)
			}
		})
	}
}
