// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
)

// answers is a policy that answers the same without and with approval.
func answers(without, with policy.Decision) func(bool) policy.Decision {
	return func(approved bool) policy.Decision {
		if approved {
			return with
		}
		return without
	}
}

var (
	allow     = policy.Decision{Answer: policy.Allow, Reason: policy.ReasonPermitted}
	needs     = policy.Decision{Answer: policy.NeedsApproval, Reason: policy.ReasonApprovalRequired}
	forbidden = policy.Decision{Answer: policy.Deny, Reason: policy.ReasonForbidden, Message: "forbidden by policy agents/no#0", Policies: []string{"agents/no#0"}, SetDigest: "now"}
	broken    = policy.Decision{Answer: policy.Deny, Reason: policy.ReasonPolicyError, Message: "policy agents/no#0: m", Errors: []policy.EvaluationError{{Policy: "agents/no#0", Message: "m"}}, SetDigest: "now"}
	nothing   = policy.Decision{Answer: policy.Deny, Reason: policy.ReasonNoPolicyPermits, Message: "no policy permits the call", SetDigest: "now"}
	notLoaded = policy.Decision{Answer: policy.Deny, Reason: policy.ReasonPolicySetNotLoaded}
)

// scene is what a row of the table starts from: a sealed call that policy
// permits, in a cluster where nothing is wrong.
type scene struct {
	*testing.T
	keys *attest.Keyring
	o    proposal.Observed
}

func newScene(t *testing.T) *scene {
	t.Helper()
	k := keyring(t, 1)
	p := sealed(t, k, commandManifest())
	seal, err := proposal.VerifySeal(k, p)
	if err != nil {
		t.Fatal(err)
	}
	return &scene{T: t, keys: k, o: proposal.Observed{
		Proposal: p, Seal: seal, Epoch: 4, ContractHash: p.Spec.Prepared.Contract.Hash,
		Policy: answers(allow, allow), Rules: proposal.ApprovalRules{Timeout: time.Hour}, Keys: k,
	}}
}

// receipt adds a receipt whose approver may approve.
func (s *scene) receipt(name, approver string, edit ...func(*v1alpha1.ApprovalReceipt)) {
	s.Helper()
	s.o.Receipts = append(s.o.Receipts, proposal.ReceiptFacts{Receipt: receiptOf(s, s.keys, s.o.Proposal, name, approver, edit...), Authorized: true})
}

// before notes an answer that the policies gave earlier.
func (s *scene) before(d policy.Decision, digest string) {
	s.o.Proposal.Status.Decision = &v1alpha1.Decision{Answer: string(d.Answer), Reason: string(d.Reason), PolicySetDigest: digest}
}

func deny(r *v1alpha1.ApprovalReceipt) { r.Spec.Decision = v1alpha1.ReceiptDenied }

