// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
	"github.com/assent-dev/assent/snapshot"
)

// AcceptanceWindow is how far the creation of an object may lie from the
// moment its seal was issued. A seal copied into another object later than
// this is refused; one copied earlier still collides on the Job's name, which
// is derived from the seal's ID.
const AcceptanceWindow = 60 * time.Second

// ErrUnsealed says that an object does not carry a valid seal for what it says.
var ErrUnsealed = errors.New("the object carries no valid seal")

// ErrOldEncoding says that the seal is ours and valid, but was made under
// another version of the rules that hashes are computed by. It is an
// [ErrUnsealed] as well: such a call is never decided on.
var ErrOldEncoding = fmt.Errorf("%w: it was sealed under another version of the encoding", ErrUnsealed)

// Stamp is what admission knows beside the object itself.
type Stamp struct {
	Namespace string
	SealID    string
	Session   *v1alpha1.AgentSession
	Epoch     int64
	Now       time.Time
}

// Seal signs what admission stamped on the proposal and stores the envelope.
// Requester and prepared must be set.
func Seal(k *attest.Keyring, p *v1alpha1.ToolProposal, s Stamp) error {
	statement, err := sealOf(p, s.Namespace)
	if err != nil {
		return err
	}
	statement.SealID, statement.Epoch, statement.IssuedAt = s.SealID, s.Epoch, s.Now.UTC()
	if statement.Session, err = SessionRef(s.Session); err != nil {
		return err
	}
	p.Spec.Seal, err = k.Sign(attest.KindProposalSeal, "toolproposal", statement.Fingerprint, statement)
	if err != nil {
		return fmt.Errorf("sealing the proposal: %w", err)
	}
	return nil
}

// SessionRef binds to one state of a session; nil without one.
func SessionRef(s *v1alpha1.AgentSession) (*attest.SessionRef, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // the statement has no member for a session that is not there
	}
	digest, err := SessionDigest(s)
	if err != nil {
		return nil, err
	}
	return &attest.SessionRef{Name: s.Name, UID: string(s.UID), SpecDigest: digest}, nil
}

// SessionDigest is the SHA-256, in hex, of a session's spec.
func SessionDigest(s *v1alpha1.AgentSession) (string, error) {
	raw, err := json.Marshal(s.Spec)
	if err != nil {
		return "", fmt.Errorf("encoding the session's spec: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// sealOf is the part of a seal's statement that the stored object alone
// determines: sealing writes it, verifying compares it.
func sealOf(p *v1alpha1.ToolProposal, namespace string) (attest.ProposalSeal, error) {
	spec := &p.Spec
	if spec.Requester == nil || spec.Prepared == nil {
		return attest.ProposalSeal{}, fmt.Errorf("%w: requester or prepared call is missing", ErrUnsealed)
	}
	raw := sha256.Sum256([]byte(spec.Arguments))
	s := attest.ProposalSeal{
		Namespace:    namespace,
		Kind:         attest.ObjectToolProposal,
		Fingerprint:  spec.Prepared.Fingerprint,
		ProposalHash: spec.Prepared.ProposalHash,
		ArgsDigest:   spec.Prepared.ArgsDigest,
		RawDigest:    hex.EncodeToString(raw[:]),
		Tool:         spec.Tool,
		CallID:       spec.CallID,
		ContractHash: spec.Prepared.Contract.Hash,
		Requester:    UserOf(spec.Requester),
		Iteration:    spec.Iteration,
		Encoding:     attest.EncodingV1,
	}
	if spec.Batch != nil {
		s.Batch = &attest.BatchRef{ID: spec.Batch.ID, Size: int64(spec.Batch.Size)}
	}
	return s, nil
}

// VerifySeal checks that the proposal carries a seal of ours for exactly what
// it says, made for this namespace when the object was created, and that its
// hashes are those of its content. It returns the seal's statement.
func VerifySeal(k *attest.Keyring, p *v1alpha1.ToolProposal) (*attest.ProposalSeal, error) {
	want, err := sealOf(p, p.Namespace)
	if err != nil {
		return nil, err
	}
	var got attest.ProposalSeal
	if err := k.Verify(attest.KindProposalSeal, p.Spec.Seal, want.Fingerprint, &got); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsealed, err)
	}
	if got.Encoding != attest.EncodingV1 {
		return nil, ErrOldEncoding
	}
	if err := checkHashes(p); err != nil {
		return nil, err
	}
	want.SealID, want.Epoch, want.IssuedAt, want.Session = got.SealID, got.Epoch, got.IssuedAt, got.Session
	if (got.Session != nil) != (p.Spec.SessionRef != nil) || (got.Session != nil && got.Session.Name != p.Spec.SessionRef.Name) {
		return nil, fmt.Errorf("%w: it names another session than the object", ErrUnsealed)
	}
	if err := sameStatement(want, got); err != nil {
		return nil, err
	}
	return &got, checkAge(p.CreationTimestamp, got.IssuedAt)
}

// sameStatement compares every member, so that one that is added later takes
// part without being named here.
func sameStatement(want, got any) error {
	if !statements.DeepEqual(want, got) {
		return fmt.Errorf("%w: the object differs from what was sealed", ErrUnsealed)
	}
	return nil
}

// statements compares as canonical text would: an instant is the same in every
// zone, and what is empty is the same as what is absent.
var statements = conversion.EqualitiesOrDie(time.Time.Equal)

func checkAge(created metav1.Time, issued time.Time) error {
	if d := created.Sub(issued); d > AcceptanceWindow || d < -AcceptanceWindow {
		return fmt.Errorf("%w: the seal was not made when the object was created", ErrUnsealed)
	}
	return nil
}

// checkHashes computes every hash of the prepared call anew from its content.
func checkHashes(p *v1alpha1.ToolProposal) error {
	call, err := CallOf(p)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsealed, err)
	}
	prepared := p.Spec.Prepared
	// It fails for arguments that are not canonical.
	proposalHash, err := snapshot.ProposalHash(call.Agent, call.Tool, call.ArgsCanonicalJSON)
	if err != nil {
		return fmt.Errorf("%w: proposal hash: %w", ErrUnsealed, err)
	}
	fingerprint, err := attest.Fingerprint(proposalHash, call.Namespace, call.Contract, call.EffectJSON)
	if err != nil {
		return fmt.Errorf("%w: fingerprint: %w", ErrUnsealed, err)
	}
	args := sha256.Sum256([]byte(call.ArgsCanonicalJSON))
	if hex.EncodeToString(args[:]) != prepared.ArgsDigest || proposalHash != prepared.ProposalHash || fingerprint != prepared.Fingerprint {
		return fmt.Errorf("%w: its hashes are not those of its content", ErrUnsealed)
	}
	return nil
}

