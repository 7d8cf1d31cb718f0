// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/attest"
)

const methodCallTool = "tools/call"

var (
	errSecondCall   = errors.New("mcp: the call would be sent a second time")
	errChangedCall  = errors.New("mcp: the call would be sent with other arguments than were approved")
	errOtherHost    = errors.New("mcp: a request would go to another host")
	errClosedByMCP  = errors.New("mcp: the server's answers are longer than the ticket allows")
	errNotRequested = errors.New("mcp: the request cannot be read")
)

// mcpWire stands between the protocol library and the network. The library
// decides what is said; the wire sees to it that the call is said once, with
// the approved arguments, to the approved host, and remembers what became of
// it, which the library's errors do not tell apart.
type mcpWire struct {
	client    *http.Client
	host      string
	headers   http.Header
	limit     int64
	tool      string
	arguments string

	mu sync.Mutex
	// asked: the call was handed to the HTTP client. sent: a connection was
	// there to write it to. answered: the status of the answer.
	asked, sent bool
	answered    *int32
	// connectErr is the first failure to connect, overflow that an answer was
	// longer than the limit.
	connectErr error
	overflow   bool
}

func (w *mcpWire) httpClient() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: w.client.CheckRedirect}
}

// RoundTrip implements http.RoundTripper.
func (w *mcpWire) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != w.host {
		return nil, errOtherHost
	}
	isCall, err := w.inspect(req)
	if err != nil {
		return nil, err
	}
	ctx := req.Context()
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		w.mu.Lock()
		defer w.mu.Unlock()
		connected = true
		w.sent = w.sent || isCall
	}})
	out := req.Clone(ctx)
	maps.Copy(out.Header, w.headers)
	if out.Header.Get("User-Agent") == "" {
		out.Header.Set("User-Agent", userAgent)
	}
	resp, err := w.client.Transport.RoundTrip(out)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if !connected && w.connectErr == nil {
			w.connectErr = err
		}
		return nil, fmt.Errorf("mcp: %w", err)
	}
	if isCall {
		status := int32(resp.StatusCode) //nolint:gosec // net/http reads three digits
		w.answered = &status
	}
	resp.Body = &limitedBody{ReadCloser: resp.Body, left: w.limit, wire: w}
	return resp, nil
}

// inspect reports whether a request is the call, and refuses it unless it is
// the first and says what was approved.
func (w *mcpWire) inspect(req *http.Request) (isCall bool, err error) {
	if req.Body == nil || req.Method != http.MethodPost {
		return false, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return false, errNotRequested
	}
	_ = req.Body.Close()
	req.Body = io.NopCloser(bytes.NewReader(body))
	var message struct {
		Method string `json:"method"`
		Params struct {
			Name      string         `json:"name"`
			Arguments jsontext.Value `json:"arguments"`
		} `json:"params"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return false, errNotRequested
	}
	// Answers to requests of the server have no method.
	if message.Method != methodCallTool {
		return false, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked {
		return true, errSecondCall
	}
	w.asked = true
	if err := message.Params.Arguments.Canonicalize(); err != nil ||
		string(message.Params.Arguments) != w.arguments || message.Params.Name != w.tool {
		return true, errChangedCall
	}
	return true, nil
}

func (w *mcpWire) status() *int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answered
}

// unusable reports a server with which it did not come to a call.
func (w *mcpWire) unusable(err error) report {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.connectErr != nil {
		return transportReport(context.Background(), w.connectErr, false)
	}
	if isRPCError(err) {
		return refused(ReasonServerUnusable, errors.New("mcp: the server answered the preparation of the call with an error"))
	}
	return refused(ReasonServerUnusable, errors.New("mcp: the session could not be prepared"))
}

// failed reports a call that brought no result.
func (w *mcpWire) failed(ctx context.Context, err error) report {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.sent && w.connectErr != nil:
		return transportReport(ctx, w.connectErr, false)
	case !w.sent:
		return refused(ReasonServerUnusable, errors.New("mcp: the call was not sent"))
	case w.overflow:
		return report{outcome: attest.OutcomeFailed, reason: ReasonOutputTooLarge, httpStatus: w.answered, cause: errClosedByMCP}
	case errors.Is(context.Cause(ctx), errTimedOut):
		return report{outcome: attest.OutcomeTimedOut, reason: ReasonResponseLost, httpStatus: w.answered, cause: errTimedOut}
	// The library makes an error of JSON-RPC of a broken connection as well.
	case w.answered != nil && (isRPCError(err) || *w.answered < 200 || *w.answered > 299):
		return report{outcome: attest.OutcomeFailed, reason: ReasonProtocolError, httpStatus: w.answered, cause: errors.New("mcp: the server answered the call with an error")}
	default:
		return report{outcome: attest.OutcomeFailed, reason: ReasonResponseLost, httpStatus: w.answered, cause: plainNetError(err)}
	}
}

// limitedBody ends an answer that is longer than the limit. The library reads
// answers whole.
type limitedBody struct {
	io.ReadCloser
	left int64
	wire *mcpWire
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		b.wire.mu.Lock()
		b.wire.overflow = true
		b.wire.mu.Unlock()
		return 0, errClosedByMCP
	}
	return n, err //nolint:wrapcheck // io.EOF must stay io.EOF
}

// reservedMCPHeader reports whether a header belongs to the protocol.
func reservedMCPHeader(name string) bool {
	return name == "Accept" || name == "Content-Type" || name == "Last-Event-Id" || strings.HasPrefix(name, "Mcp-")
}
