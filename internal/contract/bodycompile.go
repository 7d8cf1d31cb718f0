// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"mime"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// bodyFormat decides how a value is escaped.
type bodyFormat int

const (
	// formatNone is a body without a Content-Type.
	formatNone bodyFormat = iota
	formatJSON
	formatForm
	formatPlain
)

// body compiles the body of a request.
func (e *effectCompiler) body(field string, t *HTTPTemplate) bodyPlan {
	pieces, err := parseBody(t.Body)
	if err != nil {
		e.add(ReasonInvalidTemplate, field, "%v", err)
		return bodyPlan{}
	}
	format := bodyFormatOf(t.Headers)
	b := &bodyCompiler{effectCompiler: e, field: field, format: format}
	for _, p := range pieces {
		b.add(p)
	}
	if format == formatJSON && len(pieces) > 0 && !jsontext.Value(b.probe.String()).IsValid() {
		e.add(ReasonInvalidTemplate, field, "is not JSON; a placeholder must stand inside a string or in the place of a whole value")
	}
	return b.plan
}

// bodyFormatOf reads the Content-Type. A value of the agent's in it would
// choose how its other values are escaped, so that such a header counts as none.
func bodyFormatOf(headers []HTTPHeader) bodyFormat {
	for _, h := range headers {
		if !strings.EqualFold(h.Name, "Content-Type") || strings.Contains(h.Value, "{") {
			continue
		}
		mediaType, _, err := mime.ParseMediaType(h.Value)
		switch {
		case err != nil:
			return formatNone
		case mediaType == "application/json" || strings.HasSuffix(mediaType, "+json"):
			return formatJSON
		case mediaType == "application/x-www-form-urlencoded":
			return formatForm
		default:
			return formatPlain
		}
	}
	return formatNone
}

// bodyCompiler compiles the pieces of a body in order.
type bodyCompiler struct {
	*effectCompiler
	field  string
	format bodyFormat
	plan   bodyPlan
	// probe is the body with harmless values, to see whether it is JSON.
	probe strings.Builder
	// inString and escaped are the state of a JSON scanner.
	inString, escaped bool
}

func (b *bodyCompiler) add(p piece) {
	if p.name == "" {
		b.plan.parts = append(b.plan.parts, bodyPart{text: p.text})
		b.probe.WriteString(p.text)
		b.scan(p.text)
		return
	}
	if b.inString {
		b.probe.WriteByte('x')
	} else {
		b.probe.WriteString("null")
	}
	b.escaped = false
	if secret, isSecret := p.secret(); isSecret {
		b.addSecret(p, secret)
		return
	}
	i, known := b.mandatory(b.field, p.name)
	if known {
		b.plan.parts = append(b.plan.parts, bodyPart{arg: i, write: b.writer(i)})
	}
}

// addSecret keeps the placeholder in the body.
func (b *bodyCompiler) addSecret(p piece, name string) {
	b.secret(b.field, name)
	if b.format == formatJSON && !b.inString {
		b.effectCompiler.add(ReasonInvalidTemplate, b.field, "uses the secret %q in the place of a JSON value; put it inside a string", name)
	}
	b.plan.secrets++
	b.plan.parts = append(b.plan.parts, bodyPart{text: "{" + p.name + "}"})
}

// scan follows whether the text is inside a JSON string.
func (b *bodyCompiler) scan(text string) {
	for i := range len(text) {
		switch {
		case b.escaped:
			b.escaped = false
		case b.inString && text[i] == '\\':
			b.escaped = true
		case text[i] == '"':
			b.inString = !b.inString
		}
	}
}

// writer returns how a value is written where the compiler is.
func (b *bodyCompiler) writer(i int) func([]byte, string) []byte {
	switch {
	case b.format == formatJSON && b.inString:
		return appendInString
	case b.format == formatJSON && (b.args[i].asText || b.args[i].spec.json == jsonString):
		return appendString
	case b.format == formatForm:
		return appendEscaped
	case b.format == formatNone:
		b.effectCompiler.add(ReasonInvalidEffect, b.field,
			"has values of the agent, and there is no constant Content-Type header to say how they are escaped")
	}
	return appendPlain
}
