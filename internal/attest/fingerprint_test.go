// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/snapshot"
)

// fingerprintVector is one entry of testdata/fingerprints.json.
type fingerprintVector struct {
	Name         string `json:"name"`
	ProposalHash string `json:"proposalHash"`
	Namespace    string `json:"namespace"`
	Contract     struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Hash    string `json:"hash"`
	} `json:"contract"`
	Effect      string `json:"effect"`
	Canonical   string `json:"canonical"`
	Fingerprint string `json:"fingerprint"`
}

func loadVectors[T any](t *testing.T, path string) []T {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []T
	if err := json.Unmarshal(data, &vectors, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	if len(vectors) == 0 {
		t.Fatalf("%s is empty", path)
	}
	return vectors
}

func TestFingerprint_MatchesThePublishedVectors(t *testing.T) {
	for _, v := range loadVectors[fingerprintVector](t, "testdata/fingerprints.json") {
		t.Run(v.Name, func(t *testing.T) {
			sum := sha256.Sum256([]byte(v.Canonical))
			if got := hex.EncodeToString(sum[:]); got != v.Fingerprint {
				t.Fatalf("the vector contradicts itself: SHA-256 of its text is %s", got)
			}
			c := attest.ContractRef{Name: v.Contract.Name, Version: v.Contract.Version, Hash: v.Contract.Hash}
			got, err := attest.Fingerprint(v.ProposalHash, v.Namespace, c, v.Effect)
			if err != nil || got != v.Fingerprint {
				t.Errorf("Fingerprint = %s, %v; want %s", got, err, v.Fingerprint)
			}
		})
	}
}

func TestFingerprint_RefusesWhatHasNoSingleText(t *testing.T) {
	ph, c := digestOf("p"), attest.ContractRef{Name: "fetch", Version: "1", Hash: digestOf("c")}
	canonical := attest.ErrEffectNotCanonical
	tests := map[string]struct {
		ph, ns string
		c      attest.ContractRef
		effect string
		want   string
	}{
		"a proposal hash that is none": {"x", "agents", c, `{}`, "fingerprint: proposalHash must be 64 lower-case hex digits"},
		"no namespace":                 {ph, "", c, `{}`, "fingerprint: namespace must have 1 to 1024 bytes"},
		"no contract name":             {ph, "agents", attest.ContractRef{Hash: c.Hash}, `{}`, "fingerprint: contract.name must have 1 to 1024 bytes"},
		"a long contract version":      {ph, "agents", attest.ContractRef{Name: "a", Version: strings.Repeat("v", 1025), Hash: c.Hash}, `{}`, "fingerprint: contract.version must have at most 1024 bytes"},
		"a contract hash that is none": {ph, "agents", attest.ContractRef{Name: "a"}, `{}`, "fingerprint: contract.hash must be 64 lower-case hex digits"},
		"a namespace that is no text":  {ph, "\xff", c, `{}`, attest.ErrNotText.Error()},
		"a version that is no text":    {ph, "agents", attest.ContractRef{Name: "a", Version: "\xff", Hash: c.Hash}, `{}`, attest.ErrNotText.Error()},
		"a name that is no text":       {ph, "agents", attest.ContractRef{Name: "\xff", Hash: c.Hash}, `{}`, attest.ErrNotText.Error()},
		"white space":                  {ph, "agents", c, `{ }`, "fingerprint: " + canonical.Error()},
		"members out of order":         {ph, "agents", c, `{"b":1,"a":1}`, "fingerprint: " + canonical.Error()},
		"a duplicate member":           {ph, "agents", c, `{"a":1,"a":1}`, "fingerprint: " + canonical.Error()},
		"an integer that would round":  {ph, "agents", c, `{"a":9007199254740993}`, "fingerprint: " + canonical.Error()},
		"negative zero":                {ph, "agents", c, `{"a":-0}`, "fingerprint: " + canonical.Error()},
		"an overflowing number":        {ph, "agents", c, `{"a":1e400}`, "fingerprint: " + canonical.Error()},
		"an array":                     {ph, "agents", c, `[]`, "fingerprint: " + canonical.Error()},
		"null":                         {ph, "agents", c, `null`, "fingerprint: " + canonical.Error()},
		"nothing":                      {ph, "agents", c, ``, "fingerprint: " + canonical.Error()},
		"trailing data":                {ph, "agents", c, `{}{}`, "fingerprint: " + canonical.Error()},
		"an effect above the limit":    {ph, "agents", c, `{"a":"` + strings.Repeat("x", 4<<20) + `"}`, "fingerprint: effect is longer than 4194304 bytes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := attest.Fingerprint(tc.ph, tc.ns, tc.c, tc.effect)
			if got != "" || err == nil || err.Error() != tc.want {
				t.Errorf("Fingerprint = %q, %v; want error %q", got, err, tc.want)
			}
		})
	}
}

