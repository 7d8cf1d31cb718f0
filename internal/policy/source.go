// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/assent-dev/assent/internal/policy/cedartext"
)

// AttributeType is the type of a session attribute, in Cedar's words.
type AttributeType string

// The types a session attribute may have.
const (
	AttributeString  AttributeType = "String"
	AttributeLong    AttributeType = "Long"
	AttributeBoolean AttributeType = "Boolean"
	AttributeStrings AttributeType = "Set<String>"
)

// SessionAttribute declares one attribute of context.session that a text reads.
type SessionAttribute struct {
	Name     string
	Type     AttributeType
	Required bool
}

// Source is one ToolPolicy or ClusterToolPolicy.
type Source struct {
	// Namespace of the ToolPolicy; empty for a ClusterToolPolicy.
	Namespace string
	// Name of the object.
	Name string
	// Text is the Cedar text.
	Text string
	// SessionAttributes declares what the text reads from context.session.
	SessionAttributes []SessionAttribute
}

// Key names the object.
func (s Source) Key() Key { return Key{Namespace: s.Namespace, Name: s.Name} }

// Compiled is a text that was read once. It never changes.
type Compiled struct {
	source     Source
	statements []*statement
	problems   []Problem
	digest     string
}

// statement is one policy of a text.
type statement struct {
	id     string
	number int // in the text, from 0
	start  cedartext.Position
	end    int    // offset in the text
	name   string // the @id annotation
	source *Compiled
	policy *cedar.Policy
	scope  scope
	used   usedNames
	reads  reads

	clauses clauses
}

// Key names the object that the text came from.
func (c *Compiled) Key() Key { return c.source.Key() }

// Digest is the SHA-256, in hex, of everything of the object that can change a
// decision.
func (c *Compiled) Digest() string { return c.digest }

// same says whether two readings of an object are the same.
func (c *Compiled) same(o *Compiled) bool {
	return c.digest == o.digest && c.Broken() == o.Broken()
}

// Len is the number of policies of the text.
func (c *Compiled) Len() int { return len(c.statements) }

// SessionAttributes are what the object declares of sessions.
func (c *Compiled) SessionAttributes() []SessionAttribute {
	return slices.Clone(c.source.SessionAttributes)
}

// Broken says that the text could not be read. Such a text denies every call of
// its set: nobody knows what it was meant to forbid.
func (c *Compiled) Broken() bool { return len(c.problems) > 0 }

// Compile bounds, parses and counts a text. It always returns a Compiled, so
// that a set can hold what could not be read, and every problem; all of them
// are errors. A text without any policy is one, too.
func Compile(source Source, limits Limits) (*Compiled, []Problem) {
	source.SessionAttributes = slices.Clone(source.SessionAttributes)
	c := &Compiled{source: source, digest: sourceDigest(source)}
	c.problems = checkSource(source)
	if err := cedartext.Check(source.Text, limits.withDefaults().text()); err != nil {
		c.problems = append(c.problems, c.problem(err.Pos, err.Message))
	} else {
		c.parse()
	}
	return c, slices.Clone(c.problems)
}

// parse reads the text, all of it: cedar-go can also read one policy and ignore
// what follows, and its own sets number policies per text, so that those of two
// texts would replace each other. Our own reading comes first: it says better
// what is wrong, and where.
func (c *Compiled) parse() {
	text := c.source.Text
	document, syntax := cedartext.Parse(text)
	if syntax != nil {
		c.problems = append(c.problems, c.problem(syntax.Pos, syntax.Message))
		return
	}
	list, err := cedar.NewPolicyListFromBytes(c.Key().String(), []byte(text))
	if err != nil {
		c.problems = append(c.problems, c.literalProblem(document, err))
		return
	}
	if problem, ok := countProblem(len(list), len(document.Policies), cedartext.Statements(text)); !ok {
		c.problems = append(c.problems, c.problem(cedartext.Position{Line: 1, Column: 1}, problem))
		return
	}
	for i, policy := range list {
		s := &statement{
			id:     fmt.Sprintf("%s#%d", c.Key(), i),
			number: i,
			start:  document.Policies[i].Pos,
			end:    document.Tokens[document.Policies[i].Last].End(),
			name:   string(policy.Annotations()["id"]),
			source: c,
			policy: policy,
			scope:  readScope(policy),
		}
		s.used, s.reads = s.usedNames(), s.contextReads()
		c.statements = append(c.statements, s)
	}
}

