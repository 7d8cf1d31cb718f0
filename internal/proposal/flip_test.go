// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/proposal"
)

// flips lists every single change of a value: of each member at any depth, of
// each element, and the removal or addition of what may be absent. The list is
// found by reflection, so that a member added later takes part by itself.
func flips(v reflect.Value, path string) map[string]func() {
	out := map[string]func(){}
	collect(out, v, path)
	return out
}

func collect(out map[string]func(), v reflect.Value, path string) {
	switch v.Interface().(type) {
	case metav1.Time:
		out[path] = func() { v.Set(reflect.ValueOf(metav1.NewTime(v.Interface().(metav1.Time).Add(time.Second)))) }
		return
	case time.Time:
		out[path] = func() { v.Set(reflect.ValueOf(v.Interface().(time.Time).Add(time.Second))) }
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			collect(out, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		if v.IsNil() {
			out[path+" added"] = func() { v.Set(reflect.New(v.Type().Elem())) }
			return
		}
		out[path+" removed"] = func() { v.SetZero() }
		collect(out, v.Elem(), path)
	case reflect.Slice:
		out[path+" appended to"] = func() { v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem()))) }
		for i := range v.Len() {
			collect(out, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		out[path+" added to"] = func() {
			v.SetMapIndex(reflect.ValueOf("more"), reflect.Zero(v.Type().Elem()))
		}
	case reflect.String:
		out[path] = func() { v.SetString(v.String() + "x") }
	case reflect.Bool:
		out[path] = func() { v.SetBool(!v.Bool()) }
	case reflect.Int, reflect.Int32, reflect.Int64:
		out[path] = func() { v.SetInt(v.Int() + 1) }
	default:
		panic("no flip for " + path + " of kind " + v.Kind().String())
	}
}

// survivors are the flips of a part of a value that a check lets pass. fresh
// returns the value and the part anew each time; check must accept the value
// as it is.
func survivors[T any](t *testing.T, fresh func() T, part func(T) any, check func(T) error) (passed []string, total int) {
	t.Helper()
	if err := check(fresh()); err != nil {
		t.Fatalf("the untouched value is refused: %v", err)
	}
	names := slices.Sorted(maps.Keys(flips(reflect.ValueOf(part(fresh())).Elem(), "")))
	for _, name := range names {
		v := fresh()
		flips(reflect.ValueOf(part(v)).Elem(), "")[name]()
		if err := check(v); err == nil {
			passed = append(passed, name)
		} else if !errors.Is(err, proposal.ErrUnsealed) {
			t.Errorf("%s changed: %v, want ErrUnsealed", name, err)
		}
	}
	return passed, len(names)
}

func TestVerifySeal_RefusesAnyOneChangeOfTheCall(t *testing.T) {
	k := keyring(t, 1)
	for name, m := range map[string]func() *v1alpha1.ToolManifest{"command": commandManifest, "http": httpManifest, "mcp": mcpManifest} {
		t.Run(name, func(t *testing.T) {
			original := sealed(t, k, m())
			passed, total := survivors(t, original.DeepCopy,
				func(p *v1alpha1.ToolProposal) any { return &p.Spec },
				func(p *v1alpha1.ToolProposal) error { _, err := proposal.VerifySeal(k, p); return err })
			// The agent's reason is its claim and takes part in no decision.
			if diff := cmp.Diff([]string{".Reason"}, passed); diff != "" {
				t.Errorf("changes that pass (-want +got):\n%s", diff)
			}
			if total < 40 {
				t.Errorf("only %d changes were tried", total)
			}
		})
	}
}

func TestVerifyReceiptSeal_RefusesAnyOneChangeOfTheReceipt(t *testing.T) {
	k := keyring(t, 1)
	original := receiptOf(t, k, sealed(t, k, commandManifest()), "r", "alice")
	passed, total := survivors(t, original.DeepCopy,
		func(r *v1alpha1.ApprovalReceipt) any { return &r.Spec },
		func(r *v1alpha1.ApprovalReceipt) error { _, err := proposal.VerifyReceiptSeal(k, r); return err })
	if diff := cmp.Diff([]string{".Reason"}, passed); diff != "" {
		t.Errorf("changes that pass (-want +got):\n%s", diff)
	}
	if total < 15 {
		t.Errorf("only %d changes were tried", total)
	}
}

