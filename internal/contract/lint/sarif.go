// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
)

// The structs of this file are the part of SARIF 2.1.0 (OASIS) that code hosts
// read.
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name  string      `json:"name"`
	URI   string      `json:"informationUri"`
	Rules []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID            string       `json:"id"`
	Short         sarifMessage `json:"shortDescription"`
	Full          sarifMessage `json:"fullDescription"`
	Help          sarifMessage `json:"help"`
	Configuration sarifDefault `json:"defaultConfiguration"`
}

type sarifDefault struct {
	Level Level `json:"level"`
}

type sarifMessage struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	RuleIndex int             `json:"ruleIndex"`
	Level     Level           `json:"level"`
	Message   sarifMessage    `json:"message"`
	Locations []sarifLocation `json:"locations"`
}

type sarifLocation struct {
	Physical *sarifPhysical `json:"physicalLocation,omitempty"`
	Logical  []sarifLogical `json:"logicalLocations"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
}

type sarifLogical struct {
	Name string `json:"fullyQualifiedName"`
}

// SARIF writes findings in the format of code hosts (OASIS SARIF 2.1.0).
func SARIF(findings []Finding) ([]byte, error) {
	run := sarifRun{
		Tool:    sarifTool{Driver: sarifDriver{Name: "kubectl-assent lint", URI: "https://assent.dev"}},
		Results: []sarifResult{},
	}
	rules := Rules()
	for _, r := range rules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: r.ID, Short: sarifMessage{r.Summary}, Full: sarifMessage{r.Summary + " " + r.Why}, Help: sarifMessage{r.Why},
			Configuration: sarifDefault{r.Level},
		})
	}
	for _, f := range findings {
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Rule, RuleIndex: slices.IndexFunc(rules, func(r Rule) bool { return r.ID == f.Rule }), Level: f.Level,
			Message: sarifMessage{fmt.Sprintf("%s %s: %s: %s", f.Kind, f.Name, f.Field, f.Message)}, Locations: []sarifLocation{location(f)},
		})
	}
	return json.MarshalIndent(sarifLog{
		Schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	}, "", "  ")
}

func location(f Finding) sarifLocation {
	out := sarifLocation{Logical: []sarifLogical{{fmt.Sprintf("%s/%s/%s/%s", f.Namespace, f.Kind, f.Name, f.Field)}}}
	if f.File == "" {
		return out
	}
	out.Physical = &sarifPhysical{Artifact: sarifArtifact{filepath.ToSlash(f.File)}}
	if f.Line > 0 {
		out.Physical.Region = &sarifRegion{f.Line}
	}
	return out
}