func TestDecide_EveryRow(t *testing.T) {
	hour := now.Add(time.Hour)
	wait := proposal.Plan{
		Phase: v1alpha1.PhaseAwaitingApproval, Reason: v1alpha1.ReasonAwaitingApproval, Message: "0 of 1 approvals",
		Decision: &needs, ExpiresAt: hour, Recheck: time.Hour,
	}
	for name, tc := range map[string]struct {
		arrange func(*scene)
		after   time.Duration
		want    proposal.Plan
	}{
		"a call that policy permits is dispatched": {
			func(*scene) {}, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDispatching, Reason: "Permitted", Message: "the call may run", Decision: &allow, Dispatch: true},
		},
		"a deleted proposal is cancelled, whatever else holds": {
			func(s *scene) {
				s.o.Proposal.DeletionTimestamp = new(metav1.NewTime(now))
				s.receipt("r", "alice")
			}, 0,
			proposal.Plan{Phase: v1alpha1.PhaseCancelled, Reason: "Deleted", Message: "the proposal was deleted before it was dispatched"},
		},
		"an object without our seal is invalid": {
			func(s *scene) { s.o.Seal, s.o.SealErr = nil, proposal.ErrUnsealed }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseInvalid, Reason: "Unsealed", Message: "the object did not pass admission as it stands: create it again while Assent's webhook is up"},
		},
		"a seal of another encoding is told apart": {
			func(s *scene) { s.o.Seal, s.o.SealErr = nil, proposal.ErrOldEncoding }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseInvalid, Reason: "OldEncoding", Message: "the call was prepared by another version of Assent: create it again"},
		},
		"a seal of another epoch is void": {
			func(s *scene) { s.o.Epoch = 5 }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseInvalid, Reason: "Unsealed", Message: "the call was sealed before the cluster was restored: create it again"},
		},
		"a requester who is somebody else now gets nothing": {
			func(s *scene) {
				s.o.PrincipalProblem = "the requester's ServiceAccount does not exist any more"
				s.o.Policy = answers(needs, allow)
				s.receipt("r", "alice")
			}, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "PrincipalChanged", Message: "the requester's ServiceAccount does not exist any more"},
		},
		"a tool that is gone denies": {
			func(s *scene) { s.o.ContractHash, s.o.ContractProblem = "", "there is no ToolManifest change" }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "ContractChanged", Message: "the contract that the call was prepared against is gone: there is no ToolManifest change"},
		},
		"a contract that changed denies": {
			func(s *scene) { s.o.ContractHash = "other"; s.receipt("r", "alice") }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "ContractChanged", Message: "the tool's contract is not the one that the call was prepared against: create the call again"},
		},
		"a session that does not carry the call denies": {
			func(s *scene) { s.o.SessionProblem = "the call's session was revoked" }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "SessionInvalid", Message: "the call's session was revoked"},
		},
		"policies that are not loaded let it wait": {
			func(s *scene) { s.o.Policy = answers(notLoaded, notLoaded) }, 0,
			proposal.Plan{Phase: v1alpha1.PhasePending, Reason: "PolicySetNotLoaded", Message: "the policies are not loaded yet", Decision: &notLoaded, Recheck: time.Second},
		},
		"a forbid denies and an approval does not help": {
			func(s *scene) { s.o.Policy = answers(forbidden, forbidden); s.receipt("r", "alice") }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "Forbidden", Message: "forbidden by policy agents/no#0", Decision: &forbidden},
		},
		"a policy that cannot be evaluated denies": {
			func(s *scene) { s.o.Policy = answers(broken, broken) }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "PolicyError", Message: "policy agents/no#0: m", Decision: &broken},
		},
		"no policy at all denies": {
			func(s *scene) { s.o.Policy = answers(nothing, nothing) }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "NoPolicyPermits", Message: "no policy permits the call", Decision: &nothing},
		},
		"a call that needs approval waits": {
			func(s *scene) { s.o.Policy = answers(needs, allow) }, 0, wait,
		},
		"it looks again when the receipt at hand expires": {
			func(s *scene) {
				s.o.Policy = answers(needs, allow)
				s.o.Rules.Requirements = []proposal.Requirement{{Group: "sre", Count: 2}}
				s.receipt("r", "alice")
			}, 0,
			proposal.Plan{Phase: wait.Phase, Reason: wait.Reason, Message: "1 of 2 approvals", Decision: &needs, ExpiresAt: hour, Recheck: 15 * time.Minute},
		},
		"a person's no denies": {
			func(s *scene) { s.o.Policy = answers(needs, allow); s.receipt("r", "alice", deny) }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "DeniedByApprover", Message: "denied by alice", Decision: &needs, ExpiresAt: hour},
		},
		"a person's no denies what policy permits without people": {
			func(s *scene) { s.receipt("r", "alice", deny) }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "DeniedByApprover", Message: "denied by alice", Decision: &allow},
		},
		"a yes that nobody asked for changes nothing": {
			func(s *scene) { s.receipt("r", "alice") }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDispatching, Reason: "Permitted", Message: "the call may run", Decision: &allow, Dispatch: true},
		},
		"a no weighs more than enough approvals": {
			func(s *scene) {
				s.o.Policy = answers(needs, allow)
				s.receipt("a", "alice")
				s.receipt("b", "bob", deny)
			}, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "DeniedByApprover", Message: "denied by bob", Decision: &needs, ExpiresAt: hour},
		},
		"a call that nobody decided on expires and is not denied": {
			func(s *scene) { s.o.Policy = answers(needs, allow) }, time.Hour,
			proposal.Plan{Phase: v1alpha1.PhaseExpired, Reason: "ApprovalTimeout", Message: "nobody decided in time", Decision: &needs, ExpiresAt: hour},
		},
		"an approved call is dispatched": {
			func(s *scene) { s.o.Policy = answers(needs, allow); s.receipt("r", "alice") }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDispatching, Reason: "Approved", Message: "the call may run", Decision: &allow, ExpiresAt: hour, Dispatch: true},
		},
		"the policy has the last word on an approved call": {
			func(s *scene) { s.o.Policy = answers(needs, forbidden); s.receipt("r", "alice") }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "Forbidden", Message: "forbidden by policy agents/no#0", Decision: &forbidden, ExpiresAt: hour},
		},
		"people are told that the policies changed after they approved": {
			func(s *scene) {
				s.before(needs, "then")
				s.o.Policy = answers(forbidden, forbidden)
				s.receipt("r", "alice")
			}, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "PolicyChanged", Message: "the policies changed after people approved the call: forbidden by policy agents/no#0", Decision: &forbidden},
		},
		"so they are when the change comes with the last approval": {
			func(s *scene) { s.before(needs, "then"); s.o.Policy = answers(needs, nothing); s.receipt("r", "alice") }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "PolicyChanged", Message: "the policies changed after people approved the call: no policy permits the call", Decision: &nothing, ExpiresAt: hour},
		},
		"a change before anybody approved is a denial like any other": {
			func(s *scene) { s.before(needs, "then"); s.o.Policy = answers(forbidden, forbidden) }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "Forbidden", Message: "forbidden by policy agents/no#0", Decision: &forbidden},
		},
		"the same policies did not change": {
			func(s *scene) {
				s.before(needs, "now")
				s.o.Policy = answers(forbidden, forbidden)
				s.receipt("r", "alice")
			}, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "Forbidden", Message: "forbidden by policy agents/no#0", Decision: &forbidden},
		},
		"a policy that went wrong is named for what it is": {
			func(s *scene) { s.before(needs, "then"); s.o.Policy = answers(broken, broken); s.receipt("r", "alice") }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "PolicyError", Message: "policy agents/no#0: m", Decision: &broken},
		},
		"a clock that went back grants nothing": {
			func(s *scene) { s.o.Policy = answers(needs, allow); s.receipt("r", "alice") }, -time.Hour,
			proposal.Plan{Phase: wait.Phase, Reason: wait.Reason, Message: wait.Message, Decision: &needs, ExpiresAt: hour, Recheck: 2 * time.Hour},
		},
		"nothing is granted in a cluster that was restored": {
			func(s *scene) { s.o.Restored = "the cluster was restored" }, 0,
			proposal.Plan{Phase: v1alpha1.PhasePending, Reason: "RestoreDetected", Message: "the cluster was restored", Decision: &allow, Recheck: 5 * time.Second},
		},
		"a person's no is heard while nothing is granted": {
			func(s *scene) { s.o.Drift = "the webhook is gone"; s.receipt("r", "alice", deny) }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "DeniedByApprover", Message: "denied by alice", Decision: &allow},
		},
		"nothing is granted while the enforcement differs": {
			func(s *scene) { s.o.Drift = "the webhook is gone" }, 0,
			proposal.Plan{Phase: v1alpha1.PhasePending, Reason: "EnforcementDrift", Message: "the webhook is gone", Decision: &allow, Recheck: 5 * time.Second},
		},
		"an approved call waits as well while the enforcement differs": {
			func(s *scene) {
				s.o.Drift, s.o.Policy = "the webhook is gone", answers(needs, allow)
				s.receipt("r", "alice")
			}, 0,
			proposal.Plan{Phase: v1alpha1.PhasePending, Reason: "EnforcementDrift", Message: "the webhook is gone", Decision: &allow, ExpiresAt: hour, Recheck: 5 * time.Second},
		},
		"a call whose Pod would find no place is denied": {
			func(s *scene) {
				s.o.Obstacle = &proposal.ObstacleError{Reason: "RuntimeClassNotFound", Message: "no such class"}
			}, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "RuntimeClassNotFound", Message: "no such class", Decision: &allow},
		},
		"so is an approved one": {
			func(s *scene) {
				s.o.Obstacle, s.o.Policy = &proposal.ObstacleError{Reason: "RuntimeClassNotFound", Message: "no such class"}, answers(needs, allow)
				s.receipt("r", "alice")
			}, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "RuntimeClassNotFound", Message: "no such class", Decision: &allow, ExpiresAt: hour},
		},
		"while the enforcement differs it waits": {
			func(s *scene) {
				s.o.Drift, s.o.Obstacle = "the webhook is gone", &proposal.ObstacleError{Reason: "RuntimeClassNotFound", Message: "no such class"}
			}, 0,
			proposal.Plan{Phase: v1alpha1.PhasePending, Reason: "EnforcementDrift", Message: "the webhook is gone", Decision: &allow, Recheck: 5 * time.Second},
		},
		"what is denied stays denied while the enforcement differs": {
			func(s *scene) { s.o.Drift, s.o.Policy = "the webhook is gone", answers(nothing, nothing) }, 0,
			proposal.Plan{Phase: v1alpha1.PhaseDenied, Reason: "NoPolicyPermits", Message: "no policy permits the call", Decision: &nothing},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tc.arrange(s)
			got := proposal.Decide(s.o, now.Add(tc.after))
			// What receipts amount to has tests of its own.
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(proposal.Plan{}, "Approval")); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecide_NeverDispatchesACallWhoseSealWasNotVerified(t *testing.T) {
	s := newScene(t)
	for name, edit := range map[string]func(*proposal.Observed){
		"a seal error beside a seal": func(o *proposal.Observed) { o.SealErr = proposal.ErrUnsealed },
		"no contract":                func(o *proposal.Observed) { o.ContractHash = "" },
	} {
		o := s.o
		edit(&o)
		if plan := proposal.Decide(o, now); plan.Dispatch {
			t.Errorf("%s: dispatched", name)
		}
	}
}

// Where it is no answer but an error, it says the same.
func TestObstacle_SaysWhatIsInTheWay(t *testing.T) {
	var err error = &proposal.ObstacleError{Reason: "RuntimeClassNotFound", Message: "no such class"}
	if got, want := err.Error(), "no such class"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