func TestTicket_CheckFingerprintFindsAnyChangeOfTheCall(t *testing.T) {
	ticket := sampleTicket(t)
	if err := ticket.CheckFingerprint(); err != nil {
		t.Fatalf("the unchanged ticket: %v", err)
	}
	tests := map[string]func(*attest.Call){
		"agent":            func(c *attest.Call) { c.Agent += "x" },
		"tool":             func(c *attest.Call) { c.Tool += "x" },
		"arguments":        func(c *attest.Call) { c.ArgsCanonicalJSON = `{"n":6,"url":"https://example.com/é"}` },
		"namespace":        func(c *attest.Call) { c.Namespace = "other" },
		"contract name":    func(c *attest.Call) { c.Contract.Name = "other" },
		"contract version": func(c *attest.Call) { c.Contract.Version = "" },
		"contract hash":    func(c *attest.Call) { c.Contract.Hash = digestOf("other") },
		"effect":           func(c *attest.Call) { c.EffectJSON = `{"argv":["/bin/fetch","--n=6"],"kind":"command"}` },
	}
	for name, edit := range tests {
		changed := ticket
		edit(&changed.Call)
		if err := changed.CheckFingerprint(); !errors.Is(err, attest.ErrFingerprintMismatch) {
			t.Errorf("%s changed: %v, want ErrFingerprintMismatch", name, err)
		}
	}
	broken := ticket
	broken.Call.ArgsCanonicalJSON = `{"url" :1}`
	var refused *snapshot.Error
	if err := broken.CheckFingerprint(); !errors.As(err, &refused) {
		t.Errorf("arguments that are not canonical: %v, want the snapshot's error", err)
	}
}

func sampleBinding() attest.Binding {
	return attest.Binding{
		Fingerprint: digestOf("fingerprint"), ProposalUID: "u-p1", Requester: sampleUser(),
		Session:   &attest.SessionRef{Name: "s1", UID: "u-s1", SpecDigest: digestOf("session")},
		Iteration: new(int64(3)), Batch: &attest.BatchRef{ID: "b1", Size: 2}, ExpiresAt: new(issued),
	}
}

