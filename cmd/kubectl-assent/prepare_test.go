// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const testImage = "registry.example/nmap@sha256:0000000000000000000000000000000000000000000000000000000000000000"

// cladExample is a published example.
func cladExample(name string) string { return "../../internal/contract/clad/testdata/" + name }

// testFile writes a file of a name into a folder of the test's own.
func testFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const scopeTOML = "[scope]\ntargets = [\"10.0.1.0/24\"]\ndomains = [\"*.example.com\"]\nexclude = [\"vault.example.com\"]\n"

// importNmap imports an example as the documentation shows it.
func importNmap(t *testing.T, args ...string) result {
	t.Helper()
	return runWith(t, "", append([]string{
		"import", cladExample("nmap_scan.clad.toml"), "--types", cladExample("toolclad.toml"), "--scope", testFile(t, "scope.toml", scopeTOML), "--image", testImage,
	}, args...)...)
}

func TestPrepare_PrintsTheCallOfAnImportedTool(t *testing.T) {
	t.Parallel()
	imported := importNmap(t)
	if imported.Code != 0 {
		t.Fatal(imported.Err)
	}
	call := testFile(t, "call.json", `{"scan_type": "service", "target": "10.0.1.0/25"}`)
	got := runWith(t, imported.Out, "prepare", "-f", "-", "--tool", "nmap-scan", "--arguments", call, "--agent", "system:serviceaccount:default:agent")
	if got.Code != 0 || got.Err != "" {
		t.Fatalf("%+v", got)
	}
	var printed struct {
		ArgsCanonicalJSON string `json:"argsCanonicalJson"`
		ArgsDigest        string
		Effect            struct {
			Command struct {
				Image, WorkingDir string
				Argv              []string
			}
		}
		ContractHash, ProposalHash, Fingerprint string
	}
	if err := json.Unmarshal([]byte(got.Out), &printed); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"nmap", "-sT", "-sV", "--version-intensity", "5", "--max-rate", "1000", "-oX", "/work/output", "--no-stylesheet", "-v", "10.0.1.0/25",
	}
	if diff := cmp.Diff(want, printed.Effect.Command.Argv); diff != "" {
		t.Errorf("argv (-want +got):\n%s", diff)
	}
	if want := `{"extra_flags":"","scan_type":"service","target":"10.0.1.0/25"}`; printed.ArgsCanonicalJSON != want {
		t.Errorf("arguments %s, want %s", printed.ArgsCanonicalJSON, want)
	}
	for name, hash := range map[string]string{
		"argsDigest": printed.ArgsDigest, "contractHash": printed.ContractHash, "proposalHash": printed.ProposalHash, "fingerprint": printed.Fingerprint,
	} {
		if len(hash) != 64 {
			t.Errorf("%s %q", name, hash)
		}
	}
	again := runWith(t, imported.Out, "prepare", "-f", "-", "--tool", "nmap-scan", "--arguments", call, "--agent", "other")
	if again.Code != 0 || strings.Contains(again.Out, printed.ProposalHash) || !strings.Contains(again.Out, printed.ContractHash) {
		t.Errorf("another agent: %+v", again)
	}
}

