// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fill sets every field of a value to something, so that changing one field
// changes one thing.
func fill(v reflect.Value) {
	if v.Type() == reflect.TypeFor[IntOrString]() {
		v.Set(reflect.ValueOf(IntOrString{IsString: true, Str: "1"}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element)
		v.SetMapIndex(reflect.ValueOf("key"), element)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	default:
		panic(v.Type())
	}
}

// changes calls visit once per leaf of v, with the leaf changed, and undoes the
// change afterwards.
func changes(path string, v reflect.Value, visit func(path string)) {
	change := func(set func()) {
		before := reflect.New(v.Type()).Elem()
		before.Set(v)
		set()
		visit(path)
		v.Set(before)
	}
	if v.Type() == reflect.TypeFor[IntOrString]() {
		change(func() { v.Set(reflect.ValueOf(IntOrString{Int: 1})) })
		change(func() { v.Set(reflect.ValueOf(IntOrString{IsString: true, Str: "2"})) })
		return
	}
	switch v.Kind() {
	case reflect.String:
		change(func() { v.SetString(v.String() + "y") })
	case reflect.Bool:
		change(func() { v.SetBool(!v.Bool()) })
	case reflect.Int32, reflect.Int64:
		change(func() { v.SetInt(v.Int() + 1) })
	case reflect.Pointer:
		if v.Elem().Kind() != reflect.Struct || v.Type() == reflect.TypeFor[*IntOrString]() {
			change(func() { v.SetZero() })
		}
		changes(path, v.Elem(), visit)
	case reflect.Slice:
		change(func() { v.Set(v.Slice(0, 1)) })
		for i := range v.Len() {
			changes(fmt.Sprintf("%s[%d]", path, i), v.Index(i), visit)
		}
	case reflect.Map:
		change(func() {
			renamed := reflect.MakeMap(v.Type())
			for _, k := range v.MapKeys() {
				renamed.SetMapIndex(reflect.ValueOf(k.String()+"y"), v.MapIndex(k))
			}
			v.Set(renamed)
		})
		for _, k := range v.MapKeys() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(v.MapIndex(k))
			changes(path+"["+k.String()+"]", element, func(inner string) {
				old := v.MapIndex(k)
				v.SetMapIndex(k, element)
				visit(inner)
				v.SetMapIndex(k, old)
			})
		}
	case reflect.Struct:
		for i := range v.NumField() {
			changes(path+"."+v.Type().Field(i).Name, v.Field(i), visit)
		}
	default:
		panic(v.Type())
	}
}

