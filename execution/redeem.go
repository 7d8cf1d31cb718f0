// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package execution

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/internal/contract"
	"github.com/assent-dev/assent/internal/job"
	"github.com/assent-dev/assent/internal/observe"
	"github.com/assent-dev/assent/internal/proposal"
	"github.com/assent-dev/assent/internal/tracing"
)

// Limits of what a runner reads and reports, in bytes.
const (
	outputMaxBytes = 10 << 20
	statusMaxBytes = 32 << 10
)

// claim is one attempt to redeem a call.
type claim struct {
	pod      *livePod
	nonce    string
	proposal *v1alpha1.ToolProposal
	seal     *attest.ProposalSeal
	contract *contract.Contract
	job      *batchv1.Job
}

// redeem hands the ticket of a call to the one Pod that may run it.
func (s *Server) redeem(ctx context.Context, pod *livePod, body []byte) ([]byte, error) {
	req, err := attest.DecodeRedeemRequest(body)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "malformed redeem request")
	}
	began := s.Now()
	for range swapAttempts {
		c := &claim{pod: pod, nonce: attest.NonceDigest(req.Nonce)}
		var answer []byte
		err := s.examine(ctx, c, req)
		if err == nil {
			answer, err = s.swap(ctx, c)
		}
		if apierrors.IsConflict(err) {
			continue
		}
		if c.seal != nil {
			s.trace(tracing.Redemption, c.seal.SealID, c.proposal, began, err)
		}
		return answer, about(c.proposal, err)
	}
	return nil, fmt.Errorf("the proposal changed %d times while it was redeemed", swapAttempts)
}

// examine reads everything live and refuses all but the one Pod.
func (s *Server) examine(ctx context.Context, c *claim, req attest.RedeemRequest) error {
	if err := s.readProposal(ctx, c, req); err != nil {
		return err
	}
	if err := s.checkRestored(ctx, c); err != nil {
		return err
	}
	if err := s.readContract(ctx, c); err != nil {
		return err
	}
	return s.readJob(ctx, c)
}

func (s *Server) readProposal(ctx context.Context, c *claim, req attest.RedeemRequest) error {
	p := &v1alpha1.ToolProposal{}
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: req.ProposalNamespace, Name: req.ProposalName}, p)
	if apierrors.IsNotFound(err) || (err == nil && p.UID != types.UID(req.ProposalUID)) {
		return refuse(http.StatusConflict, "no such proposal")
	}
	if err != nil {
		return fmt.Errorf("reading the proposal: %w", err)
	}
	seal, err := proposal.VerifySeal(s.Keys(), p)
	if err != nil || seal.Epoch != s.Epoch() {
		return refuse(http.StatusConflict, "the proposal's seal is not valid")
	}
	c.proposal, c.seal = p, seal
	return s.checkGrant(c, p)
}

// checkGrant checks that the call was granted to a Job where the Pod is, has
// not ended, and is nobody else's already.
func (s *Server) checkGrant(c *claim, p *v1alpha1.ToolProposal) error {
	d := p.Status.Dispatch
	switch {
	case d == nil || d.JobNamespace != c.pod.Namespace:
		return refuse(http.StatusConflict, "the call was not granted to a Job in the Pod's namespace")
	case proposal.VerifyGrant(s.Keys(), p) != nil:
		return refuse(http.StatusConflict, "the grant in the status is not this operator's")
	case p.Status.Phase.Terminal() || p.Status.Result != nil:
		return refuse(http.StatusConflict, "the call has ended")
	case p.DeletionTimestamp != nil:
		return refuse(http.StatusConflict, "the proposal is being deleted")
	}
	return s.checkTurn(c, p)
}

// checkTurn checks that nobody has redeemed the call before its deadline but,
// perhaps, this very runner, whose reply was lost.
func (s *Server) checkTurn(c *claim, p *v1alpha1.ToolProposal) error {
	by := p.Status.RedeemedBy
	switch {
	case s.Past.Undone(p):
		return refuse(http.StatusConflict, "somebody put the status back to what it was before the call was redeemed or ended")
	case by != nil && (by.PodUID != c.pod.UID || by.NonceDigest != c.nonce):
		return refuse(http.StatusConflict, "the call was redeemed already")
	case by == nil && !s.Now().Before(p.Status.Dispatch.Deadline.Time):
		return refuse(http.StatusConflict, "the call's deadline has passed")
	}
	return nil
}

