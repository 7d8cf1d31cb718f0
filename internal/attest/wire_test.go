// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/attest"
)

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	b, err := attest.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sampleRequest() attest.RedeemRequest {
	return attest.RedeemRequest{ProposalNamespace: "agents", ProposalName: "p-1", ProposalUID: "u-p1", Nonce: digestOf("nonce")}
}

func sampleResponse() attest.RedeemResponse {
	return attest.RedeemResponse{Ticket: "{}", ResultKey: [32]byte{1, 2, 31: 3}, KeyID: digestOf("key")}
}

func TestWire_RoundTrips(t *testing.T) {
	request, err := attest.DecodeRedeemRequest(encoded(t, sampleRequest()))
	if diff := cmp.Diff(sampleRequest(), request); err != nil || diff != "" {
		t.Errorf("request: %v %s", err, diff)
	}
	response, err := attest.DecodeRedeemResponse(encoded(t, sampleResponse()))
	if diff := cmp.Diff(sampleResponse(), response); err != nil || diff != "" {
		t.Errorf("response: %v %s", err, diff)
	}
	sealed, err := attest.SealResult([32]byte{9}, digestOf("key"), sampleResult())
	if err != nil {
		t.Fatal(err)
	}
	message, err := attest.DecodeSignedResult(encoded(t, sealed))
	if err != nil {
		t.Fatal(err)
	}
	result, err := attest.OpenResult([32]byte{9}, message)
	if diff := cmp.Diff(sampleResult(), result); err != nil || diff != "" {
		t.Errorf("result: %v %s", err, diff)
	}
}

func TestWire_RefusesMalformedMessages(t *testing.T) {
	decoders := map[string]struct {
		decode func([]byte) error
		valid  string
		limit  int
	}{
		"redeem request": {
			func(b []byte) error { _, err := attest.DecodeRedeemRequest(b); return err },
			string(encoded(t, sampleRequest())), attest.MaxRedeemRequestBytes,
		},
		"redeem response": {
			func(b []byte) error { _, err := attest.DecodeRedeemResponse(b); return err },
			string(encoded(t, sampleResponse())), attest.MaxRedeemResponseBytes,
		},
		"signed result": {
			func(b []byte) error { _, err := attest.DecodeSignedResult(b); return err },
			string(encoded(t, attest.SignedResult{Result: "{}", MAC: digestOf("m"), KeyID: digestOf("k")})), attest.MaxSignedResultBytes,
		},
	}
	for name, d := range decoders {
		first := d.valid[2:strings.Index(d.valid, `":`)]
		upper := strings.ToUpper(first[:1]) + first[1:]
		tests := map[string]struct {
			in   string
			want attest.VerifyReason
		}{
			"valid, as the control":         {d.valid, ""},
			"empty":                         {"", attest.ReasonMalformed},
			"null":                          {"null", attest.ReasonMalformed},
			"an empty object":               {"{}", attest.ReasonMalformed},
			"trailing data":                 {d.valid + "{}", attest.ReasonMalformed},
			"white space":                   {d.valid + "\n", attest.ReasonMalformed},
			"an unknown member":             {`{"A":0,` + d.valid[1:], attest.ReasonUnknownField},
			"a case variant":                {strings.Replace(d.valid, first, upper, 1), attest.ReasonUnknownField},
			"a duplicate":                   {`{"` + first + `":"",` + d.valid[1:], attest.ReasonMalformed},
			"an escaped duplicate":          {`{"\u00` + fmt.Sprintf("%02x", first[0]) + first[1:] + `":"",` + d.valid[1:], attest.ReasonMalformed},
			"deep junk":                     {strings.Repeat("[", 9000), attest.ReasonMalformed},
			"more bytes than the limit":     {d.valid + strings.Repeat(" ", d.limit), attest.ReasonMalformed},
			"a member of another JSON type": {strings.Replace(d.valid, `:"`, `:["`, 1), attest.ReasonMalformed},
		}
		for what, tc := range tests {
			t.Run(name+"/"+what, func(t *testing.T) {
				err := d.decode([]byte(tc.in))
				if got := attest.ReasonOf(err); got != tc.want {
					t.Errorf("reason %q (%v), want %q", got, err, tc.want)
				}
			})
		}
	}
}

