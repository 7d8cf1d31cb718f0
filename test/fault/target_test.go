// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/runner"
)

// way is how a tool has its effect.
type way string

const (
	overHTTP  way = "over HTTP"
	overMCP   way = "over MCP"
	byCommand way = "by a command"
)

var allWays = []way{overHTTP, overMCP, byCommand}

// deliver is the first argument of this program where it is the tool.
const deliver = "deliver-the-effect"

// beTool is the command that some tools run: this program, which tells the
// target what the call is and does nothing else.
func beTool() {
	if len(os.Args) != 4 || os.Args[1] != deliver {
		return
	}
	answer, err := http.Post(os.Args[2], "text/plain", strings.NewReader(os.Args[3]))
	if err != nil || answer.StatusCode != http.StatusOK {
		os.Exit(1)
	}
	fmt.Print("done")
	os.Exit(0)
}

// notedTool is the only tool of the target's MCP server.
func notedTool() *mcp.Tool {
	return &mcp.Tool{Name: "note", InputSchema: json.RawMessage(`{"type":"object","properties":{"call":{"type":"string"}}}`)}
}

// startTarget starts what every effect reaches: one server with TLS, for HTTP
// and MCP, and one without it, for the command.
func (w *world) startTarget() {
	w.t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "target", Version: "v1"}, nil)
	server.AddTool(notedTool(), func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var arguments struct{ Call string }
		if err := json.Unmarshal(req.Params.Arguments, &arguments); err != nil {
			return nil, err
		}
		w.effect(arguments.Call)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	mux.HandleFunc("/effect", w.receive)
	w.target = httptest.NewTLSServer(mux)
	w.t.Cleanup(w.target.Close)
	w.plain = httptest.NewServer(http.HandlerFunc(w.receive))
	w.t.Cleanup(w.plain.Close)
}

// receive is where HTTP and the command arrive. The call is in the body.
func (w *world) receive(rw http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 4096))
	if err != nil {
		return
	}
	w.effect(string(body))
	_, _ = rw.Write([]byte("done"))
}

// effect records that a call had its effect, whichever way it came.
func (w *world) effect(value string) {
	l := line{kind: effected, value: value}
	w.mu.Lock()
	for uid, e := range w.calls {
		if e.value == value {
			l.proposal = uid
		}
	}
	w.mu.Unlock()
	w.record.add(l)
}

// setEffect makes the manifest's calls reach the target.
func (w *world) setEffect(how way, spec *v1alpha1.ToolManifestSpec) {
	w.t.Helper()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.target.Certificate().Raw}))
	switch how {
	case overHTTP:
		spec.HTTP = &v1alpha1.HTTPTemplate{
			Method: "POST", URL: w.target.URL + "/effect", Body: "{call}", AllowPrivate: true, CABundle: ca,
			Headers: []v1alpha1.HTTPHeader{{Name: "Content-Type", Value: "text/plain"}},
		}
	case overMCP:
		digest, err := runner.ToolDigest(notedTool())
		if err != nil {
			w.t.Fatal(err)
		}
		spec.MCP = &v1alpha1.MCPTemplate{URL: w.target.URL + "/mcp", Tool: "note", ToolDigest: digest, AllowPrivate: true, CABundle: ca}
	case byCommand:
		program, err := os.Executable()
		if err != nil {
			w.t.Fatal(err)
		}
		spec.Command = &v1alpha1.CommandTemplate{
			Image: runnerImage, WorkingDir: os.TempDir(), Argv: []string{program, deliver, w.plain.URL, "{call}"},
		}
	}
}
