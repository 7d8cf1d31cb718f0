// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
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
	frozen, err := snapshot.PrepareObject(rawArguments, func(args *snapshot.Object) error {
		if err := c.accept(args, v); err != nil {
			return err
		}
		return nil
	})
	if err != nil {
		return nil, c.refusal(err)
	}
	v.canonical = frozen.Canonical()
	if c.needsRaw {
		v.cut()
	}
	effect, text, refused := c.plan.render(v)
	if refused != nil {
		return nil, &RefusedError{Tool: c.name, Err: refused}
	}
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
// arguments that are hashed, decided on and run.
func (c *Contract) accept(args *snapshot.Object, v *values) *snapshot.Error {
	if args == nil {
		return refuse(snapshot.StageSchema, ReasonWrongType, "")
	}
	next := 0
	for _, i := range c.order { // as the members are ordered
		v.list[i].member = notSent
		if next < args.Len() && args.Name(next) == c.args[i].name {
			v.list[i].member = next
			next++
		}
	}
	if next < args.Len() {
		return c.unexpected(args)
	}
	for i, a := range c.args {
		if err := a.take(args, &v.list[i]); err != nil {
			return err
		}
	}
	return c.checkScope(v)
}

// take accepts what was sent for one argument, or its default.
func (a *argument) take(args *snapshot.Object, v *value) *snapshot.Error {
	if v.member == notSent {
		return a.takeDefault(args, v)
	}
	if sent, isText := args.Text(v.member); isText && a.spec.json == jsonString {
		return a.takeText(args, v, sent)
	}
	sent := args.Value(v.member)
	accepted, why := a.accept(sent)
	if why != "" {
		return refuse(snapshot.StageSchema, why, a.name)
	}
	v.present, v.text = true, templateText(accepted)
	if !a.isStructure() && accepted != sent { // accepting changes no structure
		args.Replace(v.member, accepted)
	}
	return nil
}

// takeText is take for the most frequent kind of values, which need not become
// an interface each.
func (a *argument) takeText(args *snapshot.Object, v *value, sent string) *snapshot.Error {
	accepted, why := a.acceptString(sent)
	if why != "" {
		return refuse(snapshot.StageSchema, why, a.name)
	}
	v.present, v.text = true, accepted
	if accepted != sent {
		args.Replace(v.member, accepted)
	}
	return nil
}

// takeDefault adds the default of an argument that was not sent.
func (a *argument) takeDefault(args *snapshot.Object, v *value) *snapshot.Error {
	fallback := a.defaultValue()
	switch {
	case fallback != nil:
		v.present, v.text = true, templateText(fallback)
		args.Add(a.name, fallback)
	case a.required:
		return refuse(snapshot.StageSchema, ReasonMissingArgument, a.name)
	}
	return nil
}

// unexpected says where the first argument is that the manifest does not
// declare. Its name cannot be told, so that the position must do.
func (c *Contract) unexpected(args *snapshot.Object) *snapshot.Error {
	i := 0
	for slices.ContainsFunc(c.args, func(a *argument) bool { return a.name == args.Name(i) }) {
		i++
	}
	return refuse(snapshot.StageSchema, ReasonUnexpectedArgument, "/"+strconv.Itoa(i))
}

// checkScope holds the accepted values to the scope.
func (c *Contract) checkScope(v *values) *snapshot.Error {
	for i, a := range c.args {
		if !a.scoped {
			continue
		}
		if c.scope == nil {
			return refuse(snapshot.StageScope, snapshot.Reason(c.problems[0].Reason), a.name)
		}
		if !v.list[i].present {
			continue
		}
		if why := a.checkScope(c.scope, v.list[i].text); why != "" {
			return refuse(snapshot.StageScope, why, a.name)
		}
	}
	return nil
}
