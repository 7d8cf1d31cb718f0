// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package clad

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/contract"
)

// secretToken is the placeholder of a secret.
var secretToken = regexp.MustCompile(`\{_secret:([A-Za-z0-9_]+)\}`)

// convertRequest converts [http].
func (c *converter) convertRequest(in *request) {
	t := &contract.HTTPTemplate{Method: strings.ToUpper(cmp.Or(in.Method, "GET")), URL: in.URL, Body: in.BodyTemplate, SuccessStatus: in.SuccessStatus}
	c.out.HTTP = t
	if secretToken.MatchString(in.URL) {
		c.fail("http.url", "has a secret, which servers and proxies would log; put it into a header")
	}
	hasType := false
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		t.Headers = append(t.Headers, contract.HTTPHeader{Name: name, Value: in.Headers[name]})
		hasType = hasType || strings.EqualFold(name, "Content-Type")
	}
	if in.BodyTemplate != "" && !hasType {
		// ToolClad escapes values in every body as JSON does.
		t.Headers = append(t.Headers, contract.HTTPHeader{Name: "Content-Type", Value: "application/json"})
		c.note("http.headers", "has no Content-Type; the body is sent as application/json, for which its values are escaped")
	}
	for _, status := range in.ErrorStatus {
		success := status >= 200 && status <= 299
		if len(in.SuccessStatus) > 0 {
			success = slices.Contains(in.SuccessStatus, status)
		}
		if success {
			c.fail("http.error_status", "has %d, which also means success; list the others in success_status", status)
		}
	}
	c.convertSecrets(in)
}

// convertSecrets declares the secrets that a request uses. ToolClad takes them
// from its environment; here they are keys of a Secret.
func (c *converter) convertSecrets(in *request) {
	var names []string
	for _, text := range append(slices.Sorted(maps.Values(in.Headers)), in.BodyTemplate) {
		for _, m := range secretToken.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	if len(names) == 0 {
		return
	}
	host := ""
	if u, err := url.Parse(secretToken.ReplaceAllString(in.URL, "x")); err == nil {
		host = strings.ToLower(u.Hostname())
	}
	secretName := objectName(c.file.Tool.Name)
	for _, name := range unique(names) {
		c.out.Secrets = append(c.out.Secrets, contract.SecretReference{Name: name, SecretName: secretName, Key: name, Hosts: []string{host}})
		c.note("http", "the secret %s is read from the key %s of the Secret %s", name, name, secretName)
	}
}
