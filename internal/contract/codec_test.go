// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/snapshot"
)

func TestDecode_RefusesWhatCouldBeReadInTwoWays(t *testing.T) {
	for name, v := range map[string]struct{ text, want string }{
		"an unknown member":          {`{"version": "1", "comand": {}}`, `at "/comand"`},
		"a member in another case":   {`{"Version": "1"}`, `at "/Version"`},
		"a member of another level":  {`{"version": "1", "command": {"shell": true}}`, `at "/command/shell"`},
		"a duplicate member":         {`{"version": "1", "version": "2"}`, "at byte"},
		"ill-formed UTF-8":           {"{\"version\": \"\xff\"}", "at byte"},
		"a second document":          {`{"version": "1"} {}`, "at byte"},
		"no document":                {``, "at byte"},
		"another type":               {`{"version": 1}`, `at "/version": wrong type`},
		"a fraction as a default":    {`{"arguments": [{"default": 1.5}]}`, `at "/arguments/0/default": must be a whole number`},
		"a large default":            {`{"arguments": [{"default": 3000000000}]}`, `at "/arguments/0/default": must be a whole number`},
		"a boolean as a default":     {`{"arguments": [{"default": true}]}`, `at "/arguments/0/default": must be a whole number`},
		"a number as a duration":     {`{"execution": {"timeout": 5}}`, `at "/execution/timeout": must be a duration`},
		"a text that is no duration": {`{"execution": {"timeout": "5 minutes"}}`, `at "/execution/timeout": must be a duration`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := contract.DecodeManifest([]byte(v.text))
			if err == nil || !strings.HasPrefix(err.Error(), "decoding the tool manifest: ") || !strings.Contains(err.Error(), v.want) {
				t.Errorf("error %v, want %q", err, v.want)
			}
		})
	}
	if _, err := contract.DecodeArgumentType([]byte(`{"base": "string", "bases": 1}`)); err == nil {
		t.Error("an unknown member of an ArgumentType is accepted")
	}
	if _, err := contract.DecodeScope([]byte(`{"target": []}`)); err == nil {
		t.Error("an unknown member of a ToolScope is accepted")
	}
}

func TestDecode_KeepsEveryField(t *testing.T) {
	for _, v := range []any{&contract.Manifest{}, &contract.ArgumentType{}, &contract.Scope{}} {
		fillAll(reflect.ValueOf(v).Elem())
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		switch v.(type) {
		case *contract.Manifest:
			m, err := contract.DecodeManifest(text)
			got = &m
			if err != nil {
				t.Fatal(err)
			}
		case *contract.ArgumentType:
			a, err := contract.DecodeArgumentType(text)
			got = &a
			if err != nil {
				t.Fatal(err)
			}
		case *contract.Scope:
			s, err := contract.DecodeScope(text)
			got = &s
			if err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(v, got); diff != "" {
			t.Errorf("%T (-sent +read):\n%s", v, diff)
		}
	}
}

// fillAll sets every field to something other than its zero value.
func fillAll(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillAll(v.Index(0))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k": "v"}))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[contract.IntOrString]() {
			v.Set(reflect.ValueOf(contract.IntOrString{IsString: true, Str: "x"}))
			return
		}
		for _, field := range v.Fields() {
			fillAll(field)
		}
	default:
		panic(v.Type())
	}
}

// effects are effects with every field set, and with as few as possible.
func effects() map[string]contract.Effect {
	var full contract.Effect
	fillAll(reflect.ValueOf(&full).Elem())
	return map[string]contract.Effect{
		"a full command":  {Command: full.Command},
		"a full request":  {HTTP: full.HTTP},
		"a full MCP call": {MCP: full.MCP},
		"a short command": {Command: &contract.CommandCall{Image: "i", Argv: []string{"", "\x00\x1f\"\\/\b\t\n\f\r\u2028<>&é😀"}, WorkingDir: "/"}},
		"a short request": {HTTP: &contract.HTTPCall{Method: "GET", URL: "u"}},
		"a short MCP":     {MCP: &contract.MCPCall{URL: "u", Tool: "t", ToolDigest: "d", Arguments: `{"a":1}`}},
	}
}

