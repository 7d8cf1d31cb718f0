// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
)

// maxToolPages bounds how often a server may say that it has more tools.
const maxToolPages = 64

// mcpRunner calls tools of MCP servers.
type mcpRunner struct {
	resolver Resolver
	secrets  secretStore
	limits   attest.Limits
}

// run carries out an MCP effect: it asks the server for its tools, compares
// the definition of the one tool with the pinned digest, and calls it once.
func (m mcpRunner) run(ctx context.Context, call contract.MCPCall) report {
	wire, err := m.wire(call)
	if err != nil {
		return refusedBy(err)
	}
	session, err := connect(ctx, call.URL, wire)
	if err != nil {
		return wire.unusable(err)
	}
	defer closeSession(ctx, session)
	tool, err := findTool(ctx, session, call.Tool)
	if err != nil {
		if r, ok := errors.AsType[*refusal](err); ok {
			return refused(r.reason, r.cause)
		}
		return wire.unusable(err)
	}
	if err := comparePinned(tool, call.ToolDigest); err != nil {
		return refusedBy(err)
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: call.Tool, Arguments: json.RawMessage(call.Arguments)})
	if err != nil {
		return wire.failed(ctx, err)
	}
	return m.answer(wire, result)
}

func (m mcpRunner) wire(call contract.MCPCall) (*mcpWire, error) {
	u, err := exactURL(call.URL)
	if err != nil {
		return nil, err
	}
	headers, err := filler{store: m.secrets, secrets: call.Secrets, host: u.Hostname()}.headers(call.Headers)
	if err != nil {
		return nil, err
	}
	for name := range headers {
		if reservedMCPHeader(name) {
			return nil, refuse(ReasonEffectInvalid, "mcp: header %s belongs to the protocol", name)
		}
	}
	client, err := newDialer(m.resolver, call.AllowPrivate).client(call.CABundle)
	if err != nil {
		return nil, err
	}
	return &mcpWire{
		client: client, host: u.Host, headers: headers, limit: m.limits.OutputMaxBytes,
		tool: call.Tool, arguments: call.Arguments,
	}, nil
}

func connect(ctx context.Context, url string, wire *mcpWire) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: userAgent, Version: "v1"}, &mcp.ClientOptions{
		// The runner offers the server nothing: no model, no files, no person.
		Capabilities: &mcp.ClientCapabilities{},
		// By default the library calls a tool again with what the server asks
		// for. A call is made once.
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint:             url,
		HTTPClient:           wire.httpClient(),
		MaxRetries:           -1,
		DisableStandaloneSSE: true,
		MaxEventSize:         int(wire.limit),
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("initialising the session: %w", err)
	}
	return session, nil
}

// closeSession tells the server that the session is over. A server that does
// not listen must not hold up the report.
func closeSession(ctx context.Context, session *mcp.ClientSession) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = session.Close()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	case <-time.After(closePatience):
	}
}

