// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/assent-dev/assent/snapshot"
)

// hashVectors is testdata/hash_vectors.json.
type hashVectors struct {
	Snapshots []struct {
		Name      string `json:"name"`
		Input     []byte `json:"input_base64"`
		Canonical string `json:"canonical"`
		Digest    string `json:"digest"`
	} `json:"snapshots"`
	Proposals []struct {
		Name  string `json:"name"`
		Agent string `json:"agent"`
		Tool  string `json:"tool"`
		Args  string `json:"argsCanonicalJson"`
		Hash  string `json:"proposalHash"`
	} `json:"proposals"`
	Records []struct {
		Name      string `json:"name"`
		Kind      string `json:"kind"`
		Members   []byte `json:"members_base64"`
		Canonical string `json:"canonical"`
		Hash      string `json:"hash"`
	} `json:"records"`
}

const hashVectorFile = "testdata/hash_vectors.json"

func TestHashVectors_Snapshots(t *testing.T) {
	t.Parallel()
	for _, v := range readJSON[hashVectors](t, hashVectorFile).Snapshots {
		s, err := freezeText(string(v.Input))
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
		} else if s.Canonical() != v.Canonical || s.Digest() != v.Digest {
			t.Errorf("%s: %s %s, want %s %s", v.Name, s.Canonical(), s.Digest(), v.Canonical, v.Digest)
		}
	}
}

func TestHashVectors_Proposals(t *testing.T) {
	t.Parallel()
	known := map[string]string{}
	for _, v := range readJSON[hashVectors](t, hashVectorFile).Proposals {
		got, err := snapshot.ProposalHash(v.Agent, v.Tool, v.Args)
		if err != nil || got != v.Hash {
			t.Errorf("%s: %s (%v), want %s", v.Name, got, err, v.Hash)
		}
		if other, ok := known[v.Hash]; ok {
			t.Errorf("%s and %s have one hash", v.Name, other)
		}
		known[v.Hash] = v.Name
	}
}

func TestHashVectors_Records(t *testing.T) {
	t.Parallel()
	for _, v := range readJSON[hashVectors](t, hashVectorFile).Records {
		tree, err := snapshot.DecodeText(string(v.Members))
		if err != nil {
			t.Fatal(err)
		}
		members := tree.(map[string]any)
		got, err := snapshot.Hash(v.Kind, members)
		if err != nil || got != v.Hash {
			t.Errorf("%s: %s (%v), want %s", v.Name, got, err, v.Hash)
		}
		members["v"], members["kind"] = 1, v.Kind
		text, err := snapshot.CanonicalObject(members)
		if err != nil || text != v.Canonical {
			t.Errorf("%s: %s (%v), want %s", v.Name, text, err, v.Canonical)
		}
		if sum := sha256.Sum256([]byte(text)); hex.EncodeToString(sum[:]) != v.Hash {
			t.Errorf("%s: the hash is not the SHA-256 of the text", v.Name)
		}
	}
}

// The value of RFC-0016 that every implementation can check first.
func TestProposalHash_OfTheDesign(t *testing.T) {
	t.Parallel()
	got, err := snapshot.ProposalHash("a", "t", "{}")
	if err != nil || got != "ed594f1a871fb2c2ac1cc8284018860aac3850cad1e9bc934f27096f0e739f50" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestProposalHash_RefusesWhatIsNotCanonical(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent, tool, args string
		want              snapshot.Error
	}{
		"white space in arguments": {"a", "t", "{ }", snapshot.Error{Reason: snapshot.ReasonNotCanonical}},
		"no arguments":             {"a", "t", "", snapshot.Error{Reason: snapshot.ReasonSyntax}},
		"an agent that is no text": {"\xff", "t", "{}", snapshot.Error{Reason: snapshot.ReasonInvalidUTF8, Path: "/0"}},
		"a tool that is no text":   {"a", "\uFFFF", "{}", snapshot.Error{Reason: snapshot.ReasonNoncharacter, Path: "/2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hash, err := snapshot.ProposalHash(c.agent, c.tool, c.args)
			c.want.Stage = snapshot.StageSnapshot
			checkError(t, err, c.want)
			if hash != "" {
				t.Errorf("hash %s together with an error", hash)
			}
		})
	}
}