// checkRestored gives no call away while the cluster is at an earlier state. The
// runner may ask again: until somebody has looked into it nothing is decided.
func (s *Server) checkRestored(ctx context.Context, c *claim) error {
	if s.Restored == nil || c.proposal.Status.RedeemedBy != nil {
		return nil
	}
	restored, err := s.Restored(ctx)
	if err != nil {
		return err
	}
	if restored != "" {
		return refuse(http.StatusServiceUnavailable, "the cluster was restored")
	}
	return nil
}

func (s *Server) readContract(ctx context.Context, c *claim) error {
	compiled, problem, err := observe.Contract(ctx, s.Live, s.Contracts, c.proposal.Namespace, c.proposal.Spec.Tool)
	if err != nil {
		return err
	}
	if problem != nil || compiled == nil || compiled.Hash() != c.proposal.Spec.Prepared.Contract.Hash {
		return refuse(http.StatusConflict, "the tool's contract changed after the grant")
	}
	c.contract = compiled
	return nil
}

// readJob checks that the Pod is the one that the commit point's Job makes,
// unchanged by anybody.
func (s *Server) readJob(ctx context.Context, c *claim) error {
	d := c.proposal.Status.Dispatch
	live := &batchv1.Job{}
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: d.JobNamespace, Name: d.JobName}, live)
	if apierrors.IsNotFound(err) {
		return refuse(http.StatusConflict, "the call's Job does not exist")
	}
	if err != nil {
		return fmt.Errorf("reading the call's Job: %w", err)
	}
	owner := metav1.GetControllerOf(c.pod)
	if owner == nil || owner.UID != live.UID || owner.Kind != "Job" {
		return refuse(http.StatusConflict, "the Pod does not belong to the call's Job")
	}
	expected, err := s.ExpectedJob(c.proposal, c.contract, live)
	if err != nil {
		return fmt.Errorf("building the expected Job: %w", err)
	}
	if !job.Ours(expected, live) || expected.Annotations[v1alpha1.AnnotationTemplateHash] != d.TemplateHash {
		return refuse(http.StatusConflict, "the call's Job is not the one that was granted")
	}
	if !s.trusted(live) {
		return refuse(http.StatusConflict, "the key that signs was replaced at once, and the call's Pod does not know it")
	}
	c.job = live
	return s.compare(ctx, c, expected)
}

// trusted says that the runner of a Job takes tickets from the key that signs
// now. To one that does not the call would be given in vain: nobody could tell
// any more that it had no effect.
func (s *Server) trusted(live *batchv1.Job) bool {
	known, err := attest.ParsePublicKeysPEM([]byte(job.PublicKeysOf(live)))
	return err == nil && slices.ContainsFunc(known, func(k ed25519.PublicKey) bool { return attest.KeyID(k) == s.Keys().SigningKeyID() })
}

// compare refuses a Job or Pod that differs from what was granted, and notes
// how it does.
func (s *Server) compare(ctx context.Context, c *claim, expected *batchv1.Job) error {
	drift, err := drifted(expected, c.job, c.pod)
	if err != nil {
		return err
	}
	if len(drift) > 0 {
		naming(s.Log, c.proposal).Info("Job or Pod differ from what was granted", "pod", c.pod.Name, "fields", drift)
		if c.proposal.Status.RedeemedBy == nil {
			s.noteDrift(ctx, c, drift)
		}
		return refuse(http.StatusConflict, "Job or Pod differ from what was granted")
	}
	return nil
}

// drifted are the paths at which Job and Pod differ from the Job that was
// granted. A Job whose spec was changed and put back has changed all the same:
// pausing one and letting it go on makes a second Pod.
func drifted(expected, live *batchv1.Job, pod *livePod) ([]string, error) {
	var drift []string
	for _, path := range job.DiffJob(expected, live) {
		drift = append(drift, "Job "+path)
	}
	if live.Generation > 1 {
		drift = append(drift, "Job metadata.generation: shows that the spec was changed after the Job was created")
	}
	expected.UID = live.UID
	_, differences, err := job.Options{}.DiffJSON(expected, pod.text)
	return append(drift, differences...), err
}

