// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command caller does by itself what Assent's runner does for a call of the
// effects http and mcp: the benchmarks compare with it what asking costs.
//
//	caller http URL BODY
//	caller mcp URL TOOL ARGUMENTS
//
// The server's authority is in CA, its token in TOKEN.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	out, err := run(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "caller:", err)
		os.Exit(1)
	}
	fmt.Println(out)
}

func run(ctx context.Context, args []string) (string, error) {
	client, err := newClient(os.Getenv("CA"), os.Getenv("TOKEN"))
	if err != nil {
		return "", err
	}
	switch {
	case len(args) == 3 && args[0] == "http":
		return post(ctx, client, args[1], args[2])
	case len(args) == 4 && args[0] == "mcp":
		return call(ctx, client, args[1], args[2], args[3])
	}
	return "", fmt.Errorf("usage: caller http URL BODY | mcp URL TOOL ARGUMENTS")
}

// bearer adds the token to every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

func newClient(authority, token string) (*http.Client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(authority)) {
		return nil, fmt.Errorf("CA holds no certificate")
	}
	return &http.Client{Transport: bearer{token, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}}, nil
}

func post(ctx context.Context, client *http.Client, url, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusCreated {
		err = fmt.Errorf("the server answered %s", resp.Status)
	}
	return string(answer), err
}

func call(ctx context.Context, client *http.Client, url, tool, arguments string) (string, error) {
	session, err := mcp.NewClient(&mcp.Implementation{Name: "caller", Version: "v1"}, nil).Connect(ctx,
		&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = session.Close() }()
	if _, err := session.ListTools(ctx, nil); err != nil {
		return "", err
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		return "", err
	}
	if result.IsError {
		return "", fmt.Errorf("the tool failed")
	}
	out, err := json.Marshal(result.StructuredContent)
	return string(out), err
}
