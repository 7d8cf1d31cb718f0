// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assent-dev/assent/internal/runner"
)

// bearer adds the token to every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func session(t *testing.T, l *Ledger) *mcp.ClientSession {
	t.Helper()
	server := httptest.NewServer(l.SecureHandler("t0ken"))
	t.Cleanup(server.Close)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "v1"}, nil)
	s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer("t0ken")}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestSecure_RecordsTheTextThatArrived(t *testing.T) {
	l := NewLedger(func() time.Time { return noon })
	const body = `{"text":  "spaces stay"}`
	r := httptest.NewRequest(http.MethodPost, "/services/web/announcements", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer t0ken")
	w := httptest.NewRecorder()
	l.SecureHandler("t0ken").ServeHTTP(w, r)
	if got, want := w.Body.String(), `{"done":"announce","sequence":1}`+"\n"; w.Code != http.StatusCreated || got != want {
		t.Errorf("status %d, body %s, want 201 and %s", w.Code, got, want)
	}
	const arguments = `{"service":"worker","version":"1.4.2"}`
	result, err := session(t, l).CallTool(t.Context(), &mcp.CallToolParams{Name: "release", Arguments: json.RawMessage(arguments)})
	if err != nil || result.IsError {
		t.Fatalf("calling the tool: %v %+v", err, result)
	}
	want := []Entry{
		{Sequence: 1, Time: noon, Tool: "announce", Detail: "web", Received: body},
		{Sequence: 2, Time: noon, Tool: "release", Detail: "worker 1.4.2", Received: arguments},
	}
	if diff := cmp.Diff(want, listed(t, l.Handler(), "/entries")); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestSecure_RefusesRequestsWithoutTheToken(t *testing.T) {
	for name, tc := range map[string]struct{ token, header string }{
		"no header":                     {"t0ken", ""},
		"another token":                 {"t0ken", "Bearer other"},
		"an empty token is none at all": {"", "Bearer "},
	} {
		for _, path := range []string{"/services/web/announcements", "/mcp"} {
			t.Run(name+" "+path, func(t *testing.T) {
				l := NewLedger(time.Now)
				r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{}`))
				r.Header.Set("Authorization", tc.header)
				w := httptest.NewRecorder()
				l.SecureHandler(tc.token).ServeHTTP(w, r)
				if w.Code != http.StatusUnauthorized || len(l.entries) != 0 {
					t.Errorf("status %d with %d entries, want 401 and none", w.Code, len(l.entries))
				}
			})
		}
	}
}

// The demo's call runs only while this holds.
func TestRelease_IsTheToolThatTheManifestPins(t *testing.T) {
	listed, err := session(t, NewLedger(time.Now)).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(listed.Tools) != 1 {
		t.Fatalf("the server lists %d tools, want 1", len(listed.Tools))
	}
	digest, err := runner.ToolDigest(listed.Tools[0])
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile("../../manifests/45-servers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(manifest), "\n    toolDigest: \""+digest+"\"\n") {
		t.Errorf("the manifest does not pin %s, the digest of the tool as the server lists it", digest)
	}
}
