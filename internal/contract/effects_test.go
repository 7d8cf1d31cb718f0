// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/contract"
)

const commandManifest = `{"version": "1",
	"arguments": [
		{"name": "target", "type": "scope_target", "required": true},
		{"name": "kind", "type": "enum", "allowed": ["fast", "slow", "none"], "default": "fast"},
		{"name": "port", "type": "port"},
		{"name": "note", "type": "string"},
		{"name": "verbose", "type": "boolean", "default": "false"}],
	"command": {
		"image": "` + image + `",
		"argv": ["scan", "{flags}", "--rate={rate}", "{{literal}} {rate}", "--port={port}", "{note}", "{more}", "--", "{target}"],
		"defaults": [{"name": "rate", "value": 1000}],
		"mappings": [{"name": "flags", "argument": "kind", "values": [
			{"value": "fast", "flags": "-T 5 --label 'two words' --at={target}"}, {"value": "slow", "flags": "-T1"}, {"value": "none", "flags": ""}]}],
		"conditionals": [{"name": "more", "when": "note != '' and port != 443 and verbose == true", "template": "--note \"{note}\" --p={port} {rate}"}],
		"env": [{"name": "LANG", "value": "C"}, {"name": "EMPTY", "value": ""}, {"name": "TOKEN", "secret": "token"}],
		"workingDir": "/work/in"},
	"secrets": [{"name": "token", "secretName": "scanner", "key": "api-token"}]}`

func TestPrepare_ResolvesCommands(t *testing.T) {
	c := compile(t, commandManifest)
	for name, v := range map[string]struct {
		raw  string
		want []string
	}{
		"with defaults only": {
			`{"target":"app.example.com"}`,
			[]string{"scan", "-T", "5", "--label", "two words", "--at=app.example.com", "--rate=1000", "{literal} 1000", "--", "app.example.com"},
		},
		"with a mapping of nothing": {
			`{"target":"10.0.0.1","kind":"none"}`,
			[]string{"scan", "--rate=1000", "{literal} 1000", "--", "10.0.0.1"},
		},
		"with a condition that holds": {
			`{"target":"10.0.0.1","kind":"slow","note":"a b","port":8080,"verbose":true}`,
			[]string{"scan", "-T1", "--rate=1000", "{literal} 1000", "--port=8080", "a b", "--note", "a b", "--p=8080", "1000", "--", "10.0.0.1"},
		},
		"with a condition on an absent argument": {
			`{"target":"10.0.0.1","kind":"slow","note":"ab","verbose":true}`,
			[]string{"scan", "-T1", "--rate=1000", "{literal} 1000", "ab", "--note", "ab", "1000", "--", "10.0.0.1"},
		},
		"with a condition that fails": {
			`{"target":"10.0.0.1","kind":"slow","note":"ab","port":443,"verbose":true}`,
			[]string{"scan", "-T1", "--rate=1000", "{literal} 1000", "--port=443", "ab", "--", "10.0.0.1"},
		},
		"with an empty text": {
			`{"target":"10.0.0.1","kind":"slow","note":"","verbose":true}`,
			[]string{"scan", "-T1", "--rate=1000", "{literal} 1000", "", "--", "10.0.0.1"},
		},
		"with values that look like templates and quotes": {
			`{"target":"10.0.0.1","kind":"slow","note":"'a\" b\\","port":1,"verbose":true}`,
			[]string{"scan", "-T1", "--rate=1000", "{literal} 1000", "--port=1", `'a" b\`, "--note", `'a" b\`, "--p=1", "1000", "--", "10.0.0.1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := prepare(t, c, v.raw).Effect.Command
			if diff := cmp.Diff(v.want, e.Argv); diff != "" {
				t.Errorf("argv (-want +got):\n%s", diff)
			}
		})
	}
	want := contract.Effect{Command: &contract.CommandCall{
		Image: image, WorkingDir: "/work/in", Argv: []string{"scan", "--rate=1000", "{literal} 1000", "--", "10.0.0.1"},
		Env: []contract.ResolvedVariable{
			{Name: "LANG", Value: new("C")},
			{Name: "EMPTY", Value: new("")},
			{Name: "TOKEN", Secret: &contract.ResolvedSecret{Name: "token", SecretName: "scanner", Key: "api-token"}},
		},
	}}
	p := prepare(t, c, `{"target":"10.0.0.1","kind":"none"}`)
	if diff := cmp.Diff(want, p.Effect); diff != "" {
		t.Errorf("effect (-want +got):\n%s", diff)
	}
	checkHashes(t, "command", c, p)
	if c.EffectKind() != contract.EffectCommand || p.Effect.Kind() != contract.EffectCommand {
		t.Errorf("kind %q and %q", c.EffectKind(), p.Effect.Kind())
	}
}

