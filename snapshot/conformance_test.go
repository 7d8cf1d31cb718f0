// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"os"
	"testing"
)

// jsonVector is one line of testdata/json_vectors.json.
type jsonVector struct {
	Name      string `json:"name"`
	Input     []byte `json:"input_base64"`
	Accept    bool   `json:"accept"`
	Canonical string `json:"canonical"`
	Why       string `json:"why"`
}

func jsonVectors(t testing.TB) []jsonVector {
	t.Helper()
	text, err := os.ReadFile("testdata/json_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []jsonVector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

func TestVectors_ExactAnswerAndBytes(t *testing.T) {
	for _, v := range jsonVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			tree, err := DecodeText(string(v.Input))
			if err != nil {
				t.Log(err)
				if v.Accept {
					t.Fatal(err)
				}
				return
			}
			s, err := New(tree)
			if err != nil {
				t.Fatal(err)
			}
			if !v.Accept || s.Canonical() != v.Canonical {
				t.Fatalf("accept %v got %q want %q", v.Accept, s.Canonical(), v.Canonical)
			}
		})
	}
}
