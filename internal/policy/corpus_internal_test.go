// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/google/go-cmp/cmp"
)

// corpusCase is one file of the corpus that cedar-go ships: what the reference
// implementation of Cedar, in Rust, decided.
type corpusCase struct {
	Policies string `json:"policies"`
	Entities string `json:"entities"`
	Requests []struct {
		Description string          `json:"description"`
		Principal   types.EntityUID `json:"principal"`
		Action      types.EntityUID `json:"action"`
		Resource    types.EntityUID `json:"resource"`
		Context     types.Record    `json:"context"`
		Decision    string          `json:"decision"`
		Reasons     []string        `json:"reason"`
		Errors      []string        `json:"errors"`
	} `json:"requests"`
}

// corpusFiles reads the archive that lies in the folder of the cedar-go module.
func corpusFiles(t *testing.T) map[string][]byte {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cedar-policy/cedar-go").Output()
	if err != nil {
		t.Fatalf("finding the cedar-go module: %v", err)
	}
	file, err := os.Open(filepath.Join(strings.TrimSpace(string(dir)), "corpus-tests.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// ancestors lists an entity and everything that it lies in.
func ancestors(entities types.EntityMap, uid types.EntityUID) []types.EntityUID {
	all := []types.EntityUID{uid}
	for i := 0; i < len(all); i++ {
		for parent := range entities[all[i]].Parents.All() {
			all = appendNew(all, parent)
		}
	}
	return all
}

// result is a decision in a form that can be compared.
type result struct {
	Allow           bool
	Reasons, Errors []string
}

func sortedIDs[T any](list []T, id func(T) string) []string {
	ids := []string{}
	for _, one := range list {
		ids = append(ids, id(one))
	}
	slices.Sort(ids)
	return ids
}

// indexed asks our evaluator about the policies that our index finds.
func indexed(ix index, entities types.EntityMap, request types.Request) result {
	found := ix.candidates(nil, ancestors(entities, request.Action), ancestors(entities, request.Resource))
	slices.SortFunc(found, func(a, b *statement) int { return strings.Compare(a.id, b.id) })
	e := &evaluator{policies: slices.Compact(found)}
	o := e.ask(entities, request)
	all := slices.Concat(o.permits, o.forbids)
	return result{
		Allow:   len(o.permits) > 0,
		Reasons: sortedIDs(all, func(id string) string { return id }),
		Errors:  sortedIDs(o.errors, func(e EvaluationError) string { return e.Policy }),
	}
}

// plain asks cedar-go about all policies.
func plain(c *Compiled, entities types.EntityMap, request types.Request) result {
	set := cedar.NewPolicySet()
	for _, s := range c.statements {
		set.Add(cedar.PolicyID(s.id), s.policy)
	}
	decision, diagnostic := cedar.Authorize(set, entities, request)
	return result{
		Allow:   decision == types.Allow,
		Reasons: sortedIDs(diagnostic.Reasons, func(r types.DiagnosticReason) string { return string(r.PolicyID) }),
		Errors:  sortedIDs(diagnostic.Errors, func(e types.DiagnosticError) string { return string(e.PolicyID) }),
	}
}

// Neither the limits, nor the index, nor the evaluator may change what Cedar
// decides, on any case of the corpus.
func TestCorpus_WrapperAndIndexChangeNoDecision(t *testing.T) {
	t.Parallel()
	files := corpusFiles(t)
	cases, requests := 0, 0
	for name, text := range files {
		if !strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".entities.json") {
			continue
		}
		var c corpusCase
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cases++
		requests += len(c.Requests)
		runCorpusCase(t, name, files, &c)
	}
	// A run over nothing would pass, too.
	if cases < 7000 || requests < 50000 {
		t.Errorf("the corpus had %d cases with %d requests, which is too few to prove anything", cases, requests)
	}
	t.Logf("%d cases, %d requests", cases, requests)
}

func runCorpusCase(t *testing.T, name string, files map[string][]byte, c *corpusCase) {
	t.Helper()
	var entities types.EntityMap
	if err := json.Unmarshal(files[c.Entities], &entities); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	compiled, problems := Compile(Source{Name: "c", Text: string(files[c.Policies])}, Limits{})
	if len(problems) > 0 {
		t.Errorf("%s: the policies are refused: %v", name, problems)
		return
	}
	ix := newIndex([]*Compiled{compiled})
	reference := func(id string) string { return "/c#" + strings.TrimPrefix(id, "policy") }
	for _, r := range c.Requests {
		request := types.Request{Principal: r.Principal, Action: r.Action, Resource: r.Resource, Context: r.Context}
		want := result{
			Allow:   r.Decision == "allow",
			Reasons: sortedIDs(r.Reasons, reference), Errors: sortedIDs(r.Errors, reference),
		}
		got := indexed(ix, entities, request)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, %s: against the reference (-want +got):\n%s", name, r.Description, diff)
		}
		if diff := cmp.Diff(plain(compiled, entities, request), got); diff != "" {
			t.Errorf("%s, %s: against cedar-go (-want +got):\n%s", name, r.Description, diff)
		}
	}
}

// The decision that our evaluator makes of each outcome is the fail-closed one.
func TestCorpus_ErrorsAlwaysDeny(t *testing.T) {
	t.Parallel()
	e := &evaluator{request: &request{built: true}}
	for _, o := range []outcome{
		{permits: []string{"a"}, failure: ReasonPolicyError, errors: []EvaluationError{{Policy: "b", Message: "m"}}},
		{permits: []string{"a"}, forbids: []string{"b"}},
		{},
	} {
		if d := e.decision(o); d.Answer != Deny {
			t.Errorf("outcome %+v: %+v, want Deny", o, d)
		}
	}
	if d := e.decision(outcome{permits: []string{"a"}}); d.Answer != Allow {
		t.Errorf("%s: want Allow", fmt.Sprint(d))
	}
}
