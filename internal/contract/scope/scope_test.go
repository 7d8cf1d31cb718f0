// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package scope_test

import (
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/contract/scope"
)

// vectors is the layout of testdata/scope_vectors.json.
type vectors struct {
	Vectors struct {
		IPv4 []rangeVector `json:"ipv4_in_cidr"`
		IPv6 []rangeVector `json:"ipv6_in_cidr"`
		Host []struct {
			Hostname, Pattern string
			Expected          bool
		} `json:"hostname_wildcard_match"`
		Target []struct {
			Value string
			Valid bool
		} `json:"scope_target_validation"`
		URL []struct {
			URL          string
			AllowedHosts []string `json:"allowed_hosts"`
			Expected     bool
		} `json:"url_scope_check"`
	} `json:"vectors"`
}

type rangeVector struct {
	IP, CIDR string
	Expected bool
}

func TestCheck_AgreesWithPublishedVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/scope_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	count := 0
	expect := func(name string, got, want bool) {
		count++
		if got != want {
			t.Errorf("%s: permitted = %v, want %v", name, got, want)
		}
	}
	for _, c := range append(v.Vectors.IPv4, v.Vectors.IPv6...) {
		expect(c.IP+" in "+c.CIDR, permits(t, scope.Spec{Targets: []string{c.CIDR}}, c.IP), c.Expected)
	}
	for _, c := range v.Vectors.Host {
		expect(c.Hostname+" by "+c.Pattern, permits(t, scope.Spec{Domains: []string{c.Pattern}}, c.Hostname), c.Expected)
	}
	for _, c := range v.Vectors.Target {
		_, why := scope.ParseTarget(c.Value)
		expect("target "+c.Value, why == "", c.Valid)
	}
	for _, c := range v.Vectors.URL {
		u, err := url.Parse(c.URL)
		if err != nil {
			t.Fatal(err)
		}
		expect(c.URL, permits(t, scope.Spec{Domains: c.AllowedHosts}, u.Hostname()), c.Expected)
	}
	if count != 31 {
		t.Errorf("checked %d vectors, want all 31", count)
	}
}

func permits(t *testing.T, spec scope.Spec, target string) bool {
	t.Helper()
	return check(t, spec, target) == ""
}

// check compiles, parses and checks.
func check(t *testing.T, spec scope.Spec, text string) scope.Reason {
	t.Helper()
	s, problems := scope.Compile(spec)
	if problems != nil {
		t.Fatal(problems)
	}
	target, why := scope.ParseTarget(text)
	if why != "" {
		t.Fatalf("%q is no target: %s", text, why)
	}
	return s.Check(target)
}

func TestParseTarget_HasOneSpellingPerTarget(t *testing.T) {
	long := strings.Repeat("a", 63)
	for text, want := range map[string]string{
		"10.0.1.5":             "10.0.1.5",
		"2001:DB8::1":          "2001:db8::1",
		"2001:db8:0:0:0:0:0:1": "2001:db8::1",
		"::ffff:10.0.0.1":      "10.0.0.1",
		"::FFFF:0a00:0001":     "10.0.0.1",
		"10.0.1.77/24":         "10.0.1.0/24",
		"2001:db8::ff/32":      "2001:db8::/32",
		"::ffff:10.0.1.77/120": "10.0.1.0/24",
		"Example.COM":          "example.com",
		"localhost":            "localhost",
		"a-b.c1":               "a-b.c1",
		"1password.com":        "1password.com",
		"0xfeed.dev":           "0xfeed.dev",
		long + ".example.com":  long + ".example.com",
	} {
		t.Run(text, func(t *testing.T) {
			target, why := scope.ParseTarget(text)
			if why != "" {
				t.Fatal(why)
			}
			if got := target.String(); got != want {
				t.Errorf("normalised to %q, want %q", got, want)
			}
			again, why := scope.ParseTarget(want)
			if why != "" || again.String() != want {
				t.Errorf("the normal form is read as %q, %s", again.String(), why)
			}
		})
	}
}

