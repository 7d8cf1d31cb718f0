// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/contract"
)

// command is a manifest with one optional text argument and the members given
// in its command.
func command(members string) string {
	return `{"version": "1", "arguments": [{"name": "a", "type": "string"}], "command": {"image": "` + image + `", ` + members + `}}`
}

// http is a manifest with arguments and the members given in its request.
func http(members string) string {
	return `{"version": "1", "arguments": [{"name": "a", "type": "string", "required": true}, {"name": "o", "type": "string"},
		{"name": "s", "type": "object", "schema": "{}", "required": true}], "http": {` + members + `},
		"secrets": [{"name": "token", "secretName": "s", "key": "k", "hosts": ["api.example.com"]}]}`
}

// rest uses what a manifest of http declares, so that only the part under test
// is wrong.
const rest = `"headers": [{"name": "Content-Type", "value": "text/plain"}, {"name": "X-T", "value": "{_secret:token}"}], "body": "{a}{s}"`

// urlOf is a request whose URL is under test; {o} stays in it.
func urlOf(url string) string { return http(`"method": "POST", "url": "` + url + `", ` + rest) }

// body is a request whose Content-Type and body are under test.
func body(contentType, body string) string {
	return http(fmt.Sprintf(`"method": "POST", "url": "https://api.example.com/{a}?o={o}&s={s}",
		"headers": [{"name": "X-T", "value": "{_secret:token}"}%s], "body": %q`, contentType, body))
}

const jsonType = `, {"name": "Content-Type", "value": "application/json; charset=utf-8"}`

// header is a request with one more header.
func header(name, value string) string {
	return http(fmt.Sprintf(`"method": "GET", "url": "https://api.example.com/{a}?o={o}&s={s}",
		"headers": [{"name": "X-T", "value": "{_secret:token}"}, {"name": %q, "value": %q}]`, name, value))
}

func mcp(members string) string {
	return `{"version": "1", "arguments": [{"name": "a", "type": "string"}], "mcp": {` + members + `}}`
}

var mcpRest = `"tool": "t", "toolDigest": "` + strings.Repeat("0", 64) + `"`

// mcpFine is a call that is in order.
var mcpFine = `"url": "https://mcp.example.com/", ` + mcpRest

// spec is a valid manifest with more members at its root.
func spec(members string) string {
	return `{"version": "1", "command": {"image": "` + image + `", "argv": ["tool"]}, ` + members + `}`
}

func execution(members string) string { return spec(`"execution": {` + members + `}`) }

func secret(members string) string {
	return `{"version": "1", "command": {"image": "` + image + `", "argv": ["tool"], "env": [{"name": "T", "secret": "t"}]}, "secrets": [` + members + `]}`
}

// wrong is what is wrong with a manifest: field and reason of each error.
type wrong struct {
	manifest string
	want     []string
}

func one(manifest, want string) wrong { return wrong{manifest, []string{want}} }

