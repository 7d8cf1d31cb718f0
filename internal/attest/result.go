// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Outcome says how an execution ended, as its runner saw it.
type Outcome string

const (
	// OutcomeSucceeded says that the effect was carried out and reported success (exit
	// code 0, a success status).
	OutcomeSucceeded Outcome = "Succeeded"
	// OutcomeFailed says that the effect was carried out, or begun, and failed.
	OutcomeFailed Outcome = "Failed"
	// OutcomeTimedOut says that the effect was begun and stopped at its time limit.
	OutcomeTimedOut Outcome = "TimedOut"
	// OutcomeRefused says that the runner refused before any effect.
	OutcomeRefused Outcome = "Refused"
)

const (
	// MaxResultBytes bounds a result. Both outputs at 32 KiB need at most six
	// bytes per byte in JSON; the rest is small.
	MaxResultBytes = 512 << 10
	// MaxSignedResultBytes bounds the message around it, in which the result
	// is a JSON string and grows once more.
	MaxSignedResultBytes = 1 << 20
	// MaxResultTextBytes bounds each text of a result, in bytes.
	MaxResultTextBytes = 32 << 10
)

// Result is what a runner reports about one execution. Text is for reading;
// digests and lengths are the evidence.
type Result struct {
	ProposalUID string  `json:"proposalUID"`
	PodUID      string  `json:"podUID"`
	Fingerprint string  `json:"fingerprint"`
	Outcome     Outcome `json:"outcome"`
	// ExitCode is set for a command that ended by itself.
	ExitCode *int32 `json:"exitCode,omitzero"`
	// HTTPStatus is set when an HTTP answer was received.
	HTTPStatus *int32 `json:"httpStatus,omitzero"`
	// Reason is a fixed CamelCase word of the runner for every outcome but
	// Succeeded, never text from the tool.
	Reason string `json:"reason"`

	// Stdout and Stderr hold at most [MaxResultTextBytes] each; for HTTP and
	// MCP effects Stdout is the body. [SealResult] replaces what is not UTF-8.
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// The digests (hex) and lengths cover the output as it was read, before
	// any cut or replacement.
	StdoutSHA256 string `json:"stdoutSHA256"`
	StderrSHA256 string `json:"stderrSHA256"`
	StdoutBytes  int64  `json:"stdoutBytes"`
	StderrBytes  int64  `json:"stderrBytes"`
	// Truncated says that a text or a digest does not cover the whole output.
	Truncated bool   `json:"truncated"`
	MediaType string `json:"mediaType"`

	DurationMillis int64     `json:"durationMillis"`
	StartedAt      time.Time `json:"startedAt"`
}

// SignedResult is the message in which a result travels.
type SignedResult struct {
	// Result is the canonical JSON of a [Result].
	Result string `json:"result"`
	// MAC is HMAC-SHA-256 (RFC 2104) in hex over "assent.dev/result/v1", a
	// line feed and Result.
	MAC string `json:"mac"`
	// KeyID repeats [RedeemResponse].KeyID. It selects among the server's own
	// seeds and needs no protection.
	KeyID string `json:"keyID"`
}

const resultMACDomain = "assent.dev/result/v1\n"

// SealResult encodes a result and authenticates it with the key that came with
// the ticket. Bytes in texts that are not UTF-8 become U+FFFD: output must not
// be able to keep its own result from being reported.
func SealResult(key [32]byte, keyID string, r Result) (SignedResult, error) {
	r.Stdout = strings.ToValidUTF8(r.Stdout, "\uFFFD")
	r.Stderr = strings.ToValidUTF8(r.Stderr, "\uFFFD")
	r.MediaType = strings.ToValidUTF8(r.MediaType, "\uFFFD")
	if err := r.check(); err != nil {
		return SignedResult{}, fmt.Errorf("sealing result: %w", err)
	}
	text, err := Encode(r)
	if err != nil {
		return SignedResult{}, fmt.Errorf("sealing result: %w", err)
	}
	mac := resultMAC(key, string(text))
	return SignedResult{Result: string(text), MAC: hex.EncodeToString(mac), KeyID: keyID}, nil
}

// OpenResult checks the MAC in constant time and then reads the result.
// Nothing in the result is looked at before the MAC has matched. Errors are
// *[VerifyError].
func OpenResult(key [32]byte, s SignedResult) (Result, error) {
	mac, err := hex.DecodeString(s.MAC)
	if err != nil || !hmac.Equal(mac, resultMAC(key, s.Result)) {
		return Result{}, &VerifyError{ReasonBadSignature, "result", "the MAC does not match the content"}
	}
	var r Result
	if err := decodeMessage("result", []byte(s.Result), MaxResultBytes, &r); err != nil {
		return Result{}, err
	}
	return r, nil
}

// DecodeSignedResult reads the message; [OpenResult] then checks it. Errors
// are *[VerifyError].
func DecodeSignedResult(body []byte) (SignedResult, error) {
	var s SignedResult
	err := decodeMessage("signed result", body, MaxSignedResultBytes, &s)
	return s, err
}

func resultMAC(key [32]byte, text string) []byte {
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte(resultMACDomain))
	h.Write([]byte(text))
	return h.Sum(nil)
}

func (s SignedResult) check() error {
	var f fields
	f.require(s.Result != "", "result", "must be set")
	f.sha256("mac", s.MAC)
	f.sha256("keyID", s.KeyID)
	return f.err
}

func (r Result) check() error {
	var f fields
	f.name("proposalUID", r.ProposalUID)
	f.name("podUID", r.PodUID)
	f.sha256("fingerprint", r.Fingerprint)
	f.require(r.Outcome.known(), "outcome", "must be one of the defined outcomes")
	f.require((r.Reason == "") == (r.Outcome == OutcomeSucceeded), "reason", "must be set exactly when the outcome is not "+string(OutcomeSucceeded))
	f.optionalName("reason", r.Reason)
	f.require(len(r.Stdout) <= MaxResultTextBytes, "stdout", "is too long; cut it to the ticket's limit")
	f.require(len(r.Stderr) <= MaxResultTextBytes, "stderr", "is too long; cut it to the ticket's limit")
	f.sha256("stdoutSHA256", r.StdoutSHA256)
	f.sha256("stderrSHA256", r.StderrSHA256)
	f.notNegative("stdoutBytes", r.StdoutBytes)
	f.notNegative("stderrBytes", r.StderrBytes)
	f.optionalName("mediaType", r.MediaType)
	f.notNegative("durationMillis", r.DurationMillis)
	f.time("startedAt", r.StartedAt)
	return f.err
}

func (o Outcome) known() bool {
	switch o {
	case OutcomeSucceeded, OutcomeFailed, OutcomeTimedOut, OutcomeRefused:
		return true
	default:
		return false
	}
}
