// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads raw proposal arguments: one JSON text of at most [MaxBytes]
// bytes that also keeps the limits and rules of this package. The result is a
// fresh tree of nil, bool, string, float64, []any and map[string]any.
//
// Stricter than RFC 8259, it refuses duplicate names and lone surrogates
// (RFC 7493), noncharacters, numbers that a double would turn into another
// integer, into zero or into negative zero, and U+FFFD: kube-apiserver writes
// it over bytes that it could not read, so its presence may mean that these are
// not the arguments the agent sent.
//
// Every error is an [*Error] of [StageDecode].
func Decode(raw string) (any, error) {
	tree, fault := decode(raw, argumentLimits(), refuseReplacement)
	if fault != nil {
		return nil, fault.at(StageDecode)
	}
	return tree, nil
}

// DecodeText is [Decode] for text that did not pass through kube-apiserver,
// such as a file or a canonical text: U+FFFD is data there.
func DecodeText(text string) (any, error) {
	tree, fault := decode(text, argumentLimits(), allowReplacement)
	if fault != nil {
		return nil, fault.at(StageDecode)
	}
	return tree, nil
}

// fault is a refusal whose stage the caller knows. Its path grows from the
// inside out while the recursion unwinds, so that good input pays nothing.
type fault struct {
	why  Reason
	path string
}

// refuse starts a fault at the current value.
func refuse(why Reason) *fault { return &fault{why: why} }

// under puts the position of the enclosing member or element in front.
func (f *fault) under(position int) *fault {
	f.path = "/" + strconv.Itoa(position) + f.path
	return f
}

// at turns the fault into an error.
func (f *fault) at(stage Stage) *Error {
	return &Error{Stage: stage, Reason: f.why, Path: f.path}
}

// decode is Decode with the variable parts as parameters. Size and encoding
// come first: nothing is parsed of a text that is too large, and no parser gets
// the chance to repair ill-formed UTF-8.
func decode(text string, lim limits, fffd replacement) (any, *fault) {
	switch {
	case len(text) > lim.bytes:
		return nil, refuse(ReasonTooLarge)
	case !utf8.ValidString(text):
		return nil, refuse(ReasonInvalidUTF8)
	}
	source := []byte(text)
	d := decoder{
		tokens: jsontext.NewDecoder(bytes.NewBuffer(source)),
		source: source,
		lim:    lim,
		fffd:   fffd,
	}
	tree, f := d.value(0)
	if f != nil {
		return nil, f
	}
	if _, err := d.tokens.ReadToken(); err != io.EOF {
		return nil, refuse(ReasonTrailingData)
	}
	return tree, nil
}

// decoder adds to the grammar, which jsontext checks, what no library does:
// limits that hold while reading, and the rules for strings and numbers.
type decoder struct {
	tokens *jsontext.Decoder
	source []byte
	values int
	lim    limits
	fffd   replacement
}

// value reads one value inside depth open containers.
func (d *decoder) value(depth int) (any, *fault) {
	switch d.tokens.PeekKind() {
	case jsontext.KindBeginObject:
		return d.object(depth + 1)
	case jsontext.KindBeginArray:
		return d.array(depth + 1)
	case jsontext.KindString:
		return d.text()
	case jsontext.KindNumber:
		return d.number()
	}
	token, err := d.tokens.ReadToken()
	if err != nil {
		return nil, d.classify(err)
	}
	if token.Kind() == jsontext.KindNull {
		return nil, nil
	}
	return token.Bool(), nil
}

// array reads an array that makes depth open containers.
func (d *decoder) array(depth int) (any, *fault) {
	if depth > MaxDepth {
		return nil, refuse(ReasonDepth)
	}
	_, _ = d.tokens.ReadToken() // the bracket that was peeked at
	elements := []any{}
	for d.tokens.PeekKind() != jsontext.KindEndArray {
		element, f := d.counted(depth)
		if f != nil {
			return nil, f.under(len(elements))
		}
		elements = append(elements, element)
	}
	_, _ = d.tokens.ReadToken() // likewise
	return elements, nil
}

// object reads an object that makes depth open containers.
func (d *decoder) object(depth int) (any, *fault) {
	if depth > MaxDepth {
		return nil, refuse(ReasonDepth)
	}
	_, _ = d.tokens.ReadToken() // the brace that was peeked at
	members := map[string]any{}
	for d.tokens.PeekKind() != jsontext.KindEndObject {
		name, f := d.text()
		if f != nil {
			return nil, f.under(len(members))
		}
		member, f := d.counted(depth)
		if f != nil {
			return nil, f.under(len(members))
		}
		members[name] = member
	}
	_, _ = d.tokens.ReadToken() // likewise
	return members, nil
}

// counted reads a member value or an element and charges it to the limit.
func (d *decoder) counted(depth int) (any, *fault) {
	if d.values++; d.values > d.lim.values {
		return nil, refuse(ReasonTooManyValues)
	}
	return d.value(depth)
}

// text reads a string or a member name. ReadToken, not ReadValue: where a name
// is due it stops at a bracket instead of reading on.
func (d *decoder) text() (string, *fault) {
	token, err := d.tokens.ReadToken()
	if err != nil {
		return "", d.classify(err)
	}
	s := token.String()
	if len(s) > d.lim.stringBytes {
		return "", refuse(ReasonStringTooLong)
	}
	if why := checkText(s, d.fffd); why != "" {
		return "", refuse(why)
	}
	return s, nil
}

// number reads a number from its token: after a conversion its length, its sign
// at zero and its last digits would be gone.
func (d *decoder) number() (any, *fault) {
	token, err := d.tokens.ReadValue()
	if err != nil {
		return nil, d.classify(err)
	}
	f, why := parseNumber(token)
	if why != "" {
		return nil, refuse(why)
	}
	return f, nil
}

// classify turns an error of jsontext into a reason. The error itself is
// dropped: it quotes the token and the names on the way to it.
func (d *decoder) classify(err error) *fault {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return refuse(ReasonDuplicateKey)
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && startsSurrogateEscape(d.source[syntax.ByteOffset:]) {
		return refuse(ReasonLoneSurrogate)
	}
	return refuse(ReasonSyntax)
}

// startsSurrogateEscape reports whether text begins with the complete escape of
// a surrogate. At the place of a syntax error that means a lone one.
func startsSurrogateEscape(text []byte) bool {
	const escapeLength = len(`\uD800`)
	if len(text) < escapeLength || text[0] != '\\' || text[1] != 'u' {
		return false
	}
	unit, err := strconv.ParseUint(string(text[2:escapeLength]), 16, 16)
	return err == nil && unit >= 0xD800 && unit <= 0xDFFF
}
