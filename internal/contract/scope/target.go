// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"net/netip"
	"strings"
)

// Reason is a stable word for why a target or an entry was refused.
type Reason string

// Reasons why a text is no target.
const (
	// ReasonEmpty: there is no text.
	ReasonEmpty Reason = "EmptyValue"
	// ReasonSpace: white space or a control character. Trimming would accept
	// two spellings of one target.
	ReasonSpace Reason = "WhiteSpace"
	// ReasonTooLong: longer than a host name can be (RFC 1035 section 2.3.4).
	ReasonTooLong Reason = "TargetTooLong"
	// ReasonWildcard: a pattern where one target is asked for.
	ReasonWildcard Reason = "Wildcard"
	// ReasonNonASCII: a letter outside ASCII, which may only look like the
	// intended one.
	ReasonNonASCII Reason = "NonASCIIHost"
	// ReasonPunycode: a label that stands for letters outside ASCII.
	ReasonPunycode Reason = "PunycodeHost"
	// ReasonTrailingDot: a host name with its root label.
	ReasonTrailingDot Reason = "TrailingDot"
	// ReasonNumericHost: a name that some resolvers read as an IPv4 address,
	// such as 2130706433, 0x7f.1 or 010.0.0.1.
	ReasonNumericHost Reason = "NumericHost"
	// ReasonTraversal: a path where a target is asked for.
	ReasonTraversal Reason = "PathTraversal"
	// ReasonInvalid: neither address, range nor host name.
	ReasonInvalid Reason = "InvalidTarget"
)

// MaxLength is the longest target in bytes (RFC 1035 section 2.3.4).
const MaxLength = 253

// maxLabel is the longest label of a host name in bytes (RFC 1035 section
// 2.3.4).
const maxLabel = 63

// Target is one address, one range of addresses, or one host name.
type Target struct {
	prefix netip.Prefix
	host   string
	single bool
}

// String returns the only spelling of the target that [ParseTarget] produces:
// addresses by RFC 5952, ranges without host bits, host names in lower case.
func (t Target) String() string {
	switch {
	case t.host != "":
		return t.host
	case t.single:
		return t.prefix.Addr().String()
	default:
		return t.prefix.String()
	}
}

// IsHost reports whether the target is a host name and not an address.
func (t Target) IsHost() bool { return t.host != "" }

// ParseTarget reads an address, a range in CIDR notation or a host name. The
// reason is empty when the text is one of them.
func ParseTarget(text string) (Target, Reason) {
	if why := checkCharacters(text); why != "" {
		return Target{}, why
	}
	if strings.Contains(text, "/") {
		return parseRange(text)
	}
	return parseHost(text)
}

// ParseHost reads an address or a host name, as it stands in a URL without
// brackets.
func ParseHost(text string) (Target, Reason) {
	if why := checkCharacters(text); why != "" {
		return Target{}, why
	}
	return parseHost(text)
}

// parseHost is [ParseHost] for a text whose characters have been checked.
func parseHost(text string) (Target, Reason) {
	if mayBeAddress(text) {
		if addr, err := netip.ParseAddr(text); err == nil {
			return addressTarget(addr)
		}
	}
	if why := checkHost(text); why != "" {
		return Target{}, why
	}
	return Target{host: strings.ToLower(text)}, ""
}

// mayBeAddress reports whether it is worth trying to read a text as an address:
// IPv4 addresses end with a digit, and IPv6 addresses contain a colon. For a
// name the attempt would cost more than all other checks.
func mayBeAddress(text string) bool {
	return text != "" && text[len(text)-1] >= '0' && text[len(text)-1] <= '9' || strings.IndexByte(text, ':') >= 0
}

// ParseAddress reads one IPv4 or IPv6 address.
func ParseAddress(text string) (Target, Reason) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return Target{}, ReasonInvalid
	}
	return addressTarget(addr)
}

// ParseRange reads a range in CIDR notation.
func ParseRange(text string) (Target, Reason) {
	if why := checkCharacters(text); why != "" {
		return Target{}, why
	}
	return parseRange(text)
}

// addressTarget makes an IPv4-mapped IPv6 address the IPv4 address it is.
func addressTarget(addr netip.Addr) (Target, Reason) {
	if addr.Zone() != "" {
		return Target{}, ReasonInvalid
	}
	addr = addr.Unmap()
	return Target{prefix: netip.PrefixFrom(addr, addr.BitLen()), single: true}, ""
}

func parseRange(text string) (Target, Reason) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		if strings.Contains(text, "..") {
			return Target{}, ReasonTraversal
		}
		return Target{}, ReasonInvalid
	}
	if p.Addr().Is4In6() {
		const mappedBits = 96
		if p.Bits() < mappedBits {
			return Target{}, ReasonInvalid
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mappedBits)
	}
	return Target{prefix: p.Masked()}, ""
}

// checkCharacters refuses what can be part of no target, most telling reason
// first.
func checkCharacters(text string) Reason {
	if text == "" {
		return ReasonEmpty
	}
	if len(text) > MaxLength {
		return ReasonTooLong
	}
	for i := range len(text) {
		switch c := text[i]; {
		case c <= ' ' || c == 0x7f:
			return ReasonSpace
		case c >= 0x80:
			return ReasonNonASCII
		case c == '*' || c == '?':
			return ReasonWildcard
		}
	}
	return ""
}

// checkHost refuses what is no host name by RFC 952 and RFC 1123 section 2.1.
func checkHost(text string) Reason {
	if strings.HasSuffix(text, ".") {
		return ReasonTrailingDot
	}
	last := ""
	for label := range strings.SplitSeq(text, ".") {
		if why := checkLabel(label); why != "" {
			return why
		}
		last = label
	}
	if looksNumeric(last) {
		return ReasonNumericHost
	}
	return ""
}

func checkLabel(label string) Reason {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return ReasonInvalid
	}
	for i := range len(label) {
		if !isAlphanumeric(label[i]) && label[i] != '-' {
			return ReasonInvalid
		}
	}
	const ace = "xn--" // RFC 5890 section 2.3.2.1
	if len(label) >= len(ace) && strings.EqualFold(label[:len(ace)], ace) {
		return ReasonPunycode
	}
	return ""
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// looksNumeric reports whether resolvers may read a name with this last label
// as an IPv4 address: decimal, octal or hexadecimal (WHATWG URL, "ends in a
// number checker"). No top-level domain is of that form.
func looksNumeric(label string) bool {
	if len(label) > 2 && label[0] == '0' && (label[1] == 'x' || label[1] == 'X') {
		return strings.Trim(label[2:], "0123456789abcdefABCDEF") == ""
	}
	return strings.Trim(label, "0123456789") == "" || strings.EqualFold(label, "0x")
}
