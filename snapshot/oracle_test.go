// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/assent-dev/assent/snapshot"
)

// oracle is the scheme in JavaScript. Go's JSON libraries have their number code
// in common, so only an implementation in another language can contradict them.
const oracle = "../hack/oracle/snapshot.mjs"

// oracleAnswer is a line of the oracle.
type oracleAnswer struct {
	Accept    bool   `json:"accept"`
	Canonical string `json:"canonical"`
	Digest    string `json:"digest"`
	Hash      string `json:"hash"`
}

// askOracle sends the questions and returns as many answers.
func askOracle[T any](t *testing.T, questions []T) []oracleAnswer {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: the oracle in another language needs node (version 20 or later) in PATH; " +
			"without it nothing but Go has checked the numbers")
	}
	var input bytes.Buffer
	e := json.NewEncoder(&input) // escapes U+2028, which would end a line for node
	for _, q := range questions {
		if err := e.Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(node, oracle)
	command.Stdin, command.Stderr = &input, os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("oracle: %v", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	var answers []oracleAnswer
	for lines.Scan() {
		var a oracleAnswer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	if err := lines.Err(); err != nil || len(answers) != len(questions) {
		t.Fatalf("%d answers to %d questions: %v", len(answers), len(questions), err)
	}
	return answers
}

// textQuestion asks for the snapshot of a text.
type textQuestion struct {
	Input []byte `json:"input_base64"`
}

func TestOracle_AgreesOnGeneratedDocuments(t *testing.T) {
	t.Parallel()
	const seed = 20260715
	count := 50_000
	if testing.Short() {
		count = 5_000
	}
	g := newGenerator(seed)
	questions := make([]textQuestion, count)
	for i := range questions {
		questions[i].Input = []byte(g.document())
	}
	accepted, wrong := 0, 0
	for i, a := range askOracle(t, questions) {
		text := string(questions[i].Input)
		s, err := freezeText(text)
		var got oracleAnswer
		if err == nil {
			accepted++
			got = oracleAnswer{Accept: true, Canonical: s.Canonical(), Digest: s.Digest()}
		}
		if got != a {
			t.Errorf("document %d, %q:\nGo     %+v (%v)\noracle %+v", i, text, got, err, a)
			if wrong++; wrong == 20 {
				t.Fatal("and more")
			}
		}
	}
	// Otherwise the test would compare refusals only, or no refusals at all.
	if accepted < count/4 || accepted > count*3/4 {
		t.Errorf("%d of %d documents are accepted; the generator is lopsided", accepted, count)
	}
	t.Logf("%d documents, %d accepted, seed %d", count, accepted, seed)
}

func TestOracle_AgreesOnVectors(t *testing.T) {
	t.Parallel()
	vectors := jsonVectors(t)
	var questions []textQuestion
	for _, v := range vectors {
		questions = append(questions, textQuestion{v.Input})
	}
	for i, a := range askOracle(t, questions) {
		if a.Accept != vectors[i].Accept || a.Canonical != vectors[i].Canonical {
			t.Errorf("%s: oracle %v %q, vector %v %q",
				vectors[i].Name, a.Accept, a.Canonical, vectors[i].Accept, vectors[i].Canonical)
		}
	}
}

func TestOracle_AgreesOnLimits(t *testing.T) {
	t.Parallel()
	var questions []textQuestion
	for _, text := range []string{
		strings.Repeat(" ", snapshot.MaxBytes-2) + "{}", strings.Repeat(" ", snapshot.MaxBytes-1) + "{}",
		nested(snapshot.MaxDepth), nested(snapshot.MaxDepth + 1),
		list("1", snapshot.MaxValues), list("1", snapshot.MaxValues+1),
		`{"a":` + list("1", snapshot.MaxValues-1) + `}`, `{"a":` + list("1", snapshot.MaxValues) + `}`,
		`["` + strings.Repeat("é", snapshot.MaxStringBytes/2) + `"]`, `["` + strings.Repeat("é", snapshot.MaxStringBytes/2) + `x"]`,
		"0." + strings.Repeat("1", snapshot.MaxNumberBytes-2), "0." + strings.Repeat("1", snapshot.MaxNumberBytes-1),
		list("1e20", 2978), list("1e20", 2979), list("1e20", 2980),
	} {
		questions = append(questions, textQuestion{[]byte(text)})
	}
	accepted := 0
	for i, a := range askOracle(t, questions) {
		s, err := freezeText(string(questions[i].Input))
		if (err == nil) != a.Accept || (err == nil && s.Canonical() != a.Canonical) {
			t.Errorf("limit %d: oracle accepts %v, Go says %v", i, a.Accept, err)
		}
		if a.Accept {
			accepted++
		}
	}
	if accepted != 7 {
		t.Errorf("%d texts are accepted, want 7", accepted)
	}
}

func TestOracle_AgreesOnHashes(t *testing.T) {
	t.Parallel()
	vectors := readJSON[hashVectors](t, hashVectorFile)
	var questions []map[string]any
	var want []string
	for _, v := range vectors.Proposals {
		questions = append(questions, map[string]any{"agent": v.Agent, "tool": v.Tool, "arguments": v.Args})
		want = append(want, v.Hash)
	}
	for _, v := range vectors.Records {
		questions = append(questions, map[string]any{"kind": v.Kind, "members_base64": v.Members})
		want = append(want, v.Hash)
	}
	for i, a := range askOracle(t, questions) {
		if a.Hash != want[i] {
			t.Errorf("question %d: oracle %s, vector %s", i, a.Hash, want[i])
		}
	}
}
