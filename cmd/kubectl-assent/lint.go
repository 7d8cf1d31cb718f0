// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/contract/lint"
	"github.com/assent-dev/assent/internal/proposal"
)

// lintOptions are the flags of kubectl assent lint.
type lintOptions struct {
	files     []string
	namespace string
	output    string
	disable   []string
	allowTags bool
	rules     bool
}

// newLintCommand looks for manifests that should not be written as they are.
func newLintCommand(streams Streams) *cobra.Command {
	var o lintOptions
	c := &cobra.Command{
		Use:   "lint -f FILES…",
		Short: "Find manifests that work and should not be written like that",
		Long: "Find manifests, types and scopes that cannot be used, or that leave more to agents than their author may have\n" +
			"meant. Every rule says why; --rules lists them. The exit code is 2 when there are errors.",
		Example: "  kubectl assent lint -f deploy/\n" +
			"  kubectl assent lint deploy/*.yaml -o sarif > assent.sarif",
		RunE: func(_ *cobra.Command, args []string) error {
			o.files = append(o.files, args...)
			return o.run(streams)
		},
	}
	f := c.Flags()
	f.StringArrayVarP(&o.files, "filename", "f", nil, "file or folder with documents, - for standard input; can be given several times")
	f.StringVarP(&o.namespace, "namespace", "n", "default", "namespace of documents that name none")
	f.StringVarP(&o.output, "output", "o", "text", "output format: text, json or sarif")
	f.StringSliceVar(&o.disable, "disable", nil, "rules whose findings are left out")
	f.BoolVar(&o.allowTags, "allow-image-tags", false, "accept command images without a digest")
	f.BoolVar(&o.rules, "rules", false, "print the rules")
	return c
}

func (o *lintOptions) run(streams Streams) error {
	if unknown := lint.UnknownRules(o.disable); unknown != nil {
		return fmt.Errorf("there is no rule %s; see --rules", strings.Join(unknown, ", "))
	}
	if o.rules {
		return printRules(streams.Out)
	}
	if len(o.files) == 0 {
		return errors.New("no files: name them with -f")
	}
	findings, err := o.check(streams)
	if err != nil {
		return err
	}
	if err := o.print(findings, streams.Out); err != nil {
		return fmt.Errorf("writing the findings: %w", err)
	}
	if slices.ContainsFunc(findings, func(f lint.Finding) bool { return f.Level == lint.Error }) {
		return &ExitError{Code: exitRefused}
	}
	return nil
}

// check reads the files and looks at every namespace in them.
func (o *lintOptions) check(streams Streams) ([]lint.Finding, error) {
	var input []byte
	if slices.Contains(o.files, "-") { // read twice: for the objects, and for where they are
		var err error
		if input, err = io.ReadAll(io.LimitReader(streams.In, maxDocumentBytes)); err != nil {
			return nil, err
		}
	}
	d, err := loadDocuments(o.files, bytes.NewReader(input))
	if err != nil {
		return nil, err
	}
	namespaces, err := o.namespaces(d)
	if err != nil {
		return nil, err
	}
	places, err := findPlaces(o.files, o.namespace, input)
	if err != nil {
		return nil, err
	}
	var findings []lint.Finding
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		for _, f := range lint.Check(*namespaces[name], lint.Options{AllowImageTags: o.allowTags, Disable: o.disable}) {
			f.File, f.Line = places.of(f)
			findings = append(findings, f)
		}
	}
	return findings, nil
}

// namespaces sorts the objects of the files by namespace.
func (o *lintOptions) namespaces(d *documents) (map[string]*lint.Namespace, error) {
	out := map[string]*lint.Namespace{}
	in := func(namespace string) *lint.Namespace {
		namespace = cmp.Or(namespace, o.namespace)
		if out[namespace] == nil {
			out[namespace] = &lint.Namespace{
				Name: namespace, Manifests: map[string]contract.Manifest{},
				Types: map[string]contract.ArgumentType{}, Scopes: map[string]contract.Scope{},
			}
		}
		return out[namespace]
	}
	for i := range d.Manifests {
		m := &d.Manifests[i]
		converted, err := proposal.ContractInput(m, proposal.Tools{}, "", true)
		if err != nil {
			return nil, err
		}
		in(m.Namespace).Manifests[m.Name] = converted.Manifest
	}
	for i := range d.Types {
		t := &d.Types[i]
		converted, err := proposal.ArgumentTypes(d.Types[i : i+1])
		if err != nil {
			return nil, err
		}
		in(t.Namespace).Types[t.Name] = converted[t.Name]
	}
	for i := range d.Scopes {
		s := &d.Scopes[i]
		converted, err := proposal.Scope(s)
		if err != nil {
			return nil, err
		}
		in(s.Namespace).Scopes[s.Name] = converted
	}
	return out, nil
}

// findingList is the JSON form of findings.
type findingList struct {
	Findings []lint.Finding `json:"findings"`
}

func (o *lintOptions) print(findings []lint.Finding, to io.Writer) error {
	switch o.output {
	case "json":
		return encodeLine(to, findingList{append([]lint.Finding{}, findings...)})
	case "sarif":
		text, err := lint.SARIF(findings)
		if err != nil {
			return err
		}
		_, err = to.Write(append(text, '\n'))
		return err
	case "text":
		for _, f := range findings {
			if _, err := fmt.Fprintf(to, "%s:%d: %s: %s %s: %s: %s [%s]\n    %s\n", f.File, f.Line, f.Level, f.Kind, f.Name, f.Field, f.Message, f.Rule, f.Why); err != nil {
				return err
			}
		}
		return nil
	default:
		return fmt.Errorf("output format must be text, json or sarif, not %q", o.output)
	}
}

func printRules(to io.Writer) error {
	for _, r := range lint.Rules() {
		if _, err := fmt.Fprintf(to, "%s (%s): %s\n    %s\n", r.ID, r.Level, r.Summary, r.Why); err != nil {
			return fmt.Errorf("writing the rules: %w", err)
		}
	}
	return nil
}
