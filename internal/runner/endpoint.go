// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/attest"
)

// Paths of the execution service.
const (
	// PathRedeem takes an attest.RedeemRequest and answers with an
	// attest.RedeemResponse.
	PathRedeem = "/v1alpha1/redeem"
	// PathResult takes an attest.SignedResult and answers with any 2xx status.
	PathResult = "/v1alpha1/result"
)

var (
	errDenied      = errors.New("the execution service refused the request")
	errUnavailable = errors.New("the execution service did not answer in time")
)

// statusError is an answer of the execution service that is not a success.
// Its body is not kept: nothing in it may become part of a message.
type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprintf("status %d", e.status) }

// final reports whether asking again could not help.
func (e *statusError) final() bool {
	switch e.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	default:
		return e.status < 500
	}
}

// endpoint speaks with the execution service.
type endpoint struct {
	config Config
	client *http.Client
	now    func() time.Time
	pause  func(context.Context, time.Duration) error
}

func newEndpoint(c Config, now func() time.Time, pause func(context.Context, time.Duration) error) *endpoint {
	transport := &http.Transport{
		// Without Proxy nothing in the environment can route the token away.
		TLSClientConfig:     &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS13},
		TLSHandshakeTimeout: attemptTimeout,
		DisableCompression:  true,
		// A connection is used once, so that a retry meets another replica.
		DisableKeepAlives: true,
		Protocols:         httpOneOnly(),
	}
	return &endpoint{config: c, now: now, pause: pause, client: &http.Client{
		Transport:     transport,
		Timeout:       attemptTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// httpOneOnly excludes HTTP/2, whose client sends a request again by itself
// when a server says that it has not been processed.
func httpOneOnly() *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	return &p
}

// redeem asks for the call until it gets an answer. Every attempt carries the
// same nonce, so that a lost answer can be fetched again but nobody else can.
// It also returns when the answered attempt began.
func (e *endpoint) redeem(ctx context.Context, nonce string) (attest.RedeemResponse, time.Time, error) {
	body, err := attest.Encode(attest.RedeemRequest{
		ProposalNamespace: e.config.Proposal.Namespace,
		ProposalName:      e.config.Proposal.Name,
		ProposalUID:       e.config.Proposal.UID,
		Nonce:             nonce,
	})
	if err != nil {
		return attest.RedeemResponse{}, time.Time{}, fmt.Errorf("encoding the redeem request: %w", err)
	}
	answer, asked, err := e.post(ctx, PathRedeem, body, attest.MaxRedeemResponseBytes)
	if err != nil {
		return attest.RedeemResponse{}, time.Time{}, err
	}
	response, err := attest.DecodeRedeemResponse(answer)
	return response, asked, err
}

// deliver sends the result until it is accepted.
func (e *endpoint) deliver(ctx context.Context, signed attest.SignedResult) error {
	body, err := attest.Encode(signed)
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	_, _, err = e.post(ctx, PathResult, body, 0)
	return err
}

// post repeats a request until it succeeds, is refused or ctx ends. An attempt
// that has begun is not cut short by ctx: its answer may be the grant.
func (e *endpoint) post(ctx context.Context, path string, body []byte, answerLimit int64) ([]byte, time.Time, error) {
	if ctx.Err() != nil {
		return nil, time.Time{}, fmt.Errorf("%w: not asked", errUnavailable)
	}
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		began := e.now()
		answer, err := e.attempt(context.WithoutCancel(ctx), path, body, answerLimit)
		if err == nil {
			return answer, began, nil
		}
		var status *statusError
		if errors.As(err, &status) && status.final() {
			return nil, began, fmt.Errorf("%w: %w", errDenied, status)
		}
		if e.pause(ctx, pause) != nil {
			return nil, began, fmt.Errorf("%w; last attempt: %w", errUnavailable, err)
		}
	}
}

func (e *endpoint) attempt(ctx context.Context, path string, body []byte, answerLimit int64) ([]byte, error) {
	token, err := e.token()
	if err != nil {
		return nil, err
	}
	target := e.config.Endpoint.JoinPath(path).String()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the execution service: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, &statusError{resp.StatusCode}
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of the execution service: %w", err)
	}
	return answer, nil
}

// token is read for each attempt, because the kubelet replaces it.
func (e *endpoint) token() (string, error) {
	f, err := os.Open(e.config.TokenFile)
	if err != nil {
		return "", fmt.Errorf("opening the token: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxTokenBytes))
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// Pause waits for d or until ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
