// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/assent-dev/assent/snapshot"
)

// CallText is a call as the log shows it.
type CallText struct {
	// Args is the canonical text of the arguments, without the sensitive ones.
	Args string `json:"args"`
	// ArgsDigest is the hex SHA-256 of the complete canonical text.
	ArgsDigest string `json:"argsDigest"`
	// Sensitive maps the name of each sensitive argument that was given to the
	// hex SHA-256 of its value's canonical text.
	Sensitive map[string]string `json:"sensitive,omitempty"`
	// Effect is the canonical text of the resolved effect. It is empty when an
	// argument is sensitive, because the effect may contain its value anywhere.
	Effect string `json:"effect"`
	// EffectDigest is the hex SHA-256 of the complete effect text.
	EffectDigest string `json:"effectDigest"`
}

// NewCallText makes the text of a call for the log from the canonical texts of
// its arguments and effect and the names of its sensitive arguments.
//
// The digest of a value that is easy to guess can be guessed. It is there to
// compare, not to hide a short secret: real secrets belong in references, which
// never reach the arguments.
func NewCallText(argsCanonicalJSON, effectCanonicalJSON string, sensitive []string) (CallText, error) {
	args, err := snapshot.Parse(argsCanonicalJSON)
	if err != nil {
		return CallText{}, fmt.Errorf("arguments for the audit log: %w", err)
	}
	text := CallText{
		Args:         args.Canonical(),
		ArgsDigest:   args.Digest(),
		Effect:       effectCanonicalJSON,
		EffectDigest: digestText(effectCanonicalJSON),
	}
	if len(sensitive) == 0 {
		return text, nil
	}
	members, ok := args.View().(map[string]any)
	if !ok {
		return CallText{}, errors.New("arguments for the audit log: sensitive arguments need an object")
	}
	text.Sensitive = map[string]string{}
	for _, name := range sensitive {
		value, given := members[name]
		if !given {
			continue
		}
		one, err := snapshot.New(value)
		if err != nil {
			return CallText{}, fmt.Errorf("arguments for the audit log: %w", err)
		}
		text.Sensitive[name] = one.Digest()
		delete(members, name)
	}
	if len(text.Sensitive) == 0 {
		text.Sensitive = nil
		return text, nil
	}
	rest, err := snapshot.New(members)
	if err != nil {
		return CallText{}, fmt.Errorf("arguments for the audit log: %w", err)
	}
	text.Args, text.Effect = rest.Canonical(), ""
	return text, nil
}

func digestText(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
