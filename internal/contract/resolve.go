// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// resolver turns declared arguments into compiled ones.
type resolver struct {
	problems
	types map[string]ArgumentType
	// used are the ArgumentTypes that any chain went through.
	used     map[string]ArgumentType
	patterns map[string]*pattern
	schemas  map[string]*jsonschema.Schema
}

func newResolver(types map[string]ArgumentType) *resolver {
	return &resolver{
		types:    types,
		used:     map[string]ArgumentType{},
		patterns: map[string]*pattern{},
		schemas:  map[string]*jsonschema.Schema{},
	}
}

// link is one set of constraints on the way from an argument to its built-in
// type, with the position of its fields.
type link struct {
	field       string
	description string
	constraints ArgumentConstraints
}

// chain follows a type to the built-in one. It returns nil with a problem
// recorded when there is none.
func (r *resolver) chain(field, name string) (kind string, links []link) {
	var path []string
	for kindOf(name) == nil {
		t, known := r.types[name]
		switch {
		case !known:
			r.add(ReasonMissingReference, field, "there is no ArgumentType %q in the namespace and no built-in type of that name", name)
			return "", nil
		case slices.Contains(path, name):
			r.add(ReasonTypeCycle, field, "the type is based on itself: %s", strings.Join(append(path, name), " -> "))
			return "", nil
		case len(path) == MaxTypeDepth:
			r.add(ReasonTypeDepth, field, "the chain %s is longer than %d types; base the type on an earlier one",
				strings.Join(path, " -> "), MaxTypeDepth)
			return "", nil
		}
		path = append(path, name)
		r.used[name] = t
		at := "ArgumentType/" + name + ": spec."
		links = append(links, link{field: at, description: t.Description, constraints: t.ArgumentConstraints})
		field, name = at+"base", t.Base
	}
	return name, links
}

// argument compiles one declared argument. It returns nil with problems
// recorded when it cannot be used.
func (r *resolver) argument(field string, declared Argument, asText bool) *argument {
	kind, links := r.chain(field+".type", declared.Type)
	if kind == "" {
		return nil
	}
	before := len(r.list)
	a := &argument{
		name: declared.Name, kind: kind, spec: kindOf(kind), asText: asText,
		required: declared.Required, description: declared.Description,
		bounds: kindBounds(kind), maxLength: MaxTextBytes, scoped: kind == KindScopeTarget,
	}
	if asText && a.isStructure() {
		r.add(ReasonInvalidArgument, field+".type", "a structure cannot be written under argumentEncoding String; use Typed")
	}
	for _, l := range append(links, link{field: field + ".", constraints: declared.ArgumentConstraints}) {
		if a.description == "" {
			a.description = l.description // an argument without one has that of its type
		}
		r.fold(a, l)
	}
	r.complete(a, field)
	if len(r.list) > before {
		return nil
	}
	r.checkAllowed(a, field)
	r.setDefault(a, field, declared.Default)
	return a
}

// kindBounds are the bounds that a type has of its own.
func kindBounds(kind string) bounds {
	if kind == KindPort {
		return bounds{min: 1, max: 65535}
	}
	return unbounded()
}

// complete checks what only the whole chain can tell.
func (r *resolver) complete(a *argument, field string) {
	switch {
	case a.spec.needsAllowed && a.allowed == nil:
		r.add(ReasonInvalidArgument, field+".allowed", "the type %s needs a list of allowed values", a.kind)
	case a.spec.needsPattern && a.patterns == nil:
		r.add(ReasonInvalidArgument, field+".pattern", "the type %s needs a pattern", a.kind)
	case a.isStructure() && a.schemas == nil:
		r.add(ReasonInvalidArgument, field+".schema", "the type %s needs a JSON Schema", a.kind)
	}
	r.completeBounds(a, field)
	if a.kind == KindURL && a.schemes == nil {
		a.schemes = defaultSchemes
	}
}

func (r *resolver) completeBounds(a *argument, field string) {
	if a.bounds.min > a.bounds.max {
		r.add(ReasonInvalidArgument, field+".min", "min is larger than max, so that no value is accepted")
	}
	if a.bounds.clamp && a.bounds == clamped(kindBounds(a.kind)) {
		r.add(ReasonInvalidArgument, field+".clamp", "clamp needs min or max")
	}
}

func clamped(b bounds) bounds {
	b.clamp = true
	return b
}

// checkAllowed refuses lists of which no entry could ever be sent: each entry
// is compared with values after normalisation.
func (r *resolver) checkAllowed(a *argument, field string) {
	if a.allowed == nil {
		return
	}
	possible := false
	for text := range a.allowed[0] {
		v, why := a.accept(text) // every type that can have a list accepts texts
		possible = possible || why == "" && templateText(v) == text
	}
	if !possible {
		r.add(ReasonInvalidArgument, field+".allowed", "no allowed value satisfies the other constraints as it is written")
	}
}
