// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cedar-policy/cedar-go/types"
)

// Set is all policies in force, of all namespaces and of the cluster. It never
// changes: each method that would change it returns another one, which shares
// what stayed the same.
type Set struct {
	limits Limits
	engine Engine
	// parts by namespace; the cluster's under the empty name.
	parts map[string]*part
	// checks by namespace: validation against the tools there.
	checks map[string]*checks
	// digests by namespace, worked out when somebody asks.
	digests sync.Map
}

// part is the policies of one namespace, or of the cluster.
type part struct {
	sources []*Compiled // by name
	broken  []*Compiled
	index   index
	digest  string
}

func newPart(namespace string, sources []*Compiled) *part {
	p := &part{sources: sources, index: newIndex(sources)}
	digests := make([]string, 0, len(sources)+1)
	digests = append(digests, namespace)
	for _, c := range sources {
		if c.Broken() {
			p.broken = append(p.broken, c)
		}
		digests = append(digests, c.digest)
	}
	p.digest = digest("policyPart", digests)
	return p
}

// NewSet makes a set. Two objects with the same namespace and name are an
// error: one would silently replace the other.
func NewSet(limits Limits, compiled ...*Compiled) (*Set, error) {
	byNamespace := map[string][]*Compiled{}
	for _, c := range compiled {
		byNamespace[c.source.Namespace] = append(byNamespace[c.source.Namespace], c)
	}
	s := newSet(limits)
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		var err error
		if s, err = s.WithNamespace(namespace, byNamespace[namespace]...); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func newSet(limits Limits) *Set {
	return &Set{limits: limits.withDefaults(), parts: map[string]*part{}, checks: map[string]*checks{}}
}

func byName(a, b *Compiled) int { return strings.Compare(a.source.Name, b.source.Name) }

// With returns the set with one object added, or replaced. An object that is
// there already, as it is, leaves the set as it is.
func (s *Set) With(c *Compiled) *Set {
	sources := slices.Clone(s.part(c.source.Namespace).sources)
	if i, found := slices.BinarySearchFunc(sources, c, byName); found {
		if sources[i].same(c) {
			return s
		}
		s.forget(sources[i])
		sources[i] = c
	} else {
		sources = slices.Insert(sources, i, c)
	}
	return s.withPart(c.source.Namespace, sources)
}

// WithNamespace returns the set with all objects of a namespace, or with an
// empty name the cluster's, replaced. What is there already, as it is, stays,
// with all that is known of it. An object of another namespace, or one given
// twice, is an error.
func (s *Set) WithNamespace(namespace string, compiled ...*Compiled) (*Set, error) {
	sources := slices.Clone(compiled)
	slices.SortFunc(sources, byName)
	old := s.part(namespace).sources
	for i, c := range sources {
		if c.source.Namespace != namespace {
			return nil, fmt.Errorf("policy %s does not belong to namespace %q", c.Key(), namespace)
		}
		if i > 0 && sources[i-1].Key() == c.Key() {
			return nil, duplicate(c)
		}
		if j, found := slices.BinarySearchFunc(old, c, byName); found && old[j].same(c) {
			sources[i] = old[j]
		}
	}
	if slices.Equal(sources, old) {
		return s, nil
	}
	for _, c := range old {
		if i, found := slices.BinarySearchFunc(sources, c, byName); !found || sources[i] != c {
			s.forget(c)
		}
	}
	return s.withPart(namespace, sources), nil
}

func duplicate(c *Compiled) error {
	return fmt.Errorf("policy %s is given twice; name each object once", c.Key())
}

// Without returns the set with one object removed.
func (s *Set) Without(key Key) *Set {
	sources := slices.Clone(s.part(key.Namespace).sources)
	sources = slices.DeleteFunc(sources, func(c *Compiled) bool {
		gone := c.Key() == key
		if gone {
			s.forget(c)
		}
		return gone
	})
	return s.withPart(key.Namespace, sources)
}

// forget drops what validation remembers of an object that goes out of force.
// A decision that still rests on this set works it out again.
func (s *Set) forget(c *Compiled) {
	for namespace, known := range s.checks {
		if c.source.Namespace == "" || c.source.Namespace == namespace {
			known.forget(c)
		}
	}
}

func (s *Set) withPart(namespace string, sources []*Compiled) *Set {
	next := &Set{limits: s.limits, engine: s.engine, parts: maps.Clone(s.parts), checks: s.checks}
	next.parts[namespace] = newPart(namespace, sources)
	return next
}

// withEngine returns the set with another engine.
func (s *Set) withEngine(engine Engine) *Set {
	return &Set{limits: s.limits, engine: engine, parts: s.parts, checks: s.checks}
}

// emptyPart serves namespaces without policies.
var emptyPart = newPart("", nil)

func (s *Set) part(namespace string) *part {
	if p, ok := s.parts[namespace]; ok {
		return p
	}
	return emptyPart
}

// partsFor gives the parts that apply in a namespace: the cluster's and its own.
func (s *Set) partsFor(namespace string) [2]*part {
	if namespace == "" {
		return [2]*part{s.part(""), emptyPart}
	}
	return [2]*part{s.part(""), s.part(namespace)}
}

// Digest is the SHA-256, in hex, of the policies in force in a namespace. It
// changes with each change of a policy there or in the cluster, and with
// nothing else.
func (s *Set) Digest(namespace string) string {
	known, ok := s.digests.Load(namespace)
	if !ok {
		parts := s.partsFor(namespace)
		known = digest("policySet", []string{parts[0].digest, parts[1].digest})
		s.digests.Store(namespace, known)
	}
	return known.(string)
}

// Len is the number of policies in the set.
func (s *Set) Len() int {
	total := 0
	for _, p := range s.parts {
		for _, c := range p.sources {
			total += len(c.statements)
		}
	}
	return total
}

// Sources lists the objects of a namespace, or with an empty name the
// cluster's, by name.
func (s *Set) Sources(namespace string) []*Compiled {
	return slices.Clone(s.part(namespace).sources)
}

// AnswersAs says whether another set gives each call of a namespace the same
// answer, because policies and tools there are the same ones. With an empty
// name it compares the cluster's policies. Sets that were made from each other
// are meant: what was compiled twice counts as different.
func (s *Set) AnswersAs(other *Set, namespace string) bool {
	return s.part(namespace) == other.part(namespace) && maps.Equal(s.toolsIn(namespace), other.toolsIn(namespace))
}

func (s *Set) toolsIn(namespace string) map[string]*toolTypes {
	if c, ok := s.checks[namespace]; ok {
		return c.tools
	}
	return nil
}

// Describe gives what is known of the policy with an ID of this set.
func (s *Set) Describe(id string) (Info, bool) {
	if _, one := s.find(id); one != nil {
		return one.info(), true
	}
	return Info{}, false
}

// Knows says whether the ID is one of a policy in the set, or the key of an
// object in it: decisions name that where the text cannot be read.
func (s *Set) Knows(id string) bool {
	object, one := s.find(id)
	return one != nil || (object != nil && object.Key().String() == id)
}

// find looks for the object and the policy that an ID is of.
func (s *Set) find(id string) (*Compiled, *statement) {
	namespace, rest, _ := strings.Cut(id, "/")
	name, _, _ := strings.Cut(rest, "#")
	sources := s.part(namespace).sources
	i, found := slices.BinarySearchFunc(sources, name, func(c *Compiled, name string) int { return strings.Compare(c.source.Name, name) })
	if !found {
		return nil, nil
	}
	for _, one := range sources[i].statements {
		if one.id == id {
			return sources[i], one
		}
	}
	return sources[i], nil
}

// zeroParents: neither actions nor resources have any.
var zeroParents = types.EntityUIDSet{}
