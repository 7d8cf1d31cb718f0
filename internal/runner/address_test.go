// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMayReach_KnowsWhatIsNotThePublicInternet(t *testing.T) {
	t.Parallel()
	type verdict struct{ public, private bool } // without and with allowPrivate
	var (
		anyway = verdict{true, true}
		asked  = verdict{false, true}
		never  = verdict{false, false}
	)
	for address, want := range map[string]verdict{
		"1.1.1.1":         anyway,
		"8.8.8.8":         anyway,
		"100.63.255.255":  anyway,
		"100.128.0.0":     anyway,
		"172.15.255.255":  anyway,
		"172.32.0.0":      anyway,
		"192.167.255.255": anyway,
		"223.255.255.255": anyway,
		"2606:4700::1111": anyway,
		// NAT64 of a public address is that address.
		"64:ff9b::101:101": anyway,
		"::ffff:1.1.1.1":   anyway,

		"10.0.0.1":        asked,
		"100.64.0.1":      asked,
		"127.0.0.1":       asked,
		"127.255.255.254": asked,
		"169.254.1.1":     asked,
		"172.16.0.1":      asked,
		"172.31.255.255":  asked,
		"192.0.0.1":       asked,
		"192.0.2.1":       asked,
		"192.88.99.1":     asked,
		"192.168.1.1":     asked,
		"198.18.0.1":      asked,
		"198.19.255.255":  asked,
		"198.51.100.1":    asked,
		"203.0.113.1":     asked,
		"0.1.2.3":         asked,
		"::1":             asked,
		"::2":             asked,
		"::ffff:10.0.0.1": asked,
		// An IPv4 address written as an IPv4-compatible IPv6 address.
		"::10.0.0.1":         asked,
		"64:ff9b::a00:1":     asked,
		"64:ff9b:1::1":       asked,
		"100::1":             asked,
		"2001::1":            asked,
		"2001:db8::1":        asked,
		"2002:a00:1::":       asked,
		"3fff::1":            asked,
		"5f00::1":            asked,
		"fc00::1":            asked,
		"fd00::1":            asked,
		"fe80::1":            asked,
		"fec0::1":            asked,
		"4000::1":            asked,
		"fd00:ec2::253":      asked,
		"169.254.169.253":    asked,
		"100.100.100.201":    asked,
		"2001:1ff:ffff::1":   asked,
		"::ffff:127.0.0.1":   asked,
		"::ffff:192.168.0.1": asked,

		"0.0.0.0":                never,
		"::":                     never,
		"224.0.0.1":              never,
		"239.255.255.255":        never,
		"240.0.0.1":              never,
		"255.255.255.255":        never,
		"ff02::1":                never,
		"169.254.169.254":        never,
		"::ffff:169.254.169.254": never,
		"64:ff9b::a9fe:a9fe":     never,
		"169.254.170.2":          never,
		"168.63.129.16":          never,
		"100.100.100.200":        never,
		"fd00:ec2::254":          never,
		"fd20:ce::254":           never,
		"::ffff:0.0.0.0":         never,
		"fe80::1%eth0":           never,
	} {
		a := netip.MustParseAddr(address)
		if got := (verdict{mayReach(a, false), mayReach(a, true)}); got != want {
			t.Errorf("%s: %+v, want %+v", address, got, want)
		}
	}
	if mayReach(netip.Addr{}, true) {
		t.Error("no address at all may be reached")
	}
}

// FuzzMayReach_JudgesAnAddressHoweverItIsWritten: no way of writing an IPv4
// address as IPv6 may reach what the address itself may not.
func FuzzMayReach_JudgesAnAddressHoweverItIsWritten(f *testing.F) {
	f.Add([]byte{169, 254, 169, 254}, true)
	f.Add([]byte{10, 0, 0, 1}, false)
	f.Fuzz(func(t *testing.T, raw []byte, private bool) {
		a, ok := netip.AddrFromSlice(raw)
		if !ok || !a.Is4() {
			return
		}
		b := a.As4()
		mapped := netip.AddrFrom16(a.As16())
		nat64 := netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 12: b[0], b[1], b[2], b[3]})
		want := mayReach(a, private)
		if mayReach(mapped, private) != want || mayReach(nat64, private) != want {
			t.Errorf("%s: plain %v, mapped %v, NAT64 %v", a, want, mayReach(mapped, private), mayReach(nat64, private))
		}
	})
}

// network is a resolver and a dialer that record instead of connecting.
type network struct {
	answers map[string][][]netip.Addr // by host, in turn
	lookups []string
	dialled []string
	failing map[string]bool
}

