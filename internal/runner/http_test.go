// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
)

// target is a server that effects are sent to, and what arrived there.
type target struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	bodies   []string
	headers  []http.Header
}

func newTarget(t *testing.T, handle http.HandlerFunc) *target {
	t.Helper()
	target := &target{}
	target.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		target.mu.Lock()
		target.requests = append(target.requests, r.Method+" "+r.Host+" "+r.RequestURI)
		target.bodies = append(target.bodies, string(body))
		target.headers = append(target.headers, r.Header.Clone())
		target.mu.Unlock()
		handle(w, r)
	}))
	target.Config.ErrorLog = quiet()
	target.EnableHTTP2 = true
	target.StartTLS()
	t.Cleanup(target.Close)
	return target
}

// url is a URL of the target under a name, which only the test's resolver knows.
func (s *target) url(path string) string {
	return "https://example.com:" + s.Listener.Addr().String()[len("127.0.0.1:"):] + path
}

func (s *target) authority() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func (s *target) call(path string) contract.HTTPCall {
	return contract.HTTPCall{Method: http.MethodGet, URL: s.url(path), AllowPrivate: true, CABundle: s.authority()}
}

func (s *target) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func testHTTP(resolver Resolver) httpRunner {
	return httpRunner{
		resolver: resolver, limits: testLimits(),
		secrets: secretsFrom([]string{"ASSENT_SECRET_key=s3cret", `ASSENT_SECRET_quoted=a"b`}),
	}
}

func answer(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestHTTP_SendsExactlyTheRequestThatWasApproved(t *testing.T) {
	t.Parallel()
	s := newTarget(t, answer(201, "application/json; charset=utf-8", `{"ok":true}`))
	call := s.call("/a%2Fb/c%20d?q=x%26y&empty=&plus=a+b")
	call.Method = http.MethodPost
	call.Headers = []contract.ResolvedHeader{
		{Name: "content-type", Value: "application/json"},
		{Name: "Authorization", Value: "Bearer {_secret:key}"},
		{Name: "X-Agent", Value: "agent's value"},
	}
	call.Body = `{"agent":"text","secret":"{_secret:quoted}"}`
	call.Secrets = []contract.ResolvedSecret{
		{Name: "key", Hosts: []string{"example.com"}}, {Name: "quoted", Hosts: []string{"example.com"}},
	}
	rep := testHTTP(loopback{}).run(t.Context(), call)
	wantEnding(t, rep, attest.OutcomeSucceeded, "")
	if *rep.httpStatus != 201 || rep.mediaType != "application/json" || rep.stdout.sum() != hexSum(`{"ok":true}`) {
		t.Errorf("status %d, type %q, digest %s", *rep.httpStatus, rep.mediaType, rep.stdout.sum())
	}
	host := strings.TrimPrefix(s.url(""), "https://")
	if diff := cmp.Diff([]string{"POST " + host + " /a%2Fb/c%20d?q=x%26y&empty=&plus=a+b"}, s.requests); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`{"agent":"text","secret":"a\"b"}`}, s.bodies); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	want := http.Header{
		"Content-Type": {"application/json"}, "Authorization": {"Bearer s3cret"}, "X-Agent": {"agent's value"},
		"User-Agent": {"assent-runner"}, "Content-Length": {"32"}, "Connection": {"close"},
	}
	if diff := cmp.Diff(want, s.headers[0]); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestHTTP_JudgesTheStatus(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status  int
		success []int32
		outcome attest.Outcome
		reason  Reason
	}{
		"200 by default":         {200, nil, attest.OutcomeSucceeded, ""},
		"299 by default":         {299, nil, attest.OutcomeSucceeded, ""},
		"300 by default":         {300, nil, attest.OutcomeFailed, ReasonStatusNotSuccess},
		"404 by default":         {404, nil, attest.OutcomeFailed, ReasonStatusNotSuccess},
		"404 where it is listed": {404, []int32{200, 404}, attest.OutcomeSucceeded, ""},
		"200 where it is not":    {200, []int32{404}, attest.OutcomeFailed, ReasonStatusNotSuccess},
		"a server's error":       {500, nil, attest.OutcomeFailed, ReasonStatusNotSuccess},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTarget(t, answer(tc.status, "text/plain", "body"))
			call := s.call("/")
			call.SuccessStatus = tc.success
			rep := testHTTP(loopback{}).run(t.Context(), call)
			wantEnding(t, rep, tc.outcome, tc.reason)
			if *rep.httpStatus != int32(tc.status) {
				t.Errorf("status %d", *rep.httpStatus)
			}
			if text, _ := rep.stdout.text(100); text != "body" {
				t.Errorf("body %q", text)
			}
		})
	}
}