func TestContractHash_CoversEveryFieldOfEveryObject(t *testing.T) {
	// The fields of resolved are not exported, so that they are changed through
	// an equal struct whose fields are.
	var r struct {
		Name        string
		Manifest    Manifest
		Types       map[string]ArgumentType
		ScopeName   string
		Scope       *Scope
		RunnerImage string
	}
	if n, want := reflect.TypeOf(r).NumField(), reflect.TypeFor[resolved]().NumField(); n != want {
		t.Fatalf("resolved has %d fields, the test changes %d", want, n)
	}
	fill(reflect.ValueOf(&r).Elem())
	hash := func() string {
		h, err := contractHash(resolved{
			name: r.Name, manifest: r.Manifest, types: r.Types, scopeName: r.ScopeName, scope: r.Scope, runnerImage: r.RunnerImage,
		})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	seen := map[string]string{hash(): "nothing"}
	unchanged := hash()
	var paths []string
	changes("contract", reflect.ValueOf(&r).Elem(), func(path string) {
		paths = append(paths, path)
		h := hash()
		if h == unchanged {
			t.Errorf("changing %s does not change the hash", path)
		}
		seen[h] = path
	})
	if len(seen) != len(paths)+1 {
		t.Errorf("%d changes gave %d hashes", len(paths), len(seen)-1)
	}
	if hash() != unchanged {
		t.Error("the test left something changed")
	}
	for _, part := range []string{".Manifest.Command.Argv[1]", ".Types[key].ArgumentConstraints.Clamp", ".Scope.Exclude[0]", ".Manifest.Execution.Egress[0].PodLabels[key]"} {
		if !slices.Contains(paths, "contract"+part) {
			t.Errorf("%s was not changed", part)
		}
	}
	t.Logf("%d changes", len(paths))
}

func TestCompile_HashMovesWithWhatTheContractUses(t *testing.T) {
	base := func() Input {
		return Input{
			Name: "tool", Namespace: "default", RunnerImage: "runner@sha256:1",
			Manifest: Manifest{
				Version:   "1",
				Arguments: []Argument{{Name: "a", Type: "outer"}},
				Command:   &CommandTemplate{Image: "r.example/t@sha256:" + strings.Repeat("0", 64), Argv: []string{"t", "{a}"}},
			},
			Types: map[string]ArgumentType{
				"outer": {Base: "inner"}, "inner": {Base: "string", ArgumentConstraints: ArgumentConstraints{ScopeCheck: true}},
				"other": {Base: "string"},
			},
			Scopes: map[string]Scope{"lab": {Targets: []string{"10.0.0.0/8"}}},
		}
	}
	hash := func(change func(*Input)) string {
		in := base()
		change(&in)
		c, err := Compile(in)
		if err != nil {
			t.Fatal(err)
		}
		return c.Hash()
	}
	unchanged := hash(func(*Input) {})
	for name, change := range map[string]func(*Input){
		"the name":   func(in *Input) { in.Name = "tool2" },
		"the runner": func(in *Input) { in.RunnerImage = "runner@sha256:2" },
		"a type of the chain": func(in *Input) {
			in.Types["inner"] = ArgumentType{Base: "string", Description: "x", ArgumentConstraints: ArgumentConstraints{ScopeCheck: true}}
		},
		"the scope":         func(in *Input) { in.Scopes["lab"] = Scope{Targets: []string{"10.0.0.0/9"}} },
		"the scope's name":  func(in *Input) { in.Scopes = map[string]Scope{"lab2": {Targets: []string{"10.0.0.0/8"}}} },
		"no scope":          func(in *Input) { in.Scopes = nil },
		"the description":   func(in *Input) { in.Manifest.Description = "x" },
		"a default written": func(in *Input) { in.Manifest.RiskTier = "high" },
	} {
		if hash(change) == unchanged {
			t.Errorf("changing %s does not change the hash", name)
		}
	}
	for name, change := range map[string]func(*Input){
		"the namespace":           func(in *Input) { in.Namespace = "other" },
		"an unused type":          func(in *Input) { in.Types["other"] = ArgumentType{Base: "integer"} },
		"a default written out":   func(in *Input) { in.Manifest.RiskTier, in.Manifest.ArgumentEncoding = "medium", EncodingTyped },
		"an empty list":           func(in *Input) { in.Manifest.Secrets = []SecretReference{} },
		"the defaults of a Job":   func(in *Input) { in.Manifest.Execution = &Execution{CPU: "500m"} },
		"accepting images by tag": func(in *Input) { in.AllowImageTags = true },
	} {
		if hash(change) != unchanged {
			t.Errorf("changing %s changes the hash", name)
		}
	}
}

func TestContractHash_RefusesTextThatIsNone(t *testing.T) {
	for name, r := range map[string]resolved{
		"manifest": {manifest: Manifest{Version: "\xff"}},
		"type":     {types: map[string]ArgumentType{"x": {Base: "\xff"}}},
		"scope":    {scope: &Scope{Targets: []string{"\xff"}}},
		"name":     {name: "\xff"},
	} {
		if h, err := contractHash(r); err == nil {
			t.Errorf("%s: hash %s of text that is not UTF-8", name, h)
		}
	}
}

// goldenManifest uses every kind of part that a contract can have.
const goldenManifest = `{"version": "1.0.0", "toolName": "golden_tool", "description": "é", "riskTier": "high", "humanApproval": true,
	"arguments": [
		{"name": "target", "type": "site", "required": true},
		{"name": "count", "type": "integer", "min": 1, "max": "10", "clamp": true, "default": 3},
		{"name": "ratio", "type": "number", "default": "0.5", "sensitive": true}],
	"command": {"image": "registry.example/tool@sha256:0000000000000000000000000000000000000000000000000000000000000000",
		"argv": ["tool", "--count={count}", "--ratio={ratio}", "{target}"], "env": [{"name": "TOKEN", "secret": "t"}, {"name": "EMPTY", "value": ""}]},
	"secrets": [{"name": "t", "secretName": "s", "key": "k"}],
	"approval": {"timeout": "90m", "requirements": [{"group": "sre", "count": 2}]},
	"execution": {"egress": [{"namespace": "db", "podLabels": {"app": "x"}, "ports": [5432]}]}}`

// TestHashes_AreStable fails when a change of the code gives stored approvals
// another meaning. Then the change is wrong, or it needs another version of the
// hash.
func TestHashes_AreStable(t *testing.T) {
	m, err := DecodeManifest([]byte(goldenManifest))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compile(Input{
		Name: "golden", Namespace: "shop", Manifest: m, RunnerImage: "registry.example/runner@sha256:1",
		Types:  map[string]ArgumentType{"site": {Base: "scope_target", Description: "a site"}, "other": {Base: "string"}},
		Scopes: map[string]Scope{"lab": {Domains: []string{"*.example.com"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Prepare("system:serviceaccount:shop:agent", `{"target":"WWW.example.com","count":99}`)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{p.ArgsCanonicalJSON, p.ArgsDigest, p.EffectJSON, p.ContractHash, p.ProposalHash, p.Fingerprint}
	want := []string{
		`{"count":10,"ratio":0.5,"target":"www.example.com"}`,
		"75a74ce883f53c6cfe36cabdb429b57ae69162c408c49c4c5b34d1ebd4630f83",
		`{"command":{"argv":["tool","--count=10","--ratio=0.5","www.example.com"],"env":[{"name":"TOKEN","secret":{"key":"k","name":"t","secretName":"s"}},{"name":"EMPTY","value":""}],` +
			`"image":"registry.example/tool@sha256:0000000000000000000000000000000000000000000000000000000000000000","workingDir":"/work"}}`,
		"6c465427da7f81093f6743542282910a8bae9e8daa98f3ea32b21cdfa6cb18e8",
		"b37f0f9c8a8a6e63321c752b528cf38dfb055d9e2aeaf2f98e89f01f4587493b",
		"3de0232fd79e925a0dd0b72dd5d2024ce5cfda45b40a268f9dedaf99c36fe2e3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCompile_KeepsNothingOfItsInput(t *testing.T) {
	m, err := DecodeManifest([]byte(strings.Replace(goldenManifest, `"site"`, `"scope_target"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Name: "golden", Namespace: "shop", Manifest: m, Scopes: map[string]Scope{"lab": {Domains: []string{"*.example.com"}}}}
	c, err := Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	const call = `{"target":"www.example.com"}`
	want, err := c.Prepare("agent", call)
	if err != nil {
		t.Fatal(err)
	}
	m.Command.Argv[0], m.Command.Env[0].Name, *m.Command.Env[1].Value = "evil", "EVIL", "evil"
	m.Secrets[0].SecretName, m.Approval.Requirements[0].Count, *m.Approval.Timeout = "evil", 1, 1
	m.Execution.Egress[0].PodLabels["app"], in.Scopes["lab"].Domains[0] = "evil", "evil.test"
	got, err := c.Prepare("agent", call)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if c.Approval().Requirements[0].Count != 2 || c.Execution().Egress[0].PodLabels["app"] != "x" {
		t.Error("the contract changed with its input")
	}
}