// TestVerifySeal_AcceptsNoOtherStatementOfOurs signs each possible variation of
// a statement with the right key. What is not compared with the object is
// compared with the cluster elsewhere: the list is exactly that.
func TestVerifySeal_AcceptsNoOtherStatementOfOurs(t *testing.T) {
	k := keyring(t, 1)
	p := sealed(t, k, commandManifest())
	statement, err := proposal.VerifySeal(k, p)
	if err != nil {
		t.Fatal(err)
	}
	passed, _ := survivors(t, func() *attest.ProposalSeal { return clone(t, *statement) },
		func(s *attest.ProposalSeal) any { return s },
		func(s *attest.ProposalSeal) error {
			other := p.DeepCopy()
			if other.Spec.Seal, err = k.Sign(attest.KindProposalSeal, "toolproposal", s.Fingerprint, *s); err != nil {
				return fmt.Errorf("%w: cannot be signed: %w", proposal.ErrUnsealed, err)
			}
			_, err := proposal.VerifySeal(k, other)
			return err
		})
	want := []string{
		".Epoch",       // compared with the operator's, by Decide
		".IssuedAt",    // within the window: TestVerifySeal_RefusesASealOfAnotherTime
		".Session.UID", // compared with the session, by SessionChanged
	}
	if diff := cmp.Diff(want, passed); diff != "" {
		t.Errorf("statements that pass (-want +got):\n%s", diff)
	}
}

func TestVerifyReceiptSeal_AcceptsNoOtherStatementOfOurs(t *testing.T) {
	k := keyring(t, 1)
	r := receiptOf(t, k, sealed(t, k, commandManifest()), "r", "alice")
	statement, err := proposal.VerifyReceiptSeal(k, r)
	if err != nil {
		t.Fatal(err)
	}
	passed, _ := survivors(t, func() *attest.ReceiptSeal { return clone(t, *statement) },
		func(s *attest.ReceiptSeal) any { return s },
		func(s *attest.ReceiptSeal) error {
			other := r.DeepCopy()
			if other.Spec.Seal, err = k.Sign(attest.KindReceiptSeal, "approvalreceipt", s.Fingerprint, *s); err != nil {
				return fmt.Errorf("%w: cannot be signed: %w", proposal.ErrUnsealed, err)
			}
			_, err := proposal.VerifyReceiptSeal(k, other)
			return err
		})
	if diff := cmp.Diff([]string{".Epoch", ".IssuedAt"}, passed); diff != "" {
		t.Errorf("statements that pass (-want +got):\n%s", diff)
	}
}

// TestDecide_DispatchesNothingAfterAnyOneChangeOfItsReceipt takes the receipt
// that alone lets the call run and changes it in every way there is.
func TestDecide_DispatchesNothingAfterAnyOneChangeOfItsReceipt(t *testing.T) {
	s := newScene(t)
	s.o.Policy = answers(needs, allow)
	original := receiptOf(t, s.keys, s.o.Proposal, "r", "alice")
	passed, _ := survivors(t, original.DeepCopy,
		func(r *v1alpha1.ApprovalReceipt) any { return &r.Spec },
		func(r *v1alpha1.ApprovalReceipt) error {
			o := s.o
			o.Receipts = []proposal.ReceiptFacts{{Receipt: r, Authorized: true}}
			if plan := proposal.Decide(o, now); !plan.Dispatch {
				return fmt.Errorf("%w: %s", proposal.ErrUnsealed, plan.Reason)
			}
			return nil
		})
	if diff := cmp.Diff([]string{".Reason"}, passed); diff != "" {
		t.Errorf("changes that pass (-want +got):\n%s", diff)
	}
}

// clone copies a statement with all that it refers to.
func clone[T any](t *testing.T, v T) *T {
	t.Helper()
	b, err := attest.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := attest.Decode("copy", b, len(b), out); err != nil {
		t.Fatal(err)
	}
	return out
}