var wrongArguments = map[string]wrong{
	"a type that does not exist":            one(oneArgument(`"type": "hostname"`), "spec.arguments[0].type MissingReference"),
	"a name with a dash":                    one(strings.ReplaceAll(mcp(mcpFine), `"name": "a"`, `"name": "a-b"`), "spec.arguments[0].name InvalidArgument"),
	"enum without values":                   one(oneArgument(`"type": "enum"`), "spec.arguments[0].allowed InvalidArgument"),
	"regex_match without pattern":           one(oneArgument(`"type": "regex_match"`), "spec.arguments[0].pattern InvalidArgument"),
	"object without schema":                 one(mcp(mcpRest + `}, "output": {`)[:0]+strings.Replace(mcp(mcpFine), `"type": "string"`, `"type": "object"`, 1), "spec.arguments[0].schema InvalidArgument"),
	"an object under String":                one(inString(strings.Replace(mcp(mcpFine), `"type": "string"`, `"type": "object", "schema": "{}"`, 1)), "spec.arguments[0].type InvalidArgument"),
	"min above max":                         one(oneArgument(`"type": "integer", "min": 2, "max": 1`), "spec.arguments[0].min InvalidArgument"),
	"min above the port range":              one(oneArgument(`"type": "port", "min": 65536`), "spec.arguments[0].min InvalidArgument"),
	"clamp without bounds":                  one(oneArgument(`"type": "integer", "clamp": true`), "spec.arguments[0].clamp InvalidArgument"),
	"clamp of a port without bounds":        one(oneArgument(`"type": "port", "clamp": true`), "spec.arguments[0].clamp InvalidArgument"),
	"a fraction as a bound of integers":     one(oneArgument(`"type": "integer", "min": "1.5"`), "spec.arguments[0].min InvalidArgument"),
	"a word as a bound":                     one(oneArgument(`"type": "number", "max": "many"`), "spec.arguments[0].max InvalidArgument"),
	"a pattern of a number":                 one(oneArgument(`"type": "integer", "pattern": "1"`), "spec.arguments[0].pattern InvalidArgument"),
	"bounds of a text":                      {oneArgument(`"type": "string", "min": 1, "max": 2, "clamp": true`), []string{"spec.arguments[0].min InvalidArgument", "spec.arguments[0].max InvalidArgument", "spec.arguments[0].clamp InvalidArgument"}},
	"schemes of a text":                     one(oneArgument(`"type": "string", "schemes": ["https"]`), "spec.arguments[0].schemes InvalidArgument"),
	"a scope check of a number":             one(oneArgument(`"type": "integer", "scopeCheck": true`), "spec.arguments[0].scopeCheck InvalidArgument"),
	"a length of a number":                  one(oneArgument(`"type": "integer", "maxLength": 3`), "spec.arguments[0].maxLength InvalidArgument"),
	"a dash of a boolean":                   one(oneArgument(`"type": "boolean", "allowLeadingDash": true`), "spec.arguments[0].allowLeadingDash InvalidArgument"),
	"a schema of a text":                    one(oneArgument(`"type": "string", "schema": "{}"`), "spec.arguments[0].schema InvalidArgument"),
	"allowed values of a boolean":           one(oneArgument(`"type": "boolean", "allowed": ["true"]`), "spec.arguments[0].allowed InvalidArgument"),
	"no length":                             one(oneArgument(`"type": "string", "maxLength": 0`), "spec.arguments[0].maxLength InvalidArgument"),
	"too much length":                       one(oneArgument(`"type": "string", "maxLength": 32769`), "spec.arguments[0].maxLength InvalidArgument"),
	"a pattern that is none":                one(oneArgument(`"type": "string", "pattern": "("`), "spec.arguments[0].pattern InvalidArgument"),
	"a pattern that leaves its group":       one(oneArgument(`"type": "string", "pattern": "a)|(b"`), "spec.arguments[0].pattern InvalidArgument"),
	"a pattern with a back-reference":       one(oneArgument(`"type": "string", "pattern": "(a)\\1"`), "spec.arguments[0].pattern InvalidArgument"),
	"a pattern that hides its end":          one(oneArgument(`"type": "string", "pattern": "\\Qa"`), "spec.arguments[0].pattern InvalidArgument"),
	"a pattern of 1,025 bytes":              one(oneArgument(`"type": "string", "pattern": "`+strings.Repeat("a", 1025)+`"`), "spec.arguments[0].pattern InvalidArgument"),
	"an allowed value twice":                one(oneArgument(`"type": "enum", "allowed": ["x", "x"]`), "spec.arguments[0].allowed[1] InvalidArgument"),
	"an allowed value with NUL":             one(oneArgument(`"type": "enum", "allowed": ["x", "a\u0000"]`), "spec.arguments[0].allowed[1] InvalidArgument"),
	"allowed values nobody can send":        one(oneArgument(`"type": "string", "allowed": ["a;b", " x"]`), "spec.arguments[0].allowed InvalidArgument"),
	"allowed numbers nobody can send":       one(oneArgument(`"type": "integer", "allowed": ["05", "1.0"]`), "spec.arguments[0].allowed InvalidArgument"),
	"a scheme in upper case":                one(oneArgument(`"type": "url", "schemes": ["HTTPS"]`), "spec.arguments[0].schemes[0] InvalidArgument"),
	"a scheme with a colon":                 one(oneArgument(`"type": "url", "schemes": ["https:"]`), "spec.arguments[0].schemes[0] InvalidArgument"),
	"an empty scheme":                       one(oneArgument(`"type": "url", "schemes": [""]`), "spec.arguments[0].schemes[0] InvalidArgument"),
	"a default that is not accepted":        one(oneArgument(`"type": "integer", "max": 5, "default": 6`), "spec.arguments[0].default InvalidArgument"),
	"a default outside the list":            one(oneArgument(`"type": "enum", "allowed": ["x"], "default": "y"`), "spec.arguments[0].default InvalidArgument"),
	"a default outside the scope":           one(oneArgument(`"type": "scope_target", "default": "evil.test"`), "spec.arguments[0].default InvalidArgument"),
	"an empty default of a required text":   one(oneArgument(`"type": "string", "required": true, "default": ""`), "spec.arguments[0].default InvalidArgument"),
	"a default that is not JSON":            one(strings.Replace(mcp(mcpFine), `"type": "string"`, `"type": "object", "schema": "{}", "default": "{"`, 1), "spec.arguments[0].default InvalidArgument"),
	"a default that breaks its schema":      one(strings.Replace(mcp(mcpFine), `"type": "string"`, `"type": "array", "schema": "{\"maxItems\":0}", "default": "[1]"`, 1), "spec.arguments[0].default InvalidArgument"),
	"a schema that is not JSON":             one(schemaOf(`{`), "spec.arguments[0].schema InvalidArgument"),
	"a schema that is none":                 one(schemaOf(`{"type": "thing"}`), "spec.arguments[0].schema InvalidArgument"),
	"a schema of another draft":             one(schemaOf(`{"$schema": "http://json-schema.org/draft-07/schema#"}`), "spec.arguments[0].schema InvalidArgument"),
	"a schema with a remote reference":      one(schemaOf(`{"$ref": "https://example.com/schema.json"}`), "spec.arguments[0].schema InvalidArgument"),
	"a schema with a file reference":        one(schemaOf(`{"$ref": "file:///etc/passwd"}`), "spec.arguments[0].schema InvalidArgument"),
	"a schema with the meta-schema":         one(schemaOf(`{"$ref": "https://json-schema.org/draft/2020-12/schema"}`), "spec.arguments[0].schema InvalidArgument"),
	"a schema with an unknown definition":   one(schemaOf(`{"$ref": "#/$defs/none"}`), "spec.arguments[0].schema InvalidArgument"),
	"a schema that contains itself":         one(schemaOf(`{"properties": {"x": {"$ref": "#"}}}`), "spec.arguments[0].schema InvalidArgument"),
	"a schema with an ID":                   one(schemaOf(`{"$id": "https://example.com/a"}`), "spec.arguments[0].schema InvalidArgument"),
	"a schema with a dynamic reference":     one(schemaOf(`{"$dynamicAnchor": "x", "items": {"$dynamicRef": "#x"}}`), "spec.arguments[0].schema InvalidArgument"),
	"a schema with a Perl pattern":          one(schemaOf(`{"pattern": "(?=a)b"}`), "spec.arguments[0].schema InvalidArgument"),
	"a schema that refers to itself inside": one(schemaOf(`{"patternProperties": {"^x": {"dependentSchemas": {"a": {"additionalProperties": {"$ref": "#"}}}}}}`), "spec.arguments[0].schema InvalidArgument"),
	"a schema of exponential cost":          one(schemaOf(doubling(30)), "spec.arguments[0].schema InvalidArgument"),
	"a schema of 16 KiB and more":           one(schemaOf(`{"description": "`+strings.Repeat("a", 16<<10)+`"}`), "spec.arguments[0].schema InvalidArgument"),
	"a schema that is a number":             one(schemaOf(`7`), "spec.arguments[0].schema InvalidArgument"),
	"several arguments with problems":       {`{"version": "1", "arguments": [{"name": "a", "type": "x"}, {"name": "a", "type": "y"}], "command": {"image": "` + image + `", "argv": ["tool"]}}`, []string{"spec.arguments[0].type MissingReference", "spec.arguments[1].name InvalidArgument", "spec.arguments[1].type MissingReference"}},
}

// schemaOf is a manifest with one structure.
func schemaOf(schema string) string {
	return strings.Replace(mcp(mcpFine), `"type": "string"`, fmt.Sprintf(`"type": "array", "schema": %q`, schema), 1)
}

// doubling is a schema that refers to its definitions twice, n levels deep.
func doubling(n int) string {
	defs := []string{`"d0": {"type": "string"}`}
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d": {"allOf": [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}]}`, i+1, i, i))
	}
	return fmt.Sprintf(`{"$defs": {%s}, "items": {"$ref": "#/$defs/d%d"}}`, strings.Join(defs, ", "), n)
}

