// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/proposal"
)

func (s *scene) judge() proposal.Approval {
	return proposal.JudgeReceipts(s.keys, s.o.Proposal, s.o.Rules, s.o.Epoch, s.o.Receipts, now)
}

// reasons is the verdict of each receipt, in order.
func reasons(a proposal.Approval) []string {
	var out []string
	for _, v := range a.Verdicts {
		out = append(out, v.Receipt.Name+" "+v.Reason)
	}
	return out
}

func inGroups(groups ...string) func(*v1alpha1.ApprovalReceipt) {
	return func(r *v1alpha1.ApprovalReceipt) { r.Spec.Approver.Groups = groups }
}

// TestJudgeReceipts_SaysWhyOneDoesNotCount puts the receipt in question before
// a genuine one, which must count all the same.
func TestJudgeReceipts_SaysWhyOneDoesNotCount(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*scene, *proposal.ReceiptFacts)
		want string
	}{
		"for another name":      {func(_ *scene, f *proposal.ReceiptFacts) { f.Receipt.Spec.ProposalRef.Name = "x" }, "ProposalNotFound"},
		"in another namespace":  {func(_ *scene, f *proposal.ReceiptFacts) { f.Receipt.Namespace = "x" }, "ProposalNotFound"},
		"for an earlier object": {func(_ *scene, f *proposal.ReceiptFacts) { f.Receipt.Spec.ProposalRef.UID = "x" }, "UIDMismatch"},
		"for another call":      {func(_ *scene, f *proposal.ReceiptFacts) { f.Receipt.Spec.Fingerprint = "x" }, "FingerprintMismatch"},
		"never sealed":          {func(_ *scene, f *proposal.ReceiptFacts) { f.Receipt.Spec.Seal = "" }, "Unsealed"},
		"changed since":         {func(_ *scene, f *proposal.ReceiptFacts) { f.Receipt.Spec.Approver.Username = "bob" }, "Unsealed"},
		"sealed by another key": {func(s *scene, f *proposal.ReceiptFacts) {
			f.Receipt = receiptOf(s, keyring(s, 9), s.o.Proposal, "r", "mallory")
		}, "Unsealed"},
		"of another epoch": {func(s *scene, f *proposal.ReceiptFacts) {
			f.Receipt = receiptOf(s, s.keys, s.o.Proposal, "r", "mallory")
			stamp := proposal.Stamp{Namespace: namespace, SealID: sealID, Epoch: 3, Now: now}
			if err := proposal.SealReceipt(s.keys, f.Receipt, stamp); err != nil {
				s.Fatal(err)
			}
		}, "Unsealed"},
		"used before": {func(_ *scene, f *proposal.ReceiptFacts) {
			f.Receipt.Status.Conditions = []metav1.Condition{{Type: "Consumed", Status: metav1.ConditionTrue}}
		}, "AlreadyConsumed"},
		"of the requester": {func(s *scene, f *proposal.ReceiptFacts) {
			f.Receipt = receiptOf(s, s.keys, s.o.Proposal, "r", agent)
		}, "SelfApproval"},
		"of the requester under another name": {func(s *scene, f *proposal.ReceiptFacts) {
			f.Receipt = receiptOf(s, s.keys, s.o.Proposal, "r", "mallory", func(r *v1alpha1.ApprovalReceipt) { r.Spec.Approver.UID = "u" })
		}, "SelfApproval"},
		"of a service account": {func(s *scene, f *proposal.ReceiptFacts) {
			f.Receipt = receiptOf(s, s.keys, s.o.Proposal, "r", "system:serviceaccount:agents:other")
		}, "ServiceAccountNotAllowed"},
		"of somebody who lost the right": {func(_ *scene, f *proposal.ReceiptFacts) { f.Authorized = false }, "ApproverNoLongerAuthorized"},
		"of an account that was created anew": {func(s *scene, f *proposal.ReceiptFacts) {
			s.o.Rules.AllowServiceAccounts = true
			f.Receipt = receiptOf(s, s.keys, s.o.Proposal, "r", "system:serviceaccount:agents:other")
			f.AccountProblem = "ServiceAccount agents:other was created anew since"
		}, "ApproverNoLongerAuthorized"},
		"of somebody in no group that counts": {func(s *scene, f *proposal.ReceiptFacts) {
			f.Receipt = receiptOf(s, s.keys, s.o.Proposal, "r", "mallory", inGroups("interns"))
		}, "NotInRequiredGroup"},
		"whose time is over": {func(s *scene, f *proposal.ReceiptFacts) {
			f.Receipt = receiptOf(s, s.keys, s.o.Proposal, "r", "mallory", func(r *v1alpha1.ApprovalReceipt) {
				r.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
				r.Spec.ExpiresAt = new(metav1.NewTime(now))
			})
		}, "ReceiptExpired"},
		"whose time was over before the clock went back": {func(_ *scene, f *proposal.ReceiptFacts) {
			f.Receipt.Status.Conditions = []metav1.Condition{{Type: "Valid", Status: metav1.ConditionFalse, Reason: "ReceiptExpired"}}
		}, "ReceiptExpired"},
		"of the future": {func(s *scene, f *proposal.ReceiptFacts) {
			f.Receipt = receiptOf(s, s.keys, s.o.Proposal, "r", "mallory", func(r *v1alpha1.ApprovalReceipt) {
				r.CreationTimestamp = metav1.NewTime(now.Add(31 * time.Second))
			})
		}, "NotYetValid"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.o.Rules.Requirements = []proposal.Requirement{{Group: "sre", Count: 1}}
			s.receipt("r", "mallory")
			tc.edit(s, &s.o.Receipts[0])
			s.receipt("genuine", "alice")
			a := s.judge()
			if diff := cmp.Diff([]string{"r " + tc.want, "genuine Counted"}, reasons(a)); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
			if !a.Satisfied || len(a.Receipts) != 1 || a.Receipts[0].Name != "genuine" {
				t.Errorf("the genuine receipt was burned: %+v", a)
			}
		})
	}
}