// noteDrift tells people why the call will not start. It is a note: failing to
// write it changes nothing about the refusal.
func (s *Server) noteDrift(ctx context.Context, c *claim, drift []string) {
	next := c.proposal.DeepCopy()
	next.Status.Reason = v1alpha1.ReasonPodSpecDrift
	next.Status.Message = "the call's Job or Pod was changed by somebody else and did not get the call: " + strings.Join(drift, ", ")
	if len(next.Status.Message) > 1024 {
		next.Status.Message = next.Status.Message[:1024]
	}
	if err := s.Client.Status().Update(ctx, next); err != nil {
		naming(s.Log, c.proposal).Info("could not note the drift on the proposal", "cause", err.Error())
	}
}

// swap gives the call to the Pod, unless it already has it, and returns the
// answer. The update carries UID and resourceVersion: of two Pods, or two
// replicas, one wins. The ticket is made first, since its digest is part of
// what is stored; it leaves this process only if the update was accepted.
func (s *Server) swap(ctx context.Context, c *claim) ([]byte, error) {
	p := c.proposal
	if p.Status.RedeemedBy != nil {
		_, answer, err := s.ticket(c)
		return answer, err
	}
	if p.Status.Phase != v1alpha1.PhaseDispatching {
		return nil, refuse(http.StatusConflict, "the call is not being dispatched")
	}
	p.Status.Phase, p.Status.Reason, p.Status.Message = v1alpha1.PhaseRunning, v1alpha1.ReasonRedeemed, "the runner fetched the call"
	p.Status.Dispatch.JobUID = c.job.UID
	p.Status.RedeemedBy = &v1alpha1.Redemption{
		PodName: c.pod.Name, PodUID: c.pod.UID, NodeName: c.pod.Spec.NodeName, NonceDigest: c.nonce,
		// Whole seconds, as they are stored: the ticket is the same each time
		// that it is made from the stored object.
		Time: metav1.NewTime(s.Now().Truncate(time.Second)),
	}
	envelope, answer, err := s.ticket(c)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(envelope))
	p.Status.RedeemedBy.TicketDigest = hex.EncodeToString(sum[:])
	if err := s.Client.Status().Update(ctx, p); err != nil {
		return nil, fmt.Errorf("writing the redemption: %w", err)
	}
	s.Past.Note(p)
	return answer, nil
}

// ticket signs the call for the Pod that has it, and makes the answer.
func (s *Server) ticket(c *claim) (envelope string, answer []byte, err error) {
	p, keys := c.proposal, s.Keys()
	call, err := proposal.CallOf(p)
	if err != nil {
		return "", nil, fmt.Errorf("assembling the call: %w", err)
	}
	binding, err := proposal.BindingOf(p, c.seal).Hash()
	if err != nil {
		return "", nil, fmt.Errorf("hashing the binding: %w", err)
	}
	timeout := c.contract.Execution().Timeout
	t := attest.Ticket{
		Proposal:    attest.ObjectRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)},
		JobUID:      string(c.job.UID),
		PodUID:      string(c.pod.UID),
		NonceDigest: c.nonce,
		Fingerprint: c.seal.Fingerprint,
		Binding:     binding,
		Call:        call,
		Limits:      attest.Limits{TimeoutSeconds: int64(timeout / time.Second), OutputMaxBytes: outputMaxBytes, StatusMaxBytes: statusMaxBytes},
		Epoch:       c.seal.Epoch,
		IssuedAt:    p.Status.RedeemedBy.Time.Time,
		Deadline:    proposal.TicketDeadline(p.Status.RedeemedBy.Time.Time, timeout),
	}
	envelope, err = keys.Sign(attest.KindTicket, "toolproposal", t.Fingerprint, t)
	if err != nil {
		return "", nil, fmt.Errorf("signing the ticket: %w", err)
	}
	key, err := keys.ResultKey(keys.SigningKeyID(), string(p.UID), string(c.pod.UID), c.nonce)
	if err != nil {
		return "", nil, fmt.Errorf("deriving the result key: %w", err)
	}
	answer, err = attest.Encode(attest.RedeemResponse{Ticket: envelope, ResultKey: key, KeyID: keys.SigningKeyID()})
	return envelope, answer, err
}