func TestEncodeEffect_IsCanonicalAndReadBack(t *testing.T) {
	for name, e := range effects() {
		t.Run(name, func(t *testing.T) {
			text, err := contract.EncodeEffect(e)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := snapshot.DecodeText(text)
			if err != nil {
				t.Fatal(err)
			}
			if want, err := snapshot.CanonicalObject(tree.(map[string]any)); err != nil || want != text {
				t.Errorf("encoded as %s, canonical is %s, %v", text, want, err)
			}
			got, err := contract.DecodeEffect(text)
			if diff := cmp.Diff(e, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestDecodeEffect_AcceptsOneTextPerEffect(t *testing.T) {
	const fine = `{"command":{"argv":["x"],"image":"i","workingDir":"/"}}`
	if _, err := contract.DecodeEffect(fine); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]struct {
		text string
		want error
	}{
		"a blank":           {strings.Replace(fine, ":", ": ", 1), contract.ErrEffectNotCanonical},
		"another order":     {`{"command":{"image":"i","argv":["x"],"workingDir":"/"}}`, contract.ErrEffectNotCanonical},
		"an escape":         {strings.Replace(fine, `"x"`, `"\u0078"`, 1), contract.ErrEffectNotCanonical},
		"an empty list":     {`{"command":{"argv":["x"],"env":[],"image":"i","workingDir":"/"}}`, contract.ErrEffectNotCanonical},
		"no words":          {`{"command":{"argv":[],"image":"i","workingDir":"/"}}`, contract.ErrEffectNotCanonical},
		"null":              {`{"command":null}`, contract.ErrEffectKind},
		"nothing":           {`{}`, contract.ErrEffectKind},
		"two effects":       {`{"command":{"argv":["x"],"image":"i","workingDir":"/"},"mcp":{"arguments":"{}","tool":"t","toolDigest":"d","url":"u"}}`, contract.ErrEffectKind},
		"an unknown member": {`{"command":{"argv":["x"],"image":"i","workingDir":"/","x":1}}`, nil},
		"no JSON":           {`{`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := contract.DecodeEffect(v.text)
			if err == nil || v.want != nil && !errors.Is(err, v.want) || e.Kind() != "" {
				t.Errorf("%+v, error %v, want %v", e, err, v.want)
			}
		})
	}
}

func TestEncodeEffect_RefusesWhatHasNoText(t *testing.T) {
	if _, err := contract.EncodeEffect(contract.Effect{}); !errors.Is(err, contract.ErrEffectKind) {
		t.Errorf("error %v", err)
	}
	var why *snapshot.Error
	_, err := contract.EncodeEffect(contract.Effect{Command: &contract.CommandCall{Argv: []string{"\uffff"}}})
	if !errors.As(err, &why) || why.Reason != snapshot.ReasonNoncharacter {
		t.Errorf("error %v", err)
	}
	_, err = contract.EncodeEffect(contract.Effect{Command: &contract.CommandCall{Argv: []string{"\xff"}}})
	if err == nil || strings.Contains(err.Error(), "\xff") {
		t.Errorf("error %v", err)
	}
}

func TestCompileErrors_LeadToEachError(t *testing.T) {
	list := compileErrors(t, input(t, `{"version": "", "riskTier": "x", "command": {"image": "`+image+`", "argv": ["t"]}}`))
	if len(list.Unwrap()) != 2 || !errors.Is(list, list[1]) {
		t.Errorf("errors %v", list)
	}
	if want := "spec.version: InvalidManifest: must have between 1 and 64 bytes; spec.riskTier: "; !strings.HasPrefix(list.Error(), want) {
		t.Errorf("error %q", list)
	}
}

func TestSplitWords_SplitsLikeAShellAndExpandsNothing(t *testing.T) {
	for text, want := range map[string][]string{
		``:                            nil,
		"  \t\n ":                     nil,
		`a  b`:                        {"a", "b"},
		`'a b' "c d" e\ f`:            {"a b", "c d", "e f"},
		`a'b'"c"`:                     {"abc"},
		`'' ""`:                       {"", ""},
		`"a\"b\\c\$d\` + "`" + `e\f"`: {"a\"b\\c$d`e\\f"},
		`'a\'`:                        {`a\`},
		`$HOME *.txt ~ a;b|c #d`:      {"$HOME", "*.txt", "~", "a;b|c", "#d"},
		`{a} x{b}`:                    {"{a}", "x{b}"},
	} {
		got, err := contract.SplitWords(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{`'a`, `"a`, `a\`, `"a\`} {
		if got, err := contract.SplitWords(text); err == nil {
			t.Errorf("%q is split into %q", text, got)
		}
	}
}

func TestStartsShell_FindsShellsByName(t *testing.T) {
	for words, want := range map[string]bool{
		"": false, "tool": false, "/bin/sh -c x": true, "env -i A=b /usr/bin/zsh": true, "timeout 5 pwsh.exe": true,
		"tool sh": false, "shred": false, "env tool": false,
	} {
		if got := contract.StartsShell(strings.Fields(words)); got != want {
			t.Errorf("%q: %v", words, got)
		}
	}
}
