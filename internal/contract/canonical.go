// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
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

// appendString quotes well-formed UTF-8, for which AppendQuote cannot fail.
func appendString(text []byte, value string) []byte {
	text, _ = jsontext.AppendQuote(text, value)
	return text
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

// proposalHash is snapshot.ProposalHash for arguments that are known to be
// canonical.
func proposalHash(agent, tool, arguments string) string {
	o := openObject(make([]byte, 0, len(agent)+len(tool)+len(arguments)*5/4+64))
	o.str("agent", agent)
	o.str("argsCanonicalJson", arguments)
	o.str("tool", tool)
	o.raw("v", "1")
	return digest(o.close())
}

// fingerprint is attest.Fingerprint for an effect that is known to be
// canonical.
func fingerprint(proposalHash, namespace string, c contractID, effect string) string {
	o := openObject(make([]byte, 0, len(effect)+512))
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
	return digest(o.close())
}

// contractID is what a fingerprint says of the contract.
type contractID struct{ name, version, hash string }

// digest returns the lower-case hexadecimal SHA-256.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
