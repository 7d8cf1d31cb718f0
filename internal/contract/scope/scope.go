// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Reasons why a target is not permitted.
const (
	// ReasonExcluded: the target is, contains or touches an exclusion.
	ReasonExcluded Reason = "Excluded"
	// ReasonOutside: no entry of the scope contains the whole target.
	ReasonOutside Reason = "OutOfScope"
)

// Spec is what a ToolScope says. Empty lists permit nothing.
type Spec struct {
	// Targets are addresses and ranges.
	Targets []string
	// Domains are host names and patterns that start with "*.".
	Domains []string
	// Exclude are entries of both forms that are refused in any case.
	Exclude []string
}

// Problem is an entry that cannot be used.
type Problem struct {
	// Field is the position in the ToolScope's spec, such as "targets[2]".
	Field string
	// Message says what is wrong and what to write instead.
	Message string
}

// Scope is a compiled [Spec]. It is immutable and safe for concurrent use.
type Scope struct {
	targets         []netip.Prefix
	domains         []pattern
	excludedRanges  []netip.Prefix
	excludedDomains []pattern
}

// pattern is one host name, or every name below it.
type pattern struct {
	name     string
	wildcard bool
}

// matches compares whole labels. The apex is not below itself.
func (p pattern) matches(host string) bool {
	if !p.wildcard {
		return host == p.name
	}
	prefix, ok := strings.CutSuffix(host, p.name)
	return ok && len(prefix) > 1 && strings.HasSuffix(prefix, ".")
}

// Compile reads a scope. With problems there is no scope: an exclusion that was
// dropped would permit what its author forbade.
func Compile(spec Spec) (*Scope, []Problem) {
	s := &Scope{}
	var problems []Problem
	fail := func(list string, i int, message string) {
		problems = append(problems, Problem{Field: fmt.Sprintf("%s[%d]", list, i), Message: message})
	}
	for i, text := range spec.Targets {
		p, message := parseEntryRange(text)
		if message != "" {
			fail("targets", i, message)
		}
		s.targets = append(s.targets, p)
	}
	for i, text := range spec.Domains {
		d, message := parsePattern(text)
		if message != "" {
			fail("domains", i, message)
		}
		s.domains = append(s.domains, d)
	}
	for i, text := range spec.Exclude {
		if message := s.exclude(text); message != "" {
			fail("exclude", i, message)
		}
	}
	if problems != nil {
		return nil, problems
	}
	return s, nil
}

// exclude adds one exclusion of either form.
func (s *Scope) exclude(text string) string {
	if p, message := parseEntryRange(text); message == "" {
		s.excludedRanges = append(append(s.excludedRanges, p), embeddings(p)...)
		return ""
	} else if strings.Contains(text, "/") || strings.Contains(text, ":") {
		return message
	}
	d, message := parsePattern(text)
	s.excludedDomains = append(s.excludedDomains, d)
	return message
}

// parseEntryRange reads an address or a range of a scope. Host bits are refused
// here, although they are not in a call: the author may have meant one address.
func parseEntryRange(text string) (netip.Prefix, string) {
	t, why := ParseTarget(text)
	if why != "" || t.IsHost() {
		return netip.Prefix{}, "is neither an IP address nor a range in CIDR notation; write for example 10.0.1.0/24"
	}
	if p, err := netip.ParsePrefix(text); err == nil && p.Masked() != p {
		return netip.Prefix{}, "has bits set beyond its prefix length; write the first address of the range, or one address without a length"
	}
	return t.prefix, ""
}

// parsePattern reads a host name or a pattern.
func parsePattern(text string) (pattern, string) {
	name, wildcard := strings.CutPrefix(text, "*.")
	t, why := ParseHost(name)
	if why != "" || !t.IsHost() {
		return pattern{}, "is not a host name; write a name in ASCII without a trailing dot, or *. and such a name"
	}
	return pattern{name: t.host, wildcard: wildcard}, ""
}

// embeddings returns the IPv6 ranges through which an IPv4 range can also be
// reached, so that excluding 10.0.0.0/8 excludes 64:ff9b::10.0.0.1 too.
func embeddings(p netip.Prefix) []netip.Prefix {
	if !p.Addr().Is4() {
		return nil
	}
	v4 := p.Addr().As4()
	var out []netip.Prefix
	for _, e := range []struct {
		prefix string // the IPv6 range that embeds all of IPv4
		offset int    // of the IPv4 address, in bytes
	}{
		{"::ffff:0:0", 12},   // IPv4-mapped, RFC 4291 section 2.5.5.2
		{"::", 12},           // IPv4-compatible, RFC 4291 section 2.5.5.1
		{"64:ff9b::", 12},    // NAT64, RFC 6052 section 2.1
		{"2002::", 2},        // 6to4, RFC 3056 section 2
		{"::ffff:0:0:0", 12}, // IPv4-translated, RFC 2765 section 2.1
	} {
		b := netip.MustParseAddr(e.prefix).As16()
		copy(b[e.offset:], v4[:])
		out = append(out, netip.PrefixFrom(netip.AddrFrom16(b), e.offset*8+p.Bits()))
	}
	return out
}

// Check returns why a target is not permitted, or nothing when it is.
// Exclusions come first, and a range must lie wholly inside one entry.
func (s *Scope) Check(t Target) Reason {
	if t.IsHost() {
		return checkLists(s.excludedDomains, s.domains,
			func(p pattern) bool { return p.matches(t.host) },
			func(p pattern) bool { return p.matches(t.host) })
	}
	return checkLists(s.excludedRanges, s.targets,
		t.prefix.Overlaps,
		func(p netip.Prefix) bool { return contains(p, t.prefix) })
}

func checkLists[E any](excluded, permitted []E, touches, covers func(E) bool) Reason {
	if slices.ContainsFunc(excluded, touches) {
		return ReasonExcluded
	}
	if slices.ContainsFunc(permitted, covers) {
		return ""
	}
	return ReasonOutside
}

// contains reports whether every address of inner is in outer.
func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}