// countProblem refuses a text of which not every reading finds the same number
// of policies: one that was overlooked could be a forbid.
func countProblem(read, parsed, ended int) (message string, ok bool) {
	switch {
	case read != parsed || read != ended:
		return "not all policies of the text could be read; report this text", false
	case read == 0:
		return "the text holds no policy; delete the object, or write permit or forbid", false
	default:
		return "", true
	}
}

// document reads the policy once more, with the places of everything in it:
// they are needed seldom, and would take much room. That it can be read was seen
// when the text was compiled.
func (s *statement) document() (*cedartext.Document, *cedartext.Policy) {
	document, _ := cedartext.ParseFrom(s.source.source.Text[:s.end], s.start)
	return document, &document.Policies[0]
}

func (c *Compiled) problem(pos cedartext.Position, message string) Problem {
	return Problem{Source: c.Key(), Line: pos.Line, Column: pos.Column, Message: message, Severity: SeverityError}
}

// checkSource refuses names that would make two policies share an ID, and
// attributes without a meaning.
func checkSource(source Source) []Problem {
	var problems []Problem
	report := func(message string) {
		problems = append(problems, Problem{Source: source.Key(), Message: message, Severity: SeverityError})
	}
	if source.Name == "" || strings.ContainsAny(source.Name+source.Namespace, "/#") {
		report("the name must not be empty, and neither name nor namespace may contain / or #")
	}
	seen := make(map[string]bool, len(source.SessionAttributes))
	for _, attribute := range source.SessionAttributes {
		switch attribute.Type {
		case AttributeString, AttributeLong, AttributeBoolean, AttributeStrings:
		default:
			report(fmt.Sprintf("session attribute %q has an unknown type; use String, Long, Boolean or Set<String>", attribute.Name))
		}
		if attribute.Name == "" || seen[attribute.Name] {
			report(fmt.Sprintf("session attribute %q has no name, or is declared twice", attribute.Name))
		}
		seen[attribute.Name] = true
	}
	return problems
}

// sourceDigest hashes what of an object can change a decision.
func sourceDigest(source Source) string {
	parts := []string{source.Namespace, source.Name, source.Text}
	for _, a := range source.SessionAttributes {
		parts = append(parts, a.Name, string(a.Type), strconv.FormatBool(a.Required))
	}
	return digest("policySource", parts)
}

// digest is the SHA-256, in hex, of a kind and texts, each behind its length.
// It is not one of the hashes over JSON: a text that is not UTF-8 has a digest,
// too, and ten thousand of them cost a millisecond.
func digest(kind string, parts []string) string {
	h := sha256.New()
	fmt.Fprintf(h, "assent v1 %s %d\n", kind, len(parts))
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// info describes the policy for people.
func (s *statement) info() Info {
	pos := s.policy.Position()
	return Info{
		ID: s.id, Name: s.name, Source: s.source.Key(),
		Forbids: s.policy.Effect() == types.Forbid,
		Line:    pos.Line, Column: pos.Column,
	}
}

// Info describes one policy.
type Info struct {
	// ID is namespace/name#index.
	ID string
	// Name is the @id annotation of the policy, for display only.
	Name string
	// Source is the object that holds the policy.
	Source Key
	// Forbids tells a forbid from a permit.
	Forbids bool
	// Line and Column where the policy starts in its text.
	Line, Column int
}
