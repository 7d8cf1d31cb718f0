// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/proposal"
)

func TestPersons_MapsUsernamesToThePersonBehindThem(t *testing.T) {
	known := map[string]string{"root-alice": "alice", "oidc:carol@corp.example": "caroline"}
	for name, tc := range map[string]struct {
		pattern string
		known   map[string]string
		want    map[string]string
	}{
		"nothing configured":  {"", nil, map[string]string{"alice": "alice", "": ""}},
		"a list":              {"", known, map[string]string{"root-alice": "alice", "bob": "bob"}},
		"an expression":       {`(?:oidc:)?([a-z]+)(?:@corp\.example)?`, nil, map[string]string{"oidc:alice@corp.example": "alice", "alice": "alice", "Alice": "Alice"}},
		"the list goes first": {`oidc:([a-z]+)@corp\.example`, known, map[string]string{"oidc:carol@corp.example": "caroline", "oidc:bob@corp.example": "bob"}},
		"the whole name only": {`oidc:([a-z]+)`, nil, map[string]string{"oidc:alice@evil.example": "oidc:alice@evil.example", "x oidc:alice": "x oidc:alice", "oidc:alice\n": "oidc:alice\n"}},
		"an empty group":      {`oidc:([a-z]*)`, nil, map[string]string{"oidc:": "oidc:"}},
		"alternatives as one": {`a(b)|c`, nil, map[string]string{"ab": "b", "c": "c", "xc": "xc"}},
		"case by the user":    {`(?i:corp\\)([A-Z]+)`, nil, map[string]string{`corp\ALICE`: "ALICE", `CORP\ALICE`: "ALICE"}},
	} {
		t.Run(name, func(t *testing.T) {
			person, err := proposal.Persons(tc.pattern, tc.known)
			if err != nil {
				t.Fatal(err)
			}
			for username, want := range tc.want {
				if got := person(username); got != want {
					t.Errorf("%q is %q, want %q", username, got, want)
				}
			}
		})
	}
}

func TestPersons_RefusesWhatCouldMergeEverybody(t *testing.T) {
	for name, tc := range map[string]struct {
		pattern string
		known   map[string]string
		want    string
	}{
		"no group":        {`oidc:.*`, nil, "exactly one group"},
		"two groups":      {`(a)(b)`, nil, "exactly one group"},
		"no expression":   {`(`, nil, "compiling the expression"},
		"an empty person": {"", map[string]string{"a": ""}, "may be empty"},
		"an empty name":   {"", map[string]string{"": "a"}, "may be empty"},
	} {
		if _, err := proposal.Persons(tc.pattern, tc.known); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
