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
	"github.com/assent-dev/assent/snapshot"
)

// hostileManifests are the tools of the table below by a short name.
var hostileManifests = map[string]string{
	"string":   oneArgument(`"type": "string"`),
	"required": oneArgument(`"type": "string", "required": true`),
	"dash":     oneArgument(`"type": "string", "allowLeadingDash": true`),
	"short":    oneArgument(`"type": "string", "maxLength": 8`),
	"pattern":  oneArgument(`"type": "string", "pattern": "^ok$"`),
	"multi":    oneArgument(`"type": "regex_match", "pattern": "(?m)^[a-z]+$"`),
	"enum":     oneArgument(`"type": "enum", "allowed": ["ping", "-flag", "a;b", ""]`),
	"integer":  oneArgument(`"type": "integer", "min": -5, "max": 5`),
	"clamp":    oneArgument(`"type": "integer", "min": 1, "max": 5, "clamp": true`),
	"number":   oneArgument(`"type": "number", "min": 0, "max": 1`),
	"boolean":  oneArgument(`"type": "boolean"`),
	"port":     oneArgument(`"type": "port"`),
	"duration": oneArgument(`"type": "duration", "max": 3600`),
	"url":      oneArgument(`"type": "url", "schemes": ["https", "http"], "scopeCheck": true`),
	"https":    oneArgument(`"type": "url"`),
	"path":     oneArgument(`"type": "path"`),
	"file":     oneArgument(`"type": "credential_file"`),
	"ip":       oneArgument(`"type": "ip_address", "scopeCheck": true`),
	"cidr":     oneArgument(`"type": "cidr", "scopeCheck": true`),
	"target":   oneArgument(`"type": "scope_target"`),
	"options":  oneArgument(`"type": "msf_options"`),
	"server":   oneArgument(`"type": "server"`),
	"serious":  oneArgument(`"type": "serious"`),
	"rate":     oneArgument(`"type": "rate"`),
	"object": `{"version": "1", "arguments": [{"name": "a", "type": "object", "schema": "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}"}],
		"mcp": {"url": "https://mcp.example.com/", "tool": "t", "toolDigest": "` + strings.Repeat("0", 64) + `"}}`,
	"array": `{"version": "1", "arguments": [{"name": "a", "type": "array", "schema": "{\"type\":\"array\",\"maxItems\":3,\"items\":{\"type\":\"string\"}}"}],
		"mcp": {"url": "https://mcp.example.com/", "tool": "t", "toolDigest": "` + strings.Repeat("0", 64) + `"}}`,
	"words": `{"version": "1", "arguments": [{"name": "a", "type": "string"}, {"name": "b", "type": "string"}],
		"command": {"image": "` + image + `", "argv": ["tool", "{a}{b}", "--x={a}{a}{a}{a}{a}", "{more}"],
			"conditionals": [{"name": "more", "when": "b != ''", "template": "{b} --y '{b} z'"}]}}`,
	"map": `{"version": "1", "arguments": [{"name": "a", "type": "string"}],
		"command": {"image": "` + image + `", "argv": ["tool", "{m}"],
			"mappings": [{"name": "m", "argument": "a", "values": [{"value": "x", "flags": "-x"}]}]}}`,
	"many": `{"version": "1", "arguments": [{"name": "a", "type": "string"}],
		"command": {"image": "` + image + `", "argv": ["tool"` + strings.Repeat(`,"{c}"`, 255) + `]` +
		`, "conditionals": [{"name": "c", "when": "a == 'x'", "template": "{a} {a}"}]}}`,
	"large": `{"version": "1", "arguments": [{"name": "a", "type": "string"}],
		"command": {"image": "` + image + `", "argv": ["tool", ` + strings.Repeat(`"{a}{a}{a}",`, 9) + `"end"]}}`,
	"http": `{"version": "1", "arguments": [
			{"name": "a", "type": "string", "required": true},
			{"name": "e", "type": "enum", "allowed": ["x", "a\nb", "{_secret:token}", "", " y", "é"], "default": "x"},
			{"name": "q", "type": "string"}],
		"http": {"method": "POST", "url": "https://api.example.com/v1/{a}/items?q={q}",
			"headers": [{"name": "Content-Type", "value": "application/json"}, {"name": "X-Note", "value": "{e}"}, {"name": "Authorization", "value": "Bearer {_secret:token}"}],
			"body": "{\"note\": \"{e}\", \"key\": \"{_secret:token}\"}"},
		"secrets": [{"name": "token", "secretName": "s", "key": "k", "hosts": ["api.example.com"]}]}`,
	"plainbody": `{"version": "1", "arguments": [{"name": "a", "type": "enum", "allowed": ["x", "{_secret:token}", "{_secret"], "required": true}],
		"http": {"method": "POST", "url": "https://api.example.com/",
			"headers": [{"name": "Content-Type", "value": "text/plain"}, {"name": "Authorization", "value": "{_secret:token}"}],
			"body": "{a}:token}"},
		"secrets": [{"name": "token", "secretName": "s", "key": "k", "hosts": ["api.example.com"]}]}`,
	"fetch": `{"version": "1", "arguments": [{"name": "a", "type": "url", "scopeCheck": true, "required": true}],
		"http": {"method": "GET", "url": "{a}", "headers": [{"name": "Authorization", "value": "{_secret:token}"}]},
		"secrets": [{"name": "token", "secretName": "s", "key": "k", "hosts": ["api.example.com"]}]}`,
	"hugebody": `{"version": "1", "arguments": [{"name": "a", "type": "string", "required": true}],
		"http": {"method": "POST", "url": "https://api.example.com/?q={a}{a}{a}{a}{a}",
			"headers": [{"name": "Content-Type", "value": "text/plain"}, {"name": "X-A", "value": "{a}{a}{a}{a}{a}"}],
			"body": "` + strings.Repeat("{a}", 10) + `"}}`,
	"bodyonly": `{"version": "1", "arguments": [{"name": "a", "type": "string", "required": true}],
		"http": {"method": "POST", "url": "https://api.example.com/", "headers": [{"name": "Content-Type", "value": "text/plain"}],
			"body": "` + strings.Repeat("{a}", 10) + `"}}`,
	"numbers": oneArgument(`"type": "integer", "allowed": ["1", "2"]`),
	"often": `{"version": "1", "arguments": [{"name": "a", "type": "string", "required": true}],
		"http": {"method": "GET", "url": "https://api.example.com/?q=` + strings.Repeat("{a}", 1300) + `", "headers": [{"name": "X-A", "value": "` + strings.Repeat("{a}", 1300) + `"}]}}`,
	"manycopies": `{"version": "1", "arguments": [{"name": "a", "type": "string", "required": true}],
		"mcp": {"url": "https://mcp.example.com/", "tool": "t", "toolDigest": "` + strings.Repeat("0", 64) + `", "arguments": [` +
		`{"name": "a1", "argument": "a"}, {"name": "a2", "argument": "a"}, {"name": "a3", "argument": "a"}, {"name": "a4", "argument": "a"}, {"name": "a5", "argument": "a"},` +
		`{"name": "a6", "argument": "a"}, {"name": "a7", "argument": "a"}, {"name": "a8", "argument": "a"}, {"name": "a9", "argument": "a"}]}}`,
	"headeronly": `{"version": "1", "arguments": [{"name": "a", "type": "string", "required": true}],
		"http": {"method": "GET", "url": "https://api.example.com/", "headers": [{"name": "X-A", "value": "{a}{a}{a}{a}{a}{a}"}]}}`,
}

