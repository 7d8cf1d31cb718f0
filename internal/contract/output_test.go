// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/contract"
)

func output(tb testing.TB, format, schema string) *contract.Contract {
	tb.Helper()
	return compile(tb, spec(fmt.Sprintf(`"output": {"format": %q, "schema": %q}`, format, schema)))
}

func TestCheckOutput_ReadsEveryFormat(t *testing.T) {
	for name, v := range map[string]struct{ format, text, want string }{
		"text":                     {"text", "a\nb", `{"raw_output":"a\nb"}`},
		"nothing as text":          {"", "", `{"raw_output":""}`},
		"JSON":                     {"json", ` {"a": [1, null]} `, `{"a":[1,null]}`},
		"a JSON scalar":            {"json", `7`, `7`},
		"JSON lines":               {"jsonl", "{\"a\":1}\n\n [2] \r\n", `[{"a":1},[2]]`},
		"no JSON lines":            {"jsonl", "", `[]`},
		"CSV":                      {"csv", "name, n,ok,f,z\n\"a,b\",1,TRUE,0.5,007\nc,,x,1e9999,-0\n", `[{"f":0.5,"n":1,"name":"a,b","ok":true,"z":"007"},{"f":"1e9999","n":"","name":"c","ok":"x","z":"-0"}]`},
		"CSV with tabs":            {"csv", "a\tb\n1\tx y\n", `[{"a":1,"b":"x y"}]`},
		"CSV with bars":            {"csv", "a|b\n1|2\n", `[{"a":1,"b":2}]`},
		"CSV with a header only":   {"csv", "a,b\n", `[]`},
		"no CSV":                   {"csv", "", `[]`},
		"XML":                      {"xml", `<?xml version="1.0"?><!-- c --><r a="1"><h ip="x"/><h>t<b> u </b></h><h/><i/></r>`, `{"r":{"@a":"1","h":[{"@ip":"x"},{"#text":"t","b":{"#text":"u"}},{}],"i":{}}}`},
		"XML with a namespace":     {"xml", `<n:r xmlns:n="u"><n:x>1</n:x></n:r>`, `{"r":{"@n":"u","x":{"#text":"1"}}}`},
		"XML with the known words": {"xml", `<r>&lt;&amp;</r>`, `{"r":{"#text":"<&"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			value, err := compile(t, spec(fmt.Sprintf(`"output": {"format": %q}`, v.format))).CheckOutput(v.text, false)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			var want, have any
			if json.Unmarshal([]byte(v.want), &want) != nil || json.Unmarshal(got, &have) != nil {
				t.Fatal("not JSON")
			}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckOutput_RefusesWhatBreaksTheContract(t *testing.T) {
	for name, v := range map[string]struct {
		format, schema, text string
		truncated            bool
	}{
		"text that breaks the schema":   {"text", `{"properties": {"raw_output": {"pattern": "^ok$"}}}`, secretMarker, false},
		"text that is no JSON":          {"json", ``, secretMarker, false},
		"two JSON values":               {"json", ``, `{} {}`, false},
		"JSON with a duplicate":         {"json", ``, `{"a":1,"a":2}`, false},
		"JSON that breaks the schema":   {"json", `{"required": ["a"]}`, `{"` + secretMarker + `":1}`, false},
		"JSON that was cut":             {"json", ``, `{}`, true},
		"a line that is no JSON":        {"jsonl", ``, "{}\n" + secretMarker, false},
		"a row with too few fields":     {"csv", ``, "a,b\n" + secretMarker, false},
		"an open quote":                 {"csv", ``, "a\n\"" + secretMarker, false},
		"rows that break the schema":    {"csv", `{"maxItems": 0}`, "a\n1", false},
		"a document that ends early":    {"xml", ``, "<r><" + secretMarker + ">", false},
		"no document":                   {"xml", ``, "", false},
		"text that is no XML":           {"xml", ``, secretMarker + "<", false},
		"an entity":                     {"xml", ``, `<!DOCTYPE r [<!ENTITY x "y">]><r>&x;</r>`, false},
		"elements without end":          {"xml", ``, strings.Repeat("<a>", 70) + strings.Repeat("</a>", 70), false},
		"a document that breaks schema": {"xml", `{"required": ["x"]}`, `<r/>`, false},
	} {
		t.Run(name, func(t *testing.T) {
			members := fmt.Sprintf(`"output": {"format": %q, "schema": %q}`, v.format, v.schema)
			value, err := compile(t, spec(members)).CheckOutput(v.text, v.truncated)
			var broken *contract.OutputError
			if !errors.As(err, &broken) || broken.Reason != contract.ReasonResultSchemaViolation {
				t.Fatalf("value %v, error %v", value, err)
			}
			if strings.Contains(err.Error(), secretMarker) || !strings.HasPrefix(err.Error(), "ResultSchemaViolation: the ") && !strings.HasPrefix(err.Error(), "ResultSchemaViolation: a ") {
				t.Errorf("error %q", err)
			}
		})
	}
}

func TestCheckOutput_AcceptsCutText(t *testing.T) {
	if _, err := output(t, "text", `{"type": "object"}`).CheckOutput("x", true); err != nil {
		t.Error(err)
	}
}
