// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Command generate copies what controller-gen wrote under config/ into the two
// charts, in the form that Helm needs. It is the last step of "make generate".
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	root := flag.String("root", ".", "folder of the module")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	if err := copyCRDs(filepath.Join(root, "config/crd"), filepath.Join(root, "charts/assent-crds/templates")); err != nil {
		return err
	}
	files := filepath.Join(root, "charts/assent/files")
	for _, s := range []struct {
		from string
		into map[string]string
	}{
		{"config/rbac/role.yaml", map[string]string{"ClusterRole": "clusterrole.yaml", "Role": "role.yaml"}},
		{"config/webhook/manifests.yaml", map[string]string{
			"MutatingWebhookConfiguration": "mutating.yaml", "ValidatingWebhookConfiguration": "validating.yaml",
		}},
	} {
		if err := split(filepath.Join(root, s.from), files, s.into); err != nil {
			return err
		}
	}
	policies, err := os.ReadFile(filepath.Join(root, "config/admission/policies.yaml"))
	if err != nil {
		return fmt.Errorf("reading the admission policies: %w", err)
	}
	if err := os.WriteFile(filepath.Join(files, "policies.yaml"), policies, 0o644); err != nil {
		return fmt.Errorf("writing the admission policies: %w", err)
	}
	return nil
}

// copyCRDs replaces the CRDs in the chart by those in from.
func copyCRDs(from, to string) error {
	stale, err := filepath.Glob(filepath.Join(to, "*.yaml"))
	if err != nil {
		return err
	}
	for _, path := range stale {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing the old copy: %w", err)
		}
	}
	crds, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil {
		return err
	}
	if len(crds) == 0 {
		return fmt.Errorf("there are no CRDs in %s", from)
	}
	for _, path := range crds {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading a CRD: %w", err)
		}
		template, err := crdTemplate(data)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(path)), template, 0o644); err != nil {
			return fmt.Errorf("writing a CRD: %w", err)
		}
	}
	return nil
}

// crdTemplate turns a CRD into a chart template. Helm must never delete a CRD,
// since every object of its kind would go with it; and braces in descriptions
// must not be taken for template actions.
func crdTemplate(crd []byte) ([]byte, error) {
	const annotations = "\n  annotations:\n"
	if bytes.Count(crd, []byte(annotations)) != 1 {
		return nil, errors.New("metadata.annotations is missing: was this written by controller-gen?")
	}
	text := strings.ReplaceAll(string(crd), "{{", `{{ "{{" }}`)
	return []byte(strings.Replace(text, annotations, annotations+"    helm.sh/resource-policy: keep\n", 1)), nil
}

// split writes each document of a file into a file of its own, chosen by its
// kind. Every kind must occur exactly once, and no other.
func split(from, dir string, into map[string]string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	written := map[string]bool{}
	for document := range strings.SplitSeq(strings.TrimPrefix(string(data), "---\n"), "\n---\n") {
		kind := kindOf(document)
		name, ok := into[kind]
		if !ok || written[kind] {
			return fmt.Errorf("%s: kind %q is unexpected here", from, kind)
		}
		written[kind] = true
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.TrimSuffix(document, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	if len(written) != len(into) {
		return fmt.Errorf("%s: it holds %d of the %d expected kinds", from, len(written), len(into))
	}
	return nil
}

func kindOf(document string) string {
	for line := range strings.Lines(document) {
		if kind, ok := strings.CutPrefix(line, "kind: "); ok {
			return strings.TrimSpace(kind)
		}
	}
	return ""
}