var wrongCommands = map[string]wrong{
	"no effect":                           one(`{"version": "1"}`, "spec InvalidEffect"),
	"two effects":                         one(`{"version": "1", "command": {"image": "`+image+`", "argv": ["x"]}, "mcp": {"url": "https://mcp.example.com", `+mcpRest+`}}`, "spec InvalidEffect"),
	"an image by tag":                     one(strings.Replace(command(`"argv": ["tool", "{a}"]`), digest, ":latest", 1), "spec.command.image ImageNotByDigest"),
	"an image without tag":                one(strings.Replace(command(`"argv": ["tool", "{a}"]`), digest, "", 1), "spec.command.image ImageNotByDigest"),
	"an image by half a digest":           one(strings.Replace(command(`"argv": ["tool", "{a}"]`), digest, "@sha256:00", 1), "spec.command.image InvalidEffect"),
	"an image with a blank":               one(strings.Replace(command(`"argv": ["tool", "{a}"]`), "registry.example/tool", "registry.example/t ool", 1), "spec.command.image InvalidEffect"),
	"no words":                            {command(`"argv": []`), []string{"spec.command.argv InvalidEffect", "spec.arguments[0] InvalidTemplate"}},
	"too many words":                      one(command(`"argv": ["tool", "{a}"`+strings.Repeat(`, "x"`, 255)+`]`), "spec.command.argv InvalidEffect"),
	"a program of the agent's":            one(command(`"argv": ["{a}"]`), "spec.command.argv[0] InvalidEffect"),
	"a program partly of the agent's":     one(command(`"argv": ["/bin/{a}"]`), "spec.command.argv[0] InvalidEffect"),
	"an empty program":                    one(command(`"argv": ["", "{a}"]`), "spec.command.argv[0] InvalidEffect"),
	"a program from a mapping":            one(command(`"argv": ["{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "y"}]}]`), "spec.command.argv[0] InvalidEffect"),
	"a shell":                             one(command(`"argv": ["/bin/sh", "-c", "{a}"]`), "spec.command.argv[0] InvalidEffect"),
	"a shell behind env":                  one(command(`"argv": ["env", "-i", "bash", "-c", "{a}"]`), "spec.command.argv[0] InvalidEffect"),
	"a shell of busybox":                  one(command(`"argv": ["/bin/busybox", "sh", "-c", "{a}"]`), "spec.command.argv[0] InvalidEffect"),
	"a shell of Windows":                  one(command(`"argv": ["cmd.exe", "{a}"]`), "spec.command.argv[0] InvalidEffect"),
	"an undeclared placeholder":           one(command(`"argv": ["tool", "{a}", "{b}"]`), "spec.command.argv[2] InvalidTemplate"),
	"a secret as a word":                  one(command(`"argv": ["tool", "{a}", "{_secret:token}"]`), "spec.command.argv[2] InvalidTemplate"),
	"an open brace":                       one(command(`"argv": ["tool", "{a}", "{x"]`), "spec.command.argv[2] InvalidTemplate"),
	"a closing brace":                     one(command(`"argv": ["tool", "{a}", "x}"]`), "spec.command.argv[2] InvalidTemplate"),
	"a placeholder with a blank":          one(command(`"argv": ["tool", "{a}", "{ a }"]`), "spec.command.argv[2] InvalidTemplate"),
	"an empty placeholder":                one(command(`"argv": ["tool", "{a}", "{}"]`), "spec.command.argv[2] InvalidTemplate"),
	"NUL in a word":                       one(command(`"argv": ["tool", "{a}", "x\u0000"]`), "spec.command.argv[2] InvalidTemplate"),
	"a text like a secret":                one(command(`"argv": ["tool", "{a}", "{{_secret:x}}"]`), "spec.command.argv[2] InvalidTemplate"),
	"an unused argument":                  one(command(`"argv": ["tool"]`), "spec.arguments[0] InvalidTemplate"),
	"an unused default":                   one(command(`"argv": ["tool", "{a}"], "defaults": [{"name": "d", "value": 1}]`), "spec.command.defaults[0] InvalidTemplate"),
	"an unused mapping":                   one(command(`"argv": ["tool", "{a}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "y"}]}]`), "spec.command.mappings[0] InvalidTemplate"),
	"an unused conditional":               one(command(`"argv": ["tool", "{a}"], "conditionals": [{"name": "c", "when": "a == 'x'", "template": "y"}]`), "spec.command.conditionals[0] InvalidTemplate"),
	"an unused secret":                    one(strings.TrimSuffix(command(`"argv": ["tool", "{a}"]`), "}")+`, "secrets": [{"name": "t", "secretName": "s", "key": "k"}]}`, "spec.secrets[0] InvalidTemplate"),
	"a name that is taken by an argument": {command(`"argv": ["tool", "{a}"], "defaults": [{"name": "a", "value": 1}]`), []string{"spec.command.defaults[0].name InvalidTemplate", "spec.arguments[0] InvalidTemplate"}},
	"a name that is taken by a default":   one(command(`"argv": ["tool", "{a}", "{d}"], "defaults": [{"name": "d", "value": 1}], "conditionals": [{"name": "d", "when": "a == 'x'", "template": "y"}]`), "spec.command.conditionals[0].name InvalidTemplate"),
	"a name that is none":                 {command(`"argv": ["tool", "{a}"], "defaults": [{"name": "d-e", "value": 1}]`), []string{"spec.command.defaults[0].name InvalidTemplate", "spec.command.defaults[0] InvalidTemplate"}},
	"a default with NUL":                  one(command(`"argv": ["tool", "{a}{d}"], "defaults": [{"name": "d", "value": "\u0000"}]`), "spec.command.defaults[0].value InvalidTemplate"),
	"a mapping without values":            one(command(`"argv": ["tool", "{m}"], "mappings": [{"name": "m", "argument": "a", "values": []}]`), "spec.command.mappings[0].values InvalidTemplate"),
	"a mapping of another argument":       one(command(`"argv": ["tool", "{a}", "{m}"], "mappings": [{"name": "m", "argument": "b", "values": [{"value": "x", "flags": ""}]}]`), "spec.command.mappings[0].argument InvalidTemplate"),
	"a mapping with a value twice":        one(command(`"argv": ["tool", "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": ""}, {"value": "x", "flags": "y"}]}]`), "spec.command.mappings[0].values[1].value InvalidTemplate"),
	"flags with an open quote":            one(command(`"argv": ["tool", "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "'y"}]}]`), "spec.command.mappings[0].values[0].flags InvalidTemplate"),
	"flags that end with a backslash":     one(command(`"argv": ["tool", "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "y\\"}]}]`), "spec.command.mappings[0].values[0].flags InvalidTemplate"),
	"a mapping inside a word":             {command(`"argv": ["tool", "x{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": ""}]}]`), []string{"spec.command.argv[1] InvalidTemplate", "spec.command.mappings[0] InvalidTemplate"}},
	"a conditional in a conditional":      {command(`"argv": ["tool", "{d}"], "conditionals": [{"name": "c", "when": "a == 'x'", "template": "y"}, {"name": "d", "when": "a == 'x'", "template": "{c}"}]`), []string{"spec.command.conditionals[1].template InvalidTemplate", "spec.command.conditionals[0] InvalidTemplate"}},
	"a condition with or":                 condition("a == 'x' or a == 'y'"),
	"a condition with a call":             condition("exec('x')"),
	"a condition with =":                  condition("a = 'x'"),
	"a condition with <":                  condition("a < 5"),
	"a condition without a constant":      condition("a == "),
	"a condition without a name":          condition("'x' == 'x'"),
	"a condition with an open quote":      condition("a == 'x"),
	"a condition that goes on":            condition("a == 'x' and"),
	"a condition with a second constant":  condition("a == 'x' 'y'"),
	"an empty condition":                  condition(""),
	"a condition on nothing declared":     one(command(`"argv": ["tool", "{a}", "{c}"], "conditionals": [{"name": "c", "when": "b == 'x'", "template": "y"}]`), "spec.command.conditionals[0].when InvalidTemplate"),
	"a template with an open quote":       one(command(`"argv": ["tool", "{c}"], "conditionals": [{"name": "c", "when": "a == 'x'", "template": "\"y"}]`), "spec.command.conditionals[0].template InvalidTemplate"),
	"a structure in a condition":          one(strings.Replace(command(`"argv": ["tool", "{a}", "{c}"], "conditionals": [{"name": "c", "when": "a == 'x'", "template": "y"}]`), `"type": "string"`, `"type": "object", "schema": "{}"`, 1), "spec.command.conditionals[0].when InvalidTemplate"),
	"a structure in a mapping":            one(strings.Replace(command(`"argv": ["tool", "{m}"], "mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": ""}]}]`), `"type": "string"`, `"type": "object", "schema": "{}"`, 1), "spec.command.mappings[0].argument InvalidTemplate"),
	"a word of 131,072 bytes":             one(command(`"argv": ["tool", "{a}", "`+strings.Repeat("x", 131072)+`"]`), "spec.command.argv[2] InvalidTemplate"),
	"a variable that is none":             env(`{"name": "A-B", "value": "x"}`, ".name"),
	"a variable of the runner's":          env(`{"name": "ASSENT_TOKEN", "value": "x"}`, ".name"),
	"a variable without a value":          env(`{"name": "A"}`, ""),
	"a variable with NUL":                 env(`{"name": "A", "value": "\u0000"}`, ".value"),
	"a variable with two values":          {command(`"argv": ["tool", "{a}"], "env": [{"name": "A", "value": "x", "secret": "t"}]`), []string{"spec.command.env[0] InvalidEffect"}},
	"a variable twice":                    one(command(`"argv": ["tool", "{a}"], "env": [{"name": "A", "value": "x"}, {"name": "A", "value": "y"}]`), "spec.command.env[1].name InvalidEffect"),
	"a variable of an unknown secret":     one(command(`"argv": ["tool", "{a}"], "env": [{"name": "A", "secret": "t"}]`), "spec.command.env[0].secret InvalidTemplate"),
	"hosts of a variable's secret":        one(secret(`{"name": "t", "secretName": "s", "key": "k", "hosts": ["x.example.com"]}`), "spec.command.env[0].secret InvalidEffect"),
	"a relative working directory":        one(command(`"argv": ["tool", "{a}"], "workingDir": "work"`), "spec.command.workingDir InvalidEffect"),
	"a working directory that climbs":     one(command(`"argv": ["tool", "{a}"], "workingDir": "/work/../etc"`), "spec.command.workingDir InvalidEffect"),
}

