// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package clad_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/contract/clad"
	"github.com/assent-dev/assent/snapshot"
)

const image = "registry.example/tool@sha256:0000000000000000000000000000000000000000000000000000000000000000"

func source(t testing.TB, name string) clad.Source {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return clad.Source{Path: name, Text: text}
}

func scopeSource() *clad.Source {
	return &clad.Source{Path: "conf/scope.toml", Text: []byte(`[scope]
targets = ["10.0.1.0/24", "10.0.2.7", "2001:db8::/32", "status.example.org"]
domains = ["*.example.com", "api.example.com"]
exclude = ["10.0.1.254", "vault.example.com"]
`)}
}

// importFiles imports the published examples.
func importFiles(t testing.TB, names ...string) *clad.Result {
	t.Helper()
	var files []clad.Source
	for _, n := range names {
		files = append(files, source(t, n))
	}
	types := source(t, "toolclad.toml")
	r, err := clad.Import(files, &types, scopeSource(), clad.Options{Image: image})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// compileResult compiles one manifest of a result with all that was imported.
func compileResult(t testing.TB, r *clad.Result, i int) *contract.Contract {
	t.Helper()
	in := contract.Input{Name: r.Manifests[i].Name, Namespace: "default", Manifest: r.Manifests[i].Spec, Types: map[string]contract.ArgumentType{}}
	for _, named := range r.Types {
		in.Types[named.Name] = named.Spec
	}
	if r.Scope != nil {
		in.Scopes = map[string]contract.Scope{r.Scope.Name: r.Scope.Spec}
	}
	c, err := contract.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestImport_PublishedExamplesStartWhatToolCladStarts(t *testing.T) {
	for name, v := range map[string]struct {
		file, tool, object, arguments string
		want                          []string
		canonical                     string
	}{
		"whois": {
			"whois_lookup.clad.toml", "whois_lookup", "whois-lookup", `{"target":"app.example.com"}`,
			[]string{"whois", "app.example.com"},
			`{"target":"app.example.com"}`,
		},
		"dig with its default": {
			"dig_lookup.clad.toml", "dig_lookup", "dig-lookup", `{"target":"api.example.com"}`,
			[]string{"dig", "+short", "api.example.com", "A"},
			`{"record_type":"A","target":"api.example.com"}`,
		},
		"dig": {
			"dig_lookup.clad.toml", "dig_lookup", "dig-lookup", `{"target":"api.example.com","record_type":"TXT"}`,
			[]string{"dig", "+short", "api.example.com", "TXT"},
			`{"record_type":"TXT","target":"api.example.com"}`,
		},
		"curl with its defaults": {
			"curl_fetch.clad.toml", "curl_fetch", "curl-fetch", `{"url":"https://api.example.com/v1?x=1"}`,
			[]string{"curl", "-s", "-S", "-X", "GET", "--max-time", "25", "-w", `\n%{http_code}`, "https://api.example.com/v1?x=1"},
			`{"headers":"","method":"GET","url":"https://api.example.com/v1?x=1"}`,
		},
		"curl with headers": {
			"curl_fetch.clad.toml", "curl_fetch", "curl-fetch", `{"url":"http://10.0.1.5/","method":"POST","headers":"X-A: b c, X-D: 'e'"}`,
			[]string{"curl", "-s", "-S", "-X", "POST", "--max-time", "25", "-w", `\n%{http_code}`, "-H", "X-A: b c, X-D: 'e'", "http://10.0.1.5/"},
			`{"headers":"X-A: b c, X-D: 'e'","method":"POST","url":"http://10.0.1.5/"}`,
		},
		"nmap": {
			"nmap_scan.clad.toml", "nmap_scan", "nmap-scan", `{"target":"10.0.1.0/25","scan_type":"service"}`,
			[]string{"nmap", "-sT", "-sV", "--version-intensity", "5", "--max-rate", "1000", "-oX", "/work/output", "--no-stylesheet", "-v", "10.0.1.0/25"},
			`{"extra_flags":"","scan_type":"service","target":"10.0.1.0/25"}`,
		},
		"nmap with an extra word that is one word": {
			"nmap_scan.clad.toml", "nmap_scan", "nmap-scan", `{"target":"app.example.com","scan_type":"vuln_script","extra_flags":"10.0.2.7 more"}`,
			[]string{"nmap", "-sV", "--script=vuln", "--script-timeout", "60s", "--max-rate", "1000", "-oX", "/work/output", "--no-stylesheet", "-v", "10.0.2.7 more", "app.example.com"},
			`{"extra_flags":"10.0.2.7 more","scan_type":"vuln_script","target":"app.example.com"}`,
		},
		"nikto with its defaults": {
			"nikto_scan.clad.toml", "nikto_scan", "nikto-scan", `{"target":"host-1.test"}`,
			[]string{"nikto", "-h", "http://host-1.test:80", "-maxtime", "600s", "-Format", "json"},
			`{"max_rate":"100","output_format":"json","port":"80","protocol":"http","target":"host-1.test"}`,
		},
		"nikto": {
			"nikto_scan.clad.toml", "nikto_scan", "nikto-scan", `{"target":"host-1.test","port":"80,8080-8090","protocol":"https","max_rate":"250","output_format":"csv"}`,
			[]string{"nikto", "-h", "https://host-1.test:80,8080-8090", "-maxtime", "600s", "-Format", "csv", "-Plugins", "@@ALL", "-maxrate", "250"},
			`{"max_rate":"250","output_format":"csv","port":"80,8080-8090","protocol":"https","target":"host-1.test"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := importFiles(t, v.file)
			c := compileResult(t, r, 0)
			if c.Name() != v.object || c.ToolName() != v.tool {
				t.Errorf("object %s, tool %s", c.Name(), c.ToolName())
			}
			p, err := c.Prepare("agent", v.arguments)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(v.want, p.Effect.Command.Argv); diff != "" {
				t.Errorf("argv (-want +got):\n%s", diff)
			}
			if p.ArgsCanonicalJSON != v.canonical {
				t.Errorf("arguments %s, want %s", p.ArgsCanonicalJSON, v.canonical)
			}
		})
	}
}

func TestImport_PublishedExamplesKeepTheirMeaning(t *testing.T) {
	r := importFiles(t, "curl_fetch.clad.toml", "dig_lookup.clad.toml", "nikto_scan.clad.toml", "nmap_scan.clad.toml", "whois_lookup.clad.toml")
	nikto := compileResult(t, r, 2)
	resource, action, _ := nikto.Cedar()
	got := []any{nikto.Version(), nikto.RiskTier(), nikto.HumanApproval(), resource, action, nikto.Execution().Timeout.String(), nikto.Output().Format}
	if diff := cmp.Diff([]any{"1.0.0", "medium", true, "PenTest::ScanTarget", "execute_tool", "10m0s", "json"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := nikto.CheckOutput(`{"vulnerabilities":[],"port":"x"}`, false); err == nil {
		t.Error("the output schema is not kept")
	}
	for i, refusal := range map[int]struct{ arguments, want string }{
		0: {`{"url":"https://evil.test/"}`, "scope OutOfScope url"},
		1: {`{"target":"vault.example.com"}`, "scope Excluded target"},
		2: {`{"target":"a","max_rate":"10001"}`, "schema OutOfRange max_rate"},
		3: {`{"target":"10.0.1.254","scan_type":"ping"}`, "scope Excluded target"},
		4: {`{"target":"example.com; rm -rf /"}`, "schema ShellMetacharacter target"},
	} {
		_, err := compileResult(t, r, i).Prepare("agent", refusal.arguments)
		var why *snapshot.Error
		if !errors.As(err, &why) || string(why.Stage)+" "+string(why.Reason)+" "+why.Path != refusal.want {
			t.Errorf("%s: %v, want %s", r.Manifests[i].Name, err, refusal.want)
		}
	}
	var notes []string
	for _, n := range r.Notes {
		notes = append(notes, n.File+" "+n.Key)
		if !strings.HasPrefix(n.String(), n.File+": "+n.Key+": ") {
			t.Errorf("note %q", n)
		}
	}
	if diff := cmp.Diff([]string{"nmap_scan.clad.toml tool.evidence.output_dir"}, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// A command that writes to a file has its output there.
func TestImport_ReadsTheOutputFile(t *testing.T) {
	const head = "[tool]\nname = \"fixture\"\nversion = \"1.0.0\"\ntimeout_seconds = 2\n"
	for name, v := range map[string]struct {
		text string
		want contract.Output
		file string
		note string
	}{
		"the file ToolClad makes up":  {"[command]\ntemplate = 'scan -o {_output_file}'\n[output]\nformat = 'json'\n", contract.Output{Format: "json", File: contract.DefaultWorkingDir + "/output"}, contract.DefaultWorkingDir + "/output", ""},
		"without a format":            {"[command]\ntemplate = 'scan -o {_output_file}'\n", contract.Output{Format: "text", File: contract.DefaultWorkingDir + "/output"}, contract.DefaultWorkingDir + "/output", ""},
		"a file of its own":           {"[command]\ntemplate = 'scan -o {_output_file}'\n[command.defaults]\n_output_file = '" + contract.DefaultWorkingDir + "/scan.xml'\n", contract.Output{Format: "text", File: contract.DefaultWorkingDir + "/scan.xml"}, contract.DefaultWorkingDir + "/scan.xml", ""},
		"a file that nobody can read": {"[command]\ntemplate = 'scan -o {_output_file}'\n[command.defaults]\n_output_file = '/tmp/scan.xml'\n", contract.Output{Format: "text"}, "", "command.defaults._output_file"},
		"no file":                     {"[command]\ntemplate = 'scan'\n", contract.Output{Format: "text"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := clad.Import([]clad.Source{{Path: "f.clad.toml", Text: []byte(head + v.text)}}, nil, nil, clad.Options{Image: image})
			if err != nil {
				t.Fatal(err)
			}
			c := compileResult(t, r, 0)
			if diff := cmp.Diff(v.want, c.Output()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			p, err := c.Prepare("agent", `{}`)
			if err != nil || p.Effect.Command.OutputFile != v.file {
				t.Errorf("%v: the effect reads %q", err, p.Effect.Command.OutputFile)
			}
			note := ""
			for _, n := range r.Notes {
				note += n.Key
			}
			if note != v.note {
				t.Errorf("notes %q, want %q", note, v.note)
			}
		})
	}
}

// Cases of ToolClad's execution vectors (tests/execution_vectors.json of
// github.com/ThirdKeyAI/ToolClad, MIT licence), and more of the same kind.
func TestImport_WordsAreToolClads(t *testing.T) {
	const head = "[tool]\nname = \"fixture\"\nversion = \"1.0.0\"\ntimeout_seconds = 2\n"
	for name, v := range map[string]struct {
		text, arguments string
		want            []string
	}{
		"a blank in a value":             {"[command]\ntemplate = 'echo {value}'\n[args.value]\ntype = 'string'\nrequired = true", `{"value":"alpha --extra"}`, []string{"echo", "alpha --extra"}},
		"a quote in a value":             {"[command]\ntemplate = 'echo {value}'\n[args.value]\ntype = 'enum'\nallowed = ['alpha \"beta\"']\nrequired = true", `{"value":"alpha \"beta\""}`, []string{"echo", `alpha "beta"`}},
		"a backslash in a value":         {"[command]\ntemplate = 'echo {value}'\n[args.value]\ntype = 'enum'\nallowed = ['alpha\\beta']", `{"value":"alpha\\beta"}`, []string{"echo", `alpha\beta`}},
		"a list":                         {"[command]\nexec = ['echo', '{value}']\n[args.value]\ntype = 'string'", `{"value":"alpha beta"}`, []string{"echo", "alpha beta"}},
		"a required default":             {"[command]\ntemplate = 'echo {value}'\n[args.value]\ntype = 'port'\nrequired = true\ndefault = 443", `{}`, []string{"echo", "443"}},
		"a clamped default":              {"[command]\ntemplate = 'echo {value}'\n[args.value]\ntype = 'integer'\nmax = 10\nclamp = true\ndefault = 99", `{}`, []string{"echo", "10"}},
		"a default of the command":       {"[command]\ntemplate = 'echo {value}'\n[command.defaults]\nvalue = 99\n[args.value]\ntype = 'integer'\nmax = 10\nclamp = true", `{}`, []string{"echo", "10"}},
		"an absent argument":             {"[command]\ntemplate = 'echo {value}'\n[args.value]\ntype = 'port'", `{}`, []string{"echo"}},
		"an absent text":                 {"[command]\ntemplate = 'echo {value} end'\n[args.value]\ntype = 'string'", `{}`, []string{"echo", "end"}},
		"an empty text":                  {"[command]\ntemplate = 'echo {value} end'\n[args.value]\ntype = 'string'", `{"value":""}`, []string{"echo", "end"}},
		"an absent text in a list":       {"[command]\nexec = ['echo', '{value}', 'end']\n[args.value]\ntype = 'string'", `{}`, []string{"echo", "", "end"}},
		"an empty text in a list":        {"[command]\nexec = ['echo', '{value}', 'end']\n[args.value]\ntype = 'string'", `{"value":""}`, []string{"echo", "", "end"}},
		"an absent argument in a word":   {"[command]\ntemplate = 'echo --it={value}! end'\n[args.value]\ntype = 'port'", `{}`, []string{"echo", "--it=!", "end"}},
		"a present argument in a word":   {"[command]\ntemplate = 'echo \"--it is={value}{value}\" end'\n[args.value]\ntype = 'port'", `{"value":"80"}`, []string{"echo", "--it is=8080", "end"}},
		"an apostrophe in such a word":   {"[command]\ntemplate = '''echo \"it's {value}\"'''\n[args.value]\ntype = 'port'", `{"value":"80"}`, []string{"echo", "it's 80"}},
		"two arguments, one absent":      {"[command]\ntemplate = 'echo {a}{b}'\n[args.a]\ntype = 'string'\nrequired = true\n[args.b]\ntype = 'port'", `{"a":"x"}`, []string{"echo", "x"}},
		"two arguments, both there":      {"[command]\ntemplate = 'echo {a}{b}'\n[args.a]\ntype = 'string'\nrequired = true\n[args.b]\ntype = 'port'", `{"a":"x","b":"1"}`, []string{"echo", "x1"}},
		"a text with an empty default":   {"[command]\ntemplate = 'echo --x={value}'\n[args.value]\ntype = 'string'\ndefault = ''", `{}`, []string{"echo", "--x="}},
		"an optional enum":               {"[command]\ntemplate = 'echo {value}'\n[args.value]\ntype = 'enum'\nallowed = ['', 'x']\ndefault = ''", `{}`, []string{"echo"}},
		"an enum with a default":         {"[command]\ntemplate = 'echo {value}'\n[args.value]\ntype = 'enum'\nallowed = ['y', 'x']\ndefault = 'x'", `{}`, []string{"echo", "x"}},
		"a value like a placeholder":     {"[command]\ntemplate = 'echo {value} {other}'\n[args.value]\ntype = 'enum'\nallowed = ['{other}']\n[args.other]\ntype = 'string'", `{"value":"{other}","other":"expanded"}`, []string{"echo", "{other}", "expanded"}},
		"a mapping":                      {"[command]\ntemplate = 'echo {_scan_flags} {value}'\n[command.mappings.scan_type]\nservice = '-sT -sV'\n[args.scan_type]\ntype = 'enum'\nallowed = ['service']\n[args.value]\ntype = 'string'", `{"scan_type":"service","value":"alpha --extra"}`, []string{"echo", "-sT", "-sV", "alpha --extra"}},
		"a mapping by its other names":   {"[command]\ntemplate = 'echo {_scan_type} {_scan_type_flags}'\n[command.mappings.scan_type]\nservice = '-sT \"a b\"'\n[args.scan_type]\ntype = 'enum'\nallowed = ['service']", `{"scan_type":"service"}`, []string{"echo", "-sT", "a b", "-sT", "a b"}},
		"a mapping without the value":    {"[command]\ntemplate = 'echo {_mode}'\n[command.mappings.mode]\na = '--alpha'\n[args.mode]\ntype = 'enum'\nallowed = ['a', 'c']", `{"mode":"c"}`, []string{"echo"}},
		"a mapping of an absent value":   {"[command]\ntemplate = 'echo {_mode}'\n[command.mappings.mode]\na = '--alpha'\n[args.mode]\ntype = 'enum'\nallowed = ['a', 'c']", `{}`, []string{"echo"}},
		"a mapping in a list":            {"[command]\nexec = ['echo', '{_mode}']\n[command.mappings.mode]\na = \"-s T's\"\n[args.mode]\ntype = 'enum'\nallowed = ['a']", `{"mode":"a"}`, []string{"echo", "-s T's"}},
		"a mapping with a value":         {"[command]\ntemplate = 'echo {_mode}'\n[command.mappings.mode]\na = '--at {port} {{x}}'\n[args.mode]\ntype = 'enum'\nallowed = ['a']\n[args.port]\ntype = 'port'\ndefault = 1", `{"mode":"a"}`, []string{"echo", "--at", "1", "{x}"}},
		"a mapping of a text":            {"[command]\ntemplate = 'echo {_mode}'\n[command.mappings.mode]\na = '-a'\n[args.mode]\ntype = 'string'", `{"mode":"a"}`, []string{"echo", "-a"}},
		"a mapping of a custom list":     {"[command]\ntemplate = 'echo {_mode}'\n[command.mappings.mode]\nlow = '-l'\n[args.mode]\ntype = 'severity_level'", `{"mode":"info"}`, []string{"echo"}},
		"a conditional":                  {"[command]\ntemplate = 'echo {_flag}'\n[command.conditionals.flag]\nwhen = \"value != ''\"\ntemplate = '--label {value}'\n[args.value]\ntype = 'string'", `{"value":"alpha --extra"}`, []string{"echo", "--label", "alpha --extra"}},
		"a conditional that fails":       {"[command]\ntemplate = 'echo {_flag}'\n[command.conditionals.flag]\nwhen = \"value != ''\"\ntemplate = '--label {value}'\n[args.value]\ntype = 'string'", `{}`, []string{"echo"}},
		"a conditional with numbers":     {"[command]\ntemplate = 'echo {_flag}'\n[command.conditionals.flag]\nwhen = \"port != 1 and port == 2\"\ntemplate = '-s {port}'\n[args.port]\ntype = 'port'\ndefault = 2", `{}`, []string{"echo", "-s", "2"}},
		"a conditional instead of a map": {"[command]\ntemplate = 'echo {_mode}'\n[command.mappings.mode]\na = '-map'\n[command.conditionals.mode]\nwhen = \"mode == 'a'\"\ntemplate = '-cond'\n[args.mode]\ntype = 'enum'\nallowed = ['a']", `{"mode":"a"}`, []string{"echo", "-cond"}},
		"an empty word":                  {"[command]\ntemplate = \"echo ''\"", `{}`, []string{"echo", ""}},
		"braces of the program":          {"[command]\ntemplate = '''echo '{\"a\":{\"b\":1}}' {} {{http_code}} '{a b}' '''", `{}`, []string{"echo", `{"a":{"b":1}}`, "{}", "{http_code}", "{a b}"}},
		"constants of all types":         {"[command]\ntemplate = 'echo {s}{i}{f}{b} {_evidence_dir} {_output_file}'\n[command.defaults]\ns = 'x y'\ni = 7\nf = 0.5\nb = true\n_output_file = '/tmp/o'\nunused = 1", `{}`, []string{"echo", "x y70.5true", "/work", "/tmp/o"}},
		"a list and a template":          {"[command]\ntemplate = 'ignored'\nexec = ['echo']", `{}`, []string{"echo"}},
		"a pattern that is not anchored": {"[command]\ntemplate = 'echo {value}'\n[args.value]\ntype = 'string'\npattern = '^SELECT\\s'\nrequired = true", `{"value":"SELECT 1\t"}`, []string{"echo", "SELECT 1"}},
		"an argument without a type":     {"[command]\ntemplate = 'echo {value}'\n[args.value]\nrequired = true", `{"value":"x"}`, []string{"echo", "x"}},
		"arguments by position":          {"[command]\ntemplate = 'echo {a} {b}'\n[args.a]\nposition = 2\nrequired = true\n[args.b]\nposition = 1\nrequired = true", `{"a":"x","b":"y"}`, []string{"echo", "x", "y"}},
		"bounds of a number":             {"[command]\ntemplate = 'echo {value}'\n[args.value]\ntype = 'number'\nmin_float = 0.25\nmax_float = 1.0\nclamp = true\nrequired = true", `{"value":"0.1"}`, []string{"echo", "0.25"}},
	} {
		t.Run(name, func(t *testing.T) {
			types := source(t, "toolclad.toml")
			r, err := clad.Import([]clad.Source{{Path: "x.clad.toml", Text: []byte(head + v.text)}}, &types, nil, clad.Options{Image: image})
			if err != nil {
				t.Fatal(err)
			}
			p, err := compileResult(t, r, 0).Prepare("agent", v.arguments)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(v.want, p.Effect.Command.Argv); diff != "" {
				t.Errorf("argv (-want +got):\n%s", diff)
			}
		})
	}
}

func TestImport_CarriesOverRequests(t *testing.T) {
	text := `[tool]
name = "slack_post_message"
version = "1.0.0"
[args.channel]
type = "string"
required = true
pattern = "^[A-Z0-9]+$"
[args.message]
type = "string"
required = true
[http]
method = "post"
url = "https://slack.example.com/api/{channel}/chat"
headers = { Authorization = "Bearer {_secret:slack_token}", X-Key = "{_secret:other}" }
body_template = '{"channel": "{channel}", "text": "{message}", "token": "{_secret:slack_token}"}'
success_status = [200]
error_status = [400, 429]
[output]
format = "json"
[output.schema]
type = "object"
`
	r, err := clad.Import([]clad.Source{{Path: "slack.clad.toml", Text: []byte(text)}}, nil, nil, clad.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := compileResult(t, r, 0).Prepare("agent", `{"channel":"C1","message":"say \"hi\""}`)
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{"slack.example.com"}
	want := &contract.HTTPCall{
		Method: "POST", URL: "https://slack.example.com/api/C1/chat", SuccessStatus: []int32{200},
		Headers: []contract.ResolvedHeader{
			{Name: "Authorization", Value: "Bearer {_secret:slack_token}"}, {Name: "X-Key", Value: "{_secret:other}"}, {Name: "Content-Type", Value: "application/json"},
		},
		Body: `{"channel": "C1", "text": "say \"hi\"", "token": "{_secret:slack_token}"}`,
		Secrets: []contract.ResolvedSecret{
			{Name: "other", SecretName: "slack-post-message", Key: "other", Hosts: hosts},
			{Name: "slack_token", SecretName: "slack-post-message", Key: "slack_token", Hosts: hosts},
		},
	}
	if diff := cmp.Diff(want, p.Effect.HTTP); diff != "" {
		t.Errorf("effect (-want +got):\n%s", diff)
	}
	get := "[tool]\nname = 'ip'\nversion = '1'\n[args.ip]\ntype = 'ip_address'\nrequired = true\n[http]\nurl = 'https://ip.example.com/{ip}/json'\n"
	r, err = clad.Import([]clad.Source{{Path: "ip.clad.toml", Text: []byte(get)}}, nil, scopeSource(), clad.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := compileResult(t, r, 0)
	if _, err := c.Prepare("agent", `{"ip":"192.0.2.1"}`); err == nil {
		t.Error("an address outside the scope is accepted; ToolClad checks addresses without being told")
	}
	p, err = c.Prepare("agent", `{"ip":"2001:db8::1"}`)
	if err != nil || p.Effect.HTTP.Method != "GET" || p.Effect.HTTP.URL != "https://ip.example.com/2001%3Adb8%3A%3A1/json" {
		t.Errorf("%v, %v", p, err)
	}
}

func TestImport_CarriesOverMCPCalls(t *testing.T) {
	text := "[tool]\nname = 'issue'\nversion = '1'\n[mcp]\nserver = 'github-mcp'\ntool = 'create_issue'\n[mcp.field_map]\nrepo = 'repository'\n[args.repo]\nrequired = true\n[args.title]\nrequired = true\n"
	options := clad.Options{
		MCPServers:     map[string]string{"github-mcp": "https://mcp.example.com/"},
		MCPToolDigests: map[string]string{"create_issue": strings.Repeat("a", 64)},
	}
	for name, v := range map[string]struct{ text, want string }{
		"with a field map":    {text, `{"repository":"a/b","title":"x"}`},
		"without a field map": {strings.Replace(text, "[mcp.field_map]\nrepo = 'repository'\n", "", 1), `{"repo":"a/b","title":"x"}`},
		"with a URL":          {strings.Replace(text, "'github-mcp'", "'https://other.example.com/'", 1), `{"repository":"a/b","title":"x"}`},
	} {
		r, err := clad.Import([]clad.Source{{Path: "x", Text: []byte(v.text)}}, nil, nil, options)
		if err != nil {
			t.Fatal(err)
		}
		p, err := compileResult(t, r, 0).Prepare("agent", `{"repo":"a/b","title":"x"}`)
		if err != nil || p.Effect.MCP.Arguments != v.want || p.Effect.MCP.Tool != "create_issue" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// refusals are manifests that have no counterpart, and the keys of the errors.
func TestImport_NamesWhatHasNoCounterpart(t *testing.T) {
	const head = "[tool]\nname = 'x'\nversion = '1'\n"
	const echo = "[command]\ntemplate = 'echo'\n"
	for name, v := range map[string]struct {
		text string
		want []string
	}{
		"text that is no TOML":             {"[tool", []string{""}},
		"a value of another type":          {"[tool]\nname = 7", []string{"tool.name"}},
		"a file that is too long":          {strings.Repeat("#", clad.MaxFileBytes+1), []string{""}},
		"no name and no version":           {echo, []string{"tool.name", "tool.version"}},
		"an unknown key":                   {head + "colour = 'red'\n" + echo, []string{"tool.colour"}},
		"an unknown table":                 {head + echo + "[extra]\nx = 1\n", []string{"extra", "extra.x"}},
		"a scope of the tool's own":        {head + echo + "[tool.scope]\ntargets = []\n", []string{"tool.scope", "tool.scope.targets"}},
		"a session":                        {head + "[session]\nstartup_command = 'psql'\n", []string{"session"}},
		"the mode of a session":            {head + "mode = 'session'\n[session]\nstartup_command = 'psql'\n", []string{"tool.mode", "session"}},
		"a browser":                        {head + "mode = 'browser'\n[browser]\nengine = 'cdp'\n", []string{"tool.mode", "browser"}},
		"a callback":                       {head + "dispatch = 'callback'\n" + echo, []string{"tool.dispatch"}},
		"another hash":                     {head + "[tool.evidence]\nhash = 'md5'\n" + echo, []string{"tool.evidence.hash"}},
		"no timeout":                       {head + "timeout_seconds = 0\n" + echo, []string{"tool.timeout_seconds"}},
		"a timeout of two days":            {head + "timeout_seconds = 172800\n" + echo, []string{"tool.timeout_seconds"}},
		"another risk tier":                {head + "risk_tier = 'extreme'\n" + echo, []string{"tool.risk_tier"}},
		"a name that is none":              {"[tool]\nname = 'a b'\nversion = '1'\n" + echo, []string{"tool.name"}},
		"a Cedar type that is none":        {head + "[tool.cedar]\nresource = 'A B'\naction = 'x'\n" + echo, []string{"tool.cedar"}},
		"no backend":                       {head, []string{""}},
		"two backends":                     {head + echo + "[http]\nurl = 'https://x.example.com'\n", []string{""}},
		"a command without words":          {head + "[command]\n", []string{"command"}},
		"an executor":                      {head + "[command]\nexecutor = 'scripts/x.sh'\n", []string{"command.executor"}},
		"an open quote":                    {head + "[command]\ntemplate = \"echo 'x\"\n", []string{"command.template", "command"}},
		"an unknown placeholder":           {head + "[command]\ntemplate = 'echo {value}'\n", []string{"command.template"}},
		"a scan ID":                        {head + "[command]\ntemplate = 'echo {_scan_id}'\n", []string{"command.template"}},
		"a secret on the command line":     {head + "[command]\nexec = ['echo', '{_secret:x}']\n", []string{"command.exec"}},
		"a mapping inside a word":          {head + "[command]\ntemplate = 'echo x{_mode}'\n[command.mappings.mode]\na = '-a'\n[args.mode]\ntype = 'enum'\nallowed = ['a']\n", []string{"command.template"}},
		"a mapping of nothing":             {head + "[command]\ntemplate = 'echo {_mode}'\n[command.mappings.mode]\na = '-a'\n", []string{"command.mappings.mode"}},
		"a mapping in a mapping":           {head + "[command]\ntemplate = 'echo {_mode}'\n[command.mappings.mode]\na = '{_mode}'\n[args.mode]\ntype = 'enum'\nallowed = ['a']\n", []string{"command.mappings.mode.a"}},
		"an absent value in a mapping":     {head + "[command]\ntemplate = 'echo {_mode}'\n[command.mappings.mode]\na = '{b}'\n[args.mode]\ntype = 'enum'\nallowed = ['a']\n[args.b]\ntype = 'port'\n", []string{"command.mappings.mode.a"}},
		"a condition with or":              {head + "[command]\ntemplate = 'echo {_c}'\n[command.conditionals.c]\nwhen = \"a == 'x' or a == 'y'\"\ntemplate = 'z'\n[args.a]\n", []string{"command.conditionals.c.when"}},
		"a condition on nothing":           {head + "[command]\ntemplate = 'echo {_c}'\n[command.conditionals.c]\nwhen = \"a == 'x'\"\ntemplate = 'z'\n", []string{"command"}},
		"a conditional that is not used":   {head + echo + "[command.conditionals.c]\nwhen = \"a == 'x'\"\ntemplate = 'z'\n[args.a]\n", []string{"command.conditionals.c"}},
		"several absent values in a word":  {head + "[command]\ntemplate = 'echo {a}-{b}'\n[args.a]\n[args.b]\n", []string{"command.template"}},
		"several empty values as a word":   {head + "[command]\ntemplate = 'echo {a}{b}'\n[args.a]\ndefault = ''\n[args.b]\ndefault = ''\n", []string{"command.template"}},
		"an unused argument":               {head + echo + "[args.a]\n", []string{"args.a"}},
		"an unknown type":                  {head + "[command]\ntemplate = 'echo {a}'\n[args.a]\ntype = 'hostname'\nrequired = true\n", []string{"args.a.type"}},
		"an unknown sanitizer":             {head + "[command]\ntemplate = 'echo {a}'\n[args.a]\nsanitize = ['html']\nrequired = true\n", []string{"args.a.sanitize"}},
		"a pattern that is none":           {head + "[command]\ntemplate = 'echo {a}'\n[args.a]\npattern = '(?=x)'\nrequired = true\n", []string{"args.a.pattern"}},
		"a default that is a list":         {head + "[command]\ntemplate = 'echo {a}'\n[args.a]\ndefault = [1]\n", []string{"args.a.default"}},
		"a default that is not accepted":   {head + "[command]\ntemplate = 'echo {a}'\n[args.a]\ntype = 'port'\ndefault = 0\n", []string{"args.a.default"}},
		"a default that is a date":         {head + "[command]\ntemplate = 'echo {d}'\n[command.defaults]\nd = 2020-01-01\n", []string{"command.defaults.d"}},
		"a scope check of a path":          {head + "[command]\ntemplate = 'echo {a}'\n[args.a]\ntype = 'path'\nscope_check = true\nrequired = true\n", []string{"args.a.scope_check"}},
		"a parser of its own":              {head + echo + "[output]\nparser = 'parse.py'\n", []string{"output.parser"}},
		"another output format":            {head + echo + "[output]\nformat = 'yaml'\n", []string{"output"}},
		"an output schema that is none":    {head + echo + "[output.schema]\ntype = 'thing'\n", []string{"output"}},
		"an output schema with infinity":   {head + echo + "[output.schema]\nmaximum = inf\n", []string{"output.schema"}},
		"a secret in a URL":                {head + "[http]\nurl = 'https://x.example.com/?k={_secret:k}'\n", []string{"http.url"}},
		"a host of the agent's":            {head + "[args.h]\nrequired = true\n[http]\nurl = 'https://{h}/'\n", []string{"http.url", "args.h"}},
		"a body of GET":                    {head + "[http]\nurl = 'https://x.example.com/'\nbody_template = '{}'\n", []string{"http.body_template"}},
		"a header that is none":            {head + "[http]\nurl = 'https://x.example.com/'\nheaders = { 'a b' = 'c' }\n", []string{"http"}},
		"a status that means both":         {head + "[http]\nurl = 'https://x.example.com/'\nerror_status = [204]\n", []string{"http.error_status"}},
		"a listed status that means both":  {head + "[http]\nurl = 'https://x.example.com/'\nsuccess_status = [404]\nerror_status = [404]\n", []string{"http.error_status"}},
		"an MCP server without a URL":      {head + "[mcp]\nserver = 'x'\ntool = 'y'\n", []string{"mcp.server", "mcp.tool"}},
		"an MCP field that is no argument": {head + "[mcp]\nserver = 'https://x.example.com'\ntool = 'known'\n[mcp.field_map]\na = 'b'\n", []string{"mcp.field_map.a"}},
	} {
		t.Run(name, func(t *testing.T) {
			options := clad.Options{Image: image, MCPToolDigests: map[string]string{"known": strings.Repeat("0", 64)}}
			r, err := clad.Import([]clad.Source{{Path: "dir/x.clad.toml", Text: []byte(v.text)}}, nil, nil, options)
			if r != nil {
				t.Error("there is a result beside the error")
			}
			if diff := cmp.Diff(v.want, keysOf(t, err)); diff != "" {
				t.Errorf("keys (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

// keysOf lists the keys of all errors and checks their form.
func keysOf(t *testing.T, err error) []string {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%v is no list of errors", err)
	}
	var keys []string
	for _, one := range joined.Unwrap() {
		var e *clad.Error
		if !errors.As(one, &e) {
			t.Fatalf("%v is no error of a key", one)
		}
		if !strings.HasPrefix(e.Error(), e.File+": "+e.Key) || len(e.Message) < 10 || strings.Contains(e.Message, "%!") {
			t.Errorf("message %q", e)
		}
		keys = append(keys, e.Key)
	}
	return keys
}

func TestImport_NeedsAnImageForCommands(t *testing.T) {
	_, err := clad.Import([]clad.Source{source(t, "whois_lookup.clad.toml")}, nil, nil, clad.Options{})
	if diff := cmp.Diff([]string{"command"}, keysOf(t, err)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	_, err = clad.Import([]clad.Source{source(t, "whois_lookup.clad.toml")}, nil, nil, clad.Options{Image: "whois:latest"})
	if diff := cmp.Diff([]string{"command"}, keysOf(t, err)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestImport_RefusesTwoToolsOfOneName(t *testing.T) {
	other := clad.Source{Path: "b.clad.toml", Text: []byte("[tool]\nname = 'whois-lookup'\nversion = '1'\n[command]\ntemplate = 'x'\n")}
	_, err := clad.Import([]clad.Source{source(t, "whois_lookup.clad.toml"), other}, nil, nil, clad.Options{Image: image})
	if diff := cmp.Diff([]string{"tool.name"}, keysOf(t, err)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestImport_RefusesTypesAndScopesThatCannotBeUsed(t *testing.T) {
	for name, v := range map[string]struct {
		types, scope string
		want         []string
	}{
		"types that are no TOML":           {"[", "", []string{""}},
		"a type without a base":            {"[types.a]\nmin = 1", "", []string{"types.a.base", "types.a"}},
		"a type of a type that is missing": {"[types.a]\nbase = 'b'", "", []string{"types.a"}},
		"a type with a built-in name":      {"[types.port]\nbase = 'integer'", "", []string{"types.port"}},
		"two types of one name":            {"[types.a_b]\nbase = 'string'\n[types.a-b]\nbase = 'string'", "", []string{"types"}},
		"an unknown key of a type":         {"[types.a]\nbase = 'string'\nx = 1", "", []string{"types.a.x"}},
		"a scope that is no TOML":          {"", "[", []string{""}},
		"an unknown key of a scope":        {"", "[scope]\nallow = []", []string{"scope.allow"}},
		"a scope with a lone asterisk":     {"", "[scope]\ndomains = ['*']", []string{"scope"}},
		"a scope with no target":           {"", "[scope]\ntargets = ['not a target']", []string{"scope"}},
	} {
		t.Run(name, func(t *testing.T) {
			var types, scope *clad.Source
			if v.types != "" {
				types = &clad.Source{Path: "toolclad.toml", Text: []byte(v.types)}
			}
			if v.scope != "" {
				scope = &clad.Source{Path: "scope.toml", Text: []byte(v.scope)}
			}
			_, err := clad.Import(nil, types, scope, clad.Options{})
			if diff := cmp.Diff(v.want, keysOf(t, err)); diff != "" {
				t.Errorf("keys (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

func TestImport_ConvertsTypesAndScopes(t *testing.T) {
	types := clad.Source{Path: "toolclad.toml", Text: []byte(`
[types.service_protocol]
base = "enum"
allowed = ["ssh", "ftp"]
[types.safe_protocol]
base = "service_protocol"
description = "no FTP"
allowed = ["ssh"]
[types.site]
base = "url"
[types.host_address]
base = "ip_address"
[types.any_target]
base = "scope_target"
scope_check = true
`)}
	r, err := clad.Import(nil, &types, scopeSource(), clad.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := &clad.Result{
		Types: []clad.Named[contract.ArgumentType]{
			{Name: "any-target", Spec: contract.ArgumentType{Base: "scope_target"}},
			{Name: "host-address", Spec: contract.ArgumentType{Base: "ip_address", ArgumentConstraints: contract.ArgumentConstraints{ScopeCheck: true}}},
			{Name: "safe-protocol", Spec: contract.ArgumentType{Base: "service-protocol", Description: "no FTP", ArgumentConstraints: contract.ArgumentConstraints{Allowed: []string{"ssh"}}}},
			{Name: "service-protocol", Spec: contract.ArgumentType{Base: "enum", ArgumentConstraints: contract.ArgumentConstraints{Allowed: []string{"ssh", "ftp"}}}},
			{Name: "site", Spec: contract.ArgumentType{Base: "url", ArgumentConstraints: contract.ArgumentConstraints{Schemes: []string{"http", "https"}}}},
		},
		Scope: &clad.Named[contract.Scope]{Name: "scope", Spec: contract.Scope{
			Targets: []string{"10.0.1.0/24", "10.0.2.7", "2001:db8::/32"},
			Domains: []string{"*.example.com", "api.example.com", "status.example.org"},
			Exclude: []string{"10.0.1.254", "vault.example.com"},
		}},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzImport looks for files that crash the importer, and for results that do
// not compile.
func FuzzImport(f *testing.F) {
	for _, name := range []string{"curl_fetch.clad.toml", "dig_lookup.clad.toml", "nikto_scan.clad.toml", "nmap_scan.clad.toml", "whois_lookup.clad.toml"} {
		f.Add(source(f, name).Text)
	}
	f.Add([]byte("[tool]\nname = 'x'\nversion = '1'\n[http]\nurl = 'https://x.example.com/{a}'\nheaders = { A = '{_secret:t}' }\n[args.a]\nrequired = true\n"))
	types := source(f, "toolclad.toml")
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := clad.Import([]clad.Source{{Path: "x", Text: text}}, &types, scopeSource(), clad.Options{Image: image})
		if err != nil {
			return
		}
		c := compileResult(t, r, 0)
		if spec, err := json.Marshal(r.Manifests[0].Spec); err != nil {
			t.Fatal(err)
		} else if _, err := contract.DecodeManifest(spec); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(contract.Kinds(), c.Name()+"-") {
			t.Fatal(c.Name())
		}
	})
}
