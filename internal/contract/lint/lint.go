// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/contract"
)

// Namespace is what a namespace holds, by the names of objects.
type Namespace struct {
	Name      string
	Manifests map[string]contract.Manifest
	Types     map[string]contract.ArgumentType
	Scopes    map[string]contract.Scope
}

// Options change what is looked for.
type Options struct {
	// AllowImageTags is for operators that run with --allow-image-tags.
	AllowImageTags bool
	// Disable lists rules whose findings are left out.
	Disable []string
}

// Finding is one thing that was found.
type Finding struct {
	Rule  string `json:"rule"`
	Level Level  `json:"level"`
	// Kind, Namespace and Name of the object.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Field is a path in the object, such as spec.command.argv[0].
	Field string `json:"field"`
	// Message says what was found there.
	Message string `json:"message"`
	// Why is that of the rule.
	Why string `json:"why"`
	// File and Line are where the field is written, when that is known.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// linter collects the findings of one namespace.
type linter struct {
	namespace Namespace
	options   Options
	rules     map[string]Rule
	findings  []Finding
	// object is the one that is being looked at.
	kind, name string
	// usedTypes and usedScopes are those that manifests refer to.
	usedTypes, usedScopes map[string]bool
}

// UnknownRules returns the names among ids that are no rules.
func UnknownRules(ids []string) []string {
	var unknown []string
	for _, id := range ids {
		if !slices.ContainsFunc(Rules(), func(r Rule) bool { return r.ID == id }) {
			unknown = append(unknown, id)
		}
	}
	return unknown
}

// Check looks at everything in a namespace. Findings are ordered by object and
// then by field.
func Check(n Namespace, o Options) []Finding {
	l := &linter{namespace: n, options: o, rules: map[string]Rule{}, usedTypes: map[string]bool{}, usedScopes: map[string]bool{}}
	for _, r := range Rules() {
		l.rules[r.ID] = r
	}
	for _, name := range slices.Sorted(maps.Keys(n.Manifests)) {
		l.kind, l.name = "ToolManifest", name
		l.checkManifest(n.Manifests[name])
	}
	for _, name := range slices.Sorted(maps.Keys(n.Types)) {
		l.kind, l.name = "ArgumentType", name
		l.checkType(n.Types[name])
	}
	for _, name := range slices.Sorted(maps.Keys(n.Scopes)) {
		l.kind, l.name = "ToolScope", name
		l.checkScope(n.Scopes[name])
	}
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(l.findings)
}

// find records a finding.
func (l *linter) find(rule, field, format string, args ...any) {
	if slices.Contains(l.options.Disable, rule) {
		return
	}
	r := l.rules[rule]
	l.findings = append(l.findings, Finding{
		Rule: rule, Level: r.Level, Kind: l.kind, Namespace: l.namespace.Name, Name: l.name, Field: field,
		Message: fmt.Sprintf(format, args...), Why: r.Why,
	})
}

// checkManifest looks at one manifest: whether it compiles, and then at how it
// is written, whether it does or not.
func (l *linter) checkManifest(m contract.Manifest) {
	compiled, err := contract.Compile(contract.Input{
		Name: l.name, Namespace: cmp.Or(l.namespace.Name, "default"), Manifest: m,
		Types: l.namespace.Types, Scopes: l.namespace.Scopes, AllowImageTags: true,
	})
	var wrong contract.CompileErrors
	errors.As(err, &wrong)
	for _, e := range wrong {
		l.compileError(e)
	}
	if compiled != nil {
		for _, p := range compiled.Problems() {
			l.find(ruleNoScope, p.Field, "%s", p.Message)
		}
	}
	a := &manifest{linter: l, Manifest: m}
	a.resolve()
	a.checkArguments()
	a.checkGovernance()
	a.checkNetwork()
	switch {
	case m.Command != nil:
		a.checkCommand(m.Command)
	case m.HTTP != nil:
		a.checkRequest(m.HTTP)
	}
}

// compileError turns what the compiler says into findings. Problems of types and
// scopes are found at those objects.
func (l *linter) compileError(e *contract.CompileError) {
	switch {
	case strings.HasPrefix(e.Field, "ArgumentType/") || strings.HasPrefix(e.Field, "ToolScope/"):
	case e.Reason == contract.ReasonInvalidEffect && strings.HasSuffix(e.Field, ".hosts") || e.Reason == contract.ReasonCredentialHostMismatch:
		l.find(ruleSecretHosts, e.Field, "%s", e.Message)
	case e.Reason == contract.ReasonInvalidEffect && e.Field == "spec.command.argv[0]" && strings.HasPrefix(e.Message, "starts a shell"):
		// found by its own rule
	default:
		l.find(ruleCompile, e.Field, "%s: %s", e.Reason, e.Message)
	}
}

// checkType looks at one ArgumentType.
func (l *linter) checkType(t contract.ArgumentType) {
	var wrong contract.CompileErrors
	errors.As(contract.CheckType(l.name, l.namespace.Types), &wrong)
	for _, e := range wrong {
		// A problem of a base is found there.
		if field, own := strings.CutPrefix(e.Field, "ArgumentType/"+l.name+": "); own {
			l.find(ruleCompile, field, "%s: %s", e.Reason, e.Message)
		}
	}
	l.checkPattern("spec.pattern", t.Pattern)
	l.checkSchema("spec.schema", t.Schema, true)
	if !l.usedTypes[l.name] {
		l.find(ruleUnused, "metadata.name", "the type is not used")
	}
}

// checkScope looks at one ToolScope.
func (l *linter) checkScope(s contract.Scope) {
	var wrong contract.CompileErrors
	errors.As(contract.CheckScope(l.name, s), &wrong)
	for _, e := range wrong {
		_, field, _ := strings.Cut(e.Field, ": ")
		l.find(ruleCompile, field, "%s: %s", e.Reason, e.Message)
	}
	for i, target := range s.Targets {
		if isWideRange(target) {
			l.find(ruleWideScope, fmt.Sprintf("spec.targets[%d]", i), "the range %s is very large", target)
		}
	}
	for i, domain := range s.Domains {
		if rest, ok := strings.CutPrefix(domain, "*."); ok && !strings.Contains(rest, ".") {
			l.find(ruleWideScope, fmt.Sprintf("spec.domains[%d]", i), "the pattern %s is a whole top-level domain", domain)
		}
	}
	if !l.usedScopes[l.name] {
		l.find(ruleUnused, "metadata.name", "the scope is not used")
	}
}
