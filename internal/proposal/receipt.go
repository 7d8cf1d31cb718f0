// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
)

// MaxReceipts is how many receipts of one proposal may count. Admission refuses
// to seal more. Only receipts that count take one of the places: otherwise
// somebody could bury a genuine receipt under others that never counted.
const MaxReceipts = contract.MaxReceipts

// clockSkew is how far in the future a receipt may be issued.
const clockSkew = 30 * time.Second

// serviceAccountPrefix begins the username of every ServiceAccount.
const serviceAccountPrefix = "system:serviceaccount:"

// Requirement is one group of people of whom some must approve.
type Requirement struct {
	Group string
	Count int
}

// ApprovalRules says who must approve.
type ApprovalRules struct {
	// Timeout is how long a proposal waits.
	Timeout time.Duration
	// Requirements must all hold with different people; none means that one
	// approver is enough.
	Requirements []Requirement
	// AllowServiceAccounts lets ServiceAccounts approve.
	AllowServiceAccounts bool
	// SamePerson maps a username to the person behind it; nil is the username itself.
	SamePerson func(username string) string
}

func (r ApprovalRules) person(username string) string {
	if r.SamePerson == nil {
		return username
	}
	return r.SamePerson(username)
}

// needed is how many people must approve in all.
func (r ApprovalRules) needed() int {
	total := 0
	for _, req := range r.Requirements {
		total += req.Count
	}
	return max(total, 1)
}

// ReceiptFacts is one receipt with what was observed about it.
type ReceiptFacts struct {
	Receipt *v1alpha1.ApprovalReceipt
	// Authorized says that the approver holds the verb approve on the
	// ToolManifest now.
	Authorized bool
	// AccountProblem says why the approver's ServiceAccount is not the one that
	// decided; empty when it is, and for people.
	AccountProblem string
}

// Verdict says whether a receipt counts, and why not.
type Verdict struct {
	Receipt *v1alpha1.ApprovalReceipt
	// Counts is set for receipts that take part in the decision.
	Counts  bool
	Reason  string
	Message string
}

// Approval is what a proposal's receipts amount to.
type Approval struct {
	Verdicts []Verdict
	// Denied is a receipt of somebody entitled that says no.
	Denied *v1alpha1.ApprovalReceipt
	// Satisfied says that every requirement holds.
	Satisfied bool
	// Granted and Needed count people.
	Granted, Needed int
	// Receipts are those that a grant would consume.
	Receipts []*v1alpha1.ApprovalReceipt
	// NextExpiry is when the first counting receipt stops counting.
	NextExpiry time.Time
}

// Approvers returns the people whose receipts count.
func (a Approval) Approvers() []string {
	var names []string
	for _, r := range a.Receipts {
		names = append(names, r.Spec.Approver.Username)
	}
	return sortedNames(names)
}

// JudgeReceipts decides which receipts count for the proposal and what they
// amount to. Receipts must be in the order of their creation. A receipt that
// does not count never spoils one that does.
func JudgeReceipts(k *attest.Keyring, p *v1alpha1.ToolProposal, rules ApprovalRules, epoch int64, facts []ReceiptFacts, now time.Time) Approval {
	a := Approval{Needed: rules.needed()}
	j := judge{keys: k, proposal: p, rules: rules, epoch: epoch, now: now}
	var counting []*v1alpha1.ApprovalReceipt
	for _, f := range facts {
		reason, message := j.check(f)
		counts := reason == v1alpha1.ReasonCounted
		a.Verdicts = append(a.Verdicts, Verdict{Receipt: f.Receipt, Counts: counts, Reason: reason, Message: message})
		switch {
		case !counts:
		case f.Receipt.Spec.Decision == v1alpha1.ReceiptDenied:
			if a.Denied == nil {
				a.Denied = f.Receipt
			}
		default:
			counting = append(counting, f.Receipt)
		}
	}
	a.Receipts = assign(counting, rules.Requirements)
	a.Granted = len(a.Receipts)
	a.Satisfied = a.Granted >= a.Needed
	for _, r := range a.Receipts {
		if a.NextExpiry.IsZero() || r.Spec.ExpiresAt.Time.Before(a.NextExpiry) {
			a.NextExpiry = r.Spec.ExpiresAt.Time
		}
	}
	return a
}

type judge struct {
	keys     *attest.Keyring
	proposal *v1alpha1.ToolProposal
	rules    ApprovalRules
	epoch    int64
	now      time.Time
	// counted are the receipts that count so far.
	counted []*v1alpha1.ApprovalReceipt
}

// check runs the rules in an order that tells an approver the most useful
// reason first: whether it is about this call at all, then who, then when.
func (j *judge) check(f ReceiptFacts) (reason, message string) {
	r := f.Receipt
	if reason, message := matchCall(r, j.proposal); reason != "" {
		return reason, message
	}
	seal, err := VerifyReceiptSeal(j.keys, r)
	if err != nil || seal.Epoch != j.epoch {
		return v1alpha1.ReasonUnsealed, "the receipt did not pass admission as it stands; create a new one"
	}
	if r.Spec.Decision == v1alpha1.ReceiptApproved && consumed(r) {
		// The grant that consumed it moved the call on. A call that waits again
		// was put back by somebody, by a restore for example.
		return v1alpha1.ReasonAlreadyConsumed, "a grant rested on the receipt before; create a new one"
	}
	if reason, message := j.checkPerson(f); reason != "" {
		return reason, message
	}
	if reason, message := j.checkTime(r, seal); reason != "" {
		return reason, message
	}
	return j.checkVote(r)
}

