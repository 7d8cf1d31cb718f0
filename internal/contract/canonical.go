// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"sync"
)

// The functions of this file write RFC 8785 text directly: members in order,
// strings with the escapes of RFC 8785 section 3.2.2.2, integers in decimal.
// The general way through package snapshot costs several times as much, and an
// admission request would pay it three times. Tests hold every one of them
// against the general way.

// object writes one JSON object. Members must come in canonical order.
type object struct {
	text []byte
	used bool
}

func openObject(text []byte) object { return object{text: append(text, '{')} }

func (o *object) close() []byte { return append(o.text, '}') }

// name writes what comes before a value. Names are constants of this package
// that need no escapes.
func (o *object) name(name string) {
	if o.used {
		o.text = append(o.text, ',')
	}
	o.used = true
	o.text = append(append(append(o.text, '"'), name...), '"', ':')
}

// str writes a string member.
func (o *object) str(name, value string) {
	o.name(name)
	o.text = appendString(o.text, value)
}

// optional writes a string member unless it is empty.
func (o *object) optional(name, value string) {
	if value != "" {
		o.str(name, value)
	}
}

// flag writes a boolean member if it is true.
func (o *object) flag(name string, value bool) {
	if value {
		o.name(name)
		o.text = append(o.text, "true"...)
	}
}

// raw writes a member whose value is canonical text already.
func (o *object) raw(name, value string) {
	o.name(name)
	o.text = append(o.text, value...)
}

// appendString quotes a text with the escapes of RFC 8785 section 3.2.2.2. The
// text is well-formed UTF-8: package snapshot has seen it, as an argument or as
// a part of the contract.
func appendString(text []byte, value string) []byte {
	return append(appendInString(append(text, '"'), value), '"')
}

// appendInString writes a value inside a JSON string.
func appendInString(text []byte, value string) []byte {
	for {
		n := plainBytes(value)
		text = append(text, value[:n]...)
		if n == len(value) {
			return text
		}
		text = appendEscape(text, value[n])
		value = value[n+1:]
	}
}

