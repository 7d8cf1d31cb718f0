// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
)

// mcpTarget is an MCP server with one tool.
type mcpTarget struct {
	*target
	tool  *mcp.Tool
	calls atomic.Int32
	args  atomic.Value // the arguments of the last call, as text
}

func searchTool() *mcp.Tool {
	return &mcp.Tool{
		Name: "search", Title: "Search", Description: "Finds things.",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"},"max":{"type":"integer","maximum":9223372036854775807}}}`),
		OutputSchema: json.RawMessage(`{"type":"object"}`),
		Annotations:  &mcp.ToolAnnotations{ReadOnlyHint: true},
	}
}

// newMCPTarget serves tools whose calls all end in handle. wrap may stand
// between the network and the protocol.
func newMCPTarget(t *testing.T, handle mcp.ToolHandler, wrap func(http.Handler) http.Handler, tools ...*mcp.Tool) *mcpTarget {
	t.Helper()
	m := &mcpTarget{}
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "v1"}, nil)
	for _, tool := range tools {
		server.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			m.calls.Add(1)
			m.args.Store(string(req.Params.Arguments))
			return handle(ctx, req)
		})
	}
	var handler http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{DisableLocalhostProtection: true})
	if wrap != nil {
		handler = wrap(handler)
	}
	m.target = newTarget(t, nil)
	// The protocol needs the body that a plain target reads away.
	m.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.requests = append(m.requests, r.Method+" "+r.RequestURI)
		m.headers = append(m.headers, r.Header.Clone())
		m.mu.Unlock()
		handler.ServeHTTP(w, r)
	})
	if len(tools) > 0 {
		m.tool = tools[0]
	}
	return m
}

func (m *mcpTarget) call(t *testing.T) contract.MCPCall {
	t.Helper()
	call := contract.MCPCall{
		URL: m.url("/mcp"), Tool: "search", Arguments: `{"max":5,"q":"<a&b> é"}`,
		AllowPrivate: true, CABundle: m.authority(), ToolDigest: strings.Repeat("0", 64),
	}
	if m.tool != nil {
		digest, err := ToolDigest(m.tool)
		if err != nil {
			t.Fatal(err)
		}
		call.ToolDigest = digest
	}
	return call
}

func testMCP() mcpRunner {
	return mcpRunner{resolver: loopback{}, limits: testLimits(), secrets: secretsFrom([]string{"ASSENT_SECRET_key=s3cret"})}
}

func said(text string) mcp.ToolHandler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	}
}

func returned(result *mcp.CallToolResult) mcp.ToolHandler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return result, nil }
}

func TestMCP_CallsThePinnedToolOnceWithTheApprovedArguments(t *testing.T) {
	t.Parallel()
	m := newMCPTarget(t, said("found"), nil, searchTool(), &mcp.Tool{Name: "other", InputSchema: json.RawMessage(`{"type":"object"}`)})
	call := m.call(t)
	call.Headers = []contract.ResolvedHeader{{Name: "Authorization", Value: "Bearer {_secret:key}"}}
	call.Secrets = []contract.ResolvedSecret{{Name: "key", Hosts: []string{"example.com"}}}
	rep := testMCP().run(t.Context(), call)
	wantEnding(t, rep, attest.OutcomeSucceeded, "")
	text, _ := rep.stdout.text(100)
	if text != "found" || rep.mediaType != "text/plain" || *rep.httpStatus != 200 {
		t.Errorf("output %q of type %q, status %d", text, rep.mediaType, *rep.httpStatus)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(m.args.Load().(string)), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"max": 5.0, "q": "<a&b> é"}, got); diff != "" || m.calls.Load() != 1 {
		t.Errorf("called %d times with (-want +got):\n%s", m.calls.Load(), diff)
	}
	for i, h := range m.headers {
		if h.Get("Authorization") != "Bearer s3cret" {
			t.Errorf("%s: authorization %q", m.requests[i], h.Get("Authorization"))
		}
	}
}