func TestWire_ChecksEveryField(t *testing.T) {
	request := func(edit func(*attest.RedeemRequest)) error {
		r := sampleRequest()
		edit(&r)
		_, err := attest.DecodeRedeemRequest(encoded(t, r))
		return err
	}
	response := func(edit func(*attest.RedeemResponse)) error {
		r := sampleResponse()
		edit(&r)
		_, err := attest.DecodeRedeemResponse(encoded(t, r))
		return err
	}
	signed := func(edit func(*attest.SignedResult)) error {
		r := attest.SignedResult{Result: "{}", MAC: digestOf("m"), KeyID: digestOf("k")}
		edit(&r)
		_, err := attest.DecodeSignedResult(encoded(t, r))
		return err
	}
	tests := map[string]error{
		"verifying redeem request: Malformed: proposalNamespace must have 1 to 1024 bytes": request(func(r *attest.RedeemRequest) { r.ProposalNamespace = "" }),
		"verifying redeem request: Malformed: proposalName must have 1 to 1024 bytes":      request(func(r *attest.RedeemRequest) { r.ProposalName = "" }),
		"verifying redeem request: Malformed: proposalUID must have 1 to 1024 bytes":       request(func(r *attest.RedeemRequest) { r.ProposalUID = "" }),
		"verifying redeem request: Malformed: nonce must be 64 lower-case hex digits":      request(func(r *attest.RedeemRequest) { r.Nonce = "n" }),
		"verifying redeem response: Malformed: ticket must be set":                         response(func(r *attest.RedeemResponse) { r.Ticket = "" }),
		"verifying redeem response: Malformed: keyID must be 64 lower-case hex digits":     response(func(r *attest.RedeemResponse) { r.KeyID = "" }),
		"verifying signed result: Malformed: result must be set":                           signed(func(r *attest.SignedResult) { r.Result = "" }),
		"verifying signed result: Malformed: mac must be 64 lower-case hex digits":         signed(func(r *attest.SignedResult) { r.MAC = strings.ToUpper(r.MAC) }),
		"verifying signed result: Malformed: keyID must be 64 lower-case hex digits":       signed(func(r *attest.SignedResult) { r.KeyID = "k" }),
	}
	for want, err := range tests {
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestSealResult_ChecksEveryField(t *testing.T) {
	const digits, name, neg = "must be 64 lower-case hex digits", "must have 1 to 1024 bytes", "must not be negative"
	const reasonRule = "reason must be set exactly when the outcome is not Succeeded"
	tests := []struct {
		want string
		edit func(*attest.Result)
	}{
		{"proposalUID " + name, func(r *attest.Result) { r.ProposalUID = "" }},
		{"podUID " + name, func(r *attest.Result) { r.PodUID = "" }},
		{"fingerprint " + digits, func(r *attest.Result) { r.Fingerprint = "" }},
		{"outcome must be one of the defined outcomes", func(r *attest.Result) { r.Outcome = "succeeded" }},
		{reasonRule, func(r *attest.Result) { r.Reason = "" }},
		{reasonRule, func(r *attest.Result) { r.Outcome = attest.OutcomeSucceeded }},
		{"reason must have at most 1024 bytes", func(r *attest.Result) { r.Reason = strings.Repeat("x", 1025) }},
		{"stdout is too long; cut it to the ticket's limit", func(r *attest.Result) { r.Stdout = strings.Repeat("x", 32<<10+1) }},
		{"stderr is too long; cut it to the ticket's limit", func(r *attest.Result) { r.Stderr = strings.Repeat("x", 32<<10+1) }},
		{"stdoutSHA256 " + digits, func(r *attest.Result) { r.StdoutSHA256 = "" }},
		{"stderrSHA256 " + digits, func(r *attest.Result) { r.StderrSHA256 = "" }},
		{"stdoutBytes " + neg, func(r *attest.Result) { r.StdoutBytes = -1 }},
		{"stderrBytes " + neg, func(r *attest.Result) { r.StderrBytes = -1 }},
		{"mediaType must have at most 1024 bytes", func(r *attest.Result) { r.MediaType = strings.Repeat("x", 1025) }},
		{"durationMillis " + neg, func(r *attest.Result) { r.DurationMillis = -1 }},
		{"startedAt must be set", func(r *attest.Result) { r.StartedAt = time.Time{} }},
		{"encoding attest.Result: an integer lies beyond 2^53-1 and would not survive canonical JSON", func(r *attest.Result) { r.StdoutBytes = 1 << 60 }},
	}
	for _, tc := range tests {
		r := sampleResult()
		tc.edit(&r)
		if _, err := attest.SealResult([32]byte{}, digestOf("k"), r); err == nil || err.Error() != "sealing result: "+tc.want {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
	for _, outcome := range []attest.Outcome{attest.OutcomeFailed, attest.OutcomeTimedOut, attest.OutcomeRefused} {
		r := sampleResult()
		r.Outcome = outcome
		if _, err := attest.SealResult([32]byte{}, digestOf("k"), r); err != nil {
			t.Errorf("%s: %v", outcome, err)
		}
	}
}

func TestSealResult_CarriesHostileOutput(t *testing.T) {
	key := [32]byte{5}
	r := sampleResult()
	r.Outcome, r.Reason = attest.OutcomeSucceeded, ""
	r.Stdout = "ok \xff\xfe \u202e \x1b[2K \ufffe </script> \x00"
	// The worst growth: control characters, escaped once in the result and
	// once more around it.
	r.Stderr = strings.Repeat("\x01", 32<<10)
	r.MediaType = "text/\xff"
	sealed, err := attest.SealResult(key, digestOf("k"), r)
	if err != nil {
		t.Fatal(err)
	}
	body := encoded(t, sealed)
	message, err := attest.DecodeSignedResult(body)
	if err != nil {
		t.Fatalf("%d bytes: %v", len(body), err)
	}
	got, err := attest.OpenResult(key, message)
	if err != nil {
		t.Fatal(err)
	}
	if want := "ok \ufffd \u202e \x1b[2K \ufffe </script> \x00"; got.Stdout != want {
		t.Errorf("stdout %q, want %q", got.Stdout, want)
	}
	if got.Stderr != r.Stderr || got.MediaType != "text/\ufffd" {
		t.Error("stderr or media type changed")
	}
}

func TestOpenResult_RefusesEverythingNotSealedWithTheKey(t *testing.T) {
	key := [32]byte{5}
	sealed, err := attest.SealResult(key, digestOf("k"), sampleResult())
	if err != nil {
		t.Fatal(err)
	}
	edit := func(f func(*attest.SignedResult)) attest.SignedResult { s := sealed; f(&s); return s }
	tests := map[string]struct {
		key  [32]byte
		in   attest.SignedResult
		want attest.VerifyReason
	}{
		"another key":           {[32]byte{6}, sealed, attest.ReasonBadSignature},
		"a changed outcome":     {key, edit(func(s *attest.SignedResult) { s.Result = strings.Replace(s.Result, "Failed", "Succeeded", 1) }), attest.ReasonBadSignature},
		"no MAC":                {key, edit(func(s *attest.SignedResult) { s.MAC = "" }), attest.ReasonBadSignature},
		"a MAC that is no hex":  {key, edit(func(s *attest.SignedResult) { s.MAC = strings.Repeat("z", 64) }), attest.ReasonBadSignature},
		"a shortened MAC":       {key, edit(func(s *attest.SignedResult) { s.MAC = s.MAC[:32] }), attest.ReasonBadSignature},
		"an unknown member":     {key, attest.MACForTest(key, strings.Replace(sealed.Result, `{"duration`, `{"a":1,"duration`, 1)), attest.ReasonUnknownField},
		"a field out of domain": {key, attest.MACForTest(key, strings.Replace(sealed.Result, `"Failed"`, `"Fine"`, 1)), attest.ReasonMalformed},
		"valid, as the control": {key, sealed, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := attest.OpenResult(tc.key, tc.in)
			if got := attest.ReasonOf(err); got != tc.want {
				t.Errorf("reason %q (%v), want %q", got, err, tc.want)
			}
			if err != nil && !reflect.DeepEqual(r, attest.Result{}) {
				t.Error("a refused result was returned")
			}
		})
	}
}