// hostile is one refused call. The value becomes the argument "a" unless it
// begins with "{raw}": then the rest is the whole text.
type hostile struct {
	tool, value string
	want        string
}

// a value of the table, quoted as JSON.
func j(s string) string { return fmt.Sprintf("%q", s) }

func hostileCalls() map[string]hostile {
	all := map[string]hostile{}
	for _, part := range []map[string]hostile{decodeCalls, shapeCalls, textCalls, numberCalls, pathCalls, urlCalls, networkCalls, structureCalls, effectCalls} {
		maps.Copy(all, part)
	}
	for i := range len(metacharacters) {
		c := metacharacters[i : i+1]
		for _, tool := range []string{"string", "path", "url", "target", "multi"} {
			all[fmt.Sprintf("the metacharacter %q in a %s", c, tool)] = hostile{tool, "{json}x" + c + "y", "schema ShellMetacharacter a"}
		}
	}
	return all
}

const metacharacters = ";|&$`(){}[]<>!\n\r"

var decodeCalls = map[string]hostile{
	"no text":                    {"string", `{raw}`, "decode Syntax "},
	"not JSON":                   {"string", `{raw}{"a":`, "decode Syntax /0"},
	"a comment":                  {"string", `{raw}{"a":"x"/**/}`, "decode Syntax /1"},
	"a second document":          {"string", `{raw}{"a":"x"} {}`, "decode TrailingData "},
	"a duplicate name":           {"string", `{raw}{"a":"x","a":"y"}`, "decode DuplicateKey /1"},
	"an escaped duplicate name":  {"string", `{raw}{"a":"x","\u0061":"y"}`, "decode DuplicateKey /1"},
	"a lone surrogate":           {"string", `"\ud800"`, "decode LoneSurrogate /0"},
	"a replacement character":    {"string", `"\ufffd"`, "decode ReplacementChar /0"},
	"a noncharacter":             {"string", `"\uffff"`, "decode Noncharacter /0"},
	"ill-formed UTF-8":           {"string", "\"\xff\"", "decode InvalidUTF8 "},
	"negative zero":              {"integer", `-0`, "decode NegativeZero /0"},
	"an integer beyond 2^53":     {"integer", `9007199254740993`, "decode UnsafeInteger /0"},
	"an infinite number":         {"number", `1e400`, "decode NumberRange /0"},
	"a number that becomes zero": {"number", `1e-400`, "decode Underflow /0"},
	"nesting without end":        {"object", strings.Repeat(`{"n":`, 70) + "1" + strings.Repeat("}", 70), "decode Depth"},
	"a text of 40 KiB":           {"string", `"` + strings.Repeat("a", 40<<10) + `"`, "decode StringTooLong /0"},
	"a document of 65 KiB":       {"array", `["` + strings.Repeat(strings.Repeat("a", 30<<10)+`","`, 2) + strings.Repeat("a", 6<<10) + `"]`, "decode TooLarge "},
	"five thousand members":      {"array", `[` + strings.Repeat("1,", 5000) + `1]`, "decode TooManyValues"},
}