func TestMCP_KeepsWhatTheToolReturns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		result    *mcp.CallToolResult
		outcome   attest.Outcome
		reason    Reason
		want      string
		mediaType string
	}{
		"structured content": {
			&mcp.CallToolResult{StructuredContent: map[string]any{"b": 1, "a": "<x>"}, Content: []mcp.Content{&mcp.TextContent{Text: "the same as text"}}},
			attest.OutcomeSucceeded, "", `{"a":"<x>","b":1}`, "application/json",
		},
		"several texts": {
			&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a"}, &mcp.TextContent{Text: "b"}}},
			attest.OutcomeSucceeded, "", "a\nb", "text/plain",
		},
		"more than text": {
			&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a"}, &mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"}}},
			attest.OutcomeSucceeded, "", `[{"text":"a","type":"text"},{"data":"AQ==","mimeType":"image/png","type":"image"}]`, "application/json",
		},
		"nothing": {&mcp.CallToolResult{Content: []mcp.Content{}}, attest.OutcomeSucceeded, "", "", "text/plain"},
		"an error of the tool": {
			&mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no such index"}}},
			attest.OutcomeFailed, ReasonToolError, "no such index", "text/plain",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMCPTarget(t, returned(tc.result), nil, searchTool())
			rep := testMCP().run(t.Context(), m.call(t))
			wantEnding(t, rep, tc.outcome, tc.reason)
			if text, _ := rep.stdout.text(1000); text != tc.want || rep.mediaType != tc.mediaType {
				t.Errorf("output %q of type %q, want %q of %q", text, rep.mediaType, tc.want, tc.mediaType)
			}
		})
	}
}

func TestMCP_CallsNothingWhenTheToolIsNotThePinnedOne(t *testing.T) {
	t.Parallel()
	changed := func(change func(*mcp.Tool)) []*mcp.Tool {
		tool := searchTool()
		change(tool)
		return []*mcp.Tool{tool}
	}
	for name, tools := range map[string][]*mcp.Tool{
		"another description": changed(func(t *mcp.Tool) { t.Description += " " }),
		"another schema":      changed(func(t *mcp.Tool) { t.InputSchema = json.RawMessage(`{"type":"object"}`) }),
		"another output":      changed(func(t *mcp.Tool) { t.OutputSchema = nil }),
		"another hint":        changed(func(t *mcp.Tool) { t.Annotations.DestructiveHint = new(true) }),
		"another name":        changed(func(t *mcp.Tool) { t.Name = "search2" }),
		"no tool":             nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMCPTarget(t, said("called"), nil, tools...)
			pinned, err := ToolDigest(searchTool())
			if err != nil {
				t.Fatal(err)
			}
			call := m.call(t)
			call.ToolDigest = pinned
			wantEnding(t, testMCP().run(t.Context(), call), attest.OutcomeRefused, ReasonToolChanged)
			if m.calls.Load() != 0 {
				t.Error("the tool was called")
			}
		})
	}
}