func TestPrepare_FreezesTheOutputFile(t *testing.T) {
	p := prepare(t, compile(t, spec(`"output": {"file": "/work/out/scan.xml"}`)), `{}`)
	const want = `{"command":{"argv":["tool"],"image":"` + image + `","outputFile":"/work/out/scan.xml","workingDir":"/work"}}`
	if p.EffectJSON != want {
		t.Errorf("%s, want %s", p.EffectJSON, want)
	}
	decoded, err := contract.DecodeEffect(want)
	if diff := cmp.Diff(p.Effect, decoded); diff != "" || err != nil {
		t.Errorf("decoded %v:\n%s", err, diff)
	}
	if text, err := contract.EncodeEffect(p.Effect); text != want || err != nil {
		t.Errorf("encoded in general %s, %v", text, err)
	}
}

func TestPrepare_AMappingOfAnAbsentArgumentIsNoWords(t *testing.T) {
	if diff := cmp.Diff([]string{"tool"}, prepare(t, compile(t, hostileManifests["map"]), `{}`).Effect.Command.Argv); diff != "" {
		t.Errorf("argv (-want +got):\n%s", diff)
	}
}

func TestPrepare_AcceptsWordsUpToTheLimit(t *testing.T) {
	m := `{"version": "1", "arguments": [{"name": "a", "type": "string"}],
		"command": {"image": "` + image + `", "argv": ["tool", "xyz{a}{a}{a}{a}"]}}`
	c := compile(t, m)
	value := strings.Repeat("a", 32767)
	word := prepare(t, c, `{"a":"`+value+`"}`).Effect.Command.Argv[1]
	if len(word) != contract.MaxWordBytes {
		t.Errorf("word of %d bytes, want %d", len(word), contract.MaxWordBytes)
	}
	for _, longer := range []string{"wxyz{a}{a}{a}{a}", "{a}{a}{a}{a}wxyz"} {
		c = compile(t, strings.Replace(m, "xyz{a}{a}{a}{a}", longer, 1))
		if why := refused(t, c, `{"a":"`+value+`"}`); why.Reason != contract.ReasonArgTooLong || why.Path != "a" {
			t.Errorf("%s: reason %s at %q", longer, why.Reason, why.Path)
		}
	}
}

func TestPrepare_AcceptsAsManyWordsAsTheLimit(t *testing.T) {
	m := func(n int) string {
		return `{"version": "1", "arguments": [{"name": "a", "type": "string"}],
		"command": {"image": "` + image + `", "argv": ["tool", "{c}"], "conditionals": [{"name": "c", "when": "a == 'x'", "template": "` + strings.Repeat("y ", n) + `"}]}}`
	}
	if got := len(prepare(t, compile(t, m(255)), `{"a":"x"}`).Effect.Command.Argv); got != contract.MaxWords {
		t.Errorf("%d words", got)
	}
	if why := refused(t, compile(t, m(256)), `{"a":"x"}`); why.Reason != contract.ReasonTooManyWords {
		t.Errorf("reason %s", why.Reason)
	}
}

const httpManifest = `{"version": "1",
	"arguments": [
		{"name": "id", "type": "string", "required": true},
		{"name": "q", "type": "string"},
		{"name": "filter", "type": "object", "schema": "{}"},
		{"name": "text", "type": "enum", "allowed": ["plain", "\"quoted\"\\ \u0001 <&> \u2028", "{x}", ""], "default": "plain"},
		{"name": "count", "type": "integer", "default": 3},
		{"name": "ok", "type": "boolean", "default": "true"},
		{"name": "data", "type": "array", "schema": "{}", "default": "[]"},
		{"name": "trace", "type": "string"}],
	"http": {
		"method": "POST",
		"url": "HTTPS://API.example.com:8443/v1/{id}/it%20ems?fixed=1&q={q}&f={filter}&{q}=x&",
		"headers": [
			{"name": "Content-Type", "value": "application/merge-patch+json"},
			{"name": "Authorization", "value": "Bearer {_secret:token}"},
			{"name": "X-Trace", "value": "id={trace}, {{brace}}"}],
		"body": "{\"id\": \"{id}/{text}\", \"count\": {count}, \"ok\": {ok}, \"data\": {data}, \"text\": {text}, \"nested\": {\"a\": {\"b\": \"{_secret:token}\"}}}",
		"successStatus": [200, 202],
		"allowPrivate": true},
	"secrets": [{"name": "token", "secretName": "api", "key": "k", "hosts": ["API.example.com", "api.example.org"]}]}`

