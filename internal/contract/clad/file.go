// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package clad

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

// MaxFileBytes bounds a file that is imported.
const MaxFileBytes = 256 << 10

// file is the layout of a .clad.toml file.
type file struct {
	Tool    tool                 `toml:"tool"`
	Args    map[string]*argument `toml:"args"`
	Command *command             `toml:"command"`
	HTTP    *request             `toml:"http"`
	MCP     *mcp                 `toml:"mcp"`
	Output  *output              `toml:"output"`
	Session map[string]any       `toml:"session"`
	Browser map[string]any       `toml:"browser"`
}

type tool struct {
	Name          string    `toml:"name"`
	Version       string    `toml:"version"`
	Binary        string    `toml:"binary"`
	Description   string    `toml:"description"`
	Mode          string    `toml:"mode"`
	Dispatch      string    `toml:"dispatch"`
	Timeout       *int64    `toml:"timeout_seconds"`
	RiskTier      string    `toml:"risk_tier"`
	HumanApproval bool      `toml:"human_approval"`
	Cedar         *cedar    `toml:"cedar"`
	Evidence      *evidence `toml:"evidence"`
}

type cedar struct {
	Resource string `toml:"resource"`
	Action   string `toml:"action"`
}

type evidence struct {
	OutputDir string `toml:"output_dir"`
	Capture   bool   `toml:"capture"`
	Hash      string `toml:"hash"`
}

// constraints are the keys that arguments and custom types share.
type constraints struct {
	Allowed    []string `toml:"allowed"`
	Pattern    string   `toml:"pattern"`
	Min        any      `toml:"min"`
	Max        any      `toml:"max"`
	MinFloat   any      `toml:"min_float"`
	MaxFloat   any      `toml:"max_float"`
	Clamp      bool     `toml:"clamp"`
	Sanitize   []string `toml:"sanitize"`
	Schemes    []string `toml:"schemes"`
	ScopeCheck bool     `toml:"scope_check"`
}

type argument struct {
	Position    int64  `toml:"position"`
	Required    bool   `toml:"required"`
	Type        string `toml:"type"`
	Description string `toml:"description"`
	Default     any    `toml:"default"`
	constraints
}

type command struct {
	Template     string                       `toml:"template"`
	Exec         []string                     `toml:"exec"`
	Executor     string                       `toml:"executor"`
	Defaults     map[string]any               `toml:"defaults"`
	Mappings     map[string]map[string]string `toml:"mappings"`
	Conditionals map[string]conditional       `toml:"conditionals"`
}

type conditional struct {
	When     string `toml:"when"`
	Template string `toml:"template"`
}

type request struct {
	Method        string            `toml:"method"`
	URL           string            `toml:"url"`
	Headers       map[string]string `toml:"headers"`
	BodyTemplate  string            `toml:"body_template"`
	SuccessStatus []int32           `toml:"success_status"`
	ErrorStatus   []int32           `toml:"error_status"`
}

type mcp struct {
	Server   string            `toml:"server"`
	Tool     string            `toml:"tool"`
	FieldMap map[string]string `toml:"field_map"`
}

type output struct {
	Format   string         `toml:"format"`
	Parser   string         `toml:"parser"`
	Envelope *bool          `toml:"envelope"`
	Schema   map[string]any `toml:"schema"`
}

// project is the layout of toolclad.toml.
type project struct {
	Types map[string]*customType `toml:"types"`
}

type customType struct {
	Base        string `toml:"base"`
	Description string `toml:"description"`
	constraints
}

// scopeFile is the layout of a scope file.
type scopeFile struct {
	Scope struct {
		Targets []string `toml:"targets"`
		Domains []string `toml:"domains"`
		Exclude []string `toml:"exclude"`
	} `toml:"scope"`
}

// Error is one thing in a file that cannot be imported.
type Error struct {
	// File is the path as it was given.
	File string
	// Key is the key in the file, such as "args.target.type". It is empty
	// when the file cannot be read at all.
	Key string
	// Message says what is wrong and what to do instead.
	Message string
}

// Error gives file, key and message.
func (e *Error) Error() string {
	if e.Key == "" {
		return e.File + ": " + e.Message
	}
	return e.File + ": " + e.Key + ": " + e.Message
}

// reader collects the errors of one file.
type reader struct {
	path   string
	errors []error
	notes  []Note
}

func (r *reader) fail(key, format string, args ...any) {
	r.errors = append(r.errors, &Error{File: r.path, Key: key, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) note(key, format string, args ...any) {
	r.notes = append(r.notes, Note{File: r.path, Key: key, Message: fmt.Sprintf(format, args...)})
}

// decode reads TOML and refuses keys that the layout does not have.
func (r *reader) decode(text []byte, out any) (toml.MetaData, bool) {
	if len(text) > MaxFileBytes {
		r.fail("", "is longer than %d bytes", MaxFileBytes)
		return toml.MetaData{}, false
	}
	meta, err := toml.Decode(string(text), out)
	if err != nil {
		key := ""
		if m := lastKey.FindStringSubmatch(err.Error()); m != nil {
			key = m[1]
		}
		r.fail(key, "cannot be read: %v", err)
		return meta, false
	}
	for _, key := range meta.Undecoded() {
		if !isFree(key) {
			r.fail(key.String(), "%s", adviceForKey(key))
		}
	}
	return meta, true
}

// lastKey finds the key in an error of the TOML library about a value's type.
var lastKey = regexp.MustCompile(`\(last key "([^"]+)"\)`)

// isFree reports whether a key is below one that may hold anything.
func isFree(key toml.Key) bool {
	return len(key) > 1 && (key[0] == "session" || key[0] == "browser" || key[0] == "output" && key[1] == "schema")
}

// adviceForKey says what to do about a key that the layout does not have.
func adviceForKey(key toml.Key) string {
	if strings.HasPrefix(key.String(), "tool.scope") {
		return "has no counterpart; give the scope with --scope"
	}
	return "is not a key of the format, or has no counterpart; remove it"
}