func TestMCP_RefusesWithoutCallingAnything(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		}
	}
	elsewhere := newMCPTarget(t, said("x"), nil, searchTool())
	for name, tc := range map[string]struct {
		wrap   func(http.Handler) http.Handler
		change func(*contract.MCPCall)
		want   Reason
	}{
		"a private address":          {nil, func(c *contract.MCPCall) { c.AllowPrivate = false }, ReasonAddressNotAllowed},
		"an unknown certificate":     {nil, func(c *contract.MCPCall) { c.CABundle = "" }, ReasonConnectFailed},
		"a bundle that is none":      {nil, func(c *contract.MCPCall) { c.CABundle = "x" }, ReasonEffectInvalid},
		"nobody listening":           {nil, func(c *contract.MCPCall) { c.URL = "https://example.com:1/mcp" }, ReasonConnectFailed},
		"a URL with credentials":     {nil, func(c *contract.MCPCall) { c.URL = "https://u:p@example.com/mcp" }, ReasonEffectInvalid},
		"a header of the protocol":   {nil, mcpHeader("Mcp-Session-Id", "x"), ReasonEffectInvalid},
		"the content type":           {nil, mcpHeader("content-type", "x"), ReasonEffectInvalid},
		"a secret for another host":  {nil, mcpHeader("Authorization", "{_secret:key}"), ReasonCredentialHostMismatch},
		"a server that is not there": {status(404), nil, ReasonServerUnusable},
		"a server that is broken":    {status(500), nil, ReasonServerUnusable},
		"a server that asks for more": {
			status(401), nil, ReasonServerUnusable,
		},
		"a redirect": {func(http.Handler) http.Handler {
			return http.RedirectHandler(elsewhere.url("/mcp"), http.StatusTemporaryRedirect)
		}, nil, ReasonServerUnusable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMCPTarget(t, said("called"), tc.wrap, searchTool())
			call := m.call(t)
			if tc.change != nil {
				tc.change(&call)
			}
			wantEnding(t, testMCP().run(t.Context(), call), attest.OutcomeRefused, tc.want)
			if m.calls.Load() != 0 {
				t.Error("the tool was called")
			}
		})
	}
	t.Cleanup(func() {
		if elsewhere.count() != 0 {
			t.Error("a redirect was followed")
		}
	})
}

func mcpHeader(name, value string) func(*contract.MCPCall) {
	return func(c *contract.MCPCall) {
		c.Headers = []contract.ResolvedHeader{{Name: name, Value: value}}
		c.Secrets = []contract.ResolvedSecret{{Name: "key", Hosts: []string{"example.org"}}}
	}
}

// onCall lets do handle the call itself and everything else pass.
func onCall(do func(w http.ResponseWriter, r *http.Request, next http.Handler)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			if strings.Contains(string(body), `"tools/call"`) {
				do(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestMCP_NeverCallsTwice(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer  func(w http.ResponseWriter)
		outcome attest.Outcome
		reason  Reason
	}{
		"the connection breaks": {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, attest.OutcomeFailed, ReasonResponseLost},
		"the server is overloaded": {
			func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
			attest.OutcomeFailed, ReasonProtocolError,
		},
		"the session is gone":    {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, attest.OutcomeFailed, ReasonProtocolError},
		"it asks who is calling": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, attest.OutcomeFailed, ReasonProtocolError},
		"the stream ends without an answer": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: 1\nretry: 1\n\n")
		}, attest.OutcomeFailed, ReasonResponseLost},
		"an error of the protocol": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+callID+`,"error":{"code":-32602,"message":"text of the server"}}`)
		}, attest.OutcomeFailed, ReasonProtocolError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := 0
			m := newMCPTarget(t, said("x"), onCall(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
				sent++
				tc.answer(&withID{w, idOf(r)})
			}), searchTool())
			call := m.call(t)
			call.Headers = []contract.ResolvedHeader{{Name: "Idempotency-Key", Value: "1"}}
			rep := testMCP().run(t.Context(), call)
			wantEnding(t, rep, tc.outcome, tc.reason)
			if sent != 1 {
				t.Errorf("the call was sent %d times", sent)
			}
			if rep.cause == nil || strings.Contains(rep.cause.Error(), "text of the server") {
				t.Errorf("cause %v", rep.cause)
			}
		})
	}
}

// callID in an answer stands for the ID of the request.
const callID = "$ID"

type withID struct {
	http.ResponseWriter
	id string
}

func (w *withID) Write(p []byte) (int, error) {
	return w.ResponseWriter.Write([]byte(strings.ReplaceAll(string(p), callID, w.id)))
}

func idOf(r *http.Request) string {
	var message struct {
		ID json.RawMessage `json:"id"`
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &message)
	return string(message.ID)
}

