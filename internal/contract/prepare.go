// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/assent-dev/assent/snapshot"
)

// Prepared is one call, frozen. Nothing in it is computed again later.
type Prepared struct {
	// ArgsCanonicalJSON is the canonical text of the arguments after defaults,
	// normalisation and clamps.
	ArgsCanonicalJSON string
	// ArgsDigest is the SHA-256 of that text in hexadecimal.
	ArgsDigest string
	// Effect is what happens when the call runs, and EffectJSON its canonical
	// text.
	Effect     Effect
	EffectJSON string
	// ContractHash is that of [Contract.Hash].
	ContractHash string
	// ProposalHash is that of snapshot.ProposalHash.
	ProposalHash string
	// Fingerprint is that of attest.Fingerprint: what a person approves.
	Fingerprint string
}

// RefusedError is the error of [Contract.Prepare]. It says what to change, and as a
// [*snapshot.Error], which errors.As finds, stage and reason.
type RefusedError struct {
	// Tool is the name of the ToolManifest.
	Tool string
	// Err has stage, reason and the declared name of the argument.
	Err *snapshot.Error
}

// Error names tool, stage, reason and argument and says what to change. It
// contains nothing of the arguments.
func (r *RefusedError) Error() string {
	text := "tool " + r.Tool + ": " + r.Err.Error()
	if what, known := advice[r.Err.Reason]; known {
		text += ": " + what
	}
	return text
}

// Unwrap returns the [*snapshot.Error].
func (r *RefusedError) Unwrap() error { return r.Err }

// Prepare takes an agent's raw arguments all the way to a frozen call: strict
// decoding, the declared types with defaults and clamps, the scope, the
// canonical text, the effect and the hashes. agent is the authenticated user
// that the call is for; it enters the proposal hash only.
//
// The error is a [*RefusedError].
func (c *Contract) Prepare(agent, rawArguments string) (*Prepared, error) {
	w := borrow(c.args)
	defer w.release()
	v := &w.values
	frozen, err := snapshot.Prepare(rawArguments, func(tree any) (any, error) {
		accepted, err := c.accept(tree, v)
		if err != nil {
			return nil, err
		}
		return accepted, nil
	})
	if err != nil {
		return nil, c.refusal(err)
	}
	v.canonical = frozen.Canonical()
	if c.needsRaw {
		v.cut()
	}
	effect, refused := c.plan.render(v)
	if refused != nil {
		return nil, &RefusedError{Tool: c.name, Err: refused}
	}
	text := w.effect(effect)
	if len(text) > MaxEffectBytes {
		return nil, &RefusedError{Tool: c.name, Err: refuse(snapshot.StageEffect, ReasonEffectTooLarge, "")}
	}
	effect.detach()
	p := &Prepared{
		ArgsCanonicalJSON: v.canonical,
		ArgsDigest:        frozen.Digest(),
		Effect:            effect,
		EffectJSON:        text,
		ContractHash:      c.hash,
		ProposalHash:      w.proposal(agent, c.name, v.canonical),
	}
	p.Fingerprint = w.fingerprint(p.ProposalHash, c.namespace, contractID{c.name, c.manifest.Version, c.hash}, p.EffectJSON)
	return p, nil
}

// refusal finds stage and reason in an error of package snapshot.
func (c *Contract) refusal(err error) error {
	refused := &snapshot.Error{Stage: snapshot.StageSchema, Reason: snapshot.ReasonSchema}
	errors.As(err, &refused)
	return &RefusedError{Tool: c.name, Err: refused}
}

// accept is the schema step and the scope step: it turns what was sent into the
// arguments that are hashed, decided on and run. The tree belongs to this call,
// so that it is changed in place.
func (c *Contract) accept(tree any, v *values) (map[string]any, *snapshot.Error) {
	args, ok := tree.(map[string]any)
	if !ok {
		return nil, refuse(snapshot.StageSchema, ReasonWrongType, "")
	}
	known := 0
	for i, a := range c.args {
		if v.list[i].sent, v.list[i].present = args[a.name]; v.list[i].present {
			known++
		}
	}
	if known != len(args) {
		return nil, c.unexpected(args)
	}
	for i, a := range c.args {
		if err := a.take(args, &v.list[i]); err != nil {
			return nil, err
		}
	}
	return args, c.checkScope(args)
}

// take accepts what was sent for one argument, or its default.
func (a *argument) take(args map[string]any, v *value) *snapshot.Error {
	var accepted any
	if v.present {
		var why refusal
		if accepted, why = a.accept(v.sent); why != "" {
			return refuse(snapshot.StageSchema, why, a.name)
		}
	} else if accepted = a.defaultValue(); accepted == nil {
		if a.required {
			return refuse(snapshot.StageSchema, ReasonMissingArgument, a.name)
		}
		return nil
	}
	v.present = true
	v.text = templateText(accepted)
	if a.isStructure() || accepted != v.sent { // structures cannot be compared
		args[a.name] = accepted
	}
	return nil
}

// unexpected says where the first argument is that the manifest does not
// declare. Its name cannot be told, so that the position must do.
func (c *Contract) unexpected(args map[string]any) *snapshot.Error {
	names := slices.SortedFunc(maps.Keys(args), compareUTF16)
	i := slices.IndexFunc(names, func(name string) bool { _, known := c.index[name]; return !known })
	return refuse(snapshot.StageSchema, ReasonUnexpectedArgument, "/"+strconv.Itoa(i))
}

// checkScope holds the accepted values to the scope.
func (c *Contract) checkScope(accepted map[string]any) *snapshot.Error {
	for _, a := range c.args {
		if !a.scoped {
			continue
		}
		if c.scope == nil {
			return refuse(snapshot.StageScope, snapshot.Reason(c.problems[0].Reason), a.name)
		}
		value, present := accepted[a.name]
		if !present {
			continue
		}
		if why := a.checkScope(c.scope, value); why != "" {
			return refuse(snapshot.StageScope, why, a.name)
		}
	}
	return nil
}
