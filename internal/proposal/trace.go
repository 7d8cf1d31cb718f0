// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"github.com/assent-dev/assent/api/v1alpha1"
	"github.com/assent-dev/assent/internal/attest"
)

// TraceID connects what admission, the controllers, the runner and the audit
// log say about one call. It is the ID of the call's seal: 16 random bytes in
// hex, as W3C Trace Context asks of a trace ID, drawn at admission and kept
// where nobody can change it. Empty for a proposal without a seal of ours.
func TraceID(k *attest.Keyring, p *v1alpha1.ToolProposal) string {
	seal, err := VerifySeal(k, p)
	if err != nil {
		return ""
	}
	return seal.SealID
}
