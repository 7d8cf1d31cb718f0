// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/csv"
	"errors"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Formats of a tool's output.
const (
	FormatText  = "text"
	FormatJSON  = "json"
	FormatJSONL = "jsonl"
	FormatCSV   = "csv"
	FormatXML   = "xml"
)

// ReasonResultSchemaViolation is the reason of every [OutputError].
const ReasonResultSchemaViolation = "ResultSchemaViolation"

// OutputError says why a tool's output breaks its contract. It contains nothing
// of the output.
type OutputError struct {
	// Reason is [ReasonResultSchemaViolation].
	Reason string
	// Message says what is wrong.
	Message string
}

// Error gives reason and message.
func (e *OutputError) Error() string { return e.Reason + ": " + e.Message }

func badOutput(message string) error {
	return &OutputError{Reason: ReasonResultSchemaViolation, Message: message}
}

// outputPlan is a compiled output.
type outputPlan struct {
	format string
	schema *jsonschema.Schema
}

// outputDir is the directory that belongs to a call alone. An output file lies
// below it.
const outputDir = DefaultWorkingDir + "/"

// IsOutputFile reports whether a path can be that of an output file: below
// /work, in its only spelling, of letters, digits, dots, dashes and underscores.
func IsOutputFile(file string) bool {
	below, inside := strings.CutPrefix(file, outputDir)
	return inside && len(file) <= maxOutputFileBytes && path.Clean(file) == file && outputFileForm.MatchString(below)
}

const maxOutputFileBytes = 255

var outputFileForm = regexp.MustCompile(`\A[A-Za-z0-9._/-]+\z`)

func (r *resolver) output(o *Output, effectKind string) outputPlan {
	p := outputPlan{format: o.Format}
	if !slices.Contains(outputFormats, o.Format) {
		r.add(ReasonInvalidManifest, "spec.output.format", "must be text, json, jsonl, csv or xml")
	}
	switch {
	case o.File == "":
	case effectKind != EffectCommand:
		r.add(ReasonInvalidManifest, "spec.output.file", "is for command only; what a server answers is the output")
	case !IsOutputFile(o.File):
		r.add(ReasonInvalidManifest, "spec.output.file", "must be an absolute path below /work without . and .. and doubled slashes, of letters, digits, ., _ and -")
	}
	if o.Schema != "" {
		p.schema = r.schema(ReasonInvalidManifest, "spec.output.schema", o.Schema)
	}
	return p
}

// CheckOutput reads a tool's output in the manifest's format and holds it to
// the schema. It returns the value that was checked, a JSON tree of its own:
//
//	text   {"raw_output": TEXT}
//	json   the value
//	jsonl  an array of the lines' values
//	csv    an array of objects, one per row, with the first row as names
//	xml    {ROOT: …} with attributes as "@name", text as "#text", and elements
//	       that occur several times as arrays
//
// truncated says that text is only the beginning of the output. Only the format
// text can be checked then. The error is an [*OutputError].
func (c *Contract) CheckOutput(text string, truncated bool) (any, error) {
	if truncated && c.output.format != FormatText {
		return nil, badOutput("the output is longer than what is kept, so that it cannot be read as " + c.output.format)
	}
	value, err := parseOutput(c.output.format, text)
	if err != nil {
		return nil, err
	}
	if c.output.schema != nil && c.output.schema.Validate(value) != nil {
		return nil, badOutput("the output does not satisfy spec.output.schema")
	}
	return value, nil
}

func parseOutput(format, text string) (any, error) {
	switch format {
	case FormatJSON:
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			return nil, badOutput("the output is not a JSON text")
		}
		return value, nil
	case FormatJSONL:
		return parseJSONL(text)
	case FormatCSV:
		return parseCSV(text)
	case FormatXML:
		return parseXML(text)
	default:
		return map[string]any{"raw_output": text}, nil
	}
}

func parseJSONL(text string) (any, error) {
	lines := []any{}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var value any
		if json.Unmarshal([]byte(line), &value) != nil {
			return nil, badOutput("a line of the output is not a JSON text")
		}
		lines = append(lines, value)
	}
	return lines, nil
}

// parseCSV reads RFC 4180 text. The separator is the one that the first line
// has: tab, comma, or a vertical bar.
func parseCSV(text string) (any, error) {
	rows := []any{}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = separator(text)
	r.TrimLeadingSpace = r.Comma != '\t'
	names, err := r.Read()
	for err == nil {
		var fields []string
		if fields, err = r.Read(); err == nil {
			row := make(map[string]any, len(names))
			for i, name := range names {
				row[strings.TrimSpace(name)] = inferred(strings.TrimSpace(fields[i]))
			}
			rows = append(rows, row)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, badOutput("the output is not a table of comma-separated values")
	}
	return rows, nil
}

func separator(text string) rune {
	first, _, _ := strings.Cut(text, "\n")
	switch {
	case strings.Contains(first, "\t"):
		return '\t'
	case strings.Contains(first, "|") && !strings.Contains(first, ","):
		return '|'
	default:
		return ','
	}
}

// inferred gives a field the JSON type that its text has.
func inferred(text string) any {
	if lower := strings.ToLower(text); lower == "true" || lower == "false" {
		return lower == "true"
	}
	if numberText.MatchString(text) {
		if f, err := strconv.ParseFloat(text, 64); err == nil && formatNumber(f) == text {
			return f
		}
	}
	return text
}