var shapeCalls = map[string]hostile{
	"an array in the place of arguments":  {"string", `{raw}["a"]`, "schema WrongType "},
	"null in the place of arguments":      {"string", `{raw}null`, "schema WrongType "},
	"a text in the place of arguments":    {"string", `{raw}"a"`, "schema WrongType "},
	"an unexpected argument":              {"string", `{raw}{"a":"x","b":"y"}`, "schema UnexpectedArgument /1"},
	"only an unexpected argument":         {"string", `{raw}{"b":"y"}`, "schema UnexpectedArgument /0"},
	"an argument in another case":         {"string", `{raw}{"A":"x"}`, "schema UnexpectedArgument /0"},
	"a look-alike name":                   {"string", `{raw}{"а":"x"}`, "schema UnexpectedArgument /0"},
	"the empty name":                      {"string", `{raw}{"":"x"}`, "schema UnexpectedArgument /0"},
	"__proto__":                           {"string", `{raw}{"a":"x","__proto__":{"b":1}}`, "schema UnexpectedArgument /0"},
	"constructor":                         {"string", `{raw}{"a":"x","constructor":1}`, "schema UnexpectedArgument /1"},
	"__entity":                            {"string", `{raw}{"a":"x","__entity":{"type":"User","id":"admin"}}`, "schema UnexpectedArgument /0"},
	"__extn":                              {"string", `{raw}{"__extn":{"fn":"decimal","arg":"1"}}`, "schema UnexpectedArgument /0"},
	"has_human_approval":                  {"string", `{raw}{"has_human_approval":true}`, "schema UnexpectedArgument /0"},
	"names in the order of UTF-16":        {"string", `{raw}{"a":"x","\ud83d\ude00":1,"\uff5a":2}`, "schema UnexpectedArgument /1"},
	"a required argument that is absent":  {"required", `{raw}{}`, "schema MissingArgument a"},
	"a required argument that is null":    {"required", `null`, "schema NullArgument a"},
	"a required argument that is empty":   {"required", `""`, "schema EmptyValue a"},
	"a required argument of blanks":       {"required", `"  \t "`, "schema EmptyValue a"},
	"an optional argument that is null":   {"string", `null`, "schema NullArgument a"},
	"a number for a text":                 {"string", `1`, "schema WrongType a"},
	"a boolean for a text":                {"string", `true`, "schema WrongType a"},
	"an object for a text":                {"string", `{"__entity":{"type":"User","id":"admin"}}`, "schema WrongType a"},
	"an array for a text":                 {"string", `["x"]`, "schema WrongType a"},
	"a boolean for an integer":            {"integer", `true`, "schema WrongType a"},
	"an object for an integer":            {"integer", `{}`, "schema WrongType a"},
	"an array for a number":               {"number", `[1]`, "schema WrongType a"},
	"a number for a boolean":              {"boolean", `1`, "schema WrongType a"},
	"a number for an enum":                {"enum", `1`, "schema WrongType a"},
	"a number for a duration":             {"duration", `30`, "schema WrongType a"},
	"a text for an object":                {"object", `"{\"n\":1}"`, "schema WrongType a"},
	"an array for an object":              {"object", `[]`, "schema WrongType a"},
	"an object for an array":              {"array", `{}`, "schema WrongType a"},
	"a number under the encoding String":  {"S:integer", `5`, "schema WrongType a"},
	"a boolean under the encoding String": {"S:boolean", `true`, "schema WrongType a"},
	"a port number under String":          {"S:port", `443`, "schema WrongType a"},
	"another word for a boolean, String":  {"S:boolean", `"yes"`, "schema NotAllowed a"},
	"a large integer under String":        {"S:integer", `"99"`, "schema OutOfRange a"},
}