func TestPrepare_RefusesWithCode2(t *testing.T) {
	t.Parallel()
	objects := testFile(t, "tool.yaml", importNmap(t).Out)
	for name, c := range map[string]struct{ arguments, want string }{
		"a target outside":   {`{"scan_type":"ping","target":"192.0.2.1"}`, `{"stage":"scope","reason":"OutOfScope","path":"target",`},
		"a missing argument": {`{"scan_type":"ping"}`, `{"stage":"schema","reason":"MissingArgument","path":"target",`},
		"text that is none":  {`{`, `{"stage":"decode","reason":"Syntax",`},
		"an option":          {`{"scan_type":"ping","target":"10.0.1.1","extra_flags":"-iL x"}`, `{"stage":"effect","reason":"OptionInjection","path":"extra_flags",`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runWith(t, c.arguments, "prepare", objects, "--tool", "nmap-scan", "--arguments", "-")
			if got.Code != 2 || got.Out != "" || !strings.HasPrefix(got.Err, c.want) {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
}

func TestPrepare_FailsWithCode1WhenItCannotWork(t *testing.T) {
	t.Parallel()
	objects := testFile(t, "tool.yaml", importNmap(t).Out)
	broken := testFile(t, "broken.yaml", strings.Replace(importNmap(t).Out, "type: scope_target", "type: nothing", 1))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no files":             {[]string{"--tool", "x", "--arguments", "-"}, "-f, --tool and --arguments are needed"},
		"no tool":              {[]string{objects, "--arguments", "-"}, "-f, --tool and --arguments are needed"},
		"another tool":         {[]string{objects, "--tool", "x", "--arguments", "-"}, "there is no ToolManifest x"},
		"another namespace":    {[]string{objects, "-n", "shop", "--tool", "x", "--arguments", "-"}, "there is no ToolManifest x in namespace shop"},
		"a broken manifest":    {[]string{broken, "--tool", "nmap-scan", "--arguments", "-"}, "spec.arguments[0].type: MissingReference"},
		"a file that is not":   {[]string{"/no/such/file", "--tool", "x", "--arguments", "-"}, "no such file"},
		"arguments that's not": {[]string{objects, "--tool", "nmap-scan", "--arguments", "/no/such/file"}, "reading the arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runWith(t, "{}", append([]string{"prepare"}, c.args...)...)
			if got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, c.want) {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
}

func TestPrepare_HashesWithTheRunnerAreOthers(t *testing.T) {
	t.Parallel()
	objects := testFile(t, "tool.yaml", importNmap(t).Out)
	args := []string{"prepare", objects, "--tool", "nmap-scan", "--arguments", "-"}
	const call = `{"scan_type":"ping","target":"10.0.1.1"}`
	without := runWith(t, call, args...)
	with := runWith(t, call, append(args, "--runner-image", testImage)...)
	if without.Code != 0 || with.Code != 0 || without.Out == with.Out {
		t.Errorf("without %+v, with %+v", without, with)
	}
}

func TestImport_PrintsObjects(t *testing.T) {
	t.Parallel()
	yaml := importNmap(t, "-n", "lab")
	if yaml.Code != 0 || strings.Count(yaml.Out, "\n---\n") != 7 || strings.Count(yaml.Out, "  namespace: lab\n") != 8 {
		t.Errorf("%+v", yaml)
	}
	if lines := strings.Count(yaml.Err, "note: "); lines != 1 {
		t.Errorf("notes:\n%s", yaml.Err)
	}
	list := importNmap(t, "-o", "json")
	var printed struct {
		Kind  string
		Items []struct{ Kind string }
	}
	if err := json.Unmarshal([]byte(list.Out), &printed); err != nil || printed.Kind != "List" || len(printed.Items) != 8 {
		t.Errorf("%v\n%s", err, list.Out)
	}
	call := testFile(t, "call.json", `{"scan_type":"ping","target":"10.0.1.1"}`)
	if got := runWith(t, list.Out, "prepare", "-f", "-", "--tool", "nmap-scan", "--arguments", call); got.Code != 0 {
		t.Errorf("the List is not accepted: %+v", got)
	}
}

func TestImport_ImportsEveryExample(t *testing.T) {
	t.Parallel()
	var files []string
	for _, name := range []string{"curl_fetch", "dig_lookup", "nikto_scan", "nmap_scan", "whois_lookup"} {
		files = append(files, cladExample(name+".clad.toml"))
	}
	scope := testFile(t, "scope.toml", scopeTOML)
	got := runWith(t, "", append(append([]string{"import"}, files...), "--types", cladExample("toolclad.toml"), "--scope", scope, "--image", testImage)...)
	if got.Code != 0 {
		t.Fatal(got.Err)
	}
	objects := testFile(t, "tools.yaml", got.Out)
	for tool, arguments := range map[string]string{
		"curl-fetch": `{"url":"https://a.example.com/"}`, "dig-lookup": `{"target":"a.example.com"}`, "nikto-scan": `{"target":"a"}`,
		"nmap-scan": `{"target":"10.0.1.1","scan_type":"ping"}`, "whois-lookup": `{"target":"a.example.com"}`,
	} {
		if got := runWith(t, arguments, "prepare", objects, "--tool", tool, "--arguments", "-"); got.Code != 0 {
			t.Errorf("%s: %+v", tool, got)
		}
	}
	if got := runWith(t, "", "lint", objects, "-o", "json"); got.Code != 0 {
		t.Errorf("lint: %+v", got)
	}
}

func TestImport_FailsWithOneLinePerKey(t *testing.T) {
	t.Parallel()
	file := testFile(t, "x.clad.toml", "[tool]\nname = 'x'\n[session]\nstartup_command = 'psql'\n")
	got := runWith(t, "", "import", file)
	if got.Code != 1 || got.Out != "" || strings.Count(got.Err, "\n") != 2 ||
		!strings.Contains(got.Err, "error: "+file+": tool.version: ") || !strings.Contains(got.Err, "error: "+file+": session: ") {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{
		{"import"}, {"import", "/no/such/file"}, {"import", file, "--types", "/no/such/file"}, {"import", file, "--scope", "/no/such/file"}, {"import", file, "-o", "toml"},
	} {
		if got := runWith(t, "", args...); got.Code != 1 || got.Out != "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestImport_TakesMCPServersFromFlags(t *testing.T) {
	t.Parallel()
	file := testFile(t, "x.clad.toml", "[tool]\nname = 'x'\nversion = '1'\n[mcp]\nserver = 'hub'\ntool = 'go'\n")
	got := runWith(t, "", "import", file, "--mcp-server", "hub=https://mcp.example.com/", "--mcp-tool-digest", "go="+strings.Repeat("a", 64))
	if got.Code != 0 || !strings.Contains(got.Out, "url: https://mcp.example.com/") {
		t.Errorf("%+v", got)
	}
}

const lintYAML = `# a comment
apiVersion: assent.dev/v1alpha1
kind: ToolManifest
metadata:
  name: danger
spec:
  version: "1"
  riskTier: high
  arguments:
  - name: a
    type: string
  command:
    image: registry.example/tool:latest
    argv:
    - sh
    - -c
    - "{a}"
---
apiVersion: v1
kind: List
items:
- apiVersion: assent.dev/v1alpha1
  kind: ToolScope
  metadata: {name: wide, namespace: other}
  spec: {targets: [0.0.0.0/0]}
- apiVersion: assent.dev/v1alpha1
  kind: ArgumentType
  metadata: {name: loop}
  spec: {base: loop}
`

func TestLint_ExitsWithCode2OnErrors(t *testing.T) {
	t.Parallel()
	file := testFile(t, "tool.yaml", lintYAML)
	var printed struct {
		Findings []struct {
			Rule, Level, Kind, Namespace, Name, Field, File string
			Line                                            int
		}
	}
	got := runWith(t, "", "lint", "-f", file, "-o", "json")
	if err := json.Unmarshal([]byte(got.Out), &printed); err != nil || got.Code != 2 || got.Err != "" {
		t.Fatalf("%v, %+v", err, got)
	}
	lines := map[string]int{}
	for _, f := range printed.Findings {
		lines[f.Namespace+" "+f.Name+" "+f.Rule] = f.Line
		if f.File != file {
			t.Errorf("finding %+v", f)
		}
	}
	want := map[string]int{
		"default danger risk-without-approval": 8, "default danger image-tag": 13, "default danger shell": 15,
		"default danger no-option-terminator": 17, "default loop does-not-compile": 29, "default loop unused-object": 28,
		"other wide wide-scope": 25, "other wide unused-object": 24,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestLint_PrintsTextAndSARIF(t *testing.T) {
	t.Parallel()
	text := runWith(t, lintYAML, "lint", "-")
	if text.Code != 2 || !strings.Contains(text.Out, "-:15: error: ToolManifest danger: spec.command.argv[0]: ") || !strings.Contains(text.Out, " [shell]\n    ") {
		t.Errorf("%+v", text)
	}
	sarif := runWith(t, lintYAML, "lint", "-f", "-", "-o", "sarif")
	var log struct {
		Version string
		Runs    []struct{ Results []any }
	}
	if err := json.Unmarshal([]byte(sarif.Out), &log); err != nil || sarif.Code != 2 || log.Version != "2.1.0" || len(log.Runs[0].Results) != 8 {
		t.Errorf("%v\n%+v", err, sarif)
	}
}

func TestLint_TakesFlags(t *testing.T) {
	t.Parallel()
	file := testFile(t, "tool.yaml", lintYAML)
	got := runWith(t, "", "lint", file, "--allow-image-tags", "--disable", "shell,risk-without-approval", "--disable", "does-not-compile")
	if got.Code != 0 || strings.Contains(got.Out, "error:") || !strings.Contains(got.Out, "[wide-scope]") {
		t.Errorf("%+v", got)
	}
	rules := runWith(t, "", "lint", "--rules")
	if rules.Code != 0 || !strings.Contains(rules.Out, "shell (error): ") {
		t.Errorf("%+v", rules)
	}
	for name, args := range map[string][]string{
		"no files": {}, "another rule": {file, "--disable", "no-such-rule"}, "another format": {file, "-o", "xml"}, "a file that is not": {"/no/such/file"},
		"a field that is not": {testFile(t, "bad.yaml", strings.Replace(lintYAML, "riskTier", "riskLevel", 1))},
	} {
		if got := runWith(t, "", append([]string{"lint"}, args...)...); got.Code != 1 || got.Out != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSchema_DescribesToolsForModels(t *testing.T) {
	t.Parallel()
	objects := testFile(t, "tool.yaml", importNmap(t).Out)
	for format, keys := range map[string][]string{
		"mcp": {"description", "inputSchema", "name", "outputSchema"}, "anthropic": {"description", "input_schema", "name"}, "openai": {"function", "type"},
	} {
		got := runWith(t, "", "schema", "-f", objects, "--tool", "nmap-scan", "--format", format)
		var printed map[string]any
		if err := json.Unmarshal([]byte(got.Out), &printed); err != nil || got.Code != 0 {
			t.Fatalf("%s: %v, %+v", format, err, got)
		}
		if diff := cmp.Diff(keys, sorted(printed)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
		if !strings.Contains(got.Out, `"nmap-scan"`) || !strings.Contains(got.Out, `"additionalProperties": false`) {
			t.Errorf("%s: %s", format, got.Out)
		}
	}
	all := runWith(t, "", "schema", objects)
	var list []map[string]any
	if err := json.Unmarshal([]byte(all.Out), &list); err != nil || len(list) != 1 {
		t.Errorf("%v, %+v", err, all)
	}
	for name, args := range map[string][]string{"another tool": {objects, "--tool", "x"}, "another format": {objects, "--format", "x"}} {
		if got := runWith(t, "", append([]string{"schema"}, args...)...); got.Code != 1 || got.Out != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func sorted(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
