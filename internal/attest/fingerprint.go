// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/assent-dev/assent/snapshot"
)

// maxEffectBytes bounds the canonical text of an effect, in bytes. It is the
// limit of [snapshot.Hash].
const maxEffectBytes = 4 << 20

// ErrEffectNotCanonical is returned for an effect that is no JSON object in
// RFC 8785 form.
var ErrEffectNotCanonical = errors.New("effect must be the canonical JSON text (RFC 8785) of an object")

// ErrNotText is returned for a name that is not UTF-8.
var ErrNotText = errors.New("fingerprint: namespace, contract name and contract version must be UTF-8")

// Fingerprint returns the identity of a prepared call, which is what a person
// approves: the lower-case hex SHA-256 of the RFC 8785 text of
//
//	{"contract":{"hash":…,"name":…,"version":…},
//	 "effect":<the effect as a JSON value>,
//	 "kind":"fingerprint","namespace":…,"proposalHash":…,"v":1}
//
// proposalHash is that of [snapshot.ProposalHash]. effectCanonicalJSON is the
// canonical text of the resolved effect and must be an object; it enters as a
// JSON value, so a reader in any language can compute the fingerprint from the
// call it displays.
func Fingerprint(proposalHash, namespace string, c ContractRef, effectCanonicalJSON string) (string, error) {
	var f fields
	f.sha256("proposalHash", proposalHash)
	f.name("namespace", namespace)
	c.check(&f)
	if f.err != nil {
		return "", fmt.Errorf("fingerprint: %w", f.err)
	}
	if err := checkEffect(effectCanonicalJSON); err != nil {
		return "", fmt.Errorf("fingerprint: %w", err)
	}
	// Members in canonical order around parts that are canonical text already.
	text := make([]byte, 0, len(effectCanonicalJSON)+len(namespace)+len(c.Name)+len(c.Version)+320)
	text = append(text, `{"contract":{"hash":"`+c.Hash+`","name":`...)
	text, errName := jsontext.AppendQuote(text, c.Name)
	text = append(text, `,"version":`...)
	text, errVersion := jsontext.AppendQuote(text, c.Version)
	text = append(text, `},"effect":`...)
	text = append(text, effectCanonicalJSON...)
	text = append(text, `,"kind":"fingerprint","namespace":`...)
	text, errNamespace := jsontext.AppendQuote(text, namespace)
	text = append(text, `,"proposalHash":"`+proposalHash+`","v":1}`...)
	if errName != nil || errVersion != nil || errNamespace != nil {
		return "", ErrNotText
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// checkEffect accepts a text only when it is already canonical. That also
// excludes number tokens that Go would read as another number: their canonical
// form is a different text.
func checkEffect(text string) error {
	if len(text) > maxEffectBytes {
		return fmt.Errorf("effect is longer than %d bytes", maxEffectBytes)
	}
	canonical := jsontext.Value(text)
	if canonical.Canonicalize() != nil || string(canonical) != text || canonical.Kind() != jsontext.KindBeginObject {
		return ErrEffectNotCanonical
	}
	return nil
}

// Binding is the situation in which a call was asked for. Its hash is carried
// in the ticket and in the audit log, so that a grant cannot move to another
// requester, session, iteration or batch.
type Binding struct {
	Fingerprint string
	// ProposalUID is empty where it is not known yet, at admission.
	ProposalUID string
	// Requester enters with user name, UID, groups as a sorted set, and the
	// extra value that names the requesting Pod.
	Requester User
	Session   *SessionRef
	Iteration *int64
	Batch     *BatchRef
	ExpiresAt *time.Time
}

// extraPodUID is the key under which Kubernetes reports the Pod that a bound
// service account token belongs to.
const extraPodUID = "authentication.kubernetes.io/pod-uid"

// Hash returns the lower-case hex SHA-256 of the canonical text of the
// binding, with kind "binding". Absent parts are absent members.
func (b Binding) Hash() (string, error) {
	var f fields
	f.sha256("fingerprint", b.Fingerprint)
	f.optionalName("proposalUID", b.ProposalUID)
	b.Requester.check(&f, "requester")
	b.Session.check(&f)
	b.Batch.check(&f)
	if f.err != nil {
		return "", fmt.Errorf("binding: %w", f.err)
	}
	members := map[string]any{
		"fingerprint": b.Fingerprint,
		"requester": map[string]any{
			"username": b.Requester.Username,
			"uid":      b.Requester.UID,
			"groups":   sortedSet(b.Requester.Groups),
			"podUIDs":  sortedSet(b.Requester.Extra[extraPodUID]),
		},
	}
	if b.ProposalUID != "" {
		members["proposalUID"] = b.ProposalUID
	}
	if b.Session != nil {
		members["session"] = map[string]any{"name": b.Session.Name, "uid": b.Session.UID, "specDigest": b.Session.SpecDigest}
	}
	if b.Iteration != nil {
		members["iteration"] = *b.Iteration
	}
	if b.Batch != nil {
		members["batch"] = map[string]any{"id": b.Batch.ID, "size": b.Batch.Size}
	}
	if b.ExpiresAt != nil {
		members["expiresAt"] = b.ExpiresAt.UTC().Format(time.RFC3339Nano)
	}
	return snapshot.Hash("binding", members)
}

// sortedSet makes the order in which an authenticator lists groups irrelevant.
func sortedSet(in []string) []any {
	sorted := slices.Clone(in)
	slices.Sort(sorted)
	out := []any{}
	for _, s := range slices.Compact(sorted) {
		out = append(out, s)
	}
	return out
}