var textCalls = map[string]hostile{
	"NUL in a text":                     {"string", `"a\u0000b"`, "schema NulCharacter a"},
	"NUL in a path":                     {"path", `"a\u0000b"`, "schema NulCharacter a"},
	"NUL in a target":                   {"target", `"example.com\u0000"`, "schema NulCharacter a"},
	"NUL in options":                    {"options", `"A b\u0000"`, "schema NulCharacter a"},
	"NUL in a URL":                      {"url", `"https://api.example.com/\u0000"`, "schema NulCharacter a"},
	"a line end at the end":             {"pattern", `"ok\n"`, "schema ShellMetacharacter a"},
	"CRLF in a text":                    {"string", `"a\r\nX-Evil: 1"`, "schema ShellMetacharacter a"},
	"a command substitution":            {"string", `"$(reboot)"`, "schema ShellMetacharacter a"},
	"a text that is too long":           {"short", `"123456789"`, "schema TextTooLong a"},
	"a text too long in bytes only":     {"short", `"ééééé"`, "schema TextTooLong a"},
	"a prefix of the pattern":           {"pattern", `"okay"`, "schema PatternMismatch a"},
	"a suffix of the pattern":           {"pattern", `"not ok"`, "schema PatternMismatch a"},
	"another case than the pattern":     {"pattern", `"OK"`, "schema PatternMismatch a"},
	"a text that only looks alike":      {"pattern", `"оk"`, "schema PatternMismatch a"},
	"nothing for a pattern":             {"pattern", `""`, "schema PatternMismatch a"},
	"a line of several, multi-line":     {"multi", `"ok X"`, "schema PatternMismatch a"},
	"a value outside the list":          {"enum", `"full"`, "schema NotAllowed a"},
	"a listed value in another case":    {"enum", `"Ping"`, "schema NotAllowed a"},
	"a listed value with a blank":       {"enum", `"ping "`, "schema NotAllowed a"},
	"a listed value with a line end":    {"enum", `"ping\n"`, "schema NotAllowed a"},
	"a value that only the base allows": {"serious", `"low"`, "schema NotAllowed a"},
	"lower-case keys of options":        {"options", `"rhosts 10.0.0.1"`, "schema InvalidOptions a"},
	"options without a value":           {"options", `"RHOSTS"`, "schema InvalidOptions a"},
	"options with a blank value":        {"options", `"RHOSTS  "`, "schema InvalidOptions a"},
	"options that begin with a digit":   {"options", `"1A x"`, "schema InvalidOptions a"},
	"options with set alone":            {"options", `"set "`, "schema InvalidOptions a"},
	"a substitution in options":         {"options", `"A $(id)"`, "schema ShellMetacharacter a"},
	"a word for a boolean":              {"boolean", `"yes"`, "schema NotAllowed a"},
	"a boolean in another case":         {"boolean", `"True"`, "schema NotAllowed a"},
	"a boolean with a blank":            {"boolean", `" true"`, "schema NotAllowed a"},
}

var numberCalls = map[string]hostile{
	"a fraction for an integer":        {"integer", `1.5`, "schema InvalidNumber a"},
	"a word for an integer":            {"integer", `"five"`, "schema InvalidNumber a"},
	"an empty text for an integer":     {"integer", `""`, "schema InvalidNumber a"},
	"a leading zero":                   {"integer", `"05"`, "schema InvalidNumber a"},
	"a plus sign":                      {"integer", `"+5"`, "schema InvalidNumber a"},
	"a blank before a number":          {"integer", `" 5"`, "schema InvalidNumber a"},
	"hexadecimal":                      {"integer", `"0x5"`, "schema InvalidNumber a"},
	"an underscore in a number":        {"integer", `"1_0"`, "schema InvalidNumber a"},
	"an exponent in an integer":        {"integer", `"1e0"`, "schema InvalidNumber a"},
	"Arabic digits":                    {"integer", `"٥"`, "schema InvalidNumber a"},
	"negative zero as a text":          {"integer", `"-0"`, "schema InvalidNumber a"},
	"an integer beyond 2^53 as a text": {"integer", `"9007199254740993"`, "schema InvalidNumber a"},
	"a huge integer under clamp":       {"clamp", `"99999999999999999999"`, "schema InvalidNumber a"},
	"an integer above the maximum":     {"integer", `6`, "schema OutOfRange a"},
	"an integer below the minimum":     {"integer", `-6`, "schema OutOfRange a"},
	"above the maximum of the type":    {"rate", `101`, "schema OutOfRange a"},
	"NaN":                              {"number", `"NaN"`, "schema InvalidNumber a"},
	"infinity":                         {"number", `"inf"`, "schema InvalidNumber a"},
	"an infinite text":                 {"number", `"1e999"`, "schema InvalidNumber a"},
	"a text that becomes zero":         {"number", `"1e-999"`, "schema InvalidNumber a"},
	"negative zero with a fraction":    {"number", `"-0.0"`, "schema InvalidNumber a"},
	"a number without digits":          {"number", `".5"`, "schema InvalidNumber a"},
	"a hexadecimal float":              {"number", `"0x1p-2"`, "schema InvalidNumber a"},
	"a number of 900 digits":           {"number", `"0.` + strings.Repeat("0", 900) + `1"`, "schema InvalidNumber a"},
	"a number above the maximum":       {"number", `1.0001`, "schema OutOfRange a"},
	"a number outside the list":        {"numbers", `3`, "schema NotAllowed a"},
	"port 0":                           {"port", `0`, "schema OutOfRange a"},
	"port 65536":                       {"port", `65536`, "schema OutOfRange a"},
	"a negative port":                  {"port", `-1`, "schema OutOfRange a"},
	"a port with a service name":       {"port", `"https"`, "schema InvalidNumber a"},
	"a port range":                     {"port", `"80-90"`, "schema InvalidNumber a"},
	"a duration of nothing":            {"duration", `"0s"`, "schema InvalidDuration a"},
	"an empty duration":                {"duration", `""`, "schema InvalidDuration a"},
	"a negative duration":              {"duration", `"-5m"`, "schema InvalidDuration a"},
	"units in another order":           {"duration", `"5s1h"`, "schema InvalidDuration a"},
	"a unit twice":                     {"duration", `"5m5m"`, "schema InvalidDuration a"},
	"an unknown unit":                  {"duration", `"5d"`, "schema InvalidDuration a"},
	"a unit without a number":          {"duration", `"m"`, "schema InvalidDuration a"},
	"a duration with a blank":          {"duration", `"5 m"`, "schema InvalidDuration a"},
	"a duration of many digits":        {"duration", `"9999999999s"`, "schema InvalidDuration a"},
	"seconds with two points":          {"duration", `"1.2.3"`, "schema InvalidDuration a"},
	"seconds with a point only":        {"duration", `"5."`, "schema InvalidDuration a"},
	"seconds without a whole part":     {"duration", `".5"`, "schema InvalidDuration a"},
	"microseconds":                     {"duration", `"1.0001"`, "schema InvalidDuration a"},
	"a duration beyond the maximum":    {"duration", `"1h1s"`, "schema OutOfRange a"},
}