// plainBytes counts the bytes at the beginning that stand for themselves in a
// string. It looks at eight of them at once, because every call writes its
// arguments twice, and few bytes need an escape.
func plainBytes(value string) int {
	const (
		wordLength = 8
		ones       = 0x0101010101010101
		highBits   = 0x80 * ones
	)
	i := 0
	for ; i+wordLength <= len(value); i += wordLength {
		w := littleEndian(value[i : i+wordLength])
		quote, backslash := w^'"'*ones, w^'\\'*ones
		// A subtraction sets the high bit of a byte that was smaller. Its
		// borrow may mark bytes above that one, but never one below, so the
		// lowest mark is right.
		marks := ((w-' '*ones)&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & highBits
		if marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for i < len(value) && !needsEscape(value[i]) {
		i++
	}
	return i
}

// littleEndian reads eight bytes as a number; compilers make one load of it.
func littleEndian(b string) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// needsEscape reports whether a byte does not stand for itself in a string.
func needsEscape(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

func appendEscape(text []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(text, '\\', c)
	case '\b':
		return append(text, `\b`...)
	case '\t':
		return append(text, `\t`...)
	case '\n':
		return append(text, `\n`...)
	case '\f':
		return append(text, `\f`...)
	case '\r':
		return append(text, `\r`...)
	default:
		return fmt.Appendf(text, `\u%04x`, c)
	}
}

// appendList writes an array member unless it is empty.
func appendList[E any](o *object, name string, list []E, element func([]byte, E) []byte) {
	if len(list) == 0 {
		return
	}
	o.name(name)
	o.text = append(o.text, '[')
	for i, e := range list {
		if i > 0 {
			o.text = append(o.text, ',')
		}
		o.text = element(o.text, e)
	}
	o.text = append(o.text, ']')
}

// appendEffect writes the canonical text of an effect.
func appendEffect(text []byte, e Effect) []byte {
	o := openObject(text)
	switch {
	case e.Command != nil:
		o.name(EffectCommand)
		o.text = appendCommand(o.text, e.Command)
	case e.HTTP != nil:
		o.name(EffectHTTP)
		o.text = appendHTTP(o.text, e.HTTP)
	case e.MCP != nil:
		o.name(EffectMCP)
		o.text = appendMCP(o.text, e.MCP)
	}
	return o.close()
}

func appendCommand(text []byte, c *CommandCall) []byte {
	o := openObject(text)
	appendList(&o, "argv", c.Argv, appendString)
	appendList(&o, "env", c.Env, appendVariable)
	o.str("image", c.Image)
	o.optional("outputFile", c.OutputFile)
	o.str("workingDir", c.WorkingDir)
	return o.close()
}

func appendVariable(text []byte, v ResolvedVariable) []byte {
	o := openObject(text)
	o.str("name", v.Name)
	if v.Secret != nil {
		o.name("secret")
		o.text = appendSecret(o.text, *v.Secret)
	}
	if v.Value != nil {
		o.str("value", *v.Value)
	}
	return o.close()
}

func appendSecret(text []byte, s ResolvedSecret) []byte {
	o := openObject(text)
	appendList(&o, "hosts", s.Hosts, appendString)
	o.str("key", s.Key)
	o.str("name", s.Name)
	o.str("secretName", s.SecretName)
	return o.close()
}

func appendHTTP(text []byte, h *HTTPCall) []byte {
	o := openObject(text)
	o.flag("allowPrivate", h.AllowPrivate)
	o.optional("body", h.Body)
	o.optional("caBundle", h.CABundle)
	appendList(&o, "headers", h.Headers, appendHeader)
	o.str("method", h.Method)
	appendList(&o, "secrets", h.Secrets, appendSecret)
	appendList(&o, "successStatus", h.SuccessStatus, func(text []byte, status int32) []byte {
		return strconv.AppendInt(text, int64(status), 10)
	})
	o.str("url", h.URL)
	return o.close()
}

func appendHeader(text []byte, h ResolvedHeader) []byte {
	o := openObject(text)
	o.str("name", h.Name)
	o.str("value", h.Value)
	return o.close()
}

func appendMCP(text []byte, m *MCPCall) []byte {
	o := openObject(text)
	o.flag("allowPrivate", m.AllowPrivate)
	o.str("arguments", m.Arguments)
	o.optional("caBundle", m.CABundle)
	appendList(&o, "headers", m.Headers, appendHeader)
	appendList(&o, "secrets", m.Secrets, appendSecret)
	o.str("tool", m.Tool)
	o.str("toolDigest", m.ToolDigest)
	o.str("url", m.URL)
	return o.close()
}

// workspace is the memory that one call needs while it is prepared.
type workspace struct {
	values values
	// spans are where the words of a command stand in the text of its effect;
	// buffer holds that text, and texts that are hashed.
	spans  []wordSpan
	buffer []byte
}

// workspaces keeps memory between calls. What is in it is never read again.
var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// maxPooledBytes is the largest memory that is kept: one huge call should not
// occupy it for ever.
const maxPooledBytes = 64 << 10

// borrow returns a workspace for a call with these arguments.
func borrow(args []*argument) *workspace {
	w := workspaces.Get().(*workspace)
	w.values.args, w.values.workspace = args, w
	w.values.list = slices.Grow(w.values.list[:0], len(args))[:len(args)]
	return w
}

// release gives the workspace back without what the call left in it.
func (w *workspace) release() {
	clear(w.values.list)
	clear(w.spans)
	w.values.args, w.values.canonical = nil, ""
	if cap(w.buffer) <= maxPooledBytes {
		workspaces.Put(w)
	}
}

// effect returns the canonical text of an effect.
func (w *workspace) effect(e Effect) string {
	w.buffer = appendEffect(w.buffer[:0], e)
	return string(w.buffer)
}

// digest returns the lower-case hexadecimal SHA-256 of an object and keeps its
// memory.
func (w *workspace) digest(o *object) string {
	w.buffer = o.close()
	sum := sha256.Sum256(w.buffer)
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// proposal is snapshot.ProposalHash for arguments that are known to be
// canonical.
func (w *workspace) proposal(agent, tool, arguments string) string {
	o := openObject(w.buffer[:0])
	o.str("agent", agent)
	o.str("argsCanonicalJson", arguments)
	o.str("tool", tool)
	o.raw("v", "1")
	return w.digest(&o)
}

// fingerprint is attest.Fingerprint for an effect that is known to be
// canonical.
func (w *workspace) fingerprint(proposalHash, namespace string, c contractID, effect string) string {
	o := openObject(w.buffer[:0])
	o.name("contract")
	inner := openObject(o.text)
	inner.str("hash", c.hash)
	inner.str("name", c.name)
	inner.str("version", c.version)
	o.text = inner.close()
	o.raw("effect", effect)
	o.raw("kind", `"fingerprint"`)
	o.str("namespace", namespace)
	o.str("proposalHash", proposalHash)
	o.raw("v", "1")
	return w.digest(&o)
}

// contractID is what a fingerprint says of the contract.
type contractID struct{ name, version, hash string }
