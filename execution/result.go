// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package execution

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
	"github.com/assent-dev/assent/internal/tracing"
)

// errorOutputMaxBytes is how much of the error output the status keeps.
const errorOutputMaxBytes = 4 << 10

// result stores what a runner reports about the call that its Pod redeemed.
// The Pod alone is not believed: the report must carry the MAC of the key that
// came with the ticket, so that another container of the Pod, which could
// present the same Pod's token, cannot report in the runner's name.
func (s *Server) result(ctx context.Context, pod *livePod, body []byte) ([]byte, error) {
	signed, err := attest.DecodeSignedResult(body)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "malformed result")
	}
	began := s.Now()
	for range swapAttempts {
		p, err := s.redeemedBy(ctx, pod)
		if err != nil {
			return nil, err
		}
		report, err := s.open(p, signed)
		if err != nil {
			return nil, about(p, err)
		}
		err = s.store(ctx, p, report)
		if apierrors.IsConflict(err) {
			continue
		}
		if s.Tracer != nil {
			s.trace(tracing.Result, proposal.TraceID(s.Keys(), p), p, began, err)
		}
		return []byte("{}"), about(p, err)
	}
	return nil, fmt.Errorf("the proposal changed %d times while its result was stored", swapAttempts)
}

// redeemedBy finds the call that the Pod redeemed. The Pod's own environment
// says which; a Pod that says another call's name fails the comparison.
func (s *Server) redeemedBy(ctx context.Context, pod *livePod) (*v1alpha1.ToolProposal, error) {
	key, ok := job.CallOf(&pod.Spec)
	if !ok {
		return nil, refuse(http.StatusConflict, "the Pod is not of a call")
	}
	p := &v1alpha1.ToolProposal{}
	err := s.Live.Get(ctx, key, p)
	if apierrors.IsNotFound(err) {
		return nil, refuse(http.StatusConflict, "the call is gone")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the proposal: %w", err)
	}
	if p.Status.RedeemedBy == nil || p.Status.RedeemedBy.PodUID != pod.UID {
		return nil, about(p, refuse(http.StatusConflict, "the Pod did not redeem the call"))
	}
	return p, nil
}

func (s *Server) open(p *v1alpha1.ToolProposal, signed attest.SignedResult) (attest.Result, error) {
	r := p.Status.RedeemedBy
	key, err := s.Keys().ResultKey(signed.KeyID, string(p.UID), string(r.PodUID), r.NonceDigest)
	if errors.Is(err, attest.ErrNoSigningKey) {
		return attest.Result{}, refuse(http.StatusConflict, "the result names an unknown key")
	}
	if err != nil {
		return attest.Result{}, fmt.Errorf("deriving the result key: %w", err)
	}
	report, err := attest.OpenResult(key, signed)
	if err != nil {
		return attest.Result{}, refuse(http.StatusConflict, "the result is not authentic")
	}
	if types.UID(report.ProposalUID) != p.UID || types.UID(report.PodUID) != r.PodUID || report.Fingerprint != p.Spec.Prepared.Fingerprint {
		return attest.Result{}, refuse(http.StatusConflict, "the result is about another call")
	}
	return report, nil
}

// store writes the result once. The same result may be reported again, since
// the answer to the first report may have been lost.
func (s *Server) store(ctx context.Context, p *v1alpha1.ToolProposal, report attest.Result) error {
	if old := p.Status.Result; old != nil {
		if sameReport(old, report) {
			return nil
		}
		return refuse(http.StatusConflict, "another result was reported before")
	}
	if p.Status.Phase.Terminal() {
		return refuse(http.StatusConflict, "the call has ended")
	}
	c, err := s.contractOf(ctx, p)
	if err != nil {
		return err
	}
	// When the contract that says whether the output may be kept is not there
	// any more, it is kept out as well.
	p.Status.Result = resultOf(report, c == nil || c.Output().Sensitive)
	p.Status.Result.OutputProblem = hiddenProblem(c, report)
	// Whole seconds, as they are stored: the seal covers the stored text.
	p.Status.Result.Time = metav1.NewTime(s.Now().Truncate(time.Second))
	if err := proposal.SealStoredResult(s.Keys(), p); err != nil {
		return err
	}
	return s.Client.Status().Update(ctx, p)
}

// sameReport says that a stored result is what the report would be stored as.
// A result without texts was either stored without them or has none.
func sameReport(old *v1alpha1.Result, report attest.Result) bool {
	again := resultOf(report, old.Output == "" && old.ErrorOutput == "")
	again.KeyID, again.Seal, again.Parsed, again.Time = old.KeyID, old.Seal, old.Parsed, old.Time
	again.OutputProblem = old.OutputProblem // follows from the output, whose digest is compared
	return apiequality.Semantic.DeepEqual(old, again)
}

// contractOf returns the contract that was decided on, or nil when it is not in
// force any more.
func (s *Server) contractOf(ctx context.Context, p *v1alpha1.ToolProposal) (*contract.Contract, error) {
	c, problem, err := observe.Contract(ctx, s.Live, s.Contracts, p.Namespace, p.Spec.Tool)
	if err != nil {
		return nil, err
	}
	if c == nil || problem != nil || c.Hash() != p.Spec.Prepared.Contract.Hash {
		return nil, nil //nolint:nilerr,nilnil // a contract that does not compile says as much as none
	}
	return c, nil
}

// hiddenProblem holds an output to format and schema that nobody can read again:
// it is not stored, so that this is the only place to do it.
func hiddenProblem(c *contract.Contract, r attest.Result) string {
	if c == nil || !c.Output().Sensitive || r.Outcome != attest.OutcomeSucceeded {
		return ""
	}
	if _, err := c.CheckOutput(r.Stdout, proposal.OutputIsCut(r.Truncated, r.Stdout, r.StdoutBytes)); err != nil {
		return err.Error()
	}
	return ""
}

func resultOf(r attest.Result, sensitive bool) *v1alpha1.Result {
	out := &v1alpha1.Result{
		Outcome: string(r.Outcome), Reason: r.Reason, ExitCode: r.ExitCode, HTTPStatus: r.HTTPStatus,
		OutputDigest: r.StdoutSHA256, OutputBytes: r.StdoutBytes, Truncated: r.Truncated,
		MediaType: cut(r.MediaType, 255), DurationMilliseconds: r.DurationMillis,
	}
	if !sensitive {
		out.Output, out.ErrorOutput = cut(r.Stdout, statusMaxBytes), cut(r.Stderr, errorOutputMaxBytes)
	}
	return out
}

// cut shortens a text to at most limit bytes without splitting a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
