// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/snapshot"
)

// strict refuses whatever could be read in two ways: members that are unknown
// or differ in case only, duplicates, and ill-formed text.
var strict = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.MatchCaseInsensitiveNames(false),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
)

// DecodeManifest reads the spec of a ToolManifest. Unknown and duplicate
// members are errors. What the spec says is checked by [Compile].
func DecodeManifest(data []byte) (Manifest, error) {
	return decodeStrict[Manifest]("tool manifest", data)
}

// DecodeArgumentType reads the spec of an ArgumentType, as [DecodeManifest].
func DecodeArgumentType(data []byte) (ArgumentType, error) {
	return decodeStrict[ArgumentType]("argument type", data)
}

// DecodeScope reads the spec of a ToolScope, as [DecodeManifest].
func DecodeScope(data []byte) (Scope, error) {
	return decodeStrict[Scope]("tool scope", data)
}

// ErrEffectKind is returned for an effect that is not exactly one of command,
// http and mcp.
var ErrEffectKind = errors.New("an effect must be exactly one of command, http and mcp")

// ErrEffectNotCanonical is returned for an effect that is not in the form of
// [EncodeEffect].
var ErrEffectNotCanonical = errors.New("the effect is not in canonical form (RFC 8785)")

// DecodeEffect reads an effect from the text that [EncodeEffect] made. It
// accepts no other text: what a person approved is these bytes.
func DecodeEffect(canonical string) (Effect, error) {
	e, err := decodeStrict[Effect]("effect", []byte(canonical))
	if err != nil {
		return Effect{}, err
	}
	if e.Kind() == "" {
		return Effect{}, ErrEffectKind
	}
	if string(appendEffect(nil, e)) != canonical {
		return Effect{}, ErrEffectNotCanonical
	}
	return e, nil
}

// EncodeEffect returns the canonical text (RFC 8785) of an effect. It fails
// with [ErrEffectKind], or with a [*snapshot.Error] for strings that are not
// well-formed.
func EncodeEffect(e Effect) (string, error) {
	if e.Kind() == "" {
		return "", ErrEffectKind
	}
	tree, err := toTree(e)
	if err != nil {
		return "", err
	}
	return snapshot.CanonicalObject(tree)
}

// toTree turns a struct with JSON tags into a tree that package snapshot
// accepts.
func toTree(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, hideInput(err))
	}
	var tree map[string]any
	err = json.Unmarshal(data, &tree)
	return tree, err
}

func decodeStrict[T any](what string, data []byte) (T, error) {
	var out T
	if err := json.Unmarshal(data, &out, strict); err != nil {
		var zero T
		return zero, fmt.Errorf("decoding the %s: %w", what, hideInput(err))
	}
	return out, nil
}

// hideInput drops the quotations of the input that the JSON library puts into
// its errors and keeps position and cause.
func hideInput(err error) error {
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		syntactic := &jsontext.SyntacticError{}
		errors.As(err, &syntactic)
		return fmt.Errorf("at byte %d: not valid JSON, or a member occurs twice", syntactic.ByteOffset)
	}
	cause := errors.New("wrong type")
	for _, known := range []error{json.ErrUnknownName, errIntOrString, errDuration} {
		if errors.Is(err, known) {
			cause = known
		}
	}
	return fmt.Errorf("at %q: %w", string(semantic.JSONPointer), cause)
}
