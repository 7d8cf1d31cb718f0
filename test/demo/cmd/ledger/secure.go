// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// releaseTool is the tool of the ledger's MCP server. The manifest of the demo
// pins the digest of exactly this definition.
func releaseTool() *mcp.Tool {
	return &mcp.Tool{
		Name: "release", Title: "Release", Description: "Writes down that a version of a service was released.",
		InputSchema: json.RawMessage(`{"type":"object","required":["service","version"],"additionalProperties":false,
			"properties":{"service":{"type":"string"},"version":{"type":"string"}}}`),
		OutputSchema: json.RawMessage(`{"type":"object","required":["done","sequence"],
			"properties":{"done":{"type":"string"},"sequence":{"type":"integer"}}}`),
	}
}

// SecureHandler serves what must not be asked without the token: POST
// /services/NAME/announcements, and an MCP server at /mcp. Each entry keeps the
// text that arrived, byte by byte, so that it can be compared with what was
// decided on.
func (l *Ledger) SecureHandler(token string) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "ledger", Version: "v1"}, nil)
	server.AddTool(releaseTool(), l.release)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /services/{service}/announcements", l.announce)
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	return authorised(token, mux)
}

// authorised lets requests through that carry the token. An empty token lets
// none through.
func authorised(token string, next http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token == "" || subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (l *Ledger) announce(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEntryBytes))
	if err != nil {
		http.Error(w, "the announcement cannot be read", http.StatusBadRequest)
		return
	}
	stored, ok := l.add(Entry{Tool: "announce", Detail: r.PathValue("service"), Received: string(body)})
	if !ok {
		http.Error(w, errFull.Error(), http.StatusInsufficientStorage)
		return
	}
	reply(w, http.StatusCreated, done(stored))
}

var errFull = errors.New("the ledger is full")

func (l *Ledger) release(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct{ Service, Version string }
	if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
		return nil, fmt.Errorf("reading the arguments: %w", err)
	}
	stored, ok := l.add(Entry{Tool: "release", Detail: in.Service + " " + in.Version, Received: string(req.Params.Arguments)})
	if !ok {
		return nil, errFull
	}
	return &mcp.CallToolResult{StructuredContent: done(stored)}, nil
}

func done(e Entry) map[string]any {
	return map[string]any{"done": e.Tool, "sequence": e.Sequence}
}