// CallOf is the material that the proposal's fingerprint is computed from.
func CallOf(p *v1alpha1.ToolProposal) (attest.Call, error) {
	if p.Spec.Requester == nil || p.Spec.Prepared == nil {
		return attest.Call{}, errors.New("requester or prepared call is missing")
	}
	effect, err := EffectJSON(p.Spec.Prepared.Effect)
	if err != nil {
		return attest.Call{}, fmt.Errorf("effect: %w", err)
	}
	c := p.Spec.Prepared.Contract
	return attest.Call{
		Agent:             p.Spec.Requester.Username,
		Tool:              p.Spec.Tool,
		ArgsCanonicalJSON: p.Spec.Prepared.ArgsCanonicalJSON,
		Namespace:         p.Namespace,
		Contract:          attest.ContractRef{Name: c.Name, Version: c.Version, Hash: c.Hash},
		EffectJSON:        effect,
	}, nil
}

// BindingOf is the situation in which the call was asked for.
func BindingOf(p *v1alpha1.ToolProposal, seal *attest.ProposalSeal) attest.Binding {
	return attest.Binding{
		Fingerprint: seal.Fingerprint,
		ProposalUID: string(p.UID),
		Requester:   seal.Requester,
		Session:     seal.Session,
		Iteration:   seal.Iteration,
		Batch:       seal.Batch,
		ExpiresAt:   seal.ExpiresAt,
	}
}

// SealReceipt signs what admission stamped on the receipt and stores the
// envelope. Approver and expiresAt must be set.
func SealReceipt(k *attest.Keyring, r *v1alpha1.ApprovalReceipt, s Stamp) error {
	statement, err := receiptSealOf(r, s.Namespace)
	if err != nil {
		return err
	}
	statement.SealID, statement.Epoch, statement.IssuedAt = s.SealID, s.Epoch, s.Now.UTC()
	r.Spec.Seal, err = k.Sign(attest.KindReceiptSeal, "approvalreceipt", statement.Fingerprint, statement)
	if err != nil {
		return fmt.Errorf("sealing the receipt: %w", err)
	}
	return nil
}

func receiptSealOf(r *v1alpha1.ApprovalReceipt, namespace string) (attest.ReceiptSeal, error) {
	spec := &r.Spec
	if spec.Approver == nil || spec.ExpiresAt == nil {
		return attest.ReceiptSeal{}, fmt.Errorf("%w: approver or expiry is missing", ErrUnsealed)
	}
	return attest.ReceiptSeal{
		Namespace:    namespace,
		Kind:         attest.ObjectApprovalReceipt,
		ProposalName: spec.ProposalRef.Name,
		ProposalUID:  string(spec.ProposalRef.UID),
		Fingerprint:  spec.Fingerprint,
		Decision:     string(spec.Decision),
		Approver:     UserOf(spec.Approver),
		ExpiresAt:    spec.ExpiresAt.UTC(),
	}, nil
}

// VerifyReceiptSeal checks that the receipt carries a seal of ours for exactly
// what it says. It returns the seal's statement.
func VerifyReceiptSeal(k *attest.Keyring, r *v1alpha1.ApprovalReceipt) (*attest.ReceiptSeal, error) {
	want, err := receiptSealOf(r, r.Namespace)
	if err != nil {
		return nil, err
	}
	var got attest.ReceiptSeal
	if err := k.Verify(attest.KindReceiptSeal, r.Spec.Seal, want.Fingerprint, &got); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsealed, err)
	}
	want.SealID, want.Epoch, want.IssuedAt = got.SealID, got.Epoch, got.IssuedAt
	if err := sameStatement(want, got); err != nil {
		return nil, err
	}
	return &got, checkAge(r.CreationTimestamp, got.IssuedAt)
}

// sortedNames returns the names in order, each once.
func sortedNames(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