// condition is a conditional whose condition cannot be read.
func condition(when string) wrong {
	return one(command(fmt.Sprintf(`"argv": ["tool", "{a}", "{c}"], "conditionals": [{"name": "c", "when": %q, "template": "y"}]`, when)),
		"spec.command.conditionals[0].when InvalidTemplate")
}

func env(variable, field string) wrong {
	return one(command(`"argv": ["tool", "{a}"], "env": [`+variable+`]`), "spec.command.env[0]"+field+" InvalidEffect")
}

var wrongRequests = map[string]wrong{
	"another method":                    one(http(`"method": "TRACE", "url": "https://api.example.com/?o={o}", `+rest), "spec.http.method InvalidEffect"),
	"a body of GET":                     one(http(`"method": "GET", "url": "https://api.example.com/?o={o}", `+rest), "spec.http.body InvalidEffect"),
	"a status of 99":                    one(http(`"method": "POST", "url": "https://api.example.com/?o={o}", "successStatus": [99], `+rest), "spec.http.successStatus[0] InvalidEffect"),
	"certificates that are none":        one(http(`"method": "POST", "url": "https://api.example.com/?o={o}", "caBundle": "x", `+rest), "spec.http.caBundle InvalidEffect"),
	"a URL of another scheme":           one(urlOf("ftp://api.example.com/?o={o}"), "spec.http.url InvalidEffect"),
	"a URL with credentials":            {urlOf("https://u:p@api.example.com/?o={o}"), []string{"spec.http.url InvalidEffect", "spec.arguments[1] InvalidTemplate"}},
	"a URL with a fragment":             {urlOf("https://api.example.com/?o={o}#x"), []string{"spec.http.url InvalidEffect", "spec.arguments[1] InvalidTemplate"}},
	"a URL that climbs":                 {urlOf("https://api.example.com/a/../b?o={o}"), []string{"spec.http.url InvalidEffect", "spec.arguments[1] InvalidTemplate"}},
	"a secret in a URL":                 {urlOf("https://api.example.com/?key={_secret:token}&o={o}"), []string{"spec.http.url InvalidTemplate", "spec.arguments[1] InvalidTemplate"}},
	"an argument as the host":           {urlOf("https://{o}/"), []string{"spec.http.url InvalidEffect", "spec.arguments[1] InvalidTemplate"}},
	"an argument behind the host":       {urlOf("https://api.example.com{o}"), []string{"spec.http.url InvalidEffect", "spec.arguments[1] InvalidTemplate"}},
	"an argument as the port":           {urlOf("https://api.example.com:{o}/"), []string{"spec.http.url InvalidEffect", "spec.arguments[1] InvalidTemplate"}},
	"an argument as the scheme":         {urlOf("{o}://api.example.com/"), []string{"spec.http.url InvalidEffect", "spec.arguments[1] InvalidTemplate"}},
	"no URL":                            {urlOf(""), []string{"spec.http.url InvalidEffect", "spec.arguments[1] InvalidTemplate"}},
	"a relative URL":                    {urlOf("/v1/{o}"), []string{"spec.http.url InvalidEffect", "spec.arguments[1] InvalidTemplate"}},
	"a URL with an open brace":          {urlOf("https://api.example.com/{"), []string{"spec.http.url InvalidTemplate", "spec.arguments[1] InvalidTemplate"}},
	"an optional segment":               one(urlOf("https://api.example.com/{o}"), "spec.http.url InvalidTemplate"),
	"a structure as a segment":          one(urlOf("https://api.example.com/{s}?o={o}"), "spec.http.url InvalidTemplate"),
	"an undeclared query":               one(urlOf("https://api.example.com/?o={o}&x={x}"), "spec.http.url InvalidTemplate"),
	"a text as the whole URL":           {urlOf("{a}"), []string{"spec.http.url InvalidEffect", "spec.arguments[1] InvalidTemplate"}},
	"nothing declared as the whole URL": {urlOf("{x}"), []string{"spec.http.url InvalidTemplate", "spec.arguments[1] InvalidTemplate"}},
	"an unchecked URL as the whole URL": one(`{"version": "1", "arguments": [{"name": "u", "type": "url", "required": true}], "http": {"method": "GET", "url": "{u}"}}`, "spec.http.url InvalidEffect"),
	"an optional URL as the whole URL":  one(`{"version": "1", "arguments": [{"name": "u", "type": "url", "scopeCheck": true}], "http": {"method": "GET", "url": "{u}"}}`, "spec.http.url InvalidTemplate"),
	"FTP as the whole URL":              one(`{"version": "1", "arguments": [{"name": "u", "type": "url", "scopeCheck": true, "required": true, "schemes": ["ftp"]}], "http": {"method": "GET", "url": "{u}"}}`, "spec.http.url InvalidEffect"),
	"a header that is none":             one(header("X A", "x"), "spec.http.headers[1].name InvalidEffect"),
	"a header without a name":           one(header("", "x"), "spec.http.headers[1].name InvalidEffect"),
	"the Host header":                   one(header("Host", "evil.test"), "spec.http.headers[1].name InvalidEffect"),
	"the Content-Length header":         one(header("content-length", "0"), "spec.http.headers[1].name InvalidEffect"),
	"the same header twice":             one(header("x-t", "x"), "spec.http.headers[1].name InvalidEffect"),
	"a line end in a header":            one(header("X-A", "a\r\nX-B: c"), "spec.http.headers[1].value InvalidEffect"),
	"an open brace in a header":         one(header("X-A", "{"), "spec.http.headers[1].value InvalidTemplate"),
	"an undeclared header value":        one(header("X-A", "{x}"), "spec.http.headers[1].value InvalidTemplate"),
	"a structure in a header":           one(header("X-A", "{s}"), "spec.http.headers[1].value InvalidTemplate"),
	"an unknown secret in a header":     one(header("X-A", "{_secret:other}"), "spec.http.headers[1].value InvalidTemplate"),
	"an unused secret of a request":     one(strings.Replace(header("X-A", "x"), `"secrets": [`, `"secrets": [{"name": "u", "secretName": "s", "key": "k"}, `, 1), "spec.secrets[0] InvalidTemplate"),
	"a secret without hosts":            one(strings.Replace(header("X-A", "x"), `, "hosts": ["api.example.com"]`, "", 1), "spec.secrets[0].hosts InvalidEffect"),
	"a secret of another host":          one(strings.Replace(header("X-A", "x"), `"hosts": ["api.example.com"]`, `"hosts": ["other.example.com"]`, 1), "spec.secrets[0].hosts CredentialHostMismatch"),
	"a secret of no host":               {strings.Replace(header("X-A", "x"), `"hosts": ["api.example.com"]`, `"hosts": ["*.example.com"]`, 1), []string{"spec.secrets[0].hosts[0] InvalidEffect", "spec.secrets[0].hosts CredentialHostMismatch"}},
	"a body without a type":             one(body("", "x{a}"), "spec.http.body InvalidEffect"),
	"a body of a type that is none":     one(body(`, {"name": "Content-Type", "value": "/"}`, "{a}"), "spec.http.body InvalidEffect"),
	"a body whose type the agent says":  one(body(`, {"name": "Content-Type", "value": "{a}"}`, "{a}"), "spec.http.body InvalidEffect"),
	"a body that is not JSON":           one(body(jsonType, `{"x": {a}`), "spec.http.body InvalidTemplate"),
	"a value as a JSON name":            one(body(jsonType, `{{a}: 1}`), "spec.http.body InvalidTemplate"),
	"half a JSON escape":                one(body(jsonType, `{"x": "\u00{a}"}`), "spec.http.body InvalidTemplate"),
	"a JSON escape of a value":          one(body(jsonType, `{"x": "\{a}"}`), "spec.http.body InvalidTemplate"),
	"a secret as a JSON value":          one(body(jsonType, `{"x": {_secret:token}, "y": "{a}"}`), "spec.http.body InvalidTemplate"),
	"an unknown secret in a body":       one(body(jsonType, `{"x": "{_secret:other}", "y": "{a}"}`), "spec.http.body InvalidTemplate"),
	"an optional value in a body":       one(body(jsonType, `{"x": "{o}"}`), "spec.http.body InvalidTemplate"),
	"an undeclared value in a body":     one(body(jsonType, `{"x": "{x}"}`), "spec.http.body InvalidTemplate"),
	"NUL in a body":                     one(strings.Replace(body(jsonType, `"{a}NUL"`), "NUL", `\u0000`, 1), "spec.http.body InvalidTemplate"),
}

