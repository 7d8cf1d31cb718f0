// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/api/v1alpha1"
)

// renderEffect shows what happens when the call runs: every member, since each
// is part of what is approved.
func renderEffect(s *screen, e v1alpha1.Effect) {
	switch {
	case e.Command != nil:
		renderCommand(s, e.Command)
	case e.HTTP != nil:
		renderHTTP(s, e.HTTP)
	case e.MCP != nil:
		renderMCP(s, e.MCP)
	}
}

func renderCommand(s *screen, c *v1alpha1.CommandCall) {
	s.title("Effect: start a program")
	s.name("image", c.Image)
	for i, word := range c.Argv {
		s.line(fmt.Sprintf("argv[%d]", i), quoteText(word))
	}
	s.line("directory", quoteText(c.WorkingDir))
	if c.OutputFile != "" {
		s.line("output file", quoteText(c.OutputFile))
	}
	for _, v := range c.Env {
		switch {
		case v.Secret != nil:
			s.line("environment", escapeName(v.Name)+" = "+secretText(*v.Secret))
		case v.Value != nil:
			s.line("environment", escapeName(v.Name)+" = "+quoteText(*v.Value))
		}
	}
}

func renderHTTP(s *screen, h *v1alpha1.HTTPCall) {
	s.title("Effect: send an HTTP request")
	s.name("method", h.Method)
	s.line("url", quoteText(h.URL))
	renderHeaders(s, h.Headers)
	s.quote("body", h.Body)
	if len(h.SuccessStatus) > 0 {
		s.line("success", strings.Trim(fmt.Sprint(h.SuccessStatus), "[]"))
	}
	renderTarget(s, h.AllowPrivate, h.CABundle, h.Secrets)
}

func renderMCP(s *screen, m *v1alpha1.MCPCall) {
	s.title("Effect: call a tool of an MCP server")
	s.line("server", quoteText(m.URL))
	s.name("tool", m.Tool)
	s.name("definition", m.ToolDigest)
	s.line("arguments", escapeText(m.Arguments))
	renderHeaders(s, m.Headers)
	renderTarget(s, m.AllowPrivate, m.CABundle, m.Secrets)
}

func renderHeaders(s *screen, headers []v1alpha1.ResolvedHeader) {
	for _, h := range headers {
		s.line("header", escapeName(h.Name)+" = "+quoteText(h.Value))
	}
}

func renderTarget(s *screen, private bool, bundle string, secrets []v1alpha1.ResolvedSecret) {
	if private {
		s.line("addresses", "private ones are allowed")
	}
	s.quote("CA", bundle)
	for _, secret := range secrets {
		s.line("secret", escapeName(secret.Name)+" = "+secretText(secret))
	}
}

func secretText(s v1alpha1.ResolvedSecret) string {
	text := fmt.Sprintf("key %s of Secret %s", escapeName(s.Key), escapeName(s.SecretName))
	if len(s.Hosts) > 0 {
		text += ", only for " + escapeName(strings.Join(s.Hosts, ", "))
	}
	return text
}
