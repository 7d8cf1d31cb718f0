// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	gotypes "go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// One file grants calls and one file hands them out. That there is no other is
// what makes both worth reading, so it is looked up in the types of the whole
// source and not believed.
const (
	commitPoint = "controllers/commit.go"
	redeemer    = "execution/redeem.go"

	jobType    = "k8s.io/api/batch/v1.Job"
	ticketKind = module + "internal/attest.KindTicket"
)

// use is one call in the source, as file: what it does.
type use struct{ file, what string }

// source is the type-checked source of what is shipped.
type source struct {
	fset  *token.FileSet
	root  string
	files map[*ast.File]*gotypes.Info
}

func TestJobs_AreCreatedByTheCommitPointAlone(t *testing.T) {
	s := shipped(t, "..")
	if diff := cmp.Diff([]use{{commitPoint, "creates a Job"}}, s.calls(createsJob), cmp.AllowUnexported(use{})); diff != "" {
		t.Errorf("what may create Jobs (-want +got):\n%s", diff)
	}
}

func TestTickets_AreSignedByTheRedeemEndpointAlone(t *testing.T) {
	s := shipped(t, "..")
	if diff := cmp.Diff([]use{{redeemer, "signs a ticket"}}, s.calls(signsTicket), cmp.AllowUnexported(use{})); diff != "" {
		t.Errorf("what may sign tickets (-want +got):\n%s", diff)
	}
}

// The search itself must find what it is for.
func TestSearch_FindsEachWayToCreateAJobOrSignATicket(t *testing.T) {
	s := shipped(t, "testdata/commitpoint")
	want := []use{
		{"jobs.go", "creates a Job"},
		{"jobs.go", "creates an object of a type that cannot be told"},
		{"jobs.go", "creates an object of a type that cannot be told"},
		{"jobs.go", "applies or patches, which can create"},
		{"jobs.go", "uses a client that can create anything"},
		{"tickets.go", "signs a ticket"},
		{"tickets.go", "signs something that cannot be told"},
	}
	got := append(s.calls(createsJob), s.calls(signsTicket)...)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(use{})); diff != "" {
		t.Errorf("what is found (-want +got):\n%s", diff)
	}
}

// createsJob says how a call may create a Job; empty when it cannot.
func createsJob(info *gotypes.Info, call *ast.CallExpr) string {
	f := callee(info, call)
	if f == nil || f.Pkg() == nil || !strings.HasPrefix(f.Pkg().Path(), "k8s.io/client-go/") && !strings.HasPrefix(f.Pkg().Path(), "sigs.k8s.io/controller-runtime/") {
		return ""
	}
	path := f.Pkg().Path()
	if strings.HasPrefix(path, "k8s.io/client-go/kubernetes") || strings.HasPrefix(path, "k8s.io/client-go/dynamic") || (path == "k8s.io/client-go/rest" && f.Name() == "Post") {
		return "uses a client that can create anything"
	}
	switch f.Name() {
	case "Apply":
		return "applies or patches, which can create"
	case "Patch":
		if len(call.Args) > 2 && strings.HasSuffix(typeName(info, call.Args[1]), jobType) {
			return "applies or patches, which can create"
		}
	case "Create", "CreateOrUpdate", "CreateOrPatch":
		return createdType(info, call)
	}
	return ""
}

func createdType(info *gotypes.Info, call *ast.CallExpr) string {
	for _, a := range call.Args {
		name := typeName(info, a)
		switch {
		case name == jobType:
			return "creates a Job"
		case strings.HasSuffix(name, ".Object"):
			return "creates an object of a type that cannot be told"
		case strings.HasSuffix(name, "unstructured.Unstructured"):
			return "creates an object of a type that cannot be told"
		}
	}
	return ""
}

func signsTicket(info *gotypes.Info, call *ast.CallExpr) string {
	f := callee(info, call)
	if f == nil || f.FullName() != "(*"+module+"internal/attest.Keyring).Sign" {
		return ""
	}
	var used gotypes.Object
	switch kind := ast.Unparen(call.Args[0]).(type) {
	case *ast.SelectorExpr:
		used = info.Uses[kind.Sel]
	case *ast.Ident:
		used = info.Uses[kind]
	}
	constant, ok := used.(*gotypes.Const)
	if !ok {
		return "signs something that cannot be told"
	}
	if constant.Pkg().Path()+"."+constant.Name() == ticketKind {
		return "signs a ticket"
	}
	return ""
}

func callee(info *gotypes.Info, call *ast.CallExpr) *gotypes.Func {
	var id *ast.Ident
	switch f := ast.Unparen(call.Fun).(type) {
	case *ast.SelectorExpr:
		id = f.Sel
	case *ast.Ident:
		id = f
	default:
		return nil
	}
	f, _ := info.Uses[id].(*gotypes.Func)
	return f
}

// typeName is the package path and name of an expression's type, without its pointer.
func typeName(info *gotypes.Info, e ast.Expr) string {
	t := gotypes.Unalias(info.TypeOf(e))
	if p, ok := t.(*gotypes.Pointer); ok {
		t = gotypes.Unalias(p.Elem())
	}
	return gotypes.TypeString(t, nil)
}

// calls are the calls that a rule has a word for, in the order of the source.
func (s *source) calls(rule func(*gotypes.Info, *ast.CallExpr) string) []use {
	var out []use
	for _, file := range slices.SortedFunc(maps.Keys(s.files), func(a, b *ast.File) int {
		return strings.Compare(s.name(a), s.name(b))
	}) {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if what := rule(s.files[file], call); what != "" {
					out = append(out, use{s.name(file), what})
				}
			}
			return true
		})
	}
	return out
}

func (s *source) name(f *ast.File) string {
	rel, err := filepath.Rel(s.root, s.fset.Position(f.Package).Filename)
	if err != nil {
		return err.Error()
	}
	return filepath.ToSlash(rel)
}

// listedPackage is what the go command says about one package.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// shipped type-checks the packages below a folder, without tests and without
// the programs of the test suites. It skips internal/attest itself, whose
// helpers sign what they are told.
func shipped(t *testing.T, folder string) *source {
	t.Helper()
	root, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	packages := goList(t, root)
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	s := &source{fset: token.NewFileSet(), root: root, files: map[*ast.File]*gotypes.Info{}}
	from := importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for _, p := range packages {
		if p.DepOnly || strings.HasPrefix(p.ImportPath, module+"test/") || p.ImportPath == module+"internal/attest" {
			continue
		}
		if err := s.check(p, from); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *source) check(p listedPackage, from gotypes.Importer) error {
	info := &gotypes.Info{Types: map[ast.Expr]gotypes.TypeAndValue{}, Uses: map[*ast.Ident]gotypes.Object{}}
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parsing: %w", err)
		}
		files = append(files, f)
		s.files[f] = info
	}
	config := gotypes.Config{Importer: from}
	if _, err := config.Check(p.ImportPath, s.fset, files, info); err != nil {
		return fmt.Errorf("type-checking %s: %w", p.ImportPath, err)
	}
	return nil
}

func goList(t *testing.T, dir string) []listedPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,DepOnly", "./...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.String())
	}
	var packages []listedPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("reading the answer of go list: %v", err)
		}
		packages = append(packages, p)
	}
}
