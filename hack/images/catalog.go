// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// spec describes one image.
type spec struct {
	// name of the image below the repository prefix.
	name string
	// pkg is the folder of the command, relative to the module's root.
	pkg string
	// binary is the absolute path of the program in the image. Job templates
	// and manifests name it, so it does not depend on the image's name.
	binary string
	// title is the image's human name.
	title string
	// roots says whether the program dials TLS servers outside the cluster
	// and so needs the system's certificate authorities.
	roots bool
}

// catalog lists every image of the project.
var catalog = []spec{
	{name: "assent", pkg: "cmd/assent", binary: "/assent", title: "Assent operator", roots: true},
	{name: "assent-runner", pkg: "cmd/assent-runner", binary: "/assent-runner", title: "Assent runner", roots: true},
	{name: "demo-ledger", pkg: "test/demo/cmd/ledger", binary: "/ledger", title: "Assent demo service"},
	{name: "demo-ledgerctl", pkg: "test/demo/cmd/ledgerctl", binary: "/ledgerctl", title: "Assent demo tool"},
	{name: "e2e-caller", pkg: "test/e2e/cmd/caller", binary: "/caller", title: "Assent benchmark client"},
	{name: "e2e-probe", pkg: "test/e2e/cmd/probe", binary: "/probe", title: "Assent end-to-end test tool"},
}

// choose returns the specs named by only, a comma-separated list, or all of
// them when it is empty. Every command must exist below root: an image that is
// silently left out would only be missed when a Pod cannot start.
func choose(root, only string) ([]spec, error) {
	chosen := catalog
	if only != "" {
		chosen = nil
		for name := range strings.SplitSeq(only, ",") {
			i := slices.IndexFunc(catalog, func(s spec) bool { return s.name == name })
			if i < 0 {
				return nil, fmt.Errorf("there is no image %q; there are %s", name, strings.Join(names(catalog), ", "))
			}
			chosen = append(chosen, catalog[i])
		}
	}
	for _, s := range chosen {
		if _, err := os.Stat(filepath.Join(root, s.pkg)); err != nil {
			return nil, fmt.Errorf("image %s: its command %s is missing (choose others with -only): %w", s.name, s.pkg, err)
		}
	}
	return chosen, nil
}

func names(specs []spec) []string {
	out := make([]string, 0, len(specs))
	for _, s := range specs {
		out = append(out, s.name)
	}
	return out
}
