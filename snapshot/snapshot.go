// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import "errors"

// Snapshot is a frozen tree of arguments: its canonical text and the digest of
// that text. It holds no reference into the value it was made from and hands
// out none, so it is safe for concurrent use and nobody can change it.
type Snapshot struct {
	canonical string
	digest    string
}

// New freezes a tree, usually the output of a schema step. The tree may consist
// of nil, bool, string, float64, []any, map[string]any and the integer types of
// Go as far as their values survive as a JSON number; everything else is
// refused, and so are cycles, memory reachable twice, and nil maps and slices,
// because each of them has no text or shares one with another value. New copies
// the tree first and looks at the copy only; the caller may change the tree
// afterwards, but not meanwhile.
//
// Every error is an [*Error] of [StageSnapshot].
func New(tree any) (*Snapshot, error) {
	return standard().freeze(tree)
}

// freeze is New with the canonicaliser as a parameter.
func (c canonicalizer) freeze(source any) (*Snapshot, error) {
	return seal(c.canonicalOf(source, argumentLimits()))
}

// seal makes a snapshot of a canonical text, or an error of a fault.
func seal(text, digest string, f *fault) (*Snapshot, error) {
	if f != nil {
		return nil, f.at(StageSnapshot)
	}
	return &Snapshot{canonical: text, digest: digest}, nil
}

// Prepare is the whole way from raw proposal arguments to a snapshot: [Decode],
// then the schema step exactly once, then [New]. The schema step may normalise
// its input in place or return another tree; it may keep references to either.
// A nil schema step changes nothing.
//
// Every error is or wraps an [*Error]: those of the schema step keep theirs (of
// stage schema, scope or effect), and any other error of the schema step becomes
// [ReasonSchema]. Its own text may quote arguments, so it is not repeated; it
// stays available to errors.Is and errors.As.
func Prepare(raw string, schema func(any) (any, error)) (*Snapshot, error) {
	if schema == nil {
		return prepareAsIs(raw)
	}
	requested, err := Decode(raw)
	if err != nil {
		return nil, err
	}
	output, err := schema(requested)
	if err != nil {
		return nil, hideText(err)
	}
	return New(output)
}

// prepareAsIs spares the Go values in between, which nobody would see: what the
// decoder builds is already detached.
func prepareAsIs(raw string) (*Snapshot, error) {
	w := borrow()
	defer w.giveBack()
	if f := w.decoder.decode(raw, argumentLimits(), refuseReplacement); f != nil {
		return nil, f.at(StageDecode)
	}
	return seal(standard().canonical(w, argumentLimits()))
}

// schemaError shows the refusal and hides the text of what caused it.
type schemaError struct {
	refusal *Error
	cause   error
}

// Error is the text of the refusal alone.
func (e *schemaError) Error() string { return e.refusal.Error() }

// Unwrap gives access to the refusal and to its cause.
func (e *schemaError) Unwrap() []error { return []error{e.refusal, e.cause} }

// hideText finds the refusal in an error of a schema step, or makes one.
func hideText(cause error) error {
	refusal := &Error{Stage: StageSchema, Reason: ReasonSchema}
	if known, ok := errors.AsType[*Error](cause); ok {
		refusal = known
	}
	return &schemaError{refusal: refusal, cause: cause}
}

// Parse takes a stored canonical text back. It must be exactly what
// [Snapshot.Canonical] returned: text that is valid but written in another way
// is refused with [ReasonNotCanonical], because what was decided on is the text.
//
// Every error is an [*Error] of [StageSnapshot].
func Parse(canonical string) (*Snapshot, error) {
	w := borrow()
	defer w.giveBack()
	if f := w.decoder.decode(canonical, argumentLimits(), allowReplacement); f != nil {
		return nil, f.at(StageSnapshot)
	}
	text, digest, f := standard().canonical(w, argumentLimits())
	if f == nil && text != canonical {
		f = refuse(ReasonNotCanonical)
	}
	return seal(text, digest, f)
}

// Canonical returns the canonical JSON text (RFC 8785): what is stored, shown,
// decided on and executed.
func (s *Snapshot) Canonical() string { return s.canonical }

// Digest returns the SHA-256 of the canonical text in lower-case hexadecimal.
func (s *Snapshot) Digest() string { return s.digest }

// String names the snapshot by its digest. Arguments do not belong in logs, where
// a snapshot that is printed by accident would end up.
func (s *Snapshot) String() string { return "snapshot sha256:" + s.digest }

// View decodes the canonical text afresh. Views share nothing with each other
// or with the snapshot, so a policy that keeps or changes its view cannot reach
// the one that is executed (RFC-0016, "Argument Views"). View panics on a
// Snapshot that none of the functions of this package returned.
func (s *Snapshot) View() any {
	view, err := DecodeText(s.canonical)
	if err != nil {
		panic("snapshot: View of a Snapshot that was not made by this package")
	}
	return view
}

// Matches reports, after a policy has returned, whether its view still equals
// the snapshot. The error is an [*Error] with [ReasonPolicyMutatedArguments] if
// the view was changed in any way, even to something without a canonical text.
// A change made later is not seen here; it cannot reach another view either.
func (s *Snapshot) Matches(view any) error {
	text, _, f := standard().canonicalOf(view, argumentLimits())
	if f != nil || text != s.canonical {
		return refuse(ReasonPolicyMutatedArguments).at(StageSnapshot)
	}
	return nil
}
