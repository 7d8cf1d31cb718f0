// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPersons_ReadsTheFileAndRefusesWhatIsUnclear(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "people.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	o := &options{identityMapFile: file("root-alice: alice\n"), identityRegexp: `oidc:(\w+)`}
	person, err := o.persons()
	if err != nil {
		t.Fatal(err)
	}
	for username, want := range map[string]string{"root-alice": "alice", "oidc:alice": "alice", "bob": "bob"} {
		if got := person(username); got != want {
			t.Errorf("%s is %s, want %s", username, got, want)
		}
	}
	for name, o := range map[string]*options{
		"a missing file":         {identityMapFile: filepath.Join(t.TempDir(), "none")},
		"a username twice":       {identityMapFile: file("a: b\na: c\n")},
		"a list":                 {identityMapFile: file("- a\n")},
		"a bad expression":       {identityRegexp: "("},
		"a person of no name":    {identityMapFile: file("a: ''\n")},
		"an expression at large": {identityRegexp: ".*"},
	} {
		if _, err := o.persons(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