var pathCalls = map[string]hostile{
	"a parent segment":                   {"path", `"../etc/passwd"`, "schema PathTraversal a"},
	"a parent segment inside":            {"path", `"data/../../etc/passwd"`, "schema PathTraversal a"},
	"a parent segment at the end":        {"path", `"data/.."`, "schema PathTraversal a"},
	"only a parent segment":              {"path", `".."`, "schema PathTraversal a"},
	"a parent segment with backslashes":  {"path", `"data\\..\\x"`, "schema PathTraversal a"},
	"mixed separators":                   {"path", `"data\\../x"`, "schema PathTraversal a"},
	"an encoded parent segment":          {"path", `"%2e%2e/etc/passwd"`, "schema PathTraversal a"},
	"an encoded separator":               {"path", `"..%2fetc%2fpasswd"`, "schema PathTraversal a"},
	"an encoded backslash":               {"path", `"..%5Cetc"`, "schema PathTraversal a"},
	"a half-encoded parent segment":      {"path", `".%2E/etc"`, "schema PathTraversal a"},
	"a twice encoded parent segment":     {"path", `"%252e%252e%252fetc"`, "schema PathTraversal a"},
	"a ten times encoded segment":        {"path", `"%` + strings.Repeat("25", 9) + `2e./x"`, "schema PathTraversal a"},
	"a path encoded without end":         {"path", `"%` + strings.Repeat("25", 16000) + `"`, "schema PathTraversal a"},
	"an absolute path":                   {"path", `"/etc/passwd"`, "schema AbsolutePath a"},
	"an absolute path after blanks":      {"path", `"  /etc/passwd"`, "schema AbsolutePath a"},
	"a path of backslashes":              {"path", `"\\\\host\\share"`, "schema AbsolutePath a"},
	"a drive":                            {"path", `"C:\\Windows"`, "schema AbsolutePath a"},
	"a drive without a slash":            {"path", `"C:x"`, "schema AbsolutePath a"},
	"an absolute credential file":        {"file", `"/etc/shadow"`, "schema AbsolutePath a"},
	"a credential file above":            {"file", `"../shadow"`, "schema PathTraversal a"},
	"an option in the place of a path":   {"path", `"-rf"`, "effect OptionInjection a"},
	"an option behind a current segment": {"path", `"./-rf"`, "effect OptionInjection a"},
}

