// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/assent-dev/assent/internal/proposal"
)

// persons reads how usernames map to people. It is read once: whoever can
// change the file of a running Pod could otherwise approve their own call.
func (o *options) persons() (func(username string) string, error) {
	var known map[string]string
	if o.identityMapFile != "" {
		text, err := os.ReadFile(o.identityMapFile)
		if err != nil {
			return nil, fmt.Errorf("reading --identity-map-file: %w", err)
		}
		if err := yaml.UnmarshalStrict(text, &known); err != nil {
			return nil, fmt.Errorf("reading --identity-map-file: %w", err)
		}
	}
	person, err := proposal.Persons(o.identityRegexp, known)
	if err != nil {
		return nil, fmt.Errorf("--identity-regexp and --identity-map-file: %w", err)
	}
	return person, nil
}