func TestJudgeReceipts_CountsEachPersonOnce(t *testing.T) {
	domainless := func(name string) string { return strings.TrimSuffix(strings.ToLower(name), "@example.com") }
	for name, tc := range map[string]struct {
		people []string
		edit   func(*v1alpha1.ApprovalReceipt)
		same   func(string) string
		want   []string
	}{
		"two people":         {[]string{"alice", "bob"}, nil, nil, []string{"r0 Counted", "r1 Counted"}},
		"the same name":      {[]string{"alice", "alice"}, nil, nil, []string{"r0 Counted", "r1 DuplicateApprover"}},
		"names by the rule":  {[]string{"alice", "Alice@example.com"}, nil, domainless, []string{"r0 Counted", "r1 DuplicateApprover"}},
		"without the rule":   {[]string{"alice", "Alice@example.com"}, nil, nil, []string{"r0 Counted", "r1 Counted"}},
		"one UID, two names": {[]string{"alice", "alicia"}, func(r *v1alpha1.ApprovalReceipt) { r.Spec.Approver.UID = "7" }, nil, []string{"r0 Counted", "r1 DuplicateApprover"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.o.Rules.SamePerson = tc.same
			s.o.Rules.Requirements = []proposal.Requirement{{Group: "sre", Count: 2}}
			for i, person := range tc.people {
				s.receipt(fmt.Sprintf("r%d", i), person, func(r *v1alpha1.ApprovalReceipt) {
					if tc.edit != nil {
						tc.edit(r)
					}
				})
			}
			if diff := cmp.Diff(tc.want, reasons(s.judge())); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJudgeReceipts_TakesARequesterForTheSamePersonByTheRule(t *testing.T) {
	s := newScene(t)
	s.o.Rules.SamePerson = func(name string) string {
		if name == agent {
			return "alice"
		}
		return name
	}
	s.receipt("r", "alice")
	if diff := cmp.Diff([]string{"r SelfApproval"}, reasons(s.judge())); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

func TestJudgeReceipts_HearsSomebodyWhoChangesTheirMind(t *testing.T) {
	s := newScene(t)
	s.receipt("yes", "alice")
	s.receipt("no", "alice", deny)
	a := s.judge()
	if diff := cmp.Diff([]string{"yes Counted", "no Counted"}, reasons(a)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if a.Denied == nil || a.Denied.Name != "no" {
		t.Errorf("denied by %v, want the later receipt", a.Denied)
	}
}

func TestJudgeReceipts_LetsWhoeverMayApproveSayNo(t *testing.T) {
	s := newScene(t)
	s.o.Rules.Requirements = []proposal.Requirement{{Group: "sre", Count: 1}}
	s.receipt("no", "carol", deny, inGroups("interns"))
	if a := s.judge(); a.Denied == nil {
		t.Errorf("a denial of somebody with the right was not heard: %v", reasons(a))
	}
}

func TestJudgeReceipts_LetsServiceAccountsApproveWhereTheManifestSaysSo(t *testing.T) {
	s := newScene(t)
	s.o.Rules.AllowServiceAccounts = true
	s.receipt("r", "system:serviceaccount:agents:other")
	if a := s.judge(); !a.Satisfied {
		t.Errorf("not satisfied: %v", reasons(a))
	}
}

func TestJudgeReceipts_LimitsThoseThatCountAndNotThoseThatDoNot(t *testing.T) {
	s := newScene(t)
	s.o.Rules.Requirements = []proposal.Requirement{{Group: "sre", Count: 20}}
	for i := range 40 {
		s.receipt(fmt.Sprintf("bad%d", i), fmt.Sprintf("m%d", i))
		s.o.Receipts[i].Receipt.Spec.Seal = ""
	}
	for i := range proposal.MaxReceipts + 1 {
		s.receipt(fmt.Sprintf("r%d", i), fmt.Sprintf("p%d", i))
	}
	a := s.judge()
	if a.Granted != proposal.MaxReceipts {
		t.Errorf("%d count, want %d", a.Granted, proposal.MaxReceipts)
	}
	if last := a.Verdicts[len(a.Verdicts)-1]; last.Reason != v1alpha1.ReasonTooManyReceipts {
		t.Errorf("the last one: %s", last.Reason)
	}
}

func TestJudgeReceipts_FillsEveryRequirementThatCanBeFilled(t *testing.T) {
	two := []proposal.Requirement{{Group: "a", Count: 1}, {Group: "b", Count: 1}}
	for name, tc := range map[string]struct {
		requirements []proposal.Requirement
		// groups of each approver, in order of their receipts.
		groups    [][]string
		used      []string
		satisfied bool
	}{
		"nobody": {two, nil, nil, false},
		"without requirements one person is enough": {nil, [][]string{{"x"}, {"y"}}, []string{"r0"}, true},
		"one for each":                                 {two, [][]string{{"a"}, {"b"}}, []string{"r0", "r1"}, true},
		"one person in both groups fills one":          {two, [][]string{{"a", "b"}}, []string{"r0"}, false},
		"who could leave a place to another leaves it": {two, [][]string{{"a", "b"}, {"a"}}, []string{"r0", "r1"}, true},
		"along a chain": {
			[]proposal.Requirement{{Group: "a", Count: 1}, {Group: "b", Count: 1}, {Group: "c", Count: 1}},
			[][]string{{"a", "b"}, {"b", "c"}, {"a"}},
			[]string{"r0", "r1", "r2"},
			true,
		},
		"two of one group":                {[]proposal.Requirement{{Group: "a", Count: 2}}, [][]string{{"a"}, {"a"}, {"a"}}, []string{"r0", "r1"}, true},
		"two of one group, only one":      {[]proposal.Requirement{{Group: "a", Count: 2}}, [][]string{{"a"}}, []string{"r0"}, false},
		"people beyond need are not used": {two, [][]string{{"a"}, {"a"}, {"b"}}, []string{"r0", "r2"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.o.Rules.Requirements = tc.requirements
			for i, groups := range tc.groups {
				s.receipt(fmt.Sprintf("r%d", i), fmt.Sprintf("person%d", i), inGroups(groups...))
			}
			a := s.judge()
			var used []string
			for _, r := range a.Receipts {
				used = append(used, r.Name)
			}
			if diff := cmp.Diff(tc.used, used); diff != "" {
				t.Errorf("used (-want +got):\n%s", diff)
			}
			if a.Satisfied != tc.satisfied || a.Granted != len(tc.used) {
				t.Errorf("satisfied %v with %d, want %v with %d", a.Satisfied, a.Granted, tc.satisfied, len(tc.used))
			}
		})
	}
}

func TestApproval_NamesThePeopleAndTheFirstExpiry(t *testing.T) {
	s := newScene(t)
	s.o.Rules.Requirements = []proposal.Requirement{{Group: "sre", Count: 2}}
	s.receipt("r0", "bob")
	s.receipt("r1", "alice", func(r *v1alpha1.ApprovalReceipt) { r.Spec.ExpiresAt = new(metav1.NewTime(now.Add(time.Minute))) })
	a := s.judge()
	if diff := cmp.Diff([]string{"alice", "bob"}, a.Approvers()); diff != "" {
		t.Errorf("approvers (-want +got):\n%s", diff)
	}
	if !a.NextExpiry.Equal(now.Add(time.Minute)) {
		t.Errorf("next expiry %v", a.NextExpiry)
	}
}

func TestBindsReceipt_OnlyWhatAdmissionSealedForThisCall(t *testing.T) {
	s := newScene(t)
	good := receiptOf(t, s.keys, s.o.Proposal, "r", "alice")
	if !proposal.BindsReceipt(s.keys, s.o.Proposal, good) {
		t.Error("a genuine receipt does not bind")
	}
	for name, edit := range map[string]func(*v1alpha1.ApprovalReceipt){
		"another object": func(r *v1alpha1.ApprovalReceipt) { r.Spec.ProposalRef.UID = "x" },
		"no seal":        func(r *v1alpha1.ApprovalReceipt) { r.Spec.Seal = "" },
	} {
		r := good.DeepCopy()
		edit(r)
		if proposal.BindsReceipt(s.keys, s.o.Proposal, r) {
			t.Errorf("%s: binds", name)
		}
	}
}