func TestBinding_CoversItsPartsAndNothingElse(t *testing.T) {
	hash := func(edit func(*attest.Binding)) string {
		b := sampleBinding()
		edit(&b)
		h, err := b.Hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	base := hash(func(*attest.Binding) {})
	const podUID = "authentication.kubernetes.io/pod-uid"
	differ := map[string]func(*attest.Binding){
		"fingerprint":         func(b *attest.Binding) { b.Fingerprint = digestOf("other") },
		"proposal UID":        func(b *attest.Binding) { b.ProposalUID = "u-p2" },
		"proposal UID absent": func(b *attest.Binding) { b.ProposalUID = "" },
		"user name":           func(b *attest.Binding) { b.Requester.Username = "other" },
		"user UID":            func(b *attest.Binding) { b.Requester.UID = "other" },
		"groups":              func(b *attest.Binding) { b.Requester.Groups = b.Requester.Groups[:1] },
		"the requesting Pod":  func(b *attest.Binding) { b.Requester.Extra = map[string][]string{podUID: {"other"}} },
		"no requesting Pod":   func(b *attest.Binding) { b.Requester.Extra = nil },
		"session name":        func(b *attest.Binding) { b.Session.Name = "s2" },
		"session UID":         func(b *attest.Binding) { b.Session.UID = "u-s2" },
		"session digest":      func(b *attest.Binding) { b.Session.SpecDigest = digestOf("other") },
		"session absent":      func(b *attest.Binding) { b.Session = nil },
		"iteration":           func(b *attest.Binding) { b.Iteration = new(int64(4)) },
		"iteration absent":    func(b *attest.Binding) { b.Iteration = nil },
		"batch ID":            func(b *attest.Binding) { b.Batch.ID = "b2" },
		"batch size":          func(b *attest.Binding) { b.Batch.Size = 3 },
		"batch absent":        func(b *attest.Binding) { b.Batch = nil },
		"expiry":              func(b *attest.Binding) { b.ExpiresAt = new(issued.Add(time.Second)) },
		"expiry absent":       func(b *attest.Binding) { b.ExpiresAt = nil },
	}
	seen := map[string]string{base: "nothing"}
	for name, edit := range differ {
		h := hash(edit)
		if other, taken := seen[h]; taken {
			t.Errorf("changing %s gives the binding of changing %s", name, other)
		}
		seen[h] = name
	}
	same := map[string]func(*attest.Binding){
		"order of groups": func(b *attest.Binding) {
			b.Requester.Groups = []string{"system:authenticated", "system:serviceaccounts"}
		},
		"a repeated group":   func(b *attest.Binding) { b.Requester.Groups = append(b.Requester.Groups, b.Requester.Groups[0]) },
		"an unrelated extra": func(b *attest.Binding) { b.Requester.Extra["scopes"] = []string{"x"} },
		"another time zone":  func(b *attest.Binding) { b.ExpiresAt = new(issued.In(time.FixedZone("z", 60))) },
	}
	for name, edit := range same {
		if hash(edit) != base {
			t.Errorf("%s changes the binding", name)
		}
	}
}

func TestBinding_MatchesThePublishedVector(t *testing.T) {
	type vector struct {
		Canonical string `json:"canonical"`
		Binding   string `json:"binding"`
	}
	v := loadVectors[vector](t, "testdata/bindings.json")
	got, err := sampleBinding().Hash()
	sum := sha256.Sum256([]byte(v[0].Canonical))
	if err != nil || got != v[0].Binding || hex.EncodeToString(sum[:]) != v[0].Binding {
		t.Errorf("Hash = %s, %v; SHA-256 of the vector's text %x; want %s", got, err, sum, v[0].Binding)
	}
}

func TestBinding_RefusesIncompleteParts(t *testing.T) {
	tests := map[string]func(*attest.Binding){
		"fingerprint must be 64 lower-case hex digits":        func(b *attest.Binding) { b.Fingerprint = "" },
		"proposalUID must have at most 1024 bytes":            func(b *attest.Binding) { b.ProposalUID = strings.Repeat("x", 1025) },
		"requester.username must have 1 to 1024 bytes":        func(b *attest.Binding) { b.Requester.Username = "" },
		"session.specDigest must be 64 lower-case hex digits": func(b *attest.Binding) { b.Session.SpecDigest = "" },
		"batch.size must be at least 1":                       func(b *attest.Binding) { b.Batch.Size = 0 },
	}
	for want, edit := range tests {
		b := sampleBinding()
		edit(&b)
		if _, err := b.Hash(); err == nil || err.Error() != "binding: "+want {
			t.Errorf("error %v, want binding: %s", err, want)
		}
	}
}
