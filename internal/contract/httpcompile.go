// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/contract/scope"
)

// methods are the HTTP methods that a manifest may use.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// http compiles a request.
func (e *effectCompiler) http(t *HTTPTemplate) plan {
	const field = "spec.http"
	if !slices.Contains(methods, t.Method) {
		e.add(ReasonInvalidEffect, field+".method", "must be one of %s", strings.Join(methods, ", "))
	}
	if t.Body != "" && (t.Method == "GET" || t.Method == "HEAD") {
		e.add(ReasonInvalidEffect, field+".body", "has no meaning for %s; remove it or use another method", t.Method)
	}
	for i, status := range t.SuccessStatus {
		if status < 100 || status > 599 {
			e.add(ReasonInvalidEffect, fmt.Sprintf("%s.successStatus[%d]", field, i), "must lie between 100 and 599")
		}
	}
	e.checkCABundle(field, t.CABundle)
	p := &httpPlan{
		method: t.Method, status: t.SuccessStatus, caBundle: t.CABundle, allowPrivate: t.AllowPrivate,
		headers: e.headers(field+".headers", t.Headers, true),
	}
	host := ""
	p.url, host = e.url(field+".url", t.URL)
	p.body = e.body(field+".body", t)
	p.secrets = e.httpSecrets(host)
	return p
}

func (e *effectCompiler) checkCABundle(field, pem string) {
	if pem != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(pem)) {
		e.add(ReasonInvalidEffect, field+".caBundle", "contains no PEM certificate")
	}
}

// httpSecrets returns the secrets that are used and checks that they are for
// the host. host is empty when the agent's URL decides, which is then checked
// for every call.
func (e *effectCompiler) httpSecrets(host string) []ResolvedSecret {
	var out []ResolvedSecret
	for i, s := range e.secrets {
		if !e.usedSecrets[i] {
			continue
		}
		field := fmt.Sprintf("spec.secrets[%d].hosts", i)
		if len(s.Hosts) == 0 {
			e.add(ReasonInvalidEffect, field, "must list the hosts that the secret %q may be sent to", s.Name)
		}
		for n, h := range s.Hosts {
			if t, why := scope.ParseHost(h); why != "" || !strings.EqualFold(t.String(), h) {
				e.add(ReasonInvalidEffect, fmt.Sprintf("%s[%d]", field, n), "is not a host name or an address")
			}
		}
		if host != "" && len(s.Hosts) > 0 && !slices.ContainsFunc(s.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
			e.add(ReasonCredentialHostMismatch, field, "the secret %q would be sent to %s, which is not one of its hosts", s.Name, host)
		}
		out = append(out, ResolvedSecret(s))
	}
	return out
}

// reservedHeaders are set by the client itself or decide where a message ends
// and who receives it.
var reservedHeaders = []string{
	"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "keep-alive",
	"proxy-authorization", "proxy-connection", "expect",
}

// headers compiles headers; with arguments, their values may use arguments.
func (e *effectCompiler) headers(field string, headers []HTTPHeader, arguments bool) []headerPlan {
	seen := map[string]bool{}
	var out []headerPlan
	for i, h := range headers {
		at := fmt.Sprintf("%s[%d]", field, i)
		name := strings.ToLower(h.Name)
		switch {
		case !isToken(h.Name):
			e.add(ReasonInvalidEffect, at+".name", "is not a header name")
		case slices.Contains(reservedHeaders, name):
			e.add(ReasonInvalidEffect, at+".name", "the header %s is set by the client itself", h.Name)
		case seen[name]:
			e.add(ReasonInvalidEffect, at+".name", "occurs twice; names are compared without case")
		}
		seen[name] = true
		out = append(out, e.header(at+".value", h, arguments))
	}
	return out
}

func (e *effectCompiler) header(field string, h HTTPHeader, arguments bool) headerPlan {
	pieces, err := parseTemplate(h.Value)
	if err != nil {
		e.add(ReasonInvalidTemplate, field, "%v", err)
	}
	p := headerPlan{name: h.Name}
	var probe strings.Builder
	for _, piece := range pieces {
		secret, isSecret := piece.secret()
		switch {
		case piece.name == "":
			p.value = append(p.value, part{text: piece.text, arg: constant})
			probe.WriteString(piece.text)
		case isSecret:
			e.secret(field, secret)
			p.secrets++
			p.value = append(p.value, part{text: "{" + piece.name + "}", arg: constant})
			probe.WriteString("x")
		case !arguments:
			e.add(ReasonInvalidTemplate, field, "uses {%s}; only secrets can be used here", piece.name)
		default:
			if i, known := e.argument(field, piece.name); known {
				e.scalar(field, i)
				p.value = append(p.value, part{arg: i})
				probe.WriteString("x")
			}
		}
	}
	if !isHeaderValue(probe.String()) {
		e.add(ReasonInvalidEffect, field, "can only have printable ASCII, without blanks at either end")
	}
	return p
}

// isToken reports whether a text is a header name (RFC 9110 section 5.6.2).
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return text != ""
}