// The longest arguments, in which every character is escaped once more.
func TestProposalHash_TakesTheLongestArguments(t *testing.T) {
	t.Parallel()
	quotes := strings.Repeat(`"`, (snapshot.MaxBytes-len(`["",""]`))/4)
	args := mustNew(t, []any{quotes, quotes}).Canonical()
	if len(args) < snapshot.MaxBytes-4 {
		t.Fatalf("the arguments have only %d bytes", len(args))
	}
	if _, err := snapshot.ProposalHash("a", "t", args); err != nil {
		t.Error(err)
	}
}

func TestHash_RefusesMembersOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		members map[string]any
		want    snapshot.Error
	}{
		"a version":         {map[string]any{"v": 1}, snapshot.Error{Reason: snapshot.ReasonReservedMember}},
		"a kind":            {map[string]any{"kind": "x"}, snapshot.Error{Reason: snapshot.ReasonReservedMember}},
		"no map":            {nil, snapshot.Error{Reason: snapshot.ReasonTypedNil}},
		"a foreign value":   {map[string]any{"a": []string{}}, snapshot.Error{Reason: snapshot.ReasonUnsupportedType, Path: "/0"}},
		"a number unlike 0": {map[string]any{"a": math.Inf(1)}, snapshot.Error{Reason: snapshot.ReasonNumberRange, Path: "/0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hash, err := snapshot.Hash("contract", c.members)
			c.want.Stage = snapshot.StageSnapshot
			checkError(t, err, c.want)
			if hash != "" {
				t.Errorf("hash %s together with an error", hash)
			}
		})
	}
	_, err := snapshot.Hash("\xff", map[string]any{})
	checkError(t, err, snapshot.Error{Stage: snapshot.StageSnapshot, Reason: snapshot.ReasonInvalidUTF8, Path: "/0"})
}

func TestHash_LeavesItsMembersAlone(t *testing.T) {
	t.Parallel()
	members := map[string]any{"a": 1}
	if _, err := snapshot.Hash("contract", members); err != nil {
		t.Fatal(err)
	}
	if len(members) != 1 {
		t.Errorf("members became %v", members)
	}
}

// Hashes of different kinds or versions must not meet, whatever the members.
func TestHash_SeparatesKinds(t *testing.T) {
	t.Parallel()
	known := map[string]string{}
	for _, kind := range []string{"contract", "fingerprint", "binding", ""} {
		hash, err := snapshot.Hash(kind, map[string]any{"a": 1})
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := known[hash]; ok {
			t.Errorf("kinds %q and %q have one hash", kind, other)
		}
		known[hash] = kind
	}
}

func TestCanonicalObject_HasTheLimitsOfRecords(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", snapshot.MaxRecordStringBytes)
	quarter := func(s string) map[string]any { return map[string]any{"s": s} }
	for name, c := range map[string]struct {
		members map[string]any
		why     snapshot.Reason
	}{
		"a string of 1 MiB":              {quarter(text), ""},
		"a string of 1 MiB and a byte":   {quarter(text + "x"), snapshot.ReasonStringTooLong},
		"262144 values":                  {map[string]any{"a": make([]any, snapshot.MaxRecordValues-1)}, ""},
		"262145 values":                  {map[string]any{"a": make([]any, snapshot.MaxRecordValues)}, snapshot.ReasonTooManyValues},
		"4 MiB":                          {map[string]any{"a": text, "b": text, "c": text, "d": text[:len(text)-len(`{"a":"","b":"","c":"","d":""}`)]}, ""},
		"4 MiB and a byte":               {map[string]any{"a": text, "b": text, "c": text, "d": text[:len(text)-len(`{"a":"","b":"","c":"","d":""}`)+1]}, snapshot.ReasonTooLarge},
		"64 levels":                      {map[string]any{"a": deepArrays(63)}, ""},
		"65 levels":                      {map[string]any{"a": deepArrays(64)}, snapshot.ReasonDepth},
		"no map":                         {nil, snapshot.ReasonTypedNil},
		"members of its own are allowed": {map[string]any{"v": 2, "kind": "other"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := snapshot.CanonicalObject(c.members)
			if c.why == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "refused at stage snapshot: "+string(c.why)) {
				t.Errorf("error %v, want reason %s", err, c.why)
			}
		})
	}
}