func (n *network) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.lookups = append(n.lookups, host)
	list := n.answers[host]
	if len(list) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	n.answers[host] = list[1:]
	return list[0], nil
}

func (n *network) dial(_ context.Context, _, address string) (net.Conn, error) {
	n.dialled = append(n.dialled, address)
	if n.failing[address] {
		return nil, errors.New("refused")
	}
	client, server := net.Pipe()
	_ = server.Close()
	return client, nil
}

func addresses(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

func TestDialer_ConnectsOnlyToAddressesThatItChecked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		address      string
		answer       []netip.Addr
		failing      []string
		allowPrivate bool
		dialled      []string
		reason       Reason
	}{
		"a public address":                     {"h.example:443", addresses("1.1.1.1"), nil, false, []string{"1.1.1.1:443"}, ""},
		"a public IPv6 address":                {"h.example:443", addresses("2606:4700::1"), nil, false, []string{"[2606:4700::1]:443"}, ""},
		"the second address when one fails":    {"h.example:80", addresses("1.1.1.1", "1.0.0.1"), []string{"1.1.1.1:80"}, false, []string{"1.1.1.1:80", "1.0.0.1:80"}, ""},
		"all addresses fail":                   {"h.example:80", addresses("1.1.1.1"), []string{"1.1.1.1:80"}, false, []string{"1.1.1.1:80"}, ReasonConnectFailed},
		"a private address":                    {"h.example:443", addresses("10.0.0.1"), nil, false, nil, ReasonAddressNotAllowed},
		"one private address among public":     {"h.example:443", addresses("1.1.1.1", "10.0.0.1"), nil, false, nil, ReasonAddressNotAllowed},
		"a mapped private address":             {"h.example:443", addresses("::ffff:10.0.0.1"), nil, false, nil, ReasonAddressNotAllowed},
		"the metadata service":                 {"h.example:80", addresses("169.254.169.254"), nil, true, nil, ReasonAddressNotAllowed},
		"a private address that is allowed":    {"h.example:443", addresses("10.0.0.1"), nil, true, []string{"10.0.0.1:443"}, ""},
		"a mapped address is dialled as IPv4":  {"h.example:443", addresses("::ffff:10.0.0.1"), nil, true, []string{"10.0.0.1:443"}, ""},
		"an address in the URL is checked too": {"127.0.0.1:443", nil, nil, false, nil, ReasonAddressNotAllowed},
		"an address in the URL":                {"1.1.1.1:443", nil, nil, false, []string{"1.1.1.1:443"}, ""},
		"a decimal number is a name":           {"2852039166:80", nil, nil, true, nil, ReasonConnectFailed},
		"a hexadecimal number is a name":       {"0xA9FEA9FE:80", nil, nil, true, nil, ReasonConnectFailed},
		"an address with a dot behind it":      {"169.254.169.254.:80", nil, nil, true, nil, ReasonConnectFailed},
		"a name that does not exist":           {"none.example:443", nil, nil, false, nil, ReasonConnectFailed},
		"no address":                           {"h.example:443", []netip.Addr{}, nil, false, nil, ReasonConnectFailed},
		"no port":                              {"h.example", addresses("1.1.1.1"), nil, false, nil, ReasonEffectInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &network{answers: map[string][][]netip.Addr{}, failing: map[string]bool{}}
			if tc.answer != nil {
				n.answers["h.example"] = [][]netip.Addr{tc.answer}
			}
			for _, address := range tc.failing {
				n.failing[address] = true
			}
			g := &guardedDialer{resolver: n, allowPrivate: tc.allowPrivate, dial: n.dial}
			conn, err := g.DialContext(t.Context(), "tcp", tc.address)
			if conn != nil {
				_ = conn.Close()
			}
			var r *refusal
			if errors.As(err, &r); (err == nil) != (tc.reason == "") || (r != nil && r.reason != tc.reason) {
				t.Errorf("error %v, want %q", err, tc.reason)
			}
			if diff := cmp.Diff(tc.dialled, n.dialled); diff != "" {
				t.Errorf("dialled (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDialer_AsksTheNameServerOnce(t *testing.T) {
	t.Parallel()
	// The second answer is for the attacker's benefit and must not be asked for.
	n := &network{answers: map[string][][]netip.Addr{"h.example": {addresses("1.1.1.1"), addresses("169.254.169.254")}}}
	g := &guardedDialer{resolver: n, dial: n.dial}
	conn, err := g.DialContext(t.Context(), "tcp", "h.example:443")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if diff := cmp.Diff([]string{"h.example"}, n.lookups); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"1.1.1.1:443"}, n.dialled); diff != "" {
		t.Error(diff)
	}
}
