// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCRDTemplate_KeepsTheCRDAndEscapesBraces(t *testing.T) {
	in := "kind: CustomResourceDefinition\nmetadata:\n  annotations:\n    generator: x\n  name: a\nspec:\n  description: '{{ and }} stand for braces'\n"
	want := "kind: CustomResourceDefinition\nmetadata:\n  annotations:\n    helm.sh/resource-policy: keep\n    generator: x\n  name: a\nspec:\n  description: '{{ \"{{\" }} and }} stand for braces'\n"
	got, err := crdTemplate([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
}

func TestCRDTemplate_RefusesACRDItCannotProtect(t *testing.T) {
	if _, err := crdTemplate([]byte("kind: CustomResourceDefinition\nmetadata:\n  name: a\n")); err == nil {
		t.Error("a CRD without annotations was accepted: Helm would delete it")
	}
}

func TestCopyCRDs_RemovesWhatIsNoLongerGenerated(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "new.yaml"), "metadata:\n  annotations:\n    a: b\n")
	write(t, filepath.Join(to, "old.yaml"), "x")
	if err := copyCRDs(from, to); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(to, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(to, "new.yaml")}, left); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestSplit_RefusesMissingAndUnexpectedKinds(t *testing.T) {
	into := map[string]string{"Role": "role.yaml", "ClusterRole": "clusterrole.yaml"}
	for name, tc := range map[string]struct{ text, want string }{
		"a kind too few":    {"---\nkind: Role\n", "it holds 1 of the 2 expected kinds"},
		"a kind twice":      {"---\nkind: Role\n---\nkind: Role\n", `kind "Role" is unexpected here`},
		"a kind of another": {"---\nkind: Secret\n", `kind "Secret" is unexpected here`},
	} {
		t.Run(name, func(t *testing.T) {
			from := filepath.Join(t.TempDir(), "in.yaml")
			write(t, from, tc.text)
			err := split(from, t.TempDir(), into)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
