// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/proposal"
)

// maxParsed is how long the parsed output in the status may be, in bytes.
const maxParsed = 32 << 10

// readOutput reads a reported output by the manifest's format and holds it to
// its schema. It returns the parsed form as JSON text, where there is one, and
// what is wrong. An output that is kept out of the status cannot be read here;
// the execution endpoint has checked it when it was reported.
func readOutput(c *contract.Contract, r *v1alpha1.Result) (parsed, problem string) {
	out := c.Output()
	if r.Outcome != string(attest.OutcomeSucceeded) || out.Sensitive {
		return "", ""
	}
	value, err := c.CheckOutput(r.Output, proposal.OutputIsCut(r.Truncated, r.Output, r.OutputBytes))
	if err != nil {
		return "", err.Error()
	}
	if out.Format == contract.FormatText {
		return "", ""
	}
	// What was parsed from JSON, CSV or XML encodes again.
	text, err := json.Marshal(value)
	if err != nil || len(text) > maxParsed {
		return "", ""
	}
	return string(text), ""
}