func TestPrepare_ResolvesRequests(t *testing.T) {
	c := compile(t, httpManifest)
	p := prepare(t, c, `{"id":"a/b c?d+é","q":"x=y","filter":{"b":"<","a":[1]},"text":"\"quoted\"\\ \u0001 <&> \u2028","data":[{"k":"{v}"}],"trace":"t 1"}`)
	want := contract.Effect{HTTP: &contract.HTTPCall{
		Method: "POST",
		URL:    "https://api.example.com:8443/v1/a%2Fb%20c%3Fd%2B%C3%A9/it%20ems?fixed=1&q=x%3Dy&f=%7B%22a%22%3A%5B1%5D%2C%22b%22%3A%22%3C%22%7D&x%3Dy=x&",
		Headers: []contract.ResolvedHeader{
			{Name: "Content-Type", Value: "application/merge-patch+json"},
			{Name: "Authorization", Value: "Bearer {_secret:token}"},
			{Name: "X-Trace", Value: "id=t 1, {brace}"},
		},
		Body: `{"id": "a/b c?d+é/\"quoted\"\\ \u0001 <&> ` + "\u2028" + `", "count": 3, "ok": true, "data": [{"k":"{v}"}], "text": "\"quoted\"\\ \u0001 <&> ` + "\u2028" +
			`", "nested": {"a": {"b": "{_secret:token}"}}}`,
		SuccessStatus: []int32{200, 202}, AllowPrivate: true,
		Secrets: []contract.ResolvedSecret{{Name: "token", SecretName: "api", Key: "k", Hosts: []string{"API.example.com", "api.example.org"}}},
	}}
	if diff := cmp.Diff(want, p.Effect); diff != "" {
		t.Errorf("effect (-want +got):\n%s", diff)
	}
	checkHashes(t, "http", c, p)
}

func TestPrepare_LeavesOutWhatIsAbsentFromARequest(t *testing.T) {
	h := prepare(t, compile(t, httpManifest), `{"id":"x"}`).Effect.HTTP
	if want := "https://api.example.com:8443/v1/x/it%20ems?fixed=1&"; h.URL != want {
		t.Errorf("URL %s, want %s", h.URL, want)
	}
	if len(h.Headers) != 2 {
		t.Errorf("headers %v, want no X-Trace", h.Headers)
	}
	c := compile(t, `{"version": "1", "arguments": [{"name": "q", "type": "string"}], "http": {"method": "GET", "url": "https://api.example.com?q={q}"}}`)
	if got := prepare(t, c, `{}`).Effect.HTTP.URL; got != "https://api.example.com" {
		t.Errorf("URL %s", got)
	}
	if got := prepare(t, c, `{"q":""}`).Effect.HTTP.URL; got != "https://api.example.com?q=" {
		t.Errorf("URL %s", got)
	}
}

