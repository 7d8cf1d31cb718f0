// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import "net/netip"

// Address ranges that are not the public internet, from the IANA registries
// of special-purpose addresses (RFC 6890 and its updates). An effect reaches
// them only where its manifest says allowPrivate.
var specialRanges = prefixes(
	"0.0.0.0/8",       // this network, RFC 791
	"10.0.0.0/8",      // private, RFC 1918
	"100.64.0.0/10",   // shared address space, RFC 6598
	"127.0.0.0/8",     // loopback, RFC 1122
	"169.254.0.0/16",  // link-local, RFC 3927
	"172.16.0.0/12",   // private, RFC 1918
	"192.0.0.0/24",    // IETF protocol assignments, RFC 6890
	"192.0.2.0/24",    // documentation, RFC 5737
	"192.88.99.0/24",  // 6to4 relay, RFC 7526
	"192.168.0.0/16",  // private, RFC 1918
	"198.18.0.0/15",   // benchmarking, RFC 2544
	"198.51.100.0/24", // documentation, RFC 5737
	"203.0.113.0/24",  // documentation, RFC 5737
	"2001::/23",       // IETF protocol assignments, with Teredo, RFC 2928
	"2001:db8::/32",   // documentation, RFC 3849
	"2002::/16",       // 6to4, which carries an IPv4 address, RFC 3056
	"3fff::/20",       // documentation, RFC 9637
)

// neverRanges are no destination of one call at all.
var neverRanges = prefixes(
	"224.0.0.0/4",        // multicast, RFC 5771
	"240.0.0.0/4",        // reserved and broadcast, RFC 1112
	"0.0.0.0/32",         // unspecified: Linux connects to the host itself
	"::/128",             // unspecified
	"ff00::/8",           // multicast, RFC 4291
	"169.254.169.254/32", // metadata service of most clouds
	"169.254.170.2/32",   // credentials of containers at one cloud
	"168.63.129.16/32",   // platform service of one cloud
	"100.100.100.200/32", // metadata service of one cloud
	"fd00:ec2::254/128",  // metadata service of one cloud over IPv6
	"fd20:ce::254/128",   // metadata service of one cloud over IPv6
)

// globalUnicast is all of IPv6 that has been assigned for global use.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// translated is the well-known prefix under which a NAT64 reaches IPv4,
// RFC 6052. An address in it is judged as the IPv4 address that it carries.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// mayReach reports whether an effect may connect to the address.
func mayReach(address netip.Addr, allowPrivate bool) bool {
	if !address.IsValid() || address.Zone() != "" {
		return false
	}
	a := plain(address)
	if within(a, neverRanges) {
		return false
	}
	if allowPrivate {
		return true
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return false
	}
	return !within(a, specialRanges)
}

// plain is the address without the ways of writing an IPv4 address as IPv6.
func plain(a netip.Addr) netip.Addr {
	a = a.Unmap()
	if a.Is6() && translated.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

func within(a netip.Addr, ranges []netip.Prefix) bool {
	for _, r := range ranges {
		if r.Contains(a) {
			return true
		}
	}
	return false
}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}