// TestMCP_DoesNotAnswerQuestionsInTheMiddleOfACall: the protocol lets a server
// answer a call with questions and expects the call again with the answers.
func TestMCP_DoesNotAnswerQuestionsInTheMiddleOfACall(t *testing.T) {
	t.Parallel()
	sent := 0
	m := newMCPTarget(t, said("x"), onCall(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		sent++
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+idOf(r)+`,"result":{"resultType":"input_required","requestState":"s",`+
			`"content":[],"inputRequests":{"1":{"method":"roots/list","params":{}}}}}`)
	}), searchTool())
	rep := testMCP().run(t.Context(), m.call(t))
	wantEnding(t, rep, attest.OutcomeFailed, ReasonProtocolError)
	if sent != 1 || rep.cause == nil || !strings.Contains(rep.cause.Error(), "asks for more input") {
		t.Errorf("sent %d times, cause %v", sent, rep.cause)
	}
}

func TestMCP_ReadsNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	runner := testMCP()
	runner.limits.OutputMaxBytes = 20000
	long := newMCPTarget(t, said(strings.Repeat("x", 30000)), nil, searchTool())
	wantEnding(t, runner.run(t.Context(), long.call(t)), attest.OutcomeFailed, ReasonOutputTooLarge)
	fits := newMCPTarget(t, said(strings.Repeat("x", 15000)), nil, searchTool())
	wantEnding(t, runner.run(t.Context(), fits.call(t)), attest.OutcomeSucceeded, "")
}

func TestMCP_StopsAtItsTimeLimit(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	release := make(chan struct{})
	m := newMCPTarget(t, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		cancel(errTimedOut)
		<-release
		return nil, nil //nolint:nilnil // nobody reads it
	}, nil, searchTool())
	rep := testMCP().run(ctx, m.call(t))
	close(release)
	wantEnding(t, rep, attest.OutcomeTimedOut, ReasonResponseLost)
}

func TestMCP_RefusesAToolThatIsListedTwice(t *testing.T) {
	t.Parallel()
	m := newMCPTarget(t, said("x"), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			if strings.Contains(string(body), `"tools/list"`) {
				w.Header().Set("Content-Type", "application/json")
				tool := `{"name":"search","inputSchema":{"type":"object"}}`
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+idOf(r)+`,"result":{"tools":[`+tool+`,`+tool+`]}}`)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, searchTool())
	call := m.call(t)
	call.ToolDigest = hexSum(`{"inputSchema":{"type":"object"},"name":"search"}`)
	wantEnding(t, testMCP().run(t.Context(), call), attest.OutcomeRefused, ReasonToolChanged)
}

func TestMCP_GivesUpOnAListThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	pages := 0
	m := newMCPTarget(t, said("x"), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			if strings.Contains(string(body), `"tools/list"`) {
				pages++
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+idOf(r)+`,"result":{"tools":[],"nextCursor":"more"}}`)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, searchTool())
	wantEnding(t, testMCP().run(t.Context(), m.call(t)), attest.OutcomeRefused, ReasonServerUnusable)
	if pages > maxToolPages {
		t.Errorf("%d pages were asked for", pages)
	}
}