func TestPrepare_RefusesValuesThatWouldEmptyASegment(t *testing.T) {
	c := compile(t, `{"version": "1", "arguments": [{"name": "a", "type": "enum", "allowed": ["", ".", "x"], "default": "x"}],
		"http": {"method": "DELETE", "url": "https://api.example.com/v1/items/{a}"}}`)
	for raw, want := range map[string]string{`{"a":""}`: "effect EmptyPathSegment a", `{"a":"."}`: "effect PathTraversal a"} {
		why := refused(t, c, raw)
		if got := string(why.Stage) + " " + string(why.Reason) + " " + why.Path; got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
	c = compile(t, `{"version": "1", "arguments": [{"name": "a", "type": "string", "default": "x"}],
		"http": {"method": "GET", "url": "https://api.example.com/%2e{a}"}}`)
	if why := refused(t, c, `{"a":"."}`); why.Reason != contract.ReasonPathTraversal {
		t.Errorf("reason %s for an escape and a value that climb together", why.Reason)
	}
}

func TestPrepare_SendsFormsEscapedAndTextsAsTheyAre(t *testing.T) {
	m := func(contentType string) string {
		return `{"version": "1", "arguments": [{"name": "a", "type": "enum", "allowed": ["x&y=z \n", "{", "_secret:t}"], "required": true}],
			"http": {"method": "POST", "url": "https://api.example.com/", "headers": [{"name": "content-type", "value": "` + contentType + `"}], "body": "a={a}&b=1"}}`
	}
	for contentType, want := range map[string]string{
		"application/x-www-form-urlencoded":     "a=x%26y%3Dz%20%0A&b=1",
		"Application/X-WWW-Form-Urlencoded;q=1": "a=x%26y%3Dz%20%0A&b=1",
		"text/plain":                            "a=x&y=z \n&b=1",
	} {
		h := prepare(t, compile(t, m(contentType)), `{"a":"x&y=z \n"}`).Effect.HTTP
		if h.Body != want {
			t.Errorf("%s: body %q, want %q", contentType, h.Body, want)
		}
	}
	h := prepare(t, compile(t, strings.Replace(m("text/plain"), "b=1", "b", 1)), `{"a":"{"}`).Effect.HTTP
	if h.Body != "a={&b" {
		t.Errorf("body %q", h.Body)
	}
}

func TestPrepare_AWholeURLIsTheScopeCheckedValue(t *testing.T) {
	c := compile(t, hostileManifests["fetch"])
	h := prepare(t, c, `{"a":"https://API.example.com/x?y"}`).Effect.HTTP
	if h.URL != "https://api.example.com/x?y" {
		t.Errorf("URL %s", h.URL)
	}
	c = compile(t, `{"version": "1", "arguments": [{"name": "u", "type": "url", "scopeCheck": true, "required": true}], "http": {"method": "GET", "url": "{u}"}}`)
	if got := prepare(t, c, `{"u":"https://app.example.com/"}`).Effect.HTTP.URL; got != "https://app.example.com/" {
		t.Errorf("URL %s", got)
	}
}

const mcpManifest = `{"version": "1",
	"arguments": [
		{"name": "repo", "type": "string", "required": true},
		{"name": "labels", "type": "array", "schema": "{}"},
		{"name": "count", "type": "integer", "default": 2}],
	"mcp": {"url": "https://MCP.example.com/mcp", "tool": "create_issue", "toolDigest": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"headers": [{"name": "Authorization", "value": "{_secret:t}"}], "allowPrivate": true}, "secrets": [{"name": "t", "secretName": "s", "key": "k", "hosts": ["mcp.example.com"]}]}`

func TestPrepare_ResolvesMCPCalls(t *testing.T) {
	mapped := strings.Replace(mcpManifest, `"allowPrivate": true`, `"arguments": [
		{"name": "repository", "argument": "repo"}, {"name": "\ud83d\ude00", "value": "[1.0, \"x\"]"}, {"name": "\uff5a\"", "argument": "labels"},
		{"name": "n", "argument": "count"}, {"name": "again", "argument": "repo"}, {"name": "none", "value": "null"}]`, 1)
	for name, v := range map[string]struct{ manifest, raw, want string }{
		"under their own names": {mcpManifest, `{"repo":"a/b","labels":["x"]}`, `{"count":2,"labels":["x"],"repo":"a/b"}`},
		"without any":           {mcpManifest, `{"repo":"a/b"}`, `{"count":2,"repo":"a/b"}`},
		"mapped":                {mapped, `{"repo":"a/b","labels":["x",{}]}`, `{"again":"a/b","n":2,"none":null,"repository":"a/b","😀":[1,"x"],"ｚ\"":["x",{}]}`},
		"mapped without one":    {mapped, `{"repo":"a/b"}`, `{"again":"a/b","n":2,"none":null,"repository":"a/b","😀":[1,"x"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			c := compile(t, v.manifest)
			p := prepare(t, c, v.raw)
			if p.Effect.MCP.Arguments != v.want {
				t.Errorf("arguments %s, want %s", p.Effect.MCP.Arguments, v.want)
			}
			if p.Effect.MCP.URL != "https://mcp.example.com/mcp" || p.Effect.MCP.Headers[0].Value != "{_secret:t}" {
				t.Errorf("call %+v", p.Effect.MCP)
			}
			checkHashes(t, name, c, p)
		})
	}
}

func TestPrepare_AnAgentsValueNeverBecomesAPlaceholderInMCP(t *testing.T) {
	c := compile(t, strings.Replace(mcpManifest, `"name": "repo", "type": "string"`, `"name": "repo", "type": "object", "schema": "{}"`, 1))
	p := prepare(t, c, `{"repo":{"x":"{_secret:t}"}}`)
	if want := `{"count":2,"repo":{"x":"{_secret:t}"}}`; p.Effect.MCP.Arguments != want {
		t.Errorf("arguments %s, want %s", p.Effect.MCP.Arguments, want)
	}
}

// FuzzRenderURL looks for values that leave their part of a URL.
func FuzzRenderURL(f *testing.F) {
	c := compile(f, `{"version": "1", "arguments": [{"name": "a", "type": "array", "schema": "{}", "default": "[]"}, {"name": "s", "type": "string", "required": true}],
		"http": {"method": "GET", "url": "https://api.example.com/v1/{s}/x?a={a}&s={s}&end=1"}}`)
	for _, seed := range []string{"x", "../..", "a/b", "%2e%2e", "?x=y#z", "é", "a b", "@evil.test", "\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		raw, err := json.Marshal(map[string]any{"s": value, "a": []string{value}})
		if err != nil {
			t.Skip()
		}
		p, err := c.Prepare("agent", string(raw))
		if err != nil {
			return
		}
		u, err := url.Parse(p.Effect.HTTP.URL)
		if err != nil {
			t.Fatal(err)
		}
		sent := strings.TrimSpace(value)
		segments := strings.Split(u.EscapedPath(), "/")
		if u.Host != "api.example.com" || u.Fragment != "" || len(segments) != 4 || u.Path != "/v1/"+sent+"/x" {
			t.Fatalf("%q leaves its segment: %s", value, u)
		}
		if q := u.Query(); len(q) != 3 || q.Get("s") != sent || q.Get("end") != "1" {
			t.Fatalf("%q leaves its parameter: %s", value, u)
		}
	})
}

// FuzzJSONBody looks for values that leave their string.
func FuzzJSONBody(f *testing.F) {
	c := compile(f, `{"version": "1", "arguments": [{"name": "a", "type": "array", "schema": "{}", "required": true}],
		"http": {"method": "POST", "url": "https://api.example.com/", "headers": [{"name": "Content-Type", "value": "application/json"}],
			"body": "{\"in\": \"<{a}>\", \"whole\": {a}, \"end\": true}"}}`)
	for _, seed := range []string{"x", `"`, `\`, `\"`, "\x00", "\u2028", `", "end": false, "x": "`, "{_secret:t}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		raw, err := json.Marshal(map[string]any{"a": []string{value}})
		if err != nil {
			t.Skip()
		}
		p, err := c.Prepare("agent", string(raw))
		if err != nil {
			return
		}
		var body struct {
			In    string
			Whole []string
			End   bool
		}
		d := json.NewDecoder(strings.NewReader(p.Effect.HTTP.Body))
		d.DisallowUnknownFields()
		if err := d.Decode(&body); err != nil || !body.End || len(body.Whole) != 1 {
			t.Fatalf("%q leaves its string: %v\n%s", value, err, p.Effect.HTTP.Body)
		}
		if body.In != fmt.Sprintf("<%s>", p.ArgsCanonicalJSON[len(`{"a":`):len(p.ArgsCanonicalJSON)-1]) {
			t.Fatalf("%q became %q", value, body.In)
		}
	})
}

// FuzzTemplate looks for templates that crash, and for constants that change.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"{a}", "{{a}}", "x{a}y", "{", "}", "{_secret:x}", "'a b' \"c\\\"\" d\\ e", "a == 'x' and a != \"y\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, when := range []string{"a == 'x'", text} {
			c, err := contract.Compile(contract.Input{Name: "tool", Namespace: "default", Manifest: contract.Manifest{
				Version: "1", Arguments: []contract.Argument{{Name: "a", Type: "string"}},
				Command: &contract.CommandTemplate{
					Image: image, Argv: []string{"tool", text, "{a}", "{c}"},
					Conditionals: []contract.CommandConditional{{Name: "c", When: when, Template: text}},
				},
			}})
			if err != nil {
				continue
			}
			p, err := c.Prepare("agent", `{"a":"x"}`)
			if err != nil {
				continue
			}
			if !strings.ContainsAny(text, "{}") && p.Effect.Command.Argv[1] != text {
				t.Fatalf("the constant %q became %q", text, p.Effect.Command.Argv[1])
			}
		}
	})
}
