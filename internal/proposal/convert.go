// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
)

// Tools is everything of a namespace that contracts are compiled from.
type Tools struct {
	Types  []v1alpha1.ArgumentType
	Scopes []v1alpha1.ToolScope
}

// ContractInput maps a manifest and the types and scopes of its namespace to
// what package contract compiles. The two sides have the same members; one
// that only the API has would be an error here, never silently dropped.
func ContractInput(m *v1alpha1.ToolManifest, tools Tools, runnerImage string, allowImageTags bool) (contract.Input, error) {
	in := contract.Input{Name: m.Name, Namespace: m.Namespace, RunnerImage: runnerImage, AllowImageTags: allowImageTags}
	var err error
	if in.Manifest, err = convert(m.Spec, contract.DecodeManifest); err != nil {
		return in, fmt.Errorf("reading ToolManifest %s: %w", m.Name, err)
	}
	if in.Types, err = ArgumentTypes(tools.Types); err != nil {
		return in, err
	}
	in.Scopes = make(map[string]contract.Scope, len(tools.Scopes))
	for i := range tools.Scopes {
		s := &tools.Scopes[i]
		if in.Scopes[s.Name], err = Scope(s); err != nil {
			return in, err
		}
	}
	return in, nil
}

// ArgumentTypes maps argument types, by name.
func ArgumentTypes(types []v1alpha1.ArgumentType) (map[string]contract.ArgumentType, error) {
	out := make(map[string]contract.ArgumentType, len(types))
	for i := range types {
		t, err := convert(types[i].Spec, contract.DecodeArgumentType)
		if err != nil {
			return nil, fmt.Errorf("reading ArgumentType %s: %w", types[i].Name, err)
		}
		out[types[i].Name] = t
	}
	return out, nil
}

// Scope maps a scope.
func Scope(s *v1alpha1.ToolScope) (contract.Scope, error) {
	out, err := convert(s.Spec, contract.DecodeScope)
	if err != nil {
		return out, fmt.Errorf("reading ToolScope %s: %w", s.Name, err)
	}
	return out, nil
}

func convert[From, To any](from From, decode func([]byte) (To, error)) (To, error) {
	raw, err := json.Marshal(from)
	if err != nil {
		var zero To
		return zero, fmt.Errorf("encoding the object: %w", err)
	}
	return decode(raw)
}

// PreparedCall maps a prepared call to its stored form.
func PreparedCall(c *contract.Contract, p *contract.Prepared) (*v1alpha1.PreparedCall, error) {
	effect, err := effectFrom(p.EffectJSON)
	if err != nil {
		return nil, err
	}
	return &v1alpha1.PreparedCall{
		ArgsCanonicalJSON: p.ArgsCanonicalJSON,
		ArgsDigest:        p.ArgsDigest,
		Effect:            effect,
		Contract:          v1alpha1.Contract{Name: c.Name(), Version: c.Version(), Hash: c.Hash()},
		ProposalHash:      p.ProposalHash,
		Fingerprint:       p.Fingerprint,
	}, nil
}

func effectFrom(canonical string) (v1alpha1.Effect, error) {
	var out v1alpha1.Effect
	dec := json.NewDecoder(strings.NewReader(canonical))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil {
		return out, fmt.Errorf("mapping the effect: %w", err)
	}
	return out, nil
}

// EffectJSON returns the canonical text of a stored effect, which is what the
// fingerprint was computed from.
func EffectJSON(e v1alpha1.Effect) (string, error) {
	_, text, err := decodeEffect(e)
	return text, err
}

// Effect maps a stored effect to the domain's.
func Effect(e v1alpha1.Effect) (contract.Effect, error) {
	effect, _, err := decodeEffect(e)
	return effect, err
}

// decodeEffect returns the effect with its canonical text: reading accepts no
// other text than writing would make of the result.
func decodeEffect(e v1alpha1.Effect) (effect contract.Effect, canonical string, err error) {
	effect, err = convert(e, func(raw []byte) (contract.Effect, error) {
		text := jsontext.Value(raw)
		if err := text.Canonicalize(); err != nil {
			return contract.Effect{}, fmt.Errorf("canonicalising the effect: %w", err)
		}
		canonical = string(text)
		return contract.DecodeEffect(canonical)
	})
	if err != nil {
		return contract.Effect{}, "", err
	}
	return effect, canonical, nil
}

// IdentityOf maps the user of an admission request. Groups and extras are
// sorted, so that the order an authenticator chose is of no consequence.
func IdentityOf(u authenticationv1.UserInfo) *v1alpha1.Identity {
	id := &v1alpha1.Identity{Username: u.Username, UID: u.UID}
	id.Groups = slices.Sorted(slices.Values(u.Groups))
	for key, values := range u.Extra {
		id.Extra = append(id.Extra, v1alpha1.IdentityExtra{Key: key, Values: slices.Clone([]string(values))})
	}
	slices.SortFunc(id.Extra, func(a, b v1alpha1.IdentityExtra) int { return strings.Compare(a.Key, b.Key) })
	return id
}

// UserOf maps an identity to the one that seals carry.
func UserOf(id *v1alpha1.Identity) attest.User {
	u := attest.User{Username: id.Username, UID: id.UID, Groups: slices.Clone(id.Groups)}
	if len(id.Extra) > 0 {
		u.Extra = make(map[string][]string, len(id.Extra))
	}
	for _, e := range id.Extra {
		u.Extra[e.Key] = slices.Clone(e.Values)
	}
	return u
}