func TestHTTP_DoesNotFollowRedirects(t *testing.T) {
	t.Parallel()
	inside := newTarget(t, answer(200, "text/plain", "credentials"))
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := newTarget(t, http.RedirectHandler(inside.url("/latest/meta-data"), status).ServeHTTP)
		rep := testHTTP(loopback{}).run(t.Context(), s.call("/"))
		wantEnding(t, rep, attest.OutcomeFailed, ReasonStatusNotSuccess)
	}
	if inside.count() != 0 {
		t.Errorf("%d redirects were followed", inside.count())
	}
}

// TestHTTP_AsksNoProxyOfTheEnvironment relies on TestMain, which names a proxy
// that does not exist: net/http reads the environment once.
func TestHTTP_AsksNoProxyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	s := newTarget(t, answer(200, "text/plain", ""))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url("/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if proxy, err := http.ProxyFromEnvironment(req); err != nil || proxy == nil {
		t.Fatalf("the environment has no proxy for the target: %v, %v", proxy, err)
	}
	wantEnding(t, testHTTP(loopback{}).run(t.Context(), s.call("/")), attest.OutcomeSucceeded, "")
	if s.count() != 1 {
		t.Errorf("%d requests at the target", s.count())
	}
}

func TestHTTP_SpeaksAVersionThatRepeatsNothing(t *testing.T) {
	t.Parallel()
	s := newTarget(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	rep := testHTTP(loopback{}).run(t.Context(), s.call("/"))
	if text, _ := rep.stdout.text(100); text != "HTTP/1.1" {
		t.Errorf("the request came over %q", text)
	}
}

func TestHTTP_RefusesWithoutSendingAnything(t *testing.T) {
	t.Parallel()
	s := newTarget(t, answer(200, "text/plain", ""))
	for name, tc := range map[string]struct {
		change func(*contract.HTTPCall)
		want   Reason
	}{
		"a private address":            {func(c *contract.HTTPCall) { c.AllowPrivate = false }, ReasonAddressNotAllowed},
		"a certificate of somebody":    {func(c *contract.HTTPCall) { c.CABundle = "" }, ReasonConnectFailed},
		"a bundle without certificate": {func(c *contract.HTTPCall) { c.CABundle = "none" }, ReasonEffectInvalid},
		"another name than the certificate": {func(c *contract.HTTPCall) {
			c.URL = strings.Replace(c.URL, "example.com", "example.net", 1)
		}, ReasonConnectFailed},
		"nobody listening": {func(c *contract.HTTPCall) { c.URL = "https://example.com:1/" }, ReasonConnectFailed},
		"a scheme that is neither": {func(c *contract.HTTPCall) {
			c.URL = strings.Replace(c.URL, "https", "ftp", 1)
		}, ReasonEffectInvalid},
		"credentials in the URL": {func(c *contract.HTTPCall) {
			c.URL = strings.Replace(c.URL, "example.com", "user:pw@example.com", 1)
		}, ReasonEffectInvalid},
		"a fragment":                     {func(c *contract.HTTPCall) { c.URL += "#x" }, ReasonEffectInvalid},
		"a URL that would change":        {func(c *contract.HTTPCall) { c.URL += " x" }, ReasonEffectInvalid},
		"no URL":                         {func(c *contract.HTTPCall) { c.URL = "" }, ReasonEffectInvalid},
		"a method that is none":          {func(c *contract.HTTPCall) { c.Method = "GET x" }, ReasonEffectInvalid},
		"the host's header":              {header("Host", "inside"), ReasonEffectInvalid},
		"the length's header":            {header("content-length", "1"), ReasonEffectInvalid},
		"a header set twice":             {header("X-A", "1", "x-a", "2"), ReasonEffectInvalid},
		"a secret for another host":      {secretHeader("key", "example.org"), ReasonCredentialHostMismatch},
		"a secret that is not mounted":   {secretHeader("none", "example.com"), ReasonSecretMissing},
		"a secret for the other port":    {secretHeader("key", "example.com:443"), ReasonCredentialHostMismatch},
		"a secret that is not mentioned": {header("X-A", "{_secret:key}"), ReasonEffectInvalid},
		"a secret in the body for another host": {func(c *contract.HTTPCall) {
			c.Body = "{_secret:key}"
			c.Secrets = []contract.ResolvedSecret{{Name: "key", Hosts: []string{"example.org"}}}
		}, ReasonCredentialHostMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := s.call("/")
			tc.change(&call)
			rep := testHTTP(loopback{}).run(t.Context(), call)
			wantEnding(t, rep, attest.OutcomeRefused, tc.want)
			if rep.cause != nil && strings.Contains(rep.cause.Error(), "example") {
				t.Errorf("the cause quotes the URL: %v", rep.cause)
			}
		})
	}
	t.Cleanup(func() {
		if s.count() != 0 {
			t.Errorf("requests arrived: %q", s.requests)
		}
	})
}