var wrongMCP = map[string]wrong{
	"an MCP server of another scheme":  one(mcp(`"url": "stdio://mcp.example.com", `+mcpRest), "spec.mcp.url InvalidEffect"),
	"an MCP server with a placeholder": one(mcp(`"url": "https://{a}/", `+mcpRest), "spec.mcp.url InvalidEffect"),
	"an MCP server with credentials":   one(mcp(`"url": "https://u@mcp.example.com/", `+mcpRest), "spec.mcp.url InvalidEffect"),
	"an MCP tool without a name":       one(mcp(`"url": "https://mcp.example.com/", "tool": "", "toolDigest": "`+strings.Repeat("0", 64)+`"`), "spec.mcp.tool InvalidEffect"),
	"an MCP tool without a digest":     one(mcp(`"url": "https://mcp.example.com/", "tool": "t", "toolDigest": "ABC"`), "spec.mcp.toolDigest InvalidEffect"),
	"certificates of MCP that are none": one(mcp(`"url": "https://mcp.example.com/", "caBundle": "x", `+mcpRest),
		"spec.mcp.caBundle InvalidEffect"),
	"an argument in an MCP header":     one(mcp(`"url": "https://mcp.example.com/", "headers": [{"name": "X", "value": "{a}"}], `+mcpRest), "spec.mcp.headers[0].value InvalidTemplate"),
	"an MCP argument twice":            one(mcp(`"url": "https://mcp.example.com/", "arguments": [{"name": "x", "argument": "a"}, {"name": "x", "value": "1"}], `+mcpRest), "spec.mcp.arguments[1].name InvalidEffect"),
	"an MCP argument without a name":   {mcp(`"url": "https://mcp.example.com/", "arguments": [{"name": "", "argument": "a"}], ` + mcpRest), []string{"spec.mcp.arguments[0].name InvalidEffect", "spec.arguments[0] InvalidTemplate"}},
	"an MCP argument without a value":  {mcp(`"url": "https://mcp.example.com/", "arguments": [{"name": "x"}], ` + mcpRest), []string{"spec.mcp.arguments[0] InvalidEffect", "spec.arguments[0] InvalidTemplate"}},
	"an MCP constant that is not JSON": {mcp(`"url": "https://mcp.example.com/", "arguments": [{"name": "x", "value": "{"}], ` + mcpRest), []string{"spec.mcp.arguments[0].value InvalidEffect", "spec.arguments[0] InvalidTemplate"}},
	"an MCP argument of nothing":       {mcp(`"url": "https://mcp.example.com/", "arguments": [{"name": "x", "argument": "b"}], ` + mcpRest), []string{"spec.mcp.arguments[0].argument InvalidTemplate", "spec.arguments[0] InvalidTemplate"}},
}