var urlCalls = map[string]hostile{
	"another scheme":                      {"url", `"ftp://api.example.com/"`, "schema URLScheme a"},
	"a script":                            {"url", `"javascript:alert"`, "schema InvalidURL a"},
	"a file":                              {"url", `"file:///etc/passwd"`, "schema InvalidURL a"},
	"plain text where TLS is the default": {"https", `"http://api.example.com/"`, "schema URLScheme a"},
	"no scheme":                           {"url", `"//api.example.com/"`, "schema InvalidURL a"},
	"no host":                             {"url", `"https:///path"`, "schema InvalidURL a"},
	"no slashes":                          {"url", `"https:api.example.com"`, "schema InvalidURL a"},
	"an empty URL":                        {"url", `""`, "schema InvalidURL a"},
	"a blank in a URL":                    {"url", `"https://api.example.com/a b"`, "schema InvalidURL a"},
	"a blank before a URL":                {"url", `" https://api.example.com/"`, "schema InvalidURL a"},
	"a backslash in a URL":                {"url", `"https://api.example.com\\@evil.test/"`, "schema InvalidURL a"},
	"a quote in a URL":                    {"url", `"https://api.example.com/\""`, "schema InvalidURL a"},
	"a fragment":                          {"url", `"https://api.example.com/#x"`, "schema InvalidURL a"},
	"an empty fragment":                   {"url", `"https://api.example.com/#"`, "schema InvalidURL a"},
	"a letter outside ASCII":              {"url", `"https://api.example.com/é"`, "schema InvalidURL a"},
	"a homoglyph host":                    {"url", `"https://аpi.example.com/"`, "schema InvalidURL a"},
	"a homoglyph host, encoded":           {"url", `"https://%D0%B0pi.example.com/"`, "schema NonASCIIHost a"},
	"an incomplete escape":                {"url", `"https://api.example.com/%2"`, "schema InvalidURL a"},
	"an escape that is none":              {"url", `"https://api.example.com/?q=%zz"`, "schema InvalidURL a"},
	"credentials":                         {"url", `"https://user:pw@api.example.com/"`, "schema URLCredentials a"},
	"an empty user":                       {"url", `"https://@api.example.com/"`, "schema URLCredentials a"},
	"the host as a user":                  {"url", `"https://api.example.com@evil.test/"`, "schema URLCredentials a"},
	"a punycode host":                     {"url", `"https://xn--pi-6kc.example.com/"`, "schema PunycodeHost a"},
	"a trailing dot":                      {"url", `"https://api.example.com./"`, "schema TrailingDot a"},
	"a decimal address":                   {"url", `"https://2852039166/"`, "schema NumericHost a"},
	"an octal address":                    {"url", `"https://0251.0376.0251.0376/"`, "schema NumericHost a"},
	"a hexadecimal address":               {"url", `"https://0xA9FEA9FE/"`, "schema NumericHost a"},
	"a short address":                     {"url", `"https://127.1/"`, "schema NumericHost a"},
	"port 0 in a URL":                     {"url", `"https://api.example.com:0/"`, "schema InvalidURL a"},
	"an empty port":                       {"url", `"https://api.example.com:/"`, "schema InvalidURL a"},
	"a port that is too large":            {"url", `"https://api.example.com:99999/"`, "schema InvalidURL a"},
	"a port with a leading zero":          {"url", `"https://api.example.com:0443/"`, "schema InvalidURL a"},
	"a parent segment in a URL":           {"url", `"https://api.example.com/a/../b"`, "schema PathTraversal a"},
	"an encoded parent segment in a URL":  {"url", `"https://api.example.com/a/%2e%2e/b"`, "schema PathTraversal a"},
	"a current segment in a URL":          {"url", `"https://api.example.com/./b"`, "schema PathTraversal a"},
	"an encoded current segment in a URL": {"url", `"https://api.example.com/%2E/b"`, "schema PathTraversal a"},
	"a host outside the scope":            {"url", `"https://evil.test/"`, "scope OutOfScope a"},
	"a permitted host as a prefix":        {"url", `"https://api.example.com.evil.test/"`, "scope OutOfScope a"},
	"a permitted host as a suffix":        {"url", `"https://evil-example.com/"`, "scope OutOfScope a"},
	"the apex of a pattern":               {"url", `"https://example.com/"`, "scope OutOfScope a"},
	"an excluded host":                    {"url", `"https://vault.example.com/"`, "scope Excluded a"},
	"an excluded host in upper case":      {"url", `"https://VAULT.EXAMPLE.COM:8200/"`, "scope Excluded a"},
	"an excluded address":                 {"url", `"https://10.9.0.1/"`, "scope Excluded a"},
	"a metadata address":                  {"url", `"http://169.254.169.254/latest/"`, "scope OutOfScope a"},
}

