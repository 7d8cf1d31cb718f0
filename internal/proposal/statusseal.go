// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
)

// ErrStatusTampered says that a grant or a result in a proposal's status was
// not written by this operator, or was changed since.
var ErrStatusTampered = errors.New("the status was written by somebody else")

// The status is where a grant and a result are kept, and more people can write
// a status than may grant a call. Both therefore carry a code that only the
// operator can make: derived from the signing key, over everything they say.
const (
	grantLabel  = "grant"
	resultLabel = "stored-result"
)

// SealGrant authenticates the grant in the proposal's status.
func SealGrant(k *attest.Keyring, p *v1alpha1.ToolProposal) error {
	d := p.Status.Dispatch
	d.KeyID, d.Seal = k.SigningKeyID(), ""
	code, err := grantCode(k, p)
	if err != nil {
		return err
	}
	d.Seal = code
	return nil
}

// VerifyGrant checks that the grant in the status is ours, for this object and
// this call.
func VerifyGrant(k *attest.Keyring, p *v1alpha1.ToolProposal) error {
	code, err := grantCode(k, p)
	if err != nil || !hmac.Equal([]byte(code), []byte(p.Status.Dispatch.Seal)) {
		return fmt.Errorf("%w: grant", ErrStatusTampered)
	}
	return nil
}

func grantCode(k *attest.Keyring, p *v1alpha1.ToolProposal) (string, error) {
	d := p.Status.Dispatch.DeepCopy()
	// The Job's UID is noted later, when the Job exists; it grants nothing.
	d.Seal, d.JobUID = "", ""
	return statusCode(k, d.KeyID, grantLabel, p, d)
}

// SealStoredResult authenticates the result in the proposal's status.
func SealStoredResult(k *attest.Keyring, p *v1alpha1.ToolProposal) error {
	r := p.Status.Result
	r.KeyID, r.Seal = k.SigningKeyID(), ""
	code, err := resultCode(k, p)
	if err != nil {
		return err
	}
	r.Seal = code
	return nil
}

// VerifyStoredResult checks that the result in the status is ours, for this
// object and this call.
func VerifyStoredResult(k *attest.Keyring, p *v1alpha1.ToolProposal) error {
	code, err := resultCode(k, p)
	if err != nil || !hmac.Equal([]byte(code), []byte(p.Status.Result.Seal)) {
		return fmt.Errorf("%w: result", ErrStatusTampered)
	}
	return nil
}

func resultCode(k *attest.Keyring, p *v1alpha1.ToolProposal) (string, error) {
	r := p.Status.Result.DeepCopy()
	// The parsed form is derived from the output when the call ends.
	r.Seal, r.Parsed = "", ""
	return statusCode(k, r.KeyID, resultLabel, p, r)
}

// statusCode covers the JSON text as it is stored, so that a member added
// later takes part without being named here.
func statusCode(k *attest.Keyring, keyID, label string, p *v1alpha1.ToolProposal, part any) (string, error) {
	if p.Spec.Prepared == nil {
		return "", ErrStatusTampered
	}
	text, err := json.Marshal(part)
	if err != nil {
		return "", fmt.Errorf("encoding a part of the status: %w", err)
	}
	key, err := k.DeriveKeyWith(keyID, label, string(p.UID), p.Spec.Prepared.Fingerprint)
	if err != nil {
		return "", fmt.Errorf("deriving the key of a part of the status: %w", err)
	}
	mac := hmac.New(sha256.New, key[:])
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)), nil
}
