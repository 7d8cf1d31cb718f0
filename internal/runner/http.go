// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
)

// maxMediaType bounds the media type that is reported.
const maxMediaType = 255

// clientHeaders are written by the HTTP client itself. An effect that sets one
// would be approved with a value that is not the one sent.
var clientHeaders = []string{
	"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade",
	"Proxy-Authorization", "Proxy-Connection", "Expect",
}

// httpRunner sends requests.
type httpRunner struct {
	resolver Resolver
	secrets  secretStore
	limits   attest.Limits
}

// run carries out an HTTP effect: one request, sent at most once, to an
// address that was checked, without following where the answer points.
func (h httpRunner) run(ctx context.Context, call contract.HTTPCall) report {
	client, err := newDialer(h.resolver, call.AllowPrivate).client(call.CABundle)
	if err != nil {
		return refusedBy(err)
	}
	// From the moment a connection is handed to the request, bytes of it may
	// be on their way.
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	req, err := h.request(traced, call)
	if err != nil {
		return refusedBy(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return transportReport(ctx, err, sent.Load())
	}
	defer func() { _ = resp.Body.Close() }()
	return h.answer(ctx, call, resp)
}

// request builds exactly the request that the effect describes.
func (h httpRunner) request(ctx context.Context, call contract.HTTPCall) (*http.Request, error) {
	u, err := exactURL(call.URL)
	if err != nil {
		return nil, err
	}
	fill := filler{store: h.secrets, secrets: call.Secrets, host: u.Hostname()}
	headers, err := fill.headers(call.Headers)
	if err != nil {
		return nil, err
	}
	body, err := fill.fill(call.Body, bodyEscape(headers.Get("Content-Type")))
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, call.Method, call.URL, strings.NewReader(body))
	if err != nil {
		return nil, refuse(ReasonEffectInvalid, "http: the request cannot be written")
	}
	if headers.Get("User-Agent") == "" {
		headers.Set("User-Agent", userAgent)
	}
	req.Header = headers
	return req, nil
}

// exactURL parses a URL and refuses one that would be sent as another text
// than was approved.
func exactURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.String() != text || u.Hostname() == "" || u.Fragment != "":
		return nil, refuse(ReasonEffectInvalid, "url is not in the form in which it would be sent")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, refuse(ReasonEffectInvalid, "url must be https or http")
	case u.User != nil:
		return nil, refuse(ReasonEffectInvalid, "url must not hold credentials")
	default:
		return u, nil
	}
}

func (f filler) headers(list []contract.ResolvedHeader) (http.Header, error) {
	out := http.Header{}
	for _, h := range list {
		name := http.CanonicalHeaderKey(h.Name)
		if slices.Contains(clientHeaders, name) || out.Get(name) != "" {
			return nil, refuse(ReasonEffectInvalid, "header %s is set twice or belongs to the client", name)
		}
		value, err := f.fill(h.Value, headerText)
		if err != nil {
			return nil, err
		}
		out.Set(name, value)
	}
	return out, nil
}

// answer reads the response to its end or to the limit.
func (h httpRunner) answer(ctx context.Context, call contract.HTTPCall, resp *http.Response) report {
	status := int32(resp.StatusCode) //nolint:gosec // net/http reads three digits
	out := newCapture(h.limits.OutputMaxBytes, h.limits.StatusMaxBytes)
	r := report{httpStatus: &status, stdout: out, mediaType: mediaType(resp.Header.Get("Content-Type"))}
	_, err := io.Copy(out, resp.Body)
	switch {
	case errors.Is(err, errOutputTooLarge):
		r.outcome, r.reason, r.cause = attest.OutcomeFailed, ReasonOutputTooLarge, errOutputTooLarge
	case err != nil:
		lost := transportReport(ctx, err, true)
		r.outcome, r.reason, r.cause = lost.outcome, lost.reason, lost.cause
	case !success(status, call.SuccessStatus):
		r.outcome, r.reason = attest.OutcomeFailed, ReasonStatusNotSuccess
	default:
		r.outcome = attest.OutcomeSucceeded
	}
	return r
}

func success(status int32, listed []int32) bool {
	if len(listed) == 0 {
		return status >= 200 && status <= 299
	}
	return slices.Contains(listed, status)
}

// mediaType is the type of a Content-Type header without its parameters, and
// empty for a header that does not parse.
func mediaType(contentType string) string {
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil || len(t) > maxMediaType {
		return ""
	}
	return t
}

// transportReport says what a failed exchange means. Only when nothing was
// sent is it certain that there was no effect.
func transportReport(ctx context.Context, err error, sent bool) report {
	var r *refusal
	switch {
	case !sent && errors.As(err, &r):
		return refused(r.reason, r.cause)
	case !sent:
		return refused(ReasonConnectFailed, plainNetError(err))
	case errors.Is(context.Cause(ctx), errTimedOut):
		return report{outcome: attest.OutcomeTimedOut, reason: ReasonResponseLost, cause: errTimedOut}
	default:
		return report{outcome: attest.OutcomeFailed, reason: ReasonResponseLost, cause: plainNetError(err)}
	}
}
