// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package clad

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/contract"
)

// Source is one file.
type Source struct {
	// Path is used in messages.
	Path string
	// Text is its content.
	Text []byte
}

// Options are what the files do not say.
type Options struct {
	// Image holds the programs of imported commands, by digest.
	Image string
	// MCPServers are the URLs of the named MCP servers.
	MCPServers map[string]string
	// MCPToolDigests are the digests of the servers' tools, by name.
	MCPToolDigests map[string]string
}

// Note is something that the importer decided and an author should know.
type Note struct{ File, Key, Message string }

// String gives file, key and message.
func (n Note) String() string { return n.File + ": " + n.Key + ": " + n.Message }

// Named is an object with its name.
type Named[Spec any] struct {
	Name string
	Spec Spec
}

// Result is what the files become.
type Result struct {
	Types     []Named[contract.ArgumentType]
	Scope     *Named[contract.Scope]
	Manifests []Named[contract.Manifest]
	Notes     []Note
}

// Import converts manifests, with the project's types and the scope where they
// are given. The error joins an [*Error] for everything that cannot be carried
// over; there is no result then. The objects compile: whoever applies them gets
// no other errors.
func Import(manifests []Source, types, scope *Source, options Options) (*Result, error) {
	out := &Result{}
	var failed []error
	if types != nil {
		r := &reader{path: types.Path}
		out.Types = r.importTypes(types.Text)
		failed = append(failed, r.errors...)
	}
	if scope != nil {
		r := &reader{path: scope.Path}
		out.Scope = r.importScope(scope.Text)
		failed = append(failed, r.errors...)
	}
	for _, m := range manifests {
		r := &reader{path: m.Path}
		c := &converter{reader: r, types: typeMap(out.Types), scope: out.Scope, options: options}
		if named := c.convert(m.Text); named != nil {
			if slices.ContainsFunc(out.Manifests, func(other Named[contract.Manifest]) bool { return other.Name == named.Name }) {
				r.fail("tool.name", "becomes %q, as another file's does; rename one of them", named.Name)
			}
			out.Manifests = append(out.Manifests, *named)
		}
		failed = append(failed, r.errors...)
		out.Notes = append(out.Notes, r.notes...)
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	return out, nil
}

func typeMap(list []Named[contract.ArgumentType]) map[string]contract.ArgumentType {
	out := map[string]contract.ArgumentType{}
	for _, t := range list {
		out[t.Name] = t.Spec
	}
	return out
}

// objectName makes a name of ToolClad's one of Kubernetes'.
func objectName(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", "-"))
}

func (r *reader) importTypes(text []byte) []Named[contract.ArgumentType] {
	var p project
	if _, ok := r.decode(text, &p); !ok {
		return nil
	}
	var out []Named[contract.ArgumentType]
	for _, name := range slices.Sorted(maps.Keys(p.Types)) {
		t := p.Types[name]
		key := "types." + name
		spec := contract.ArgumentType{Base: r.typeName(key+".base", t.Base), Description: t.Description}
		spec.ArgumentConstraints = r.constraints(key, spec.Base, t.constraints)
		out = append(out, Named[contract.ArgumentType]{Name: objectName(name), Spec: spec})
	}
	all := typeMap(out)
	if len(all) != len(out) {
		r.fail("types", "several names become the same once underscores are dashes; rename one of them")
	}
	for _, t := range out {
		if err := contract.CheckType(t.Name, all); err != nil {
			r.fail("types."+t.Name, "%v", err)
		}
	}
	return out
}

// typeName is the name under which a type is referred to.
func (r *reader) typeName(key, name string) string {
	if slices.Contains(contract.Kinds(), name) {
		return name
	}
	if name == "" {
		r.fail(key, "is missing")
	}
	return objectName(name)
}

func (r *reader) importScope(text []byte) *Named[contract.Scope] {
	var f scopeFile
	if _, ok := r.decode(text, &f); !ok {
		return nil
	}
	spec := contract.Scope{Exclude: f.Scope.Exclude, Domains: f.Scope.Domains}
	for _, target := range f.Scope.Targets {
		// A scope file may list hosts among its targets.
		if contract.CheckScope("x", contract.Scope{Targets: []string{target}}) != nil &&
			contract.CheckScope("x", contract.Scope{Domains: []string{target}}) == nil {
			spec.Domains = append(spec.Domains, target)
			continue
		}
		spec.Targets = append(spec.Targets, target)
	}
	name := objectName(strings.TrimSuffix(path.Base(r.path), path.Ext(r.path)))
	if err := contract.CheckScope(name, spec); err != nil {
		r.fail("scope", "%v", err)
	}
	return &Named[contract.Scope]{Name: name, Spec: spec}
}

// scalar writes a TOML scalar as ToolClad interpolates it.
func (r *reader) scalar(key string, v any) *contract.IntOrString {
	switch v := v.(type) {
	case nil:
		return nil
	case string, int64, bool, float64:
		return &contract.IntOrString{IsString: true, Str: fmt.Sprint(v)}
	default:
		r.fail(key, "must be a string, a number or a boolean")
		return nil
	}
}