var wrongManifests = map[string]wrong{
	"no version":                               one(strings.Replace(spec(`"riskTier": "low"`), `"version": "1"`, `"version": ""`, 1), "spec.version InvalidManifest"),
	"a tool name with a slash":                 one(spec(`"toolName": "a/b"`), "spec.toolName InvalidManifest"),
	"another risk tier":                        one(spec(`"riskTier": "none"`), "spec.riskTier InvalidManifest"),
	"another encoding":                         one(spec(`"argumentEncoding": "YAML"`), "spec.argumentEncoding InvalidManifest"),
	"a scope name that is none":                one(spec(`"scopeRef": {"name": "A B"}`), "spec.scopeRef.name InvalidManifest"),
	"a Cedar type that is none":                one(spec(`"cedar": {"resource": "Tool:Fetch", "action": "x"}`), "spec.cedar.resource InvalidManifest"),
	"a Cedar action that is none":              one(spec(`"cedar": {"resource": "Tool::Fetch", "action": "x y"}`), "spec.cedar.action InvalidManifest"),
	"more approvers than can approve":          one(spec(`"approval": {"requirements": [{"group": "a", "count": 8}, {"group": "b", "count": 8}, {"group": "c", "count": 1}]}`), "spec.approval.requirements InvalidManifest"),
	"another output format":                    one(spec(`"output": {"format": "yaml"}`), "spec.output.format InvalidManifest"),
	"an output file of a request":              one(strings.Replace(header("X-A", "x"), "{", `{"output": {"file": "`+contract.DefaultWorkingDir+`/o"}, `, 1), "spec.output.file InvalidManifest"),
	"an output file elsewhere":                 one(spec(`"output": {"file": "/tmp/o"}`), "spec.output.file InvalidManifest"),
	"an output file that leaves its directory": one(spec(`"output": {"file": "`+contract.DefaultWorkingDir+`/../etc/passwd"}`), "spec.output.file InvalidManifest"),
	"the directory as an output file":          one(spec(`"output": {"file": "`+contract.DefaultWorkingDir+`"}`), "spec.output.file InvalidManifest"),
	"an output file in two spellings":          one(spec(`"output": {"file": "`+contract.DefaultWorkingDir+`//o"}`), "spec.output.file InvalidManifest"),
	"an output file with a blank":              one(spec(`"output": {"file": "`+contract.DefaultWorkingDir+`/a b"}`), "spec.output.file InvalidManifest"),
	"an output file that is too long":          one(spec(`"output": {"file": "`+contract.DefaultWorkingDir+`/`+strings.Repeat("a", 250)+`"}`), "spec.output.file InvalidManifest"),
	"an output schema that is none":            one(spec(`"output": {"schema": "{"}`), "spec.output.schema InvalidManifest"),
	"no time to approve":                       one(spec(`"approval": {"timeout": "0s"}`), "spec.approval.timeout InvalidManifest"),
	"no life of receipts":                      one(spec(`"approval": {"receiptLifetime": "-1m"}`), "spec.approval.receiptLifetime InvalidManifest"),
	"a requirement without a group":            one(spec(`"approval": {"requirements": [{"group": "", "count": 1}]}`), "spec.approval.requirements[0].group InvalidManifest"),
	"a group twice":                            one(spec(`"approval": {"requirements": [{"group": "a", "count": 1}, {"group": "a", "count": 2}]}`), "spec.approval.requirements[1].group InvalidManifest"),
	"a requirement of nobody":                  one(spec(`"approval": {"requirements": [{"group": "a", "count": 0}]}`), "spec.approval.requirements[0].count InvalidManifest"),
	"nine requirements":                        one(spec(`"approval": {"requirements": [`+nine+`]}`), "spec.approval.requirements InvalidManifest"),
	"a timeout of two days":                    one(execution(`"timeout": "48h"`), "spec.execution.timeout InvalidManifest"),
	"no timeout at all":                        one(execution(`"timeout": "0s"`), "spec.execution.timeout InvalidManifest"),
	"negative CPU":                             one(execution(`"cpu": "-1"`), "spec.execution.cpu InvalidManifest"),
	"no CPU at all":                            one(execution(`"cpu": "0"`), "spec.execution.cpu InvalidManifest"),
	"memory with a blank":                      one(execution(`"memory": "1 Gi"`), "spec.execution.memory InvalidManifest"),
	"storage that is no quantity":              one(execution(`"ephemeralStorage": "lots"`), "spec.execution.ephemeralStorage InvalidManifest"),
	"a RuntimeClass that is none":              one(execution(`"runtimeClassName": "gVisor!"`), "spec.execution.runtimeClassName InvalidManifest"),
	"a ServiceAccount that is none":            one(execution(`"serviceAccountName": "a/b"`), "spec.execution.serviceAccountName InvalidManifest"),
	"a negative TTL":                           one(execution(`"ttlSecondsAfterFinished": -1`), "spec.execution.ttlSecondsAfterFinished InvalidManifest"),
	"egress to nothing":                        one(execution(`"egress": [{"ports": [443]}]`), "spec.execution.egress[0] InvalidManifest"),
	"egress to two things":                     one(execution(`"egress": [{"cidr": "10.0.0.0/8", "namespace": "a", "ports": [443]}]`), "spec.execution.egress[0] InvalidManifest"),
	"egress to a range with host bits":         one(execution(`"egress": [{"cidr": "10.0.0.1/8", "ports": [443]}]`), "spec.execution.egress[0].cidr InvalidManifest"),
	"egress to a namespace of none":            one(execution(`"egress": [{"namespace": "A", "ports": [443]}]`), "spec.execution.egress[0].namespace InvalidManifest"),
	"egress labels without namespace":          one(execution(`"egress": [{"cidr": "10.0.0.0/8", "podLabels": {"a": "b"}, "ports": [443]}]`), "spec.execution.egress[0].podLabels InvalidManifest"),
	"egress labels that are none":              one(execution(`"egress": [{"namespace": "a", "podLabels": {"a b": "b"}, "ports": [443]}]`), "spec.execution.egress[0].podLabels InvalidManifest"),
	"nine egress labels":                       one(execution(`"egress": [{"namespace": "a", "podLabels": {"a":"","b":"","c":"","d":"","e":"","f":"","g":"","h":"","i":""}, "ports": [443]}]`), "spec.execution.egress[0].podLabels InvalidManifest"),
	"egress without ports":                     one(execution(`"egress": [{"namespace": "a"}]`), "spec.execution.egress[0].ports InvalidManifest"),
	"egress to port 0":                         one(execution(`"egress": [{"namespace": "a", "ports": [0]}]`), "spec.execution.egress[0].ports InvalidManifest"),
	"seventeen egress rules":                   one(execution(`"egress": [`+strings.Repeat(`{"namespace": "a", "ports": [1]},`, 16)+`{"namespace": "a", "ports": [1]}]`), "spec.execution.egress InvalidManifest"),
	"a secret with a bad name":                 {secret(`{"name": "t-t", "secretName": "s", "key": "k"}`), []string{"spec.secrets[0].name InvalidManifest", "spec.command.env[0].secret InvalidTemplate", "spec.secrets[0] InvalidTemplate"}},
	"a secret name twice":                      {secret(`{"name": "t", "secretName": "s", "key": "k"}, {"name": "t", "secretName": "s2", "key": "k"}`), []string{"spec.secrets[1].name InvalidManifest", "spec.secrets[1] InvalidTemplate"}},
	"a Secret that is none":                    one(secret(`{"name": "t", "secretName": "../s", "key": "k"}`), "spec.secrets[0].secretName InvalidManifest"),
	"a key that is none":                       one(secret(`{"name": "t", "secretName": "s", "key": "a/b"}`), "spec.secrets[0].key InvalidManifest"),
	"a scope-checked nothing":                  one(spec(`"scopeRef": {"name": "lab"}, "secrets": [{"name": "t", "secretName": "s", "key": "k"}]`), "spec.secrets[0] InvalidTemplate"),
}

