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
	return decoded(raw, refuseReplacement)
}

// DecodeText is [Decode] for text that did not pass through kube-apiserver,
// such as a file or a canonical text: U+FFFD is data there.
func DecodeText(text string) (any, error) {
	return decoded(text, allowReplacement)
}

func decoded(text string, fffd replacement) (any, error) {
	w := borrow()
	defer w.giveBack()
	if f := w.decoder.decode(text, argumentLimits(), fffd); f != nil {
		return nil, f.at(StageDecode)
	}
	return w.tree.decoded(text), nil
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

// decoder reads a text into its tree. It adds to the grammar, which jsontext
// checks, what no library does: limits that hold while reading, and the rules
// for strings and numbers. It also looks for duplicate names itself, because it
// sorts the names anyway.
type decoder struct {
	*tree
	tokens   jsontext.Decoder
	source   []byte       // the text, with which the bytes of the tree begin
	input    bytes.Buffer // gives tokens the source without a copy
	from, to int          // where the last token was read
	values   int
	depth    int
	lim      limits
	fffd     replacement
	members  []member // of the objects that are still open
	scratch  []step
}

// decode reads a text. Size and encoding come first: nothing is parsed of a
// text that is too large, and no parser gets the chance to repair ill-formed
// UTF-8.
func (d *decoder) decode(text string, lim limits, fffd replacement) *fault {
	switch {
	case len(text) > lim.bytes:
		return refuse(ReasonTooLarge)
	case !utf8.ValidString(text):
		return refuse(ReasonInvalidUTF8)
	}
	d.bytes = append(d.bytes[:0], text...)
	d.source = d.bytes[:len(text):len(text)]
	d.input = *bytes.NewBuffer(d.source)
	d.tokens.Reset(&d.input, jsontext.AllowDuplicateNames(true))
	d.lim, d.fffd = lim, fffd
	k, f := d.read()
	if f != nil {
		return f
	}
	if f := d.value(k); f != nil {
		return f
	}
	if _, err := d.tokens.ReadToken(); !errors.Is(err, io.EOF) {
		return refuse(ReasonTrailingData)
	}
	return nil
}

// reset makes the decoder ready for another text.
func (d *decoder) reset() {
	d.members, d.values, d.depth = d.members[:0], 0, 0
}

// read reads the next token.
func (d *decoder) read() (jsontext.Kind, *fault) {
	d.from = int(d.tokens.InputOffset())
	token, err := d.tokens.ReadToken()
	if err != nil {
		return 0, d.classify(err)
	}
	d.to = int(d.tokens.InputOffset())
	return token.Kind(), nil
}

// skipSeparators moves to the first byte of the token that was read last.
func (d *decoder) skipSeparators() {
	for {
		switch d.source[d.from] {
		case ' ', '\t', '\n', '\r', ',', ':':
			d.from++
		default:
			return
		}
	}
}

// value reads the rest of the value that a token begins.
func (d *decoder) value(k jsontext.Kind) *fault {
	switch k {
	case jsontext.KindBeginObject:
		return d.nested(kindBeginObject, d.object)
	case jsontext.KindBeginArray:
		return d.nested(kindBeginArray, d.array)
	case jsontext.KindString:
		return d.string(kindString)
	case jsontext.KindNumber:
		return d.number()
	default:
		d.add(kind(k)) // null, false or true
		return nil
	}
}

// nested reads the rest of a container with the given function, which returns
// how many elements or members there are.
func (d *decoder) nested(begin kind, read func() (int, *fault)) *fault {
	if d.depth == MaxDepth {
		return refuse(ReasonDepth)
	}
	d.depth++
	at := len(d.steps)
	d.add(begin)
	n, f := read()
	if f != nil {
		return f
	}
	d.steps[at].index = index(n)
	d.depth--
	return nil
}

// array reads the rest of an array.
func (d *decoder) array() (int, *fault) {
	for n := 0; ; n++ {
		k, f := d.read()
		if f == nil && k == jsontext.KindEndArray {
			d.add(kindEndArray)
			return n, nil
		}
		if f == nil {
			f = d.counted(k)
		}
		if f != nil {
			return n, f.under(n)
		}
	}
}

// object reads the rest of an object.
func (d *decoder) object() (int, *fault) {
	base := len(d.members)
	for n := 0; ; n++ {
		k, f := d.read()
		if f == nil && k == jsontext.KindEndObject {
			f = d.order(d.members[base:], &d.scratch)
			d.members = d.members[:base]
			d.add(kindEndObject)
			return n, f
		}
		if f == nil {
			f = d.member(n)
		}
		if f != nil {
			return n, f.under(n)
		}
	}
}

// member reads the member whose name was read last.
func (d *decoder) member(ordinal int) *fault {
	m := member{name: index(len(d.texts)), from: index(len(d.steps)), ordinal: index(ordinal)}
	if f := d.string(kindName); f != nil {
		return f
	}
	k, f := d.read()
	if f != nil {
		return f
	}
	if f := d.counted(k); f != nil {
		return f
	}
	m.to = index(len(d.steps))
	d.members = append(d.members, m)
	return nil
}

// counted reads a member value or an element and charges it to the limit.
func (d *decoder) counted(k jsontext.Kind) *fault {
	if d.values++; d.values > d.lim.values {
		return refuse(ReasonTooManyValues)
	}
	return d.value(k)
}

// string takes the string or member name that was read last. jsontext has read
// it as a string, so it can be unquoted. Without an escape it is a part of the
// source; otherwise it is added behind it.
func (d *decoder) string(k kind) *fault {
	d.skipSeparators()
	from, to := d.from+1, d.to-1
	if token := d.source[d.from:d.to]; bytes.IndexByte(token, '\\') >= 0 {
		from = len(d.bytes)
		d.bytes, _ = jsontext.AppendUnquote(d.bytes, token)
		to = len(d.bytes)
	}
	s := d.bytes[from:to]
	if len(s) > d.lim.stringBytes {
		return refuse(ReasonStringTooLong)
	}
	if why := checkText(s, d.fffd); why != "" {
		return refuse(why)
	}
	d.addText(k, from, to)
	return nil
}

// number takes the number that was read last, as it is written: after a
// conversion its length, its sign at zero and its last digits would be gone.
func (d *decoder) number() *fault {
	d.skipSeparators()
	f, why := parseNumber(d.source[d.from:d.to])
	if why != "" {
		return refuse(why)
	}
	d.addNumber(f)
	return nil
}

// classify turns an error of jsontext into a reason. The error itself is
// dropped: it quotes the token and the names on the way to it.
func (d *decoder) classify(err error) *fault {
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