var networkCalls = map[string]hostile{
	"an empty target":              {"target", `""`, "schema EmptyValue a"},
	"a wildcard target":            {"target", `"*.example.com"`, "schema Wildcard a"},
	"a blank in a target":          {"target", `"a b.example.com"`, "schema WhiteSpace a"},
	"a target with a scheme":       {"target", `"https://app.example.com"`, "schema InvalidTarget a"},
	"a target with a port":         {"target", `"app.example.com:22"`, "schema InvalidTarget a"},
	"a target with a user":         {"target", `"root@app.example.com"`, "schema InvalidTarget a"},
	"a target with a trailing dot": {"target", `"app.example.com."`, "schema TrailingDot a"},
	"a Cyrillic target":            {"target", `"арр.example.com"`, "schema NonASCIIHost a"},
	"a punycode target":            {"target", `"xn--80ak6aa92e.com"`, "schema PunycodeHost a"},
	"a target that is an option":   {"target", `"-oProxyCommand=x"`, "schema InvalidTarget a"},
	"a path as a target":           {"target", `"../../etc/passwd"`, "schema PathTraversal a"},
	"a target of 254 bytes":        {"target", `"` + strings.Repeat("a.", 124) + `abcdef"`, "schema TargetTooLong a"},
	"an octal target":              {"target", `"012.0.0.1"`, "schema NumericHost a"},
	"a target with a zone":         {"target", `"fe80::1%eth0"`, "schema InvalidTarget a"},
	"a target outside":             {"target", `"192.168.0.1"`, "scope OutOfScope a"},
	"a range larger than scope":    {"target", `"8.0.0.0/5"`, "scope Excluded a"},
	"a range touching exclusions":  {"target", `"10.0.0.0/8"`, "scope Excluded a"},
	"a mapped excluded address":    {"target", `"::ffff:10.9.0.1"`, "scope Excluded a"},
	"the whole of IPv6":            {"target", `"::/0"`, "scope Excluded a"},
	"a name for an address":        {"ip", `"app.example.com"`, "schema InvalidTarget a"},
	"a range for an address":       {"ip", `"10.0.0.0/24"`, "schema InvalidTarget a"},
	"an address out of range":      {"ip", `"10.0.0.256"`, "schema InvalidTarget a"},
	"an excluded address alone":    {"ip", `"10.9.1.1"`, "scope Excluded a"},
	"an address for a range":       {"cidr", `"10.0.0.1"`, "schema InvalidTarget a"},
	"a prefix of 33":               {"cidr", `"10.0.0.0/33"`, "schema InvalidTarget a"},
	"an excluded range":            {"cidr", `"10.9.8.0/24"`, "scope Excluded a"},
	"a derived type out of scope":  {"server", `"evil.example.com.evil.test"`, "schema PatternMismatch a"},
	"a derived type excluded":      {"server", `"vault.example.com"`, "scope Excluded a"},
	"a derived type, no target":    {"server", `"..example.com"`, "scope NotATarget a"},
}

var structureCalls = map[string]hostile{
	"an object that breaks its schema":  {"object", `{"n":"1"}`, "schema SchemaViolation a"},
	"an object without a member":        {"object", `{}`, "schema SchemaViolation a"},
	"an array of other elements":        {"array", `[1]`, "schema SchemaViolation a"},
	"an array that is too long":         {"array", `["a","b","c","d"]`, "schema SchemaViolation a"},
	"an array with null":                {"array", `[null]`, "schema SchemaViolation a"},
	"a deeply nested duplicate":         {"object", `{"n":1,"x":{"y":1,"y":2}}`, "decode DuplicateKey /0/1/1"},
	"an object with __entity for array": {"array", `[{"__entity":{"type":"User","id":"admin"}}]`, "schema SchemaViolation a"},
}

var effectCalls = map[string]hostile{
	"an option":                           {"string", `"--upload-pack=x"`, "effect OptionInjection a"},
	"a dash":                              {"string", `"-"`, "effect OptionInjection a"},
	"an option after blanks":              {"string", `"  -x"`, "effect OptionInjection a"},
	"a listed option":                     {"enum", `"-flag"`, "effect OptionInjection a"},
	"a negative number as a word":         {"integer", `-5`, "effect OptionInjection a"},
	"an option after an empty value":      {"words", `{raw}{"a":"","b":"-x"}`, "effect OptionInjection b"},
	"an option in a conditional":          {"words", `{raw}{"a":"x","b":"-x"}`, "effect OptionInjection b"},
	"a word of 160 KB":                    {"words", `{raw}{"a":"` + strings.Repeat("a", 32<<10) + `","b":""}`, "effect ArgTooLong a"},
	"a value without a mapping":           {"map", `"y"`, "effect UnmappedValue a"},
	"an empty value without a mapping":    {"map", `""`, "effect UnmappedValue a"},
	"a command of 500 words":              {"many", `"x"`, "effect TooManyWords "},
	"a command of 850 KB":                 {"large", `"` + strings.Repeat("a", 32<<10) + `"`, "effect EffectTooLarge "},
	"an empty segment":                    {"http", `{raw}{"a":"."}`, "effect PathTraversal a"},
	"a parent segment as a value":         {"http", `{raw}{"a":".."}`, "effect PathTraversal a"},
	"a path as a segment":                 {"http", `{raw}{"a":"../admin"}`, "effect PathTraversal a"},
	"an encoded path as a segment":        {"http", `{raw}{"a":"%2e%2e"}`, "effect PathTraversal a"},
	"a line end in a header":              {"http", `{raw}{"a":"x","e":"a\nb"}`, "effect HeaderInjection e"},
	"a letter outside ASCII in a header":  {"http", `{raw}{"a":"x","e":"é"}`, "effect HeaderInjection e"},
	"a blank before a header":             {"http", `{raw}{"a":"x","e":" y"}`, "effect HeaderInjection e"},
	"a placeholder of a secret":           {"http", `{raw}{"a":"x","e":"{_secret:token}"}`, "effect SecretPlaceholder e"},
	"a placeholder of a secret in a body": {"plainbody", `"{_secret:token}"`, "effect SecretPlaceholder a"},
	"half a placeholder before the rest":  {"plainbody", `"{_secret"`, "effect SecretPlaceholder a"},
	"a host that secrets are not for":     {"fetch", `"https://app.example.com/"`, "effect SecretHost a"},
	"a URL of 160 KB":                     {"hugebody", `"` + strings.Repeat("a", 32<<10) + `"`, "effect EffectTooLarge "},
	"a URL of 40 MB":                      {"often", `"` + strings.Repeat("a", 32<<10) + `"`, "effect EffectTooLarge "},
	"a header of 160 KB":                  {"headeronly", `"` + strings.Repeat("a", 32<<10) + `"`, "effect EffectTooLarge a"},
	"an MCP call of 290 KB":               {"manycopies", `"` + strings.Repeat("a", 32<<10) + `"`, "effect EffectTooLarge "},
	"a body of 320 KB":                    {"bodyonly", `"` + strings.Repeat("a", 32<<10) + `"`, "effect EffectTooLarge a"},
}

