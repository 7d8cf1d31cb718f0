// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hack holds the tests of the repository's own rules.
package hack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/assent-dev/assent/"

// rule says what the packages at or below a path may import.
type rule struct {
	// path of the packages, relative to the module. The longest match counts.
	path string
	// own are the paths in this module that may be imported directly. A
	// package may always import those below its own rule's path.
	own []string
	// modules are the modules and packages outside the standard library that
	// may be imported directly. Nil means any.
	modules []string
	// never are path prefixes that must not be reached, however indirectly.
	never []string
	// except are prefixes below never that are harmless.
	except []string
	// pure packages decide and do nothing else: they do not log, run programs
	// or speak HTTP.
	pure bool
}

// Prefixes that separate the tiers. Tier 0 knows no Kubernetes, so that what
// is hashed does not move with an API version and the runner stays small; tier
// 1 knows its types but talks to nobody.
var (
	kubernetes = []string{"k8s.io/", "sigs.k8s.io/"}
	clients    = []string{"k8s.io/client-go/", "sigs.k8s.io/controller-runtime/"}
	cedar      = []string{"github.com/cedar-policy/"}
	types      = []string{"k8s.io/api/", "k8s.io/apimachinery/"}
	json2      = "github.com/go-json-experiment/json/"
)

// matrix is the whole of the import rules. A package without a rule is an
// error, so that nobody forgets to place a new one.
var matrix = []rule{
	// Tier 0
	{path: "snapshot", modules: []string{json2, "github.com/gowebpki/jcs/"}, never: join(kubernetes, cedar), pure: true},
	{
		path: "internal/attest", own: []string{"snapshot"}, never: join(kubernetes, cedar), pure: true,
		modules: []string{json2, "github.com/secure-systems-lab/go-securesystemslib/", "github.com/in-toto/attestation/", "golang.org/x/mod/sumdb/note/"},
	},
	{
		path: "internal/contract", own: []string{"snapshot", "internal/attest"}, never: join(kubernetes, cedar), pure: true,
		modules: []string{json2, "github.com/santhosh-tekuri/jsonschema/", "github.com/BurntSushi/toml/", "golang.org/x/net/idna/"},
	},
	{
		path: "internal/policy", own: []string{"snapshot", "internal/contract"}, never: kubernetes, pure: true,
		modules: []string{json2, "github.com/cedar-policy/cedar-go/"},
	},
	{
		// The journal's library logs through klog, which is no Kubernetes client.
		path: "internal/audit", own: []string{"snapshot", "internal/attest"}, never: join(kubernetes, cedar),
		except:  []string{"k8s.io/klog/"},
		modules: []string{json2, "github.com/transparency-dev/", "golang.org/x/mod/sumdb/note/"},
	},

	// Tier 1
	{path: "api/v1alpha1", modules: types, never: clients, pure: true},
	{
		path: "internal/proposal", never: clients, pure: true, modules: join(types, []string{json2}),
		own: []string{"api/v1alpha1", "snapshot", "internal/attest", "internal/contract", "internal/policy", "internal/audit"},
	},
	{
		path: "internal/job", own: []string{"api/v1alpha1", "snapshot", "internal/contract"}, never: join(clients, cedar), pure: true,
		modules: join(types, []string{"sigs.k8s.io/json/"}),
	},

	// Tier 2
	{path: "internal/tracing", own: []string{}, never: join(kubernetes, cedar), except: []string{"k8s.io/klog/"}, modules: []string{"go.opentelemetry.io/"}},
	{path: "internal/observe", own: []string{"api/v1alpha1", "snapshot", "internal/attest", "internal/contract", "internal/policy", "internal/proposal"}},
	{
		path: "internal/runner", own: []string{"snapshot", "internal/attest", "internal/contract"}, never: join(kubernetes, cedar),
		modules: []string{json2, "golang.org/x/sys/", "golang.org/x/net/", "github.com/modelcontextprotocol/go-sdk/"},
	},
	{
		path: "controllers",
		own: []string{
			"api/v1alpha1", "snapshot", "internal/attest", "internal/audit", "internal/contract",
			"internal/job", "internal/observe", "internal/policy", "internal/proposal", "internal/tracing",
		},
	},
	{
		path: "webhook",
		own: []string{
			"api/v1alpha1", "snapshot", "internal/attest", "internal/audit", "internal/contract",
			"internal/observe", "internal/policy", "internal/proposal", "internal/tracing",
		},
	},
	{
		path: "execution",
		own: []string{
			"api/v1alpha1", "snapshot", "internal/attest", "internal/audit", "internal/contract",
			"internal/job", "internal/observe", "internal/proposal", "internal/tracing",
		},
	},

	// Tier 3
	{
		path: "cmd/assent",
		own: []string{
			"api/v1alpha1", "snapshot", "internal/attest", "internal/audit", "internal/contract", "internal/job",
			"internal/observe", "internal/policy", "internal/proposal", "internal/tracing", "controllers", "webhook", "execution", "config",
		},
	},
	{path: "cmd/assent-runner", own: []string{"snapshot", "internal/attest", "internal/contract", "internal/runner"}, never: join(kubernetes, cedar)},
	{
		path: "cmd/kubectl-assent",
		own: []string{
			"api/v1alpha1", "snapshot", "internal/attest", "internal/audit", "internal/contract",
			"internal/policy", "internal/proposal", "internal/runner",
		},
	},

	// What is not shipped
	{path: "config", modules: []string{}},
	{path: "hack", never: []string{module + "controllers", module + "webhook", module + "execution"}},
	{path: "test/demo/cmd", modules: []string{}},
	{path: "test/demo/cmd/ledger", own: []string{}, modules: []string{"github.com/modelcontextprotocol/go-sdk/"}, never: kubernetes},
	{
		path: "test",
		own: []string{
			"api/v1alpha1", "snapshot", "internal/attest", "internal/audit", "internal/contract", "internal/job",
			"internal/observe", "internal/policy", "internal/proposal", "internal/runner", "internal/tracing",
			"controllers", "webhook", "execution", "config",
		},
	},
}

