// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/snapshot"
)

// maxBodyBytes and maxHeaderBytes bound parts of a resolved request.
const (
	maxBodyBytes   = 256 << 10
	maxHeaderBytes = 131072
)

// httpPlan is a compiled HTTP request.
type httpPlan struct {
	method       string
	url          urlPlan
	headers      []headerPlan
	body         bodyPlan
	status       []int32
	caBundle     string
	allowPrivate bool
	secrets      []ResolvedSecret
}

func (p *httpPlan) render(v *values) (Effect, string, *snapshot.Error) {
	url, err := p.url.render(v)
	if err != nil {
		return Effect{}, "", err
	}
	if err := p.checkSecretHosts(url, v); err != nil {
		return Effect{}, "", err
	}
	headers, err := renderHeaders(p.headers, v)
	if err != nil {
		return Effect{}, "", err
	}
	body, err := p.body.render(v)
	if err != nil {
		return Effect{}, "", err
	}
	e := Effect{HTTP: &HTTPCall{
		Method: p.method, URL: url, Headers: headers, Body: body, SuccessStatus: p.status,
		CABundle: p.caBundle, AllowPrivate: p.allowPrivate, Secrets: p.secrets,
	}}
	return e, v.workspace.effect(e), nil
}

// checkSecretHosts keeps secrets from going where the agent chooses. Constant
// hosts were compared when the manifest was compiled.
func (p *httpPlan) checkSecretHosts(url string, v *values) *snapshot.Error {
	if p.url.whole == constant || len(p.secrets) == 0 {
		return nil
	}
	u, _ := parseURL(url) // an accepted value of the type url
	for _, s := range p.secrets {
		if !slices.ContainsFunc(s.Hosts, func(h string) bool { return strings.EqualFold(h, u.target.String()) }) {
			return refuse(snapshot.StageEffect, ReasonSecretHost, v.args[p.url.whole].name)
		}
	}
	return nil
}

// urlPlan is a compiled URL: one argument, or constants with values in path and
// query.
type urlPlan struct {
	// whole is the argument that is the URL, or constant.
	whole int
	// origin is scheme and authority.
	origin string
	// segments of the path, each of them after a slash.
	segments []word
	// parameters of the query.
	parameters []word
}

func (p *urlPlan) render(v *values) (string, *snapshot.Error) {
	if p.whole != constant {
		return v.list[p.whole].text, nil
	}
	text := []byte(p.origin)
	for _, s := range p.segments {
		text = append(text, '/')
		start := len(text)
		text, _ = s.escape(text, v)
		if name := s.lastArgument(v); name != "" {
			if why := checkSegment(string(text[start:])); why != "" {
				return "", refuse(snapshot.StageEffect, why, name)
			}
		}
	}
	separator := byte('?')
	for _, q := range p.parameters {
		longer, present := q.escape(append(text, separator), v)
		if present {
			text, separator = longer, '&'
		}
	}
	if len(text) > MaxURLBytes {
		return "", refuse(snapshot.StageEffect, ReasonEffectTooLarge, "")
	}
	return string(text), nil
}

// checkSegment refuses path segments that would name another path than the one
// the manifest shows: empty ones, and those that a server resolves.
func checkSegment(segment string) refusal {
	switch {
	case segment == "":
		return ReasonEmptyPathSegment
	case hasParentSegment(segment) || hasDotSegment(segment):
		return ReasonPathTraversal
	default:
		return ""
	}
}

// escape appends the word with its values percent-encoded. It returns false
// when one of the values is absent.
func (w word) escape(text []byte, v *values) ([]byte, bool) {
	for _, p := range w {
		switch {
		case p.arg == constant:
			text = append(text, p.text...)
		case !v.list[p.arg].present:
			return text, false
		case len(text) > MaxURLBytes:
			return text, true // refused by the caller; a template may repeat a value often
		default:
			text = appendEscaped(text, v.list[p.arg].text)
		}
	}
	return text, true
}

// lastArgument is the name of the last argument of a word, or nothing.
func (w word) lastArgument(v *values) string {
	for _, p := range slices.Backward(w) {
		if p.arg != constant {
			return v.args[p.arg].name
		}
	}
	return ""
}

// headerPlan is a compiled header.
type headerPlan struct {
	name  string
	value word
	// secrets is how many placeholders of secrets the value has.
	secrets int
}

// renderHeaders resolves headers. A header whose argument is absent is left out.
func renderHeaders(plans []headerPlan, v *values) ([]ResolvedHeader, *snapshot.Error) {
	var out []ResolvedHeader
	for _, p := range plans {
		text, present := p.value.plain(v)
		if !present {
			continue
		}
		name := p.value.lastArgument(v)
		switch {
		case len(text) > maxHeaderBytes:
			return nil, refuse(snapshot.StageEffect, ReasonEffectTooLarge, name)
		case !isHeaderValue(text):
			return nil, refuse(snapshot.StageEffect, ReasonHeaderInjection, name)
		case strings.Count(text, "{"+secretPrefix) != p.secrets:
			return nil, refuse(snapshot.StageEffect, ReasonSecretPlaceholder, name)
		}
		out = append(out, ResolvedHeader{Name: p.name, Value: text})
	}
	return out, nil
}

// plain returns the word without any escaping, or false when a value is absent.
func (w word) plain(v *values) (string, bool) {
	var b strings.Builder
	for _, p := range w {
		if p.arg == constant {
			b.WriteString(p.text)
			continue
		}
		if !v.list[p.arg].present {
			return "", false
		}
		if b.Len() > maxHeaderBytes {
			break // refused by the caller; a template may repeat a value often
		}
		b.WriteString(v.list[p.arg].text)
	}
	return b.String(), true
}

// isHeaderValue reports whether a text is a field value that means the same to
// every implementation (RFC 9110 section 5.5): visible ASCII with blanks inside.
func isHeaderValue(text string) bool {
	for i := range len(text) {
		if c := text[i]; c != '\t' && (c < ' ' || c >= 0x7f) {
			return false
		}
	}
	return strings.TrimSpace(text) == text
}

// bodyPlan is a compiled body.
type bodyPlan struct {
	parts []bodyPart
	// secrets is how many placeholders of secrets the body has.
	secrets int
}

// bodyPart is a constant, or a value and how it is written.
type bodyPart struct {
	text string
	arg  int
	// write appends the value. It is nil for constants.
	write func(text []byte, value string) []byte
}

func (p *bodyPlan) render(v *values) (string, *snapshot.Error) {
	var text []byte
	last := ""
	for _, part := range p.parts {
		if part.write == nil {
			text = append(text, part.text...)
			continue
		}
		last = v.args[part.arg].name
		text = part.write(text, v.list[part.arg].text)
		if len(text) > maxBodyBytes {
			return "", refuse(snapshot.StageEffect, ReasonEffectTooLarge, last)
		}
	}
	if strings.Count(string(text), "{"+secretPrefix) != p.secrets {
		return "", refuse(snapshot.StageEffect, ReasonSecretPlaceholder, last)
	}
	return string(text), nil
}

// appendPlain writes a value as it is.
func appendPlain(text []byte, value string) []byte { return append(text, value...) }