// findTool looks through all of the server's tools. A name that occurs twice
// is refused, because the call would not say which one it means.
func findTool(ctx context.Context, session *mcp.ClientSession, name string) (*mcp.Tool, error) {
	var found *mcp.Tool
	params := &mcp.ListToolsParams{}
	for range maxToolPages {
		page, err := session.ListTools(ctx, params)
		if err != nil {
			return nil, fmt.Errorf("listing the server's tools: %w", err)
		}
		for _, t := range page.Tools {
			if t == nil || t.Name != name {
				continue
			}
			if found != nil {
				return nil, refuse(ReasonToolChanged, "mcp: the server lists the tool twice")
			}
			found = t
		}
		if page.NextCursor == "" {
			if found == nil {
				return nil, refuse(ReasonToolChanged, "mcp: the server does not list the tool")
			}
			return found, nil
		}
		params = &mcp.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, refuse(ReasonServerUnusable, "mcp: the server's list of tools does not end")
}

func comparePinned(tool *mcp.Tool, pinned string) error {
	digest, err := ToolDigest(tool)
	if err != nil {
		return refuse(ReasonServerUnusable, "mcp: the tool's definition has no canonical form")
	}
	if digest != pinned {
		// The digest says nothing that the server does not tell everybody.
		return refuse(ReasonToolChanged, "mcp: the server's tool has the digest %s, not the pinned one", digest)
	}
	return nil
}

// ToolDigest returns the SHA-256, in hex, that a manifest pins as toolDigest.
// It covers what tells people and models what the tool is: the RFC 8785 text
// of an object with the members
//
//	name, inputSchema         always
//	title, description        where they are not empty
//	outputSchema, annotations where they are present
//
// as the server lists them, where annotations has readOnlyHint and
// idempotentHint always (false where the server does not say), and
// destructiveHint, openWorldHint and title where the server says. Icons, _meta
// and members that the protocol does not define do not enter: servers fill
// them per session.
func ToolDigest(tool *mcp.Tool) (string, error) {
	text, err := json.Marshal(definitionOf(tool))
	if err != nil {
		return "", fmt.Errorf("encoding the tool's definition: %w", err)
	}
	canonical := jsontext.Value(text)
	if err := canonical.Canonicalize(); err != nil {
		return "", fmt.Errorf("canonicalising the tool's definition: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// definition is what ToolDigest covers. It is a structure of its own so that a
// new version of the library cannot change digests that manifests pin.
type definition struct {
	Name         string       `json:"name"`
	Title        string       `json:"title,omitempty"`
	Description  string       `json:"description,omitempty"`
	InputSchema  any          `json:"inputSchema"`
	OutputSchema any          `json:"outputSchema,omitempty"`
	Annotations  *annotations `json:"annotations,omitempty"`
}

type annotations struct {
	Title           string `json:"title,omitempty"`
	ReadOnlyHint    bool   `json:"readOnlyHint"`
	IdempotentHint  bool   `json:"idempotentHint"`
	DestructiveHint *bool  `json:"destructiveHint,omitempty"`
	OpenWorldHint   *bool  `json:"openWorldHint,omitempty"`
}

func definitionOf(t *mcp.Tool) definition {
	d := definition{
		Name: t.Name, Title: t.Title, Description: t.Description,
		InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
	}
	if a := t.Annotations; a != nil {
		d.Annotations = &annotations{
			Title: a.Title, ReadOnlyHint: a.ReadOnlyHint, IdempotentHint: a.IdempotentHint,
			DestructiveHint: a.DestructiveHint, OpenWorldHint: a.OpenWorldHint,
		}
	}
	return d
}

// answer turns a tool's result into a report. Structured content is the output
// where there is any; otherwise the texts are, or, when there is more than
// text, the list of contents as JSON.
func (m mcpRunner) answer(wire *mcpWire, result *mcp.CallToolResult) report {
	r := report{outcome: attest.OutcomeSucceeded, httpStatus: wire.status()}
	switch {
	case result.NeedsInput():
		r.outcome, r.reason = attest.OutcomeFailed, ReasonProtocolError
		r.cause = errors.New("mcp: the tool asks for more input, which nobody has approved")
	case result.IsError:
		r.outcome, r.reason = attest.OutcomeFailed, ReasonToolError
	}
	text, media, err := outputOf(result)
	if err != nil {
		return report{outcome: attest.OutcomeFailed, reason: ReasonProtocolError, httpStatus: r.httpStatus, cause: errors.New("mcp: the result cannot be encoded")}
	}
	r.stdout, r.mediaType = newCapture(m.limits.OutputMaxBytes, m.limits.StatusMaxBytes), media
	if _, err := r.stdout.Write(text); err != nil {
		r.outcome, r.reason, r.cause = attest.OutcomeFailed, ReasonOutputTooLarge, err
	}
	return r
}

func outputOf(result *mcp.CallToolResult) ([]byte, string, error) {
	if result.StructuredContent != nil {
		return encoded(result.StructuredContent)
	}
	var texts []string
	for _, c := range result.Content {
		t, ok := c.(*mcp.TextContent)
		if !ok {
			return encoded(result.Content)
		}
		texts = append(texts, t.Text)
	}
	return []byte(strings.Join(texts, "\n")), "text/plain", nil
}

// encoded is canonical JSON, so that one result has one digest.
func encoded(v any) ([]byte, string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, "", fmt.Errorf("encoding the result: %w", err)
	}
	canonical := jsontext.Value(text)
	if err := canonical.Canonicalize(); err != nil {
		return nil, "", fmt.Errorf("canonicalising the result: %w", err)
	}
	return canonical, "application/json", nil
}

// isRPCError reports whether the server answered with an error of JSON-RPC.
func isRPCError(err error) bool {
	var rpc *jsonrpc.Error
	return errors.As(err, &rpc)
}