func TestParseTarget_RefusesOtherSpellings(t *testing.T) {
	for text, want := range map[string]scope.Reason{
		"":                         scope.ReasonEmpty,
		"example. com":             scope.ReasonSpace,
		"example.com\n":            scope.ReasonSpace,
		"example.com\x00":          scope.ReasonSpace,
		"example.com\x7f":          scope.ReasonSpace,
		strings.Repeat("a", 254):   scope.ReasonTooLong,
		"*.example.com":            scope.ReasonWildcard,
		"host?.example.com":        scope.ReasonWildcard,
		"exаmple.com":              scope.ReasonNonASCII, // Cyrillic а
		"xn--exmple-4nf.com":       scope.ReasonPunycode,
		"sub.XN--80ak6aa92e.com":   scope.ReasonPunycode,
		"example.com.":             scope.ReasonTrailingDot,
		"169.254.169.254.":         scope.ReasonTrailingDot,
		"2130706433":               scope.ReasonNumericHost,
		"0x7f000001":               scope.ReasonNumericHost,
		"0X7F.1":                   scope.ReasonNumericHost,
		"0177.0.0.1":               scope.ReasonNumericHost,
		"127.1":                    scope.ReasonNumericHost,
		"10.0.0.256":               scope.ReasonNumericHost,
		"010.0.0.1":                scope.ReasonNumericHost,
		"127.0.0.0x1":              scope.ReasonNumericHost,
		"127.0.0.0x":               scope.ReasonNumericHost,
		"../../etc/passwd":         scope.ReasonTraversal,
		"10.0.0.0/8/../9":          scope.ReasonTraversal,
		"/etc/passwd":              scope.ReasonInvalid,
		"10.0.0.0/33":              scope.ReasonInvalid,
		"10.0.0.0/08":              scope.ReasonInvalid,
		"::ffff:0.0.0.0/90":        scope.ReasonInvalid,
		"example.com/24":           scope.ReasonInvalid,
		"fe80::1%eth0":             scope.ReasonInvalid,
		"fe80::1%eth0/64":          scope.ReasonInvalid,
		"[2001:db8::1]":            scope.ReasonInvalid,
		"user@example.com":         scope.ReasonInvalid,
		"example.com:80":           scope.ReasonInvalid,
		"a..example.com":           scope.ReasonInvalid,
		".example.com":             scope.ReasonInvalid,
		"-a.example.com":           scope.ReasonInvalid,
		"a-.example.com":           scope.ReasonInvalid,
		"_dmarc.example.com":       scope.ReasonInvalid,
		`example.com\n`:            scope.ReasonInvalid,
		strings.Repeat("a", 64):    scope.ReasonInvalid,
		"example.com%2f.evil.test": scope.ReasonInvalid,
	} {
		t.Run(text, func(t *testing.T) {
			if _, got := scope.ParseTarget(text); got != want {
				t.Errorf("reason = %q, want %q", got, want)
			}
		})
	}
}

func TestParseAddressAndRange_AcceptNothingElse(t *testing.T) {
	for text, want := range map[string][2]scope.Reason{
		"10.0.0.1":     {"", scope.ReasonInvalid},
		"10.0.0.0/24":  {scope.ReasonInvalid, ""},
		"example.com":  {scope.ReasonInvalid, scope.ReasonInvalid},
		"fe80::1%eth0": {scope.ReasonInvalid, scope.ReasonInvalid},
		"":             {scope.ReasonInvalid, scope.ReasonEmpty},
	} {
		_, address := scope.ParseAddress(text)
		_, network := scope.ParseRange(text)
		if got := [2]scope.Reason{address, network}; got != want {
			t.Errorf("%q: reasons %q, want %q", text, got, want)
		}
	}
}

