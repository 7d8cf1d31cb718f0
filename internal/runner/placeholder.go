// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/internal/contract"
)

// secretMark begins the place of a secret in an effect: {_secret:NAME}.
// Preparation makes sure that it stands only where the manifest put it.
const secretMark = "{_secret:"

// filler puts secrets into their places. It fills only the secrets that the
// effect lists and only for a host that each of them is for.
type filler struct {
	store   secretStore
	secrets []contract.ResolvedSecret
	host    string
}

// fill replaces every place of a secret in text, written with escape.
func (f filler) fill(text string, escape func(string) (string, error)) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, secretMark)
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", refuse(ReasonEffectInvalid, "a secret's place is not closed")
		}
		value, err := f.value(name)
		if err != nil {
			return "", err
		}
		written, err := escape(value)
		if err != nil {
			return "", err
		}
		out.WriteString(written)
		text = after
	}
}

func (f filler) value(name string) (string, error) {
	i := slices.IndexFunc(f.secrets, func(s contract.ResolvedSecret) bool { return s.Name == name })
	if i < 0 {
		return "", refuse(ReasonEffectInvalid, "a secret is used that the effect does not list")
	}
	if !slices.ContainsFunc(f.secrets[i].Hosts, f.isHost) {
		return "", refuse(ReasonCredentialHostMismatch, "secret %s is not for the host of the URL", name)
	}
	return f.store.value(name)
}

// isHost compares host names, which have no case and may end in a dot.
func (f filler) isHost(allowed string) bool {
	return strings.EqualFold(strings.TrimSuffix(allowed, "."), strings.TrimSuffix(f.host, "."))
}

// headerText checks that a secret can stand in a header. Anything else would end
// the header where the secret's owner did not mean it to.
func headerText(value string) (string, error) {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c >= 0x7f {
			return "", refuse(ReasonSecretUnusable, "a secret for a header must be printable ASCII; does it end in a line break?")
		}
	}
	return value, nil
}

// bodyEscape is how a secret is written in a body of the given type, so that
// it stays one value whatever characters it has.
func bodyEscape(contentType string) func(string) (string, error) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return verbatim
	case mediaType == "application/json" || strings.HasSuffix(mediaType, "+json"):
		return jsonText
	case mediaType == "application/x-www-form-urlencoded":
		return formText
	default:
		return verbatim
	}
}

func verbatim(value string) (string, error) { return value, nil }

func formText(value string) (string, error) { return url.QueryEscape(value), nil }

// jsonText is the inside of a JSON string.
func jsonText(value string) (string, error) {
	quoted, err := jsontext.AppendQuote(nil, value)
	if err != nil {
		return "", refuse(ReasonSecretUnusable, "a secret for a JSON body must be valid UTF-8")
	}
	return string(quoted[1 : len(quoted)-1]), nil
}