func TestMCPWire_RefusesWhatWasNotApproved(t *testing.T) {
	t.Parallel()
	const approved = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{ "q":"x" }}}`
	for name, tc := range map[string]struct {
		host   string
		bodies []string
		want   error
	}{
		"another host":      {"inside", []string{approved}, errOtherHost},
		"a second call":     {"h", []string{approved, approved}, errSecondCall},
		"other arguments":   {"h", []string{strings.Replace(approved, `"x"`, `"y"`, 1)}, errChangedCall},
		"more arguments":    {"h", []string{strings.Replace(approved, `"x"`, `"x","z":1`, 1)}, errChangedCall},
		"no arguments":      {"h", []string{`{"method":"tools/call","params":{"name":"search"}}`}, errChangedCall},
		"another tool":      {"h", []string{strings.Replace(approved, "search", "delete", 1)}, errChangedCall},
		"two in one":        {"h", []string{"[" + approved + "," + approved + "]"}, errNotRequested},
		"a member twice":    {"h", []string{strings.Replace(approved, `"id":1`, `"method":"ping","id":1`, 1)}, errNotRequested},
		"something unknown": {"h", []string{"{"}, errNotRequested},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reached := 0
			w := &mcpWire{host: "h", tool: "search", arguments: `{"q":"x"}`, limit: 100, client: &http.Client{
				Transport: roundTrip(func(*http.Request) (*http.Response, error) {
					reached++
					return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
				}),
			}}
			var err error
			for _, body := range tc.bodies {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+tc.host+"/", strings.NewReader(body))
				var resp *http.Response
				if resp, err = w.RoundTrip(req); err == nil {
					_ = resp.Body.Close()
				}
			}
			if err != tc.want || reached != len(tc.bodies)-1 { //nolint:errorlint // exactly this error
				t.Errorf("error %v, %d requests went through; want %v", err, reached, tc.want)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestToolDigest_CoversWhatSaysWhatTheToolIs(t *testing.T) {
	t.Parallel()
	base, err := ToolDigest(searchTool())
	if err != nil {
		t.Fatal(err)
	}
	// The text that docs/execution.md tells how to write.
	text := `{"annotations":{"idempotentHint":false,"readOnlyHint":true},"description":"Finds things.",` +
		`"inputSchema":{"properties":{"max":{"maximum":9223372036854776000,"type":"integer"},"q":{"type":"string"}},"type":"object"},` +
		`"name":"search","outputSchema":{"type":"object"},"title":"Search"}`
	if base != hexSum(text) {
		t.Errorf("the digest of the example changed: manifests that pin it would stop working")
	}
	for name, tc := range map[string]struct {
		change func(*mcp.Tool)
		same   bool
	}{
		"name":            {func(t *mcp.Tool) { t.Name += "x" }, false},
		"title":           {func(t *mcp.Tool) { t.Title = "" }, false},
		"description":     {func(t *mcp.Tool) { t.Description = "" }, false},
		"input schema":    {func(t *mcp.Tool) { t.InputSchema = map[string]any{} }, false},
		"output schema":   {func(t *mcp.Tool) { t.OutputSchema = nil }, false},
		"annotations":     {func(t *mcp.Tool) { t.Annotations = nil }, false},
		"annotated title": {func(t *mcp.Tool) { t.Annotations.Title = "x" }, false},
		"read only":       {func(t *mcp.Tool) { t.Annotations.ReadOnlyHint = false }, false},
		"idempotent":      {func(t *mcp.Tool) { t.Annotations.IdempotentHint = true }, false},
		"destructive":     {func(t *mcp.Tool) { t.Annotations.DestructiveHint = new(false) }, false},
		"open world":      {func(t *mcp.Tool) { t.Annotations.OpenWorldHint = new(false) }, false},
		"icons":           {func(t *mcp.Tool) { t.Icons = []mcp.Icon{{Source: "x"}} }, true},
		"meta":            {func(t *mcp.Tool) { t.Meta = mcp.Meta{"session": "x"} }, true},
		"the same schema, otherwise written": {func(t *mcp.Tool) {
			t.OutputSchema = json.RawMessage(`{ "type" : "object" }`)
		}, true},
	} {
		tool := searchTool()
		tc.change(tool)
		got, err := ToolDigest(tool)
		if err != nil || (got == base) != tc.same {
			t.Errorf("%s: same digest %v, error %v", name, got == base, err)
		}
	}
	if _, err := ToolDigest(&mcp.Tool{InputSchema: json.RawMessage(`{"a":1,"a":2}`)}); err == nil {
		t.Error("a schema with a member twice has a digest")
	}
	if _, err := ToolDigest(&mcp.Tool{InputSchema: func() {}}); err == nil {
		t.Error("a schema that is no JSON has a digest")
	}
}
