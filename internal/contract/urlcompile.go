// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import "strings"

// url compiles the template of a URL and returns its host, which is empty when
// an argument is the whole URL.
func (e *effectCompiler) url(field, text string) (urlPlan, string) {
	p := urlPlan{whole: constant}
	pieces, err := parseTemplate(text)
	if err != nil {
		e.add(ReasonInvalidTemplate, field, "%v", err)
		return p, ""
	}
	for _, piece := range pieces {
		if secret, isSecret := piece.secret(); isSecret {
			e.add(ReasonInvalidTemplate, field, "uses the secret %q, but URLs are logged by servers and proxies; put it into a header", secret)
			return p, ""
		}
	}
	if len(pieces) == 1 && pieces[0].name != "" {
		p.whole = e.wholeURL(field, pieces[0].name)
		return p, ""
	}
	return e.fixedURL(field, pieces)
}

// wholeURL accepts an argument as the whole URL. Nothing but a scope check keeps
// such a request within bounds.
func (e *effectCompiler) wholeURL(field, name string) int {
	i, ok := e.mandatory(field, name)
	if !ok {
		return constant
	}
	if a := e.args[i]; a.kind != KindURL || !a.scoped {
		e.add(ReasonInvalidEffect, field, "{%s} must be of the type url with scopeCheck to be the whole URL", name)
	}
	for _, s := range e.args[i].schemes {
		if s != "http" && s != "https" {
			e.add(ReasonInvalidEffect, field, "{%s} accepts the scheme %q; an HTTP request needs http or https", name, s)
		}
	}
	return i
}

// fixedURL compiles a URL whose origin is constant.
func (e *effectCompiler) fixedURL(field string, pieces []piece) (urlPlan, string) {
	p := urlPlan{whole: constant}
	origin, hasOrigin := constantOrigin(pieces)
	if !hasOrigin {
		e.add(ReasonInvalidEffect, field, "scheme, host and port must be constants, followed by / or ?")
		return p, ""
	}
	u, why := parseURL(probe(pieces))
	if why != "" {
		e.add(ReasonInvalidEffect, field, "cannot be used: %s", adviceFor(why))
		return p, ""
	}
	if u.scheme != "http" && u.scheme != "https" {
		e.add(ReasonInvalidEffect, field, "must be of the scheme https or http")
	}
	p.origin = u.scheme + "://" + u.authority
	path, query := cutPieces(append([]piece{{text: pieces[0].text[len(origin):]}}, pieces[1:]...), '?')
	for _, segment := range splitPieces(path, '/')[1:] { // what is before the first slash is empty
		p.segments = append(p.segments, e.urlWord(field, segment, true))
	}
	if query != nil {
		for _, parameter := range splitPieces(query, '&') {
			p.parameters = append(p.parameters, e.urlWord(field, parameter, false))
		}
	}
	return p, u.target.String()
}

// probe is a template with harmless values.
func probe(pieces []piece) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.text)
		if p.name != "" {
			b.WriteByte('x')
		}
	}
	return b.String()
}

// constantOrigin returns scheme and authority if no placeholder can reach into
// them.
func constantOrigin(pieces []piece) (string, bool) {
	if len(pieces) == 0 {
		return "", false
	}
	text := pieces[0].text
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return "", false
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		return text, len(pieces) == 1
	}
	return text[:len(scheme)+len("://")+end], true
}

// cutPieces divides a template at the first separator among its constants. The
// second part is nil when there is none.
func cutPieces(pieces []piece, separator byte) (before, after []piece) {
	for i, p := range pieces {
		left, right, found := strings.Cut(p.text, string(separator))
		if found {
			before = append(before, piece{text: left})
			return before, append([]piece{{text: right}}, pieces[i+1:]...)
		}
		before = append(before, p)
	}
	return before, nil
}

// splitPieces divides a template at every separator among its constants.
func splitPieces(pieces []piece, separator byte) [][]piece {
	var out [][]piece
	for {
		before, after := cutPieces(pieces, separator)
		out = append(out, before)
		if after == nil {
			return out
		}
		pieces = after
	}
}

// urlWord compiles one segment or parameter. A segment cannot be left out, so
// its arguments must be in every call; structures have no place in a path.
func (e *effectCompiler) urlWord(field string, pieces []piece, segment bool) word {
	var out word
	for _, p := range pieces {
		if p.name == "" {
			if p.text != "" {
				out = append(out, part{text: p.text, arg: constant})
			}
			continue
		}
		find := e.argument
		if segment {
			find = e.mandatory
		}
		if i, known := find(field, p.name); known {
			if segment {
				e.scalar(field, i)
			}
			out = append(out, part{arg: i})
		}
	}
	return out
}
