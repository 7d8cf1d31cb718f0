// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/audit"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/policy"
	"github.com/assent-dev/assent/internal/proposal"
)

// facts is what was observed about a call, with the contract it is about.
type facts struct {
	proposal.Observed
	contract *contract.Contract
	// began is when the gathering did.
	began time.Time
	// text and binding are kept from one record about the call to the next.
	text    audit.CallText
	binding string
}

// decisionTime bounds one answer of the policies. Running out of it denies.
const decisionTime = 2 * time.Second

// gather reads everything that a decision about the call rests on. With the
// informers' reader it serves to move calls along; the commit point gathers
// again with a live one.
func (c *Config) gather(ctx context.Context, from client.Reader, p *v1alpha1.ToolProposal) (*facts, error) {
	f := c.open(p)
	return f, c.complete(ctx, from, f)
}

// open is what a proposal says by itself.
func (c *Config) open(p *v1alpha1.ToolProposal) *facts {
	f := c.begin(p)
	f.Seal, f.SealErr = proposal.VerifySeal(f.Keys, p)
	return f
}

// gatherAgain gathers anew about the same object. Its seal, which only object
// and keys decide on, is not opened a second time.
func (c *Config) gatherAgain(ctx context.Context, from client.Reader, before *facts) (*facts, error) {
	f := c.begin(before.Proposal)
	if f.Keys != before.Keys {
		return c.gather(ctx, from, before.Proposal)
	}
	f.Seal, f.SealErr = before.Seal, before.SealErr
	return f, c.complete(ctx, from, f)
}

func (c *Config) begin(p *v1alpha1.ToolProposal) *facts {
	return &facts{Observed: proposal.Observed{Proposal: p, Epoch: c.Epoch(), Keys: c.Keys(), Drift: c.Drift()}, began: c.Now()}
}

// complete adds to a seal what is to be looked up. Nothing that an object with
// a bad seal says is.
func (c *Config) complete(ctx context.Context, from client.Reader, f *facts) error {
	if f.SealErr != nil {
		return nil //nolint:nilerr // a bad seal is an observation
	}
	p := f.Proposal
	var session *v1alpha1.AgentSession
	var receipts []v1alpha1.ApprovalReceipt
	err := observe.Together(
		func() (err error) { session, err = c.gatherSession(ctx, from, f); return err },
		func() error { return c.gatherContract(ctx, from, f) },
		func() (err error) { receipts, err = observe.Receipts(ctx, from, p); return err },
	)
	if err != nil || f.ContractProblem != "" {
		return err
	}
	call, err := proposal.PolicyCall(f.contract, p, session)
	if err != nil {
		return err
	}
	f.Policy = func(approved bool) policy.Decision {
		call := call
		if approved {
			call.Approved, call.ApprovedFingerprint = true, call.Fingerprint
		}
		// Each of the two evaluations has its own time. The limits on texts and
		// arguments keep a decision far below it.
		deadline := c.Now().Add(decisionTime)
		return c.Policies.Decide(call, policy.Options{Expired: func() bool { return c.Now().After(deadline) }})
	}
	return c.judgeReceipts(ctx, f, receipts)
}

// gatherSession reads the session that the call names and says whether it
// carries the call. A session that ended stops a running call whatever became
// of its contract.
func (c *Config) gatherSession(ctx context.Context, from client.Reader, f *facts) (*v1alpha1.AgentSession, error) {
	p := f.Proposal
	session, err := observe.Session(ctx, from, p)
	if err != nil || p.Spec.SessionRef == nil {
		return nil, err
	}
	f.SessionProblem = proposal.SessionProblem(session, p.Spec.Requester.Username, c.Now())
	if f.SessionProblem == "" {
		f.SessionProblem = proposal.SessionChanged(session, f.Seal.Session)
	}
	if f.SessionProblem == "" {
		f.Claim = proposal.ClaimOf(f.Keys, session, p)
	}
	return session, nil
}

func (c *Config) gatherContract(ctx context.Context, from client.Reader, f *facts) error {
	p := f.Proposal
	compiled, problem, err := observe.Contract(ctx, from, c.Contracts, p.Namespace, p.Spec.Tool)
	if err != nil {
		return err
	}
	switch {
	case problem != nil:
		f.ContractProblem = fmt.Sprintf("ToolManifest %s is not Ready", p.Spec.Tool)
	case compiled == nil:
		f.ContractProblem = fmt.Sprintf("there is no ToolManifest %s", p.Spec.Tool)
	default:
		f.contract, f.ContractHash = compiled, compiled.Hash()
		f.Rules = proposal.RulesOf(compiled)
		f.Rules.SamePerson = c.SamePerson
	}
	return nil
}

// judgeReceipts asks anew for each receipt whether its approver may still
// approve: rights are taken away for a reason. Nothing is asked about receipts
// that admission did not seal for this call, of which there could be any number.
func (c *Config) judgeReceipts(ctx context.Context, f *facts, receipts []v1alpha1.ApprovalReceipt) (err error) {
	for i := range receipts {
		fact := proposal.ReceiptFacts{Receipt: &receipts[i]}
		if proposal.BindsReceipt(f.Keys, f.Proposal, fact.Receipt) {
			fact.Authorized, err = observe.MayApprove(ctx, c.Client, f.Proposal.Namespace, f.Proposal.Spec.Tool, fact.Receipt.Spec.Approver)
			if err != nil {
				return err
			}
			// Never from an informer: only a ServiceAccount that decided is read.
			fact.AccountProblem, err = observe.AccountProblem(ctx, c.Live, fact.Receipt.Spec.Approver)
			if err != nil {
				return err
			}
		}
		f.Receipts = append(f.Receipts, fact)
	}
	return nil
}
