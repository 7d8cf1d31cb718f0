// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"errors"
	"fmt"
)

// VerifyReason says why a statement or a wire message was refused.
type VerifyReason string

const (
	// ReasonMalformed is for what is not the one canonical form of a statement or message:
	// syntax, duplicate members, trailing data, white space, wrong types,
	// missing members, a value outside its domain, or too long.
	ReasonMalformed VerifyReason = "Malformed"
	// ReasonUnknownField is for a member that the format does not have, including a
	// known name in another case.
	ReasonUnknownField VerifyReason = "UnknownField"
	// ReasonWrongType is for a payload type, statement type or predicate type
	// of something else.
	ReasonWrongType VerifyReason = "WrongType"
	// ReasonWrongSubject is for what is signed, but about another call.
	ReasonWrongSubject VerifyReason = "WrongSubject"
	// ReasonUnknownKey is for a signature that names a key not in the keyring.
	ReasonUnknownKey VerifyReason = "UnknownKey"
	// ReasonBadSignature is for a signature or MAC that does not match the
	// content.
	ReasonBadSignature VerifyReason = "BadSignature"
)

// ErrNoSigningKey is returned by operations that need a private key on a
// keyring that has only public keys.
var ErrNoSigningKey = errors.New("this keyring can only verify; give it the signing seed")

// VerifyError is the only error that verification returns. Its text contains
// fixed words and names of Assent's own fields, never content of what was
// verified.
type VerifyError struct {
	// Reason is stable and safe to compare and to show.
	Reason VerifyReason
	// What names the thing that was verified: a payload kind or a message name.
	What string
	// Detail says which part is wrong and, where it helps, what to do.
	Detail string
}

// Error implements error.
func (e *VerifyError) Error() string {
	return fmt.Sprintf("verifying %s: %s: %s", e.What, e.Reason, e.Detail)
}

// ReasonOf returns the reason carried by err, or "" when err holds no
// [VerifyError].
func ReasonOf(err error) VerifyReason {
	if ve, ok := errors.AsType[*VerifyError](err); ok {
		return ve.Reason
	}
	return ""
}