func TestCheck_DecidesByWholeRangesAndExclusionsFirst(t *testing.T) {
	spec := scope.Spec{
		Targets: []string{"10.0.0.0/8", "2001:db8::/32", "192.0.2.7", "64:ff9b::/96", "::/96", "2002::/16"},
		Domains: []string{"*.example.com", "status.example.org"},
		Exclude: []string{"10.9.0.0/16", "2001:db8:dead::/48", "*.internal.example.com", "vault.example.com", "10.1.2.3", "203.0.113.0/24"},
	}
	for text, want := range map[string]scope.Reason{
		"10.8.255.255":            "",
		"10.9.0.1":                scope.ReasonExcluded,
		"10.8.0.0/15":             scope.ReasonExcluded, // touches 10.9.0.0/16
		"10.9.7.0/24":             scope.ReasonExcluded,
		"10.0.0.0/8":              scope.ReasonExcluded,
		"10.1.2.0/30":             scope.ReasonExcluded,
		"10.1.2.4/30":             "",
		"10.16.0.0/12":            "",
		"8.0.0.0/6":               scope.ReasonExcluded, // larger than the scope, and touching
		"12.0.0.0/6":              scope.ReasonOutside,
		"192.0.2.7":               "",
		"192.0.2.6/31":            scope.ReasonOutside,
		"192.0.2.7/32":            "",
		"2001:db8::1":             "",
		"2001:db8:dead::1":        scope.ReasonExcluded,
		"2001:db8::/31":           scope.ReasonExcluded,
		"::/0":                    scope.ReasonExcluded,
		"0.0.0.0/0":               scope.ReasonExcluded,
		"::ffff:10.9.0.1":         scope.ReasonExcluded, // IPv4-mapped
		"::ffff:10.8.0.1":         "",
		"64:ff9b::10.9.0.1":       scope.ReasonExcluded, // NAT64
		"64:ff9b::10.8.0.1":       "",
		"::10.9.0.1":              scope.ReasonExcluded, // IPv4-compatible
		"2002:a09:1::":            scope.ReasonExcluded, // 6to4 of 10.9.0.1
		"2002:a08:1::":            "",
		"::ffff:0:10.9.0.1":       scope.ReasonExcluded, // IPv4-translated
		"app.example.com":         "",
		"deep.app.example.com":    "",
		"APP.Example.Com":         "",
		"example.com":             scope.ReasonOutside,
		"evil-example.com":        scope.ReasonOutside,
		"example.com.evil.test":   scope.ReasonOutside,
		"vault.example.com":       scope.ReasonExcluded,
		"VAULT.example.com":       scope.ReasonExcluded,
		"db.internal.example.com": scope.ReasonExcluded,
		"internal.example.com":    "",
		"status.example.org":      "",
		"x.status.example.org":    scope.ReasonOutside,
	} {
		t.Run(text, func(t *testing.T) {
			if got := check(t, spec, text); got != want {
				t.Errorf("reason = %q, want %q", got, want)
			}
		})
	}
}

func TestCheck_PermitsNothingWithoutEntries(t *testing.T) {
	for _, text := range []string{"10.0.0.1", "::1", "0.0.0.0/0", "example.com"} {
		if got := check(t, scope.Spec{}, text); got != scope.ReasonOutside {
			t.Errorf("%s: reason = %q, want %q", text, got, scope.ReasonOutside)
		}
	}
}

func TestCompile_RefusesEntriesThatMeanSomethingElse(t *testing.T) {
	_, problems := scope.Compile(scope.Spec{
		Targets: []string{"10.0.0.0/8", "10.0.0.1/8", "example.com", "10.0.0.0/33"},
		Domains: []string{"*.example.com", "*", "*.", "10.0.0.1", "exаmple.com", "a.*.com"},
		Exclude: []string{"10.0.0.1", "example.com", "10.0.0.1/8", "2001:db8::zz", "*", "ex ample"},
	})
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
		if p.Message == "" {
			t.Errorf("%s has no message", p.Field)
		}
	}
	want := []string{
		"targets[1]", "targets[2]", "targets[3]",
		"domains[1]", "domains[2]", "domains[3]", "domains[4]", "domains[5]",
		"exclude[2]", "exclude[3]", "exclude[4]", "exclude[5]",
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestTarget_TellsHostsFromAddresses(t *testing.T) {
	for text, want := range map[string]bool{"example.com": true, "10.0.0.1": false, "10.0.0.0/8": false} {
		target, _ := scope.ParseTarget(text)
		if target.IsHost() != want {
			t.Errorf("IsHost(%s) = %v", text, !want)
		}
	}
}

// FuzzParseTarget looks for targets whose normal form is another target, and for
// a scope that permits what it excludes.
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"10.0.0.1", "::ffff:1.2.3.4", "10.0.0.0/8", "example.com", "0x7f.1", "xn--a", "fe80::1%1", "2002::/16"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, why := scope.ParseTarget(text)
		if why != "" {
			return
		}
		again, why := scope.ParseTarget(target.String())
		if why != "" || again != target {
			t.Fatalf("%q normalises to %q, which is read as %q, %s", text, target, again, why)
		}
		spec := scope.Spec{Targets: []string{"0.0.0.0/0", "::/0"}, Domains: []string{target.String()}, Exclude: []string{target.String()}}
		if !target.IsHost() {
			spec.Domains = nil
		}
		s, problems := scope.Compile(spec)
		if problems != nil {
			t.Fatalf("%q cannot be an entry: %v", target, problems)
		}
		if got := s.Check(target); got != scope.ReasonExcluded {
			t.Fatalf("%q is not excluded by itself: %q", target, got)
		}
	})
}