const nine = `{"group":"a","count":1},{"group":"b","count":1},{"group":"c","count":1},{"group":"d","count":1},{"group":"e","count":1},{"group":"f","count":1},{"group":"g","count":1},{"group":"h","count":1},{"group":"i","count":1}`

func TestCompile_RefusesWhatCannotBeUsed(t *testing.T) {
	for _, table := range []map[string]wrong{wrongArguments, wrongCommands, wrongRequests, wrongMCP, wrongManifests} {
		for name, w := range table {
			t.Run(name, func(t *testing.T) {
				in := input(t, w.manifest)
				checkErrors(t, compileErrors(t, in), w.want)
			})
		}
	}
}

// checkErrors compares field and reason of each error, and wants a message.
func checkErrors(t *testing.T, list contract.CompileErrors, want []string) {
	t.Helper()
	var got []string
	for _, e := range list {
		got = append(got, e.Field+" "+string(e.Reason))
		if len(e.Message) < 10 || strings.Contains(e.Message, "%!") {
			t.Errorf("%s: the message %q says nothing", e.Field, e.Message)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields and reasons (-want +got):\n%s\n%v", diff, list)
	}
}

func TestCompile_RefusesNamesOfTheManifestThatAreNone(t *testing.T) {
	in := input(t, spec(`"riskTier": "low"`))
	in.Name, in.Namespace = "Tool_1", "a.b"
	checkErrors(t, compileErrors(t, in), []string{"metadata.name InvalidManifest", "metadata.namespace InvalidManifest"})
}

func TestCompile_RefusesMoreThanTheLimits(t *testing.T) {
	m := decode(t, spec(`"riskTier": "low"`))
	for i := range contract.MaxArguments + 1 {
		m.Arguments = append(m.Arguments, contract.Argument{Name: fmt.Sprintf("a%d", i), Type: "string"})
		m.Command.Argv = append(m.Command.Argv, fmt.Sprintf("{a%d}", i))
	}
	in := contract.Input{Name: "tool", Namespace: "default", Manifest: m}
	checkErrors(t, compileErrors(t, in), []string{"spec.arguments InvalidArgument"})
	in.Manifest.Arguments = m.Arguments[:contract.MaxArguments]
	in.Manifest.Command.Argv = m.Command.Argv[:contract.MaxArguments+1]
	if _, err := contract.Compile(in); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	m = decode(t, spec(`"riskTier": "low"`))
	for i := range 17 {
		name := fmt.Sprintf("s%d", i)
		m.Secrets = append(m.Secrets, contract.SecretReference{Name: name, SecretName: "s", Key: "k"})
		m.Command.Env = append(m.Command.Env, contract.EnvironmentVariable{Name: name, Secret: name})
	}
	in = contract.Input{Name: "tool", Namespace: "default", Manifest: m}
	checkErrors(t, compileErrors(t, in), []string{"spec.secrets InvalidManifest"})
}

func TestCompile_RefusesTextThatCannotBeHashed(t *testing.T) {
	in := input(t, spec(`"riskTier": "low"`))
	in.Manifest.Description = "\uffff"
	checkErrors(t, compileErrors(t, in), []string{"spec InvalidManifest"})
	in.Manifest.Description = "\xff"
	checkErrors(t, compileErrors(t, in), []string{"spec InvalidManifest"})
	in = input(t, oneArgument(`"type": "server"`))
	in.Types = maps.Clone(labTypes)
	in.Types["machine"] = contract.ArgumentType{Base: "string", Description: "\xff", ArgumentConstraints: contract.ArgumentConstraints{ScopeCheck: true}}
	checkErrors(t, compileErrors(t, in), []string{"spec InvalidManifest"})
}

func TestCompile_NamesTheChainOfTypes(t *testing.T) {
	types := map[string]contract.ArgumentType{
		"a": {Base: "b"}, "b": {Base: "c"}, "c": {Base: "a"},
		"self": {Base: "self"}, "lost": {Base: "nowhere"},
		"bad":       {Base: "integer", ArgumentConstraints: contract.ArgumentConstraints{Pattern: "x"}},
		"worse":     {Base: "bad", ArgumentConstraints: contract.ArgumentConstraints{Min: text("x")}},
		"http-only": {Base: "url", ArgumentConstraints: contract.ArgumentConstraints{Schemes: []string{"http"}}},
	}
	previous := "string"
	for i := range 17 {
		name := fmt.Sprintf("t%d", i)
		types[name] = contract.ArgumentType{Base: previous}
		previous = name
	}
	for name, c := range map[string]struct {
		members string
		want    []string
		message string
	}{
		"a cycle of three":    {`"type": "a"`, []string{"ArgumentType/c: spec.base TypeCycle"}, "a -> b -> c -> a"},
		"a cycle of one":      {`"type": "self"`, []string{"ArgumentType/self: spec.base TypeCycle"}, "self -> self"},
		"a missing base":      {`"type": "lost"`, []string{"ArgumentType/lost: spec.base MissingReference"}, `"nowhere"`},
		"seventeen links":     {`"type": "t16"`, []string{"ArgumentType/t1: spec.base TypeDepth"}, "t16 -> t15"},
		"a bad link":          {`"type": "worse"`, []string{"ArgumentType/worse: spec.min InvalidArgument", "ArgumentType/bad: spec.pattern InvalidArgument"}, "number"},
		"no scheme in common": {`"type": "http-only", "schemes": ["https"]`, []string{"spec.arguments[0].schemes InvalidArgument"}, "scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, oneArgument(c.members))
			in.Types = types
			list := compileErrors(t, in)
			checkErrors(t, list, c.want)
			if !strings.Contains(list.Error(), c.message) {
				t.Errorf("%q does not say %q", list, c.message)
			}
		})
	}
	in := input(t, oneArgument(`"type": "t15"`))
	in.Types = types
	if _, err := contract.Compile(in); err != nil {
		t.Errorf("sixteen links: %v", err)
	}
}

