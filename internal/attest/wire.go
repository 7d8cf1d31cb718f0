// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

// Messages between a runner and the execution endpoint. All are canonical JSON
// as [Encode] writes it; the decoders refuse anything else.

const (
	// MaxRedeemRequestBytes bounds the body of a redeem request.
	MaxRedeemRequestBytes = 8 << 10
	// MaxRedeemResponseBytes bounds the answer: a ticket and a little more.
	MaxRedeemResponseBytes = maxTicketBytes + 4<<10
)

// RedeemRequest asks for the ticket of one proposal. The Pod is known from the
// token that comes with the request, not from the request.
type RedeemRequest struct {
	ProposalNamespace string `json:"proposalNamespace"`
	ProposalName      string `json:"proposalName"`
	ProposalUID       string `json:"proposalUID"`
	// Nonce is from [NewNonce]. The same nonce may fetch the ticket again, so
	// that a lost answer is not a lost call.
	Nonce string `json:"nonce"`
}

// RedeemResponse is the answer to a granted redeem request.
type RedeemResponse struct {
	// Ticket is the envelope of a [Ticket].
	Ticket string `json:"ticket"`
	// ResultKey authenticates the result; see [SealResult]. In JSON it is
	// base64.
	ResultKey [32]byte `json:"resultKey"`
	// KeyID names the signing key the result key was derived from. The runner
	// sends it back, so that a key rotation in between loses no result.
	KeyID string `json:"keyID"`
}

// resultKeyLabel is the derivation label of result keys.
const resultKeyLabel = "result"

// ResultKey returns the key that authenticates the result of one redeemed
// call. Every replica with the same seeds derives the same key, and none has
// to store it.
func (k *Keyring) ResultKey(keyID, proposalUID, podUID, nonceDigest string) ([32]byte, error) {
	return k.DeriveKeyWith(keyID, resultKeyLabel, proposalUID, podUID, nonceDigest)
}

// DecodeRedeemRequest reads a redeem request. Errors are *[VerifyError].
func DecodeRedeemRequest(body []byte) (RedeemRequest, error) {
	var r RedeemRequest
	err := decodeMessage("redeem request", body, MaxRedeemRequestBytes, &r)
	return r, err
}

// DecodeRedeemResponse reads the answer to a redeem request. The ticket in it
// is still to be verified. Errors are *[VerifyError].
func DecodeRedeemResponse(body []byte) (RedeemResponse, error) {
	var r RedeemResponse
	err := decodeMessage("redeem response", body, MaxRedeemResponseBytes, &r)
	return r, err
}

// message is a wire structure with rules beyond its JSON shape.
type message interface{ check() error }

func decodeMessage(what string, body []byte, limit int, out message) error {
	return decodeChecked(what, body, limit, out, func(decoded any) error {
		// decoded has the type of out.
		if err := decoded.(message).check(); err != nil {
			return &VerifyError{ReasonMalformed, what, err.Error()}
		}
		return nil
	})
}

func (r RedeemRequest) check() error {
	var f fields
	f.name("proposalNamespace", r.ProposalNamespace)
	f.name("proposalName", r.ProposalName)
	f.name("proposalUID", r.ProposalUID)
	f.require(isHex(r.Nonce, 64), "nonce", "must be 64 lower-case hex digits")
	return f.err
}

func (r RedeemResponse) check() error {
	var f fields
	f.require(r.Ticket != "", "ticket", "must be set")
	f.sha256("keyID", r.KeyID)
	return f.err
}