func TestPrepare_RefusesHostileArgumentsWithStageAndReason(t *testing.T) {
	calls := hostileCalls()
	if len(calls) < 150 {
		t.Errorf("the table has %d calls, want at least 150", len(calls))
	}
	contracts := map[string]*contract.Contract{}
	for name, m := range hostileManifests {
		contracts[name] = compile(t, m)
		if !strings.Contains(m, `"mcp"`) {
			contracts["S:"+name] = compile(t, inString(m))
		}
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			why := refused(t, contracts[call.tool], rawCall(call.value))
			got := string(why.Stage) + " " + string(why.Reason) + " " + why.Path
			if strings.HasSuffix(call.want, "Depth") || strings.HasSuffix(call.want, "TooManyValues") {
				got = string(why.Stage) + " " + string(why.Reason) // the position is that of package snapshot
			}
			if diff := cmp.Diff(call.want, got); diff != "" {
				t.Errorf("stage, reason and path (-want +got):\n%s", diff)
			}
		})
	}
}

// rawCall is the text of a call of the table.
func rawCall(value string) string {
	if raw, whole := strings.CutPrefix(value, "{raw}"); whole {
		return raw
	}
	if unquoted, isText := strings.CutPrefix(value, "{json}"); isText {
		value = j(unquoted)
	}
	return `{"a":` + value + `}`
}

// secretMarker occurs in every value of the calls below.
const secretMarker = "canary7f3a"

func TestRefusal_ShowsNothingOfTheArguments(t *testing.T) {
	for name, value := range map[string]string{
		"string": `"` + secretMarker + `;"`, "pattern": `"` + secretMarker + `"`, "enum": `"` + secretMarker + `"`,
		"integer": `"` + secretMarker + `"`, "url": `"https://` + secretMarker + `.test/"`, "path": `"/` + secretMarker + `"`,
		"target": `"` + secretMarker + `.test"`, "dash": `{"` + secretMarker + `":1}`, "object": `{"` + secretMarker + `":1}`,
		"options": `"` + secretMarker + `"`, "duration": `"` + secretMarker + `"`, "map": `"` + secretMarker + `"`,
		"required": `"x","` + secretMarker + `":1`,
	} {
		t.Run(name, func(t *testing.T) {
			c := compile(t, hostileManifests[name])
			_, err := c.Prepare("agent", `{"a":`+value+`}`)
			if err == nil {
				t.Fatal("prepared, want a refusal")
			}
			if strings.Contains(err.Error(), secretMarker) {
				t.Errorf("the error quotes the arguments: %v", err)
			}
			if !strings.HasPrefix(err.Error(), "tool "+c.Name()+": refused at stage ") {
				t.Errorf("the error %q does not begin with the tool and the stage", err)
			}
		})
	}
}

func TestRefusal_SaysWhatToChangeForEveryReason(t *testing.T) {
	seen := map[snapshot.Reason]bool{}
	for _, call := range hostileCalls() {
		tool, encoded := strings.CutPrefix(call.tool, "S:")
		m := hostileManifests[tool]
		if encoded {
			m = inString(m)
		}
		_, err := compile(t, m).Prepare("agent", rawCall(call.value))
		why := refused(t, compile(t, m), rawCall(call.value))
		if seen[why.Reason] {
			continue
		}
		seen[why.Reason] = true
		if text := err.Error(); strings.HasSuffix(text, string(why.Reason)) || why.Path != "" && strings.HasSuffix(text, " at "+why.Path) {
			t.Errorf("the error gives no advice: %s", text)
		}
	}
}
