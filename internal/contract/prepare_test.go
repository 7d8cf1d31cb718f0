// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/snapshot"
)

// accepted is a value, and what becomes of it in the canonical arguments and in
// argv.
type accepted struct{ tool, value, canonical, word string }

var acceptedValues = map[string]accepted{
	"a text is trimmed":                {"string", `"  hello world\t"`, `"hello world"`, "hello world"},
	"a text stays Unicode":             {"string", `"h\u00e9llo"`, `"héllo"`, "héllo"},
	"an empty text is a word":          {"string", `""`, `""`, ""},
	"quotes and backslashes are data":  {"string", `"a'b\"c\\d"`, `"a'b\"c\\d"`, `a'b"c\d`},
	"a dash is accepted where allowed": {"dash", `"-x"`, `"-x"`, "-x"},
	"a text at its longest":            {"short", `"12345678"`, `"12345678"`, "12345678"},
	"a pattern matches as a whole":     {"pattern", `"ok"`, `"ok"`, "ok"},
	"a listed value may be anything":   {"enum", `"a;b"`, `"a;b"`, "a;b"},
	"a listed value may be empty":      {"enum", `""`, `""`, ""},
	"an integer stays":                 {"integer", `5`, `5`, "5"},
	"an integer as a text":             {"integer", `"5"`, `5`, "5"},
	"an integer with a zero fraction":  {"integer", `2.0`, `2`, "2"},
	"a clamp moves down":               {"clamp", `999`, `5`, "5"},
	"a clamp moves a text":             {"clamp", `"999"`, `5`, "5"},
	"a clamp moves up":                 {"clamp", `-999`, `1`, "1"},
	"a number stays":                   {"number", `0.25`, `0.25`, "0.25"},
	"a number as a text":               {"number", `"2.5e-1"`, `0.25`, "0.25"},
	"zero":                             {"number", `"0"`, `0`, "0"},
	"a listed number":                  {"numbers", `2`, `2`, "2"},
	"zero with an exponent":            {"number", `"0e5"`, `0`, "0"},
	"a boolean stays":                  {"boolean", `true`, `true`, "true"},
	"a boolean as a text":              {"boolean", `"false"`, `false`, "false"},
	"a port":                           {"port", `"443"`, `443`, "443"},
	"a duration in seconds":            {"duration", `"30"`, `"30"`, "30"},
	"a duration with a unit":           {"duration", `"5m"`, `"300"`, "300"},
	"a duration of several units":      {"duration", `"59m30s500ms"`, `"3570.5"`, "3570.5"},
	"a duration of milliseconds":       {"duration", `"500ms"`, `"0.5"`, "0.5"},
	"a duration in its normal form":    {"duration", `"3570.5"`, `"3570.5"`, "3570.5"},
	"a URL in lower case":              {"url", `"HTTPS://API.Example.COM:8443/A?q=%20B"`, `"https://api.example.com:8443/A?q=%20B"`, "https://api.example.com:8443/A?q=%20B"},
	"a URL of the default scheme":      {"https", `"https://anything.test/"`, `"https://anything.test/"`, "https://anything.test/"},
	"a URL with an address":            {"url", `"http://10.0.0.1/"`, `"http://10.0.0.1/"`, "http://10.0.0.1/"},
	"a path":                           {"path", `"data/r\u00e9sum\u00e9 1.csv"`, `"data/résumé 1.csv"`, "data/résumé 1.csv"},
	"a path without empty segments":    {"path", `"./data//x/./y"`, `"data/x/y"`, "data/x/y"},
	"a path to a folder":               {"path", `"./data/"`, `"data/"`, "data/"},
	"a path with points in names":      {"path", `"data../report..csv"`, `"data../report..csv"`, "data../report..csv"},
	"a path to the folder itself":      {"path", `"./."`, `"."`, "."},
	"an empty path":                    {"path", `" "`, `""`, ""},
	"a path with a per cent":           {"path", `"100%/x"`, `"100%/x"`, "100%/x"},
	"a hidden file":                    {"path", `".profile"`, `".profile"`, ".profile"},
	"a credential file":                {"file", `"users.txt"`, `"users.txt"`, "users.txt"},
	"an address in its short form":     {"ip", `"2001:DB8:0::1"`, `"2001:db8::1"`, "2001:db8::1"},
	"a mapped address":                 {"ip", `"::ffff:10.0.0.1"`, `"10.0.0.1"`, "10.0.0.1"},
	"a range without host bits":        {"cidr", `"10.0.1.7/24"`, `"10.0.1.0/24"`, "10.0.1.0/24"},
	"a target in lower case":           {"target", `"APP.Example.com"`, `"app.example.com"`, "app.example.com"},
	"a target range":                   {"target", `"10.0.1.0/24"`, `"10.0.1.0/24"`, "10.0.1.0/24"},
	"options":                          {"options", `"set RHOSTS 10.0.0.1 ;RPORT 445;"`, `"set RHOSTS 10.0.0.1; RPORT 445"`, "set RHOSTS 10.0.0.1; RPORT 445"},
	"no options":                       {"options", `" ; "`, `""`, ""},
	"a derived type":                   {"server", `"app.example.com"`, `"app.example.com"`, "app.example.com"},
	"a derived list":                   {"serious", `"high"`, `"high"`, "high"},
	"derived bounds":                   {"rate", `100`, `100`, "100"},
	"an integer under String":          {"S:integer", `"5"`, `"5"`, "5"},
	"a clamp under String":             {"S:clamp", `"999"`, `"5"`, "5"},
	"a number under String":            {"S:number", `"0.50"`, `"0.5"`, "0.5"},
	"a boolean under String":           {"S:boolean", `"true"`, `"true"`, "true"},
	"a port under String":              {"S:port", `"443"`, `"443"`, "443"},
	"a text under String":              {"S:string", `"x"`, `"x"`, "x"},
}

