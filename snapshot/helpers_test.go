// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/snapshot"
)

// jsonVector is one entry of testdata/json_vectors.json.
type jsonVector struct {
	Name      string `json:"name"`
	Input     []byte `json:"input_base64"`
	Accept    bool   `json:"accept"`
	Canonical string `json:"canonical"`
	Why       string `json:"why"`
}

// jsonVectors reads the vectors that say exactly what is accepted.
func jsonVectors(t testing.TB) []jsonVector {
	t.Helper()
	return readJSON[[]jsonVector](t, "testdata/json_vectors.json")
}

// readJSON reads a file of test data.
func readJSON[T any](t testing.TB, name string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(readFile(t, name), &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// freezeText is the way of a text that did not come from kube-apiserver.
func freezeText(text string) (*snapshot.Snapshot, error) {
	tree, err := snapshot.DecodeText(text)
	if err != nil {
		return nil, err
	}
	return snapshot.New(tree)
}

// mustNew freezes a tree that is known to be fine.
func mustNew(t testing.TB, tree any) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.New(tree)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkError compares an error with the only refusal it may be.
func checkError(t *testing.T, err error, want snapshot.Error) {
	t.Helper()
	var got *snapshot.Error
	if !errors.As(err, &got) {
		t.Fatalf("error is %v (%T), want %+v", err, err, want)
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

// nested returns n arrays inside each other.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// list returns an array of n times the same element.
func list(element string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}