func join(lists ...[]string) []string { return slices.Concat(lists...) }

// pkg is what "go list" says of a package.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func TestImports_StayInsideTheMatrix(t *testing.T) {
	packages := list(t)
	if len(packages) < 10 {
		t.Fatalf("go list found only %d packages", len(packages))
	}
	for _, p := range packages {
		for _, problem := range check(p) {
			t.Error(problem)
		}
	}
}

// list runs "go list" on the module.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = ".."
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, problems.String())
	}
	var packages []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// within reports whether an import path is at or below one of the prefixes.
func within(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return strings.HasPrefix(path+"/", strings.TrimSuffix(prefix, "/")+"/")
	})
}

func ruleFor(path string) (rule, bool) {
	var best rule
	found := false
	for _, r := range matrix {
		if within(path, []string{r.path}) && (!found || len(r.path) > len(best.path)) {
			best, found = r, true
		}
	}
	return best, found
}

// check returns what is wrong with the imports of a package.
func check(p pkg) []string {
	path := strings.TrimPrefix(p.ImportPath, module)
	r, ok := ruleFor(path)
	if !ok {
		return []string{path + ": there is no import rule for this package: add one to hack/imports_test.go"}
	}
	var problems []string
	for _, imported := range p.Imports {
		if problem := r.direct(imported); problem != "" {
			problems = append(problems, fmt.Sprintf("%s: %s", path, problem))
		}
	}
	for _, reached := range p.Deps {
		if within(reached, r.never) && !within(reached, r.except) {
			problems = append(problems, fmt.Sprintf("%s: it reaches %s", path, reached))
		}
	}
	return problems
}

// direct returns what is wrong with one direct import, or nothing.
func (r rule) direct(imported string) string {
	if own, ok := strings.CutPrefix(imported, module); ok {
		if !within(own, append([]string{r.path}, r.own...)) {
			return "it must not import " + own
		}
		return ""
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		if r.pure && within(imported, []string{"log", "net/http", "os/exec"}) {
			return "it decides and does nothing else, so it must not import " + imported
		}
		return ""
	}
	if r.modules != nil && !within(imported, r.modules) {
		return "it must not import " + imported
	}
	return ""
}

func TestCheck_FindsEachKindOfViolation(t *testing.T) {
	for name, tc := range map[string]struct {
		pkg  pkg
		want []string
	}{
		"a package without a rule": {
			pkg{ImportPath: module + "util"},
			[]string{"util: there is no import rule for this package: add one to hack/imports_test.go"},
		},
		"an import of a higher tier": {
			pkg{ImportPath: module + "snapshot", Imports: []string{module + "internal/contract"}},
			[]string{"snapshot: it must not import internal/contract"},
		},
		"a module that the tier does not use": {
			pkg{ImportPath: module + "internal/contract/scope", Imports: []string{"sigs.k8s.io/yaml"}, Deps: []string{"sigs.k8s.io/yaml"}},
			[]string{"internal/contract/scope: it must not import sigs.k8s.io/yaml", "internal/contract/scope: it reaches sigs.k8s.io/yaml"},
		},
		"a client reached through a third package": {
			pkg{ImportPath: module + "internal/proposal", Deps: []string{"k8s.io/client-go/rest"}},
			[]string{"internal/proposal: it reaches k8s.io/client-go/rest"},
		},
		"Kubernetes in the runner": {
			pkg{ImportPath: module + "cmd/assent-runner", Deps: []string{"k8s.io/klog/v2"}},
			[]string{"cmd/assent-runner: it reaches k8s.io/klog/v2"},
		},
		"a log line in a package that only decides": {
			pkg{ImportPath: module + "internal/policy", Imports: []string{"log/slog"}},
			[]string{"internal/policy: it decides and does nothing else, so it must not import log/slog"},
		},
		"the controllers in the webhook": {
			pkg{ImportPath: module + "webhook", Imports: []string{module + "controllers"}},
			[]string{"webhook: it must not import controllers"},
		},
		"one command in another": {
			pkg{ImportPath: module + "cmd/assent", Imports: []string{module + "cmd/assent-runner"}},
			[]string{"cmd/assent: it must not import cmd/assent-runner"},
		},
		"what the rules allow": {
			pkg{
				ImportPath: module + "internal/audit/journal",
				Imports:    []string{"context", "net/http", module + "internal/audit", "github.com/transparency-dev/tessera"},
				Deps:       []string{"k8s.io/klog/v2", "github.com/transparency-dev/tessera"},
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, check(tc.pkg)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