func TestPrepare_NormalisesOnceAndTheSameTwice(t *testing.T) {
	for name, v := range acceptedValues {
		t.Run(name, func(t *testing.T) {
			tool, encoded := strings.CutPrefix(v.tool, "S:")
			m := hostileManifests[tool]
			if encoded {
				m = inString(m)
			}
			c := compile(t, m)
			p := prepare(t, c, `{"a":`+v.value+`}`)
			want := `{"a":` + v.canonical + `}`
			if diff := cmp.Diff(want, p.ArgsCanonicalJSON); diff != "" {
				t.Errorf("canonical arguments (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"tool", v.word}, p.Effect.Command.Argv); diff != "" {
				t.Errorf("argv (-want +got):\n%s", diff)
			}
			again := prepare(t, c, p.ArgsCanonicalJSON)
			if diff := cmp.Diff(p, again); diff != "" {
				t.Errorf("preparing the canonical arguments gives another call:\n%s", diff)
			}
		})
	}
}

func TestPrepare_AppliesDefaultsBeforeAnybodySeesTheCall(t *testing.T) {
	c := compile(t, `{"version": "1", "arguments": [
			{"name": "i", "type": "integer", "default": 4, "max": 3, "clamp": true},
			{"name": "n", "type": "number", "default": "0.5"},
			{"name": "b", "type": "boolean", "default": "true"},
			{"name": "s", "type": "string", "required": true, "default": " x "},
			{"name": "d", "type": "duration", "default": 90},
			{"name": "o", "type": "object", "schema": "{}", "default": "{\"z\": [1, {}], \"a\": null}"},
			{"name": "none", "type": "string"}],
		"command": {"image": "`+image+`", "argv": ["tool", "{i}", "{n}", "{b}", "{s}", "{d}", "{o}", "--none={none}"]}}`)
	p := prepare(t, c, ` { } `)
	want := `{"b":true,"d":"90","i":3,"n":0.5,"o":{"a":null,"z":[1,{}]},"s":"x"}`
	if diff := cmp.Diff(want, p.ArgsCanonicalJSON); diff != "" {
		t.Errorf("canonical arguments (-want +got):\n%s", diff)
	}
	argv := []string{"tool", "3", "0.5", "true", "x", "90", `{"a":null,"z":[1,{}]}`}
	if diff := cmp.Diff(argv, p.Effect.Command.Argv); diff != "" {
		t.Errorf("argv (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(p, prepare(t, c, `{}`)); diff != "" {
		t.Errorf("a second call differs:\n%s", diff)
	}
}

func TestPrepare_IsTheSameForEverySpellingOfACall(t *testing.T) {
	c := compile(t, `{"version": "1", "arguments": [{"name": "a", "type": "string"}, {"name": "b", "type": "integer"}],
		"command": {"image": "`+image+`", "argv": ["tool", "{a}", "{b}"]}}`)
	want := prepare(t, c, `{"a":"x","b":10}`)
	for _, raw := range []string{`{"b":10,"a":"x"}`, `{ "\u0061" : "\u0078" , "b" : 1e1 }`, `{"a":" x","b":"10"}`} {
		if diff := cmp.Diff(want, prepare(t, c, raw)); diff != "" {
			t.Errorf("%s is another call:\n%s", raw, diff)
		}
	}
}

func TestPrepare_HashesAgreeWithTheOtherPackages(t *testing.T) {
	for name, v := range acceptedValues {
		tool, _ := strings.CutPrefix(v.tool, "S:")
		m := hostileManifests[tool]
		if tool != v.tool {
			m = inString(m)
		}
		c := compile(t, m)
		p := prepare(t, c, `{"a":`+v.value+`}`)
		checkHashes(t, name, c, p)
	}
}

// checkHashes computes everything about a call in the general way.
func checkHashes(t testing.TB, name string, c *contract.Contract, p *contract.Prepared) {
	t.Helper()
	s, err := snapshot.Parse(p.ArgsCanonicalJSON)
	if err != nil || s.Digest() != p.ArgsDigest {
		t.Errorf("%s: the digest of the arguments differs: %v", name, err)
	}
	effect, err := contract.EncodeEffect(p.Effect)
	if err != nil || effect != p.EffectJSON {
		t.Errorf("%s: the effect is encoded as\n%s, %v, not as\n%s", name, effect, err, p.EffectJSON)
	}
	decoded, err := contract.DecodeEffect(p.EffectJSON)
	if diff := cmp.Diff(p.Effect, decoded); err != nil || diff != "" {
		t.Errorf("%s: the effect is decoded as another one: %v\n%s", name, err, diff)
	}
	proposal, err := snapshot.ProposalHash("agent", c.Name(), p.ArgsCanonicalJSON)
	if err != nil || proposal != p.ProposalHash {
		t.Errorf("%s: the proposal hash differs: %v", name, err)
	}
	fingerprint, err := attest.Fingerprint(proposal, c.Namespace(), attest.ContractRef{Name: c.Name(), Version: c.Version(), Hash: c.Hash()}, effect)
	if err != nil || fingerprint != p.Fingerprint || p.ContractHash != c.Hash() {
		t.Errorf("%s: the fingerprint differs: %v", name, err)
	}
}

func TestPrepare_CallsShareNothing(t *testing.T) {
	for name, m := range map[string]string{
		"command": `{"version": "1", "command": {"image": "` + image + `", "argv": ["tool"], "env": [{"name": "A", "value": "x"}, {"name": "T", "secret": "t"}]},
			"secrets": [{"name": "t", "secretName": "s", "key": "k"}]}`,
		"http": header("X-A", "x"),
		"mcp": `{"version": "1", "mcp": {` + mcpFine + `, "headers": [{"name": "X", "value": "{_secret:t}"}]},
			"secrets": [{"name": "t", "secretName": "s", "key": "k", "hosts": ["mcp.example.com"]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := compile(t, m)
			raw := `{}`
			if name == "http" {
				raw = `{"a":"x","s":{}}`
			}
			want, err := contract.EncodeEffect(prepare(t, c, raw).Effect)
			if err != nil {
				t.Fatal(err)
			}
			scribble(&prepare(t, c, raw).Effect)
			if got := prepare(t, c, raw).EffectJSON; got != want {
				t.Errorf("changing one call changed the next one to %s", got)
			}
		})
	}
}

// scribble overwrites all that an effect holds by reference.
func scribble(e *contract.Effect) {
	if e.Command != nil {
		e.Command.Argv[0] = "evil"
		*e.Command.Env[0].Value = "evil"
		e.Command.Env[1].Secret.SecretName = "evil"
		e.Command.Env[0].Name = "EVIL"
	}
	if e.HTTP != nil {
		e.HTTP.Headers[0].Value = "evil"
		e.HTTP.Secrets[0].Hosts[0] = "evil.test"
	}
	if e.MCP != nil {
		e.MCP.Headers[0].Value = "evil"
		e.MCP.Secrets[0].Hosts[0] = "evil.test"
	}
}

func TestPrepare_RefusesEveryCallWithoutAScope(t *testing.T) {
	m := `{"version": "1", "arguments": [{"name": "t", "type": "scope_target"}, {"name": "n", "type": "integer"}],
		"command": {"image": "` + image + `", "argv": ["tool", "{t}", "{n}"]}}`
	withRef := strings.Replace(m, `"arguments"`, `"scopeRef": {"name": "other"}, "arguments"`, 1)
	two := map[string]contract.Scope{"lab": labScope["lab"], "other": {Targets: []string{"192.0.2.0/24"}}}
	for name, c := range map[string]struct {
		manifest string
		scopes   map[string]contract.Scope
		want     contract.CompileReason
	}{
		"no scope":               {m, nil, contract.ReasonScopeMissing},
		"several scopes":         {m, two, contract.ReasonScopeAmbiguous},
		"a scope that is absent": {withRef, labScope, contract.ReasonScopeMissing},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, c.manifest)
			in.Scopes = c.scopes
			compiled, err := contract.Compile(in)
			if err != nil {
				t.Fatal(err)
			}
			problems := compiled.Problems()
			if len(problems) != 1 || problems[0].Reason != c.want || problems[0].Field != "spec.scopeRef" {
				t.Errorf("problems %v, want one of %s", problems, c.want)
			}
			for _, raw := range []string{`{"t":"10.0.0.1"}`, `{}`} {
				want := snapshot.Error{Stage: snapshot.StageScope, Reason: snapshot.Reason(c.want), Path: "t"}
				if diff := cmp.Diff(want, refused(t, compiled, raw)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", raw, diff)
				}
			}
			if why := refused(t, compiled, `{"n":"x"}`); why.Stage != snapshot.StageSchema {
				t.Errorf("stage %s, want schema first", why.Stage)
			}
		})
	}
	in := input(t, withRef)
	in.Scopes = two
	c, err := contract.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	if c.Problems() != nil {
		t.Errorf("problems %v", c.Problems())
	}
	prepare(t, c, `{"t":"192.0.2.1"}`)
	prepare(t, c, `{}`)
	if why := refused(t, c, `{"t":"10.0.0.1"}`); why.Reason != "OutOfScope" {
		t.Errorf("reason %s, want that of the scope which is named", why.Reason)
	}
}

func TestPrepare_KeepsTheScopeCheckOfEveryLink(t *testing.T) {
	for name, types := range map[string]map[string]contract.ArgumentType{
		"at the end of the chain": {"a1": {Base: "a2"}, "a2": {Base: "a3"}, "a3": {Base: "scope_target"}},
		"in the middle":           {"a1": {Base: "a2"}, "a2": {Base: "a3", ArgumentConstraints: contract.ArgumentConstraints{ScopeCheck: true}}, "a3": {Base: "string"}},
		"at the beginning":        {"a1": {Base: "a2", ArgumentConstraints: contract.ArgumentConstraints{ScopeCheck: true}}, "a2": {Base: "string"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, oneArgument(`"type": "a1"`))
			in.Types = types
			c, err := contract.Compile(in)
			if err != nil {
				t.Fatal(err)
			}
			prepare(t, c, `{"a":"app.example.com"}`)
			want := snapshot.Error{Stage: snapshot.StageScope, Reason: "OutOfScope", Path: "a"}
			if diff := cmp.Diff(want, refused(t, c, `{"a":"evil.test"}`)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrepare_NeverPutsNulIntoACommand(t *testing.T) {
	c := compile(t, oneArgument(`"type": "object", "schema": "{}"`))
	argv := prepare(t, c, `{"a":{"x":"a\u0000b"}}`).Effect.Command.Argv
	if diff := cmp.Diff([]string{"tool", `{"x":"a\u0000b"}`}, argv); diff != "" {
		t.Errorf("argv (-want +got):\n%s", diff)
	}
}

func TestPrepare_IsSafeForConcurrentUse(t *testing.T) {
	c := compile(t, hostileManifests["words"])
	wants := make([]*contract.Prepared, 8)
	for i := range wants {
		wants[i] = prepare(t, c, fmt.Sprintf(`{"a":"value %d","b":"%s"}`, i, strings.Repeat("x", i*100)))
	}
	done := make(chan error, len(wants))
	for i, want := range wants {
		go func() {
			for range 50 {
				got, err := c.Prepare("agent", fmt.Sprintf(`{"a":"value %d","b":"%s"}`, i, strings.Repeat("x", i*100)))
				if err != nil || got.Fingerprint != want.Fingerprint || got.EffectJSON != want.EffectJSON {
					done <- errors.Join(err, fmt.Errorf("call %d differs", i))
					return
				}
			}
			done <- nil
		}()
	}
	for range wants {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// FuzzPrepare looks for calls whose hashes disagree, or that change when they
// are prepared again.
func FuzzPrepare(f *testing.F) {
	manifests := []string{"string", "enum", "integer", "number", "duration", "url", "path", "target", "options", "words", "object", "array", "http", "plainbody"}
	for i, call := range hostileCalls() {
		f.Add(uint8(len(i)), rawCall(call.value))
	}
	contracts := make([]*contract.Contract, len(manifests))
	for i, name := range manifests {
		contracts[i] = compile(f, hostileManifests[name])
	}
	f.Fuzz(func(t *testing.T, which uint8, raw string) {
		c := contracts[int(which)%len(contracts)]
		p, err := c.Prepare("agent", raw)
		if err != nil {
			if _, ok := errors.AsType[*snapshot.Error](err); !ok {
				t.Fatalf("%v is no refusal", err)
			}
			return
		}
		checkHashes(t, base64.StdEncoding.EncodeToString([]byte(raw)), c, p)
		again, err := c.Prepare("agent", p.ArgsCanonicalJSON)
		if err != nil || again.Fingerprint != p.Fingerprint {
			t.Fatalf("preparing again gives another call: %v", err)
		}
		if e := p.Effect.Command; e != nil && strings.ContainsRune(strings.Join(e.Argv, ""), 0) {
			t.Fatalf("NUL in %q", e.Argv)
		}
	})
}