// BindsReceipt says whether admission sealed the receipt for exactly this
// proposal. Only such a receipt is worth asking anything else about.
func BindsReceipt(k *attest.Keyring, p *v1alpha1.ToolProposal, r *v1alpha1.ApprovalReceipt) bool {
	if reason, _ := matchCall(r, p); reason != "" {
		return false
	}
	_, err := VerifyReceiptSeal(k, r)
	return err == nil
}

// consumed only ever speaks against a receipt: whoever could forge this
// condition gains nothing by it.
func consumed(r *v1alpha1.ApprovalReceipt) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionConsumed)
}

func matchCall(r *v1alpha1.ApprovalReceipt, p *v1alpha1.ToolProposal) (reason, message string) {
	switch {
	case r.Namespace != p.Namespace || r.Spec.ProposalRef.Name != p.Name:
		return v1alpha1.ReasonProposalNotFound, "the receipt names another proposal"
	case r.Spec.ProposalRef.UID != p.UID:
		return v1alpha1.ReasonUIDMismatch, "the receipt is for an earlier proposal of the same name"
	case p.Spec.Prepared == nil || r.Spec.Fingerprint != p.Spec.Prepared.Fingerprint:
		return v1alpha1.ReasonFingerprintMismatch, "the receipt is for another call: compare its fingerprint with spec.prepared.fingerprint of the proposal"
	}
	return "", ""
}

// CheckApprover decides whether this person may make this decision on this
// call at all. It is asked at admission and again whenever the receipt is
// judged.
func CheckApprover(p *v1alpha1.ToolProposal, rules ApprovalRules, approver *v1alpha1.Identity, decision v1alpha1.ReceiptDecision, authorized bool) (reason, message string) {
	switch {
	case rules.IsSamePerson(approver, p.Spec.Requester):
		return v1alpha1.ReasonSelfApproval, "the requester of a call cannot decide on it"
	case strings.HasPrefix(approver.Username, serviceAccountPrefix) && !rules.AllowServiceAccounts:
		return v1alpha1.ReasonServiceAccountNotAllowed, "a ServiceAccount cannot decide unless the manifest sets approval.allowServiceAccounts"
	case !authorized:
		return v1alpha1.ReasonApproverNotAuthorized, "the approver needs the verb approve on toolmanifests/" + p.Spec.Tool
	case decision != v1alpha1.ReceiptDenied && !inAnyGroup(approver.Groups, rules.Requirements):
		// Whoever may approve at all may also say no.
		return v1alpha1.ReasonNotInRequiredGroup, "the approver is in none of the groups that approval.requirements names"
	}
	return "", ""
}

// IsSamePerson compares names as they are normalised, and UIDs, which stay when
// an account is renamed.
func (r ApprovalRules) IsSamePerson(a, b *v1alpha1.Identity) bool {
	return r.person(a.Username) == r.person(b.Username) || (a.UID != "" && a.UID == b.UID)
}

func inAnyGroup(groups []string, requirements []Requirement) bool {
	if len(requirements) == 0 {
		return true
	}
	for _, req := range requirements {
		if slices.Contains(groups, req.Group) {
			return true
		}
	}
	return false
}

func (j *judge) checkPerson(f ReceiptFacts) (reason, message string) {
	if f.AccountProblem != "" {
		// Whoever has the name now was never asked.
		return v1alpha1.ReasonApproverNoLongerAuthorized, f.AccountProblem
	}
	reason, message = CheckApprover(j.proposal, j.rules, f.Receipt.Spec.Approver, f.Receipt.Spec.Decision, f.Authorized)
	if reason == v1alpha1.ReasonApproverNotAuthorized {
		// The right was there at admission, or the receipt would not exist.
		reason = v1alpha1.ReasonApproverNoLongerAuthorized
	}
	return reason, message
}

func (j *judge) checkTime(r *v1alpha1.ApprovalReceipt, seal *attest.ReceiptSeal) (reason, message string) {
	switch {
	case seal.IssuedAt.After(j.now.Add(clockSkew)):
		return v1alpha1.ReasonNotYetValid, "the receipt was issued in the future"
	case !j.now.Before(seal.ExpiresAt), lapsed(r):
		return v1alpha1.ReasonReceiptExpired, "the receipt's time is over; create a new one"
	}
	return "", ""
}

// lapsed says that the receipt had expired when it was looked at before: a clock
// that goes back makes no receipt count again. Like [consumed], it only ever
// speaks against one.
func lapsed(r *v1alpha1.ApprovalReceipt) bool {
	c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionValid)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonReceiptExpired
}

// checkVote lets each person count once for each decision: somebody who
// approved and then denies has changed their mind and is heard.
func (j *judge) checkVote(r *v1alpha1.ApprovalReceipt) (reason, message string) {
	for _, other := range j.counted {
		if other.Spec.Decision == r.Spec.Decision && j.rules.IsSamePerson(other.Spec.Approver, r.Spec.Approver) {
			return v1alpha1.ReasonDuplicateApprover, "another receipt of the same person counts already"
		}
	}
	if len(j.counted) >= MaxReceipts {
		return v1alpha1.ReasonTooManyReceipts, fmt.Sprintf("%d receipts of the proposal count already", MaxReceipts)
	}
	j.counted = append(j.counted, r)
	return v1alpha1.ReasonCounted, "the receipt counts"
}
