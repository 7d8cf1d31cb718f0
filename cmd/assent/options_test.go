// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestOptions_BoundThePoliciesOfANamespace(t *testing.T) {
	required := []string{"--namespace=a", "--runner-image=r", "--execution-url=https://e:1"}
	for name, tc := range map[string]struct {
		args []string
		want int
		err  string
	}{
		"by default": {nil, 500, ""},
		"as told":    {[]string{"--max-policy-objects=900"}, 900, ""},
		"none":       {[]string{"--max-policy-objects=0"}, 0, "--max-policy-objects must be at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseOptions(append(required, tc.args...))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || o.maxPolicyObjects != tc.want {
				t.Errorf("got %v, %v, want %d", o, err, tc.want)
			}
		})
	}
}