func header(pairs ...string) func(*contract.HTTPCall) {
	return func(c *contract.HTTPCall) {
		for i := 0; i < len(pairs); i += 2 {
			c.Headers = append(c.Headers, contract.ResolvedHeader{Name: pairs[i], Value: pairs[i+1]})
		}
	}
}

func secretHeader(name, host string) func(*contract.HTTPCall) {
	return func(c *contract.HTTPCall) {
		c.Headers = []contract.ResolvedHeader{{Name: "Authorization", Value: "Bearer {_secret:" + name + "}"}}
		c.Secrets = []contract.ResolvedSecret{{Name: name, Hosts: []string{host}}}
	}
}

func TestHTTP_NeverSendsARequestTwice(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]http.HandlerFunc{
		"the connection breaks before an answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"the connection breaks within the answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete} {
			s := newTarget(t, handle)
			call := s.call("/")
			call.Method = method
			// With this header the client's transport takes any request for
			// one that it may repeat.
			header("Idempotency-Key", "1")(&call)
			rep := testHTTP(loopback{}).run(t.Context(), call)
			wantEnding(t, rep, attest.OutcomeFailed, ReasonResponseLost)
			if s.count() != 1 {
				t.Errorf("%s, %s: sent %d times", name, method, s.count())
			}
		}
	}
}

func TestHTTP_StopsAtItsTimeLimit(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	release := make(chan struct{})
	s := newTarget(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(errTimedOut)
		<-release
	})
	rep := testHTTP(loopback{}).run(ctx, s.call("/"))
	close(release)
	wantEnding(t, rep, attest.OutcomeTimedOut, ReasonResponseLost)
}

func TestHTTP_ReadsNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	s := newTarget(t, answer(200, "text/plain", strings.Repeat("x", 5000)))
	h := testHTTP(loopback{})
	h.limits.OutputMaxBytes = 1000
	rep := h.run(t.Context(), s.call("/"))
	wantEnding(t, rep, attest.OutcomeFailed, ReasonOutputTooLarge)
	if rep.stdout.length != 1000 || *rep.httpStatus != 200 {
		t.Errorf("%d bytes, status %d", rep.stdout.length, *rep.httpStatus)
	}
}

func TestHTTP_DigestsTheBytesOfTheResponse(t *testing.T) {
	t.Parallel()
	s := newTarget(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("asked for the encoding %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "\x1f\x8b not really")
	})
	rep := testHTTP(loopback{}).run(t.Context(), s.call("/"))
	wantEnding(t, rep, attest.OutcomeSucceeded, "")
	if rep.stdout.sum() != hexSum("\x1f\x8b not really") {
		t.Error("the digest is of other bytes than the server sent")
	}
}

func TestMediaType_KeepsTheTypeAlone(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"application/json":                      "application/json",
		"Application/JSON; charset=utf-8":       "application/json",
		"":                                      "",
		"text/html; x":                          "",
		"x/" + strings.Repeat("y", 300):         "",
		"text/plain; a=1; a=2":                  "",
		"application/vnd.x+json; profile=\"p\"": "application/vnd.x+json",
	} {
		if got := mediaType(in); got != want {
			t.Errorf("mediaType(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestHTTP_ChecksTheAddressBehindAName: a name that points inside is refused
// although the URL is fine, and the server there never hears of it.
func TestHTTP_ChecksTheAddressBehindAName(t *testing.T) {
	t.Parallel()
	s := newTarget(t, answer(200, "text/plain", ""))
	n := &network{answers: map[string][][]netip.Addr{"example.com": {addresses("127.0.0.1")}}}
	call := s.call("/")
	call.AllowPrivate = false
	wantEnding(t, testHTTP(n).run(t.Context(), call), attest.OutcomeRefused, ReasonAddressNotAllowed)
	if s.count() != 0 {
		t.Error("the server behind the name got a request")
	}
}