func TestCompile_ReportsAProblemOfATypeOnce(t *testing.T) {
	m := `{"version": "1", "arguments": [{"name": "a", "type": "bad"}, {"name": "b", "type": "bad"}],
		"command": {"image": "` + image + `", "argv": ["tool", "{a}", "{b}"]}}`
	in := input(t, m)
	in.Types = map[string]contract.ArgumentType{"bad": {Base: "integer", ArgumentConstraints: contract.ArgumentConstraints{Pattern: "x"}}}
	checkErrors(t, compileErrors(t, in), []string{"ArgumentType/bad: spec.pattern InvalidArgument"})
}

func TestCheckType_ChecksTheTypeAlone(t *testing.T) {
	types := map[string]contract.ArgumentType{
		"fine": {Base: "severity"}, "severity": labTypes["severity"], "loop": {Base: "loop"}, "port": {Base: "integer"},
	}
	if err := contract.CheckType("fine", types); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"loop": "ArgumentType/loop: spec.base: TypeCycle",
		"port": "ArgumentType/port: metadata.name: InvalidArgument",
		"none": "ArgumentType/none: spec.type: MissingReference",
	} {
		if err := contract.CheckType(name, types); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
}

func TestCheckScope_NamesTheEntry(t *testing.T) {
	if err := contract.CheckScope("lab", labScope["lab"]); err != nil {
		t.Error(err)
	}
	err := contract.CheckScope("lab", contract.Scope{Domains: []string{"*"}})
	if want := "ToolScope/lab: spec.domains[0]: InvalidScope"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestCompile_AcceptsTagsOnlyWhenTold(t *testing.T) {
	in := input(t, strings.Replace(command(`"argv": ["tool", "{a}"]`), digest, ":v1", 1))
	in.AllowImageTags = true
	c, err := contract.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := prepare(t, c, `{}`).Effect.Command.Image; got != "registry.example/tool:v1" {
		t.Errorf("image %q", got)
	}
}

func TestCompile_AcceptsShellsWhenToldOrWithoutValues(t *testing.T) {
	compile(t, command(`"argv": ["/bin/sh", "-c", "{a}"], "allowShell": true`))
	compile(t, `{"version": "1", "command": {"image": "`+image+`", "argv": ["sh", "-c", "sync"]}}`)
	compile(t, command(`"argv": ["env", "A=sh", "tool", "{a}"]`))
}
