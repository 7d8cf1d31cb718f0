// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/attest"
)

// leaves calls visit for every scalar that can be reached from v, and for
// every slice, map and pointer itself, with a path and a settable value.
func leaves(path string, v reflect.Value, visit func(path string, v reflect.Value)) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		visit(path, v)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			leaves(path+"."+v.Type().Field(i).Name, v.Field(i), visit)
		}
	case v.Kind() == reflect.Pointer:
		visit(path, v)
		if !v.IsNil() {
			leaves(path, v.Elem(), visit)
		}
	default:
		visit(path, v)
	}
}

// change gives v another value of its type.
func change(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(v.Interface().(time.Time).Add(time.Second)))
		return
	case map[string][]string:
		v.Set(reflect.ValueOf(map[string][]string{"other": {"x"}}))
		return
	}
	switch {
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "x")
	case v.CanInt():
		v.SetInt(v.Int() + 1)
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case v.Kind() == reflect.Pointer && v.IsNil():
		v.Set(reflect.New(v.Type().Elem()))
	case v.Kind() == reflect.Pointer:
		v.SetZero()
	default:
		t.Fatalf("%s has kind %s, which no signed structure should use", path, v.Kind())
	}
}

// TestSeal_CoversEveryField finds the fields by reflection, so that a new field
// cannot be forgotten: with any one of them changed, the encoded statement is
// another one and the old signature does not cover it.
func TestSeal_CoversEveryField(t *testing.T) {
	encode := func(v any) string {
		b, err := attest.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	all := samples(t)
	all["result"] = sampleResult()
	for kind, original := range all {
		count := 0
		paths := []string{}
		leaves(string(kind), addressable(original), func(path string, _ reflect.Value) { paths = append(paths, path) })
		for i := range paths {
			clone := addressable(original)
			n := 0
			leaves(string(kind), clone, func(path string, v reflect.Value) {
				if n == i {
					change(t, path, v)
				}
				n++
			})
			if encode(clone.Interface()) == encode(original) {
				t.Errorf("%s is not part of what is signed", paths[i])
			}
			count++
		}
		if count < 12 {
			t.Errorf("%s: only %d fields were reached", kind, count)
		}
	}
}

// addressable returns a settable copy of v whose pointers, slices and maps are
// its own.
func addressable(v any) reflect.Value {
	b, err := attest.Encode(v)
	if err != nil {
		panic(err)
	}
	out := reflect.New(reflect.TypeOf(v))
	if err := attest.Decode("copy", b, len(b), out.Interface()); err != nil {
		panic(err)
	}
	return out.Elem()
}

func TestSign_ChecksEveryField(t *testing.T) {
	k := keyring(t, 1)
	long := strings.Repeat("x", 1025)
	proposal := func(edit func(*attest.ProposalSeal)) any { s := sampleProposalSeal(); edit(&s); return s }
	receipt := func(edit func(*attest.ReceiptSeal)) any { s := sampleReceiptSeal(); edit(&s); return s }
	ticket := func(edit func(*attest.Ticket)) any { s := sampleTicket(t); edit(&s); return s }
	const digits, name, neg, atLeast1 = "must be 64 lower-case hex digits", "must have 1 to 1024 bytes", "must not be negative", "must be at least 1"
	tests := []struct {
		want  string
		value any
	}{
		{"sealID must be 32 lower-case hex digits", proposal(func(s *attest.ProposalSeal) { s.SealID = "AA" + s.SealID[2:] })},
		{"namespace " + name, proposal(func(s *attest.ProposalSeal) { s.Namespace = "" })},
		{"kind must be ToolProposal", proposal(func(s *attest.ProposalSeal) { s.Kind = attest.ObjectApprovalReceipt })},
		{"proposalHash " + digits, proposal(func(s *attest.ProposalSeal) { s.ProposalHash = "" })},
		{"argsDigest " + digits, proposal(func(s *attest.ProposalSeal) { s.ArgsDigest = "" })},
		{"rawDigest " + digits, proposal(func(s *attest.ProposalSeal) { s.RawDigest = "" })},
		{"tool " + name, proposal(func(s *attest.ProposalSeal) { s.Tool = long })},
		{"callID " + name, proposal(func(s *attest.ProposalSeal) { s.CallID = "" })},
		{"contractHash " + digits, proposal(func(s *attest.ProposalSeal) { s.ContractHash = "" })},
		{"requester.username " + name, proposal(func(s *attest.ProposalSeal) { s.Requester.Username = "" })},
		{"requester.uid must have at most 1024 bytes", proposal(func(s *attest.ProposalSeal) { s.Requester.UID = long })},
		{"session.name " + name, proposal(func(s *attest.ProposalSeal) { s.Session.Name = "" })},
		{"session.uid " + name, proposal(func(s *attest.ProposalSeal) { s.Session.UID = "" })},
		{"session.specDigest " + digits, proposal(func(s *attest.ProposalSeal) { s.Session.SpecDigest = "" })},
		{"iteration " + neg, proposal(func(s *attest.ProposalSeal) { s.Iteration = new(int64(-1)) })},
		{"batch.id " + name, proposal(func(s *attest.ProposalSeal) { s.Batch.ID = "" })},
		{"batch.size " + atLeast1, proposal(func(s *attest.ProposalSeal) { s.Batch.Size = 0 })},
		{"encoding " + name, proposal(func(s *attest.ProposalSeal) { s.Encoding = "" })},
		{"epoch " + neg, proposal(func(s *attest.ProposalSeal) { s.Epoch = -1 })},
		{"issuedAt must be set", proposal(func(s *attest.ProposalSeal) { s.IssuedAt = time.Time{} })},
		{"expiresAt must be later than issuedAt", proposal(func(s *attest.ProposalSeal) { s.ExpiresAt = new(s.IssuedAt) })},

		{"sealID must be 32 lower-case hex digits", receipt(func(s *attest.ReceiptSeal) { s.SealID = "" })},
		{"namespace " + name, receipt(func(s *attest.ReceiptSeal) { s.Namespace = "" })},
		{"approver.uid must have at most 1024 bytes", receipt(func(s *attest.ReceiptSeal) { s.Approver.UID = long })},
		{"epoch " + neg, receipt(func(s *attest.ReceiptSeal) { s.Epoch = -1 })},
		{"issuedAt must be set", receipt(func(s *attest.ReceiptSeal) { s.IssuedAt = time.Time{} })},
		{"expiresAt must be later than issuedAt", receipt(func(s *attest.ReceiptSeal) { s.ExpiresAt = s.IssuedAt })},
		{"epoch " + neg, ticket(func(s *attest.Ticket) { s.Epoch = -1 })},
		{"issuedAt must be set", ticket(func(s *attest.Ticket) { s.IssuedAt = time.Time{} })},
		{"kind must be ApprovalReceipt", receipt(func(s *attest.ReceiptSeal) { s.Kind = attest.ObjectToolProposal })},
		{"proposalName " + name, receipt(func(s *attest.ReceiptSeal) { s.ProposalName = "" })},
		{"proposalUID " + name, receipt(func(s *attest.ReceiptSeal) { s.ProposalUID = "" })},
		{"decision must be Approved or Denied", receipt(func(s *attest.ReceiptSeal) { s.Decision = "approved" })},
		{"approver.username " + name, receipt(func(s *attest.ReceiptSeal) { s.Approver.Username = "" })},

		{"proposal.namespace " + name, ticket(func(s *attest.Ticket) { s.Proposal.Namespace = "" })},
		{"proposal.name " + name, ticket(func(s *attest.Ticket) { s.Proposal.Name = "" })},
		{"proposal.uid " + name, ticket(func(s *attest.Ticket) { s.Proposal.UID = "" })},
		{"jobUID " + name, ticket(func(s *attest.Ticket) { s.JobUID = "" })},
		{"podUID " + name, ticket(func(s *attest.Ticket) { s.PodUID = "" })},
		{"nonceDigest " + digits, ticket(func(s *attest.Ticket) { s.NonceDigest = "" })},
		{"binding " + digits, ticket(func(s *attest.Ticket) { s.Binding = "" })},
		{"call.namespace must be the proposal's namespace", ticket(func(s *attest.Ticket) { s.Call.Namespace = "other" })},
		{"limits.timeoutSeconds " + atLeast1, ticket(func(s *attest.Ticket) { s.Limits.TimeoutSeconds = 0 })},
		{"limits.outputMaxBytes " + atLeast1, ticket(func(s *attest.Ticket) { s.Limits.OutputMaxBytes = 0 })},
		{"limits.statusMaxBytes " + atLeast1, ticket(func(s *attest.Ticket) { s.Limits.StatusMaxBytes = 0 })},
		{"deadline must be later than issuedAt", ticket(func(s *attest.Ticket) { s.Deadline = s.IssuedAt })},
	}
	kinds := map[reflect.Type]attest.PayloadKind{}
	for kind, v := range samples(t) {
		kinds[reflect.TypeOf(v)] = kind
	}
	for _, tc := range tests {
		kind := kinds[reflect.TypeOf(tc.value)]
		_, err := k.Sign(kind, "x", fingerprintOf(tc.value), tc.value)
		if full := fmt.Sprintf("signing %s: %s", kind, tc.want); err == nil || err.Error() != full {
			t.Errorf("error %v, want %s", err, full)
		}
	}
}

func TestSign_AllowsWhatMayBeAbsent(t *testing.T) {
	k := keyring(t, 1)
	seal := sampleProposalSeal()
	seal.Session, seal.Iteration, seal.Batch, seal.ExpiresAt = nil, nil, nil, nil
	seal.Requester = attest.User{Username: "dana"}
	text, err := k.Sign(attest.KindProposalSeal, "p", seal.Fingerprint, seal)
	if err != nil {
		t.Fatal(err)
	}
	var got attest.ProposalSeal
	if err := k.Verify(attest.KindProposalSeal, text, seal.Fingerprint, &got); err != nil {
		t.Fatal(err)
	}
	if got.Session != nil || got.Iteration != nil || got.Batch != nil || got.ExpiresAt != nil {
		t.Errorf("something absent came back: %+v", got)
	}
}
