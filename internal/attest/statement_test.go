// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest_test

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/assent-dev/assent/internal/attest"
)

func TestSign_RoundTripsEveryKind(t *testing.T) {
	k := keyring(t, 1)
	for kind, want := range samples(t) {
		t.Run(string(kind), func(t *testing.T) {
			text, err := k.Sign(kind, "call", fingerprintOf(want), want)
			if err != nil {
				t.Fatalf("Sign: %v", err)
			}
			got := reflect.New(reflect.TypeOf(want))
			if err := k.Verify(kind, text, fingerprintOf(want), got.Interface()); err != nil {
				t.Fatalf("Verify: %v", err)
			}
			if diff := cmp.Diff(want, got.Elem().Interface()); diff != "" {
				t.Errorf("predicate changed on the way (-signed +verified):\n%s", diff)
			}
			again, err := k.Sign(kind, "call", fingerprintOf(want), want)
			if err != nil || again != text {
				t.Errorf("signing twice gave two texts (err %v)", err)
			}
		})
	}
}

func TestSign_TreatsOneInstantAsOneText(t *testing.T) {
	k := keyring(t, 1)
	utc, local := sampleReceiptSeal(), sampleReceiptSeal()
	local.IssuedAt = local.IssuedAt.In(time.FixedZone("elsewhere", 3600))
	a, errA := k.Sign(attest.KindReceiptSeal, "r", utc.Fingerprint, utc)
	b, errB := k.Sign(attest.KindReceiptSeal, "r", local.Fingerprint, local)
	if errA != nil || errB != nil || a != b {
		t.Errorf("two zones gave two envelopes (errors %v, %v)", errA, errB)
	}
}

func TestOpen_ReturnsSubjectAndKey(t *testing.T) {
	k := keyring(t, 1)
	seal := sampleProposalSeal()
	text, err := k.Sign(attest.KindProposalSeal, "toolproposal", seal.Fingerprint, seal)
	if err != nil {
		t.Fatal(err)
	}
	var got attest.ProposalSeal
	subject, err := k.Open(attest.KindProposalSeal, text, &got)
	if err != nil {
		t.Fatal(err)
	}
	want := attest.Subject{Name: "toolproposal", SHA256: seal.Fingerprint, KeyID: attest.KeyID(publicOf(1))}
	if diff := cmp.Diff(want, subject); diff != "" {
		t.Error(diff)
	}
}

func TestOpen_ReadsStructuresOfOtherPackages(t *testing.T) {
	type note struct {
		Text string `json:"text"`
	}
	k := keyring(t, 1)
	text, err := k.Sign(attest.KindAuditRecord, "note", digestOf("note"), note{"hello"})
	if err != nil {
		t.Fatal(err)
	}
	var got note
	if _, err := k.Open(attest.KindAuditRecord, text, &got); err != nil || got.Text != "hello" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestVerify_SeparatesKinds(t *testing.T) {
	k := keyring(t, 1)
	all := samples(t)
	for signedAs, value := range all {
		text, err := k.Sign(signedAs, "call", fingerprintOf(value), value)
		if err != nil {
			t.Fatal(err)
		}
		for readAs, other := range all {
			if readAs == signedAs {
				continue
			}
			out := reflect.New(reflect.TypeOf(other)).Interface()
			err := k.Verify(readAs, text, fingerprintOf(value), out)
			if got := attest.ReasonOf(err); got != attest.ReasonWrongType {
				t.Errorf("a %s read as %s: reason %q, want WrongType", signedAs, readAs, got)
			}
		}
		// The same, with the caller's structure right and only the kind wrong.
		err = k.Verify(signedAs, text, fingerprintOf(value), new(attest.RedeemRequest))
		if got := attest.ReasonOf(err); got == "" {
			t.Errorf("a %s was read into a foreign structure", signedAs)
		}
	}
}

// statementJSON is a valid statement about sampleReceiptSeal, as text to edit.
func statementJSON(t *testing.T) string {
	t.Helper()
	k := keyring(t, 1)
	seal := sampleReceiptSeal()
	text, err := k.Sign(attest.KindReceiptSeal, "r", seal.Fingerprint, seal)
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		Payload []byte `json:"payload"`
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	return string(e.Payload)
}

func TestVerify_RefusesPayloads(t *testing.T) {
	fp := sampleReceiptSeal().Fingerprint
	replace := func(from, to string) func(string) string {
		return func(s string) string {
			if !strings.Contains(s, from) {
				t.Fatalf("the statement does not contain %q", from)
			}
			return strings.Replace(s, from, to, 1)
		}
	}
	tests := map[string]struct {
		edit func(string) string
		want attest.VerifyReason
	}{
		"a duplicate member":                 {replace(`"decision":"Approved"`, `"decision":"Denied","decision":"Approved"`), attest.ReasonMalformed},
		"a duplicate member, escaped":        {replace(`"decision":"Approved"`, `"decision":"Approved","\u0064ecision":"Denied"`), attest.ReasonMalformed},
		"an unknown member in the predicate": {replace(`0100"}`, `0100","zz":1}`), attest.ReasonUnknownField},
		"an unknown member in the statement": {replace(`"predicateType"`, `"more":1,"predicateType"`), attest.ReasonUnknownField},
		"an unknown member in the subject":   {replace(`"name":"r"`, `"name":"r","uri":"x"`), attest.ReasonUnknownField},
		"a second digest algorithm":          {replace(`"sha256":`, `"sha1":"00","sha256":`), attest.ReasonUnknownField},
		"a member name in another case": {func(s string) string {
			return replace(`{"approver"`, `{"Decision":"Approved","approver"`)(replace(`"decision":"Approved",`, ``)(s))
		}, attest.ReasonUnknownField},
		"a member name with a long s":       {replace(`"sealID"`, `"ſealID"`), attest.ReasonUnknownField},
		"null in place of a value":          {replace(`"Approved"`, `null`), attest.ReasonMalformed},
		"a missing member":                  {replace(`"decision":"Approved",`, ``), attest.ReasonMalformed},
		"trailing data":                     {func(s string) string { return s + `{}` }, attest.ReasonMalformed},
		"trailing white space":              {func(s string) string { return s + "\n" }, attest.ReasonMalformed},
		"white space between members":       {replace(`"decision":"Approved"`, `"decision": "Approved"`), attest.ReasonMalformed},
		"members in another order":          {replace(`"namespace":"agents","proposalName":"p-1"`, `"proposalName":"p-1","namespace":"agents"`), attest.ReasonMalformed},
		"a number spelled otherwise":        {replace(`"epoch":4`, `"epoch":4.0`), attest.ReasonMalformed},
		"a string in place of a number":     {replace(`"epoch":4`, `"epoch":"4"`), attest.ReasonMalformed},
		"a time in another zone":            {replace(`"issuedAt":"2026-03-04T05:06:07Z"`, `"issuedAt":"2026-03-04T06:06:07+01:00"`), attest.ReasonMalformed},
		"a lone surrogate":                  {replace(`"p-1"`, `"\ud800"`), attest.ReasonMalformed},
		"another statement type":            {replace(`/Statement/v1`, `/Statement/v0.1`), attest.ReasonWrongType},
		"another predicate type":            {replace(`receipt-seal/v1alpha1`, `proposal-seal/v1alpha1`), attest.ReasonWrongType},
		"a later predicate version":         {replace(`receipt-seal/v1alpha1`, `receipt-seal/v1`), attest.ReasonWrongType},
		"no subject":                        {replace(`[{"digest":{"sha256":"`+fp+`"},"name":"r"}]`, `[]`), attest.ReasonMalformed},
		"two subjects":                      {replace(`"name":"r"}`, `"name":"r"},{"digest":{"sha256":"`+fp+`"},"name":"r"}`), attest.ReasonMalformed},
		"an upper-case subject digest":      {replace(`"digest":{"sha256":"`+fp, `"digest":{"sha256":"`+strings.ToUpper(fp)), attest.ReasonMalformed},
		"a short subject digest":            {replace(`"digest":{"sha256":"`+fp, `"digest":{"sha256":"`+fp[:62]), attest.ReasonMalformed},
		"another subject digest":            {replace(`"digest":{"sha256":"`+fp, `"digest":{"sha256":"`+digestOf("other")), attest.ReasonWrongSubject},
		"another fingerprint inside":        {replace(`"fingerprint":"`+fp, `"fingerprint":"`+digestOf("other")), attest.ReasonWrongSubject},
		"a value outside its domain":        {replace(`"Approved"`, `"Always"`), attest.ReasonMalformed},
		"a seal for another kind of object": {replace(`"kind":"ApprovalReceipt"`, `"kind":"ToolProposal"`), attest.ReasonMalformed},
		"a predicate that is no object": {func(string) string {
			return `{"_type":"https://in-toto.io/Statement/v1","predicate":[],"predicateType":"https://assent.dev/receipt-seal/v1alpha1","subject":[{"digest":{"sha256":"` + fp + `"},"name":"r"}]}`
		}, attest.ReasonMalformed},
		"a statement cut off in its subject": {func(s string) string {
			return s[:strings.Index(s, `"digest":{"sha256":"`)+40]
		}, attest.ReasonMalformed},
		"an escape that the name does not need":  {replace(`"name":"r"`, `"name":"\u0072"`), attest.ReasonMalformed},
		"a payload that is not JSON":             {func(string) string { return "receipt" }, attest.ReasonMalformed},
		"an expiry that is not after the issue":  {replace(`"expiresAt":"2026-03-04T05:21:07Z"`, `"expiresAt":"2026-03-04T05:06:07Z"`), attest.ReasonMalformed},
		"the payload unchanged, as the control":  {func(s string) string { return s }, ""},
		"an epoch beyond exact integers":         {replace(`"epoch":4`, `"epoch":9007199254740993`), attest.ReasonMalformed},
		"an epoch with a needless exponent form": {replace(`"epoch":4`, `"epoch":4e0`), attest.ReasonMalformed},
	}
	k := keyring(t, 1)
	valid := statementJSON(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text := forge(1, attest.KindReceiptSeal.PayloadType(), tc.edit(valid))
			out := attest.ReceiptSeal{ProposalName: "untouched"}
			err := k.Verify(attest.KindReceiptSeal, text, fp, &out)
			if got := attest.ReasonOf(err); got != tc.want {
				t.Fatalf("reason %q (%v), want %q", got, err, tc.want)
			}
			if err != nil && !reflect.DeepEqual(out, attest.ReceiptSeal{ProposalName: "untouched"}) {
				t.Error("a refused statement changed the caller's structure")
			}
		})
	}
}

func TestVerify_RefusesEnvelopes(t *testing.T) {
	seal := sampleReceiptSeal()
	fp := seal.Fingerprint
	k := keyring(t, 1)
	valid, err := k.Sign(attest.KindReceiptSeal, "r", fp, seal)
	if err != nil {
		t.Fatal(err)
	}
	payload := statementJSON(t)
	pt := attest.KindReceiptSeal.PayloadType()
	b64 := base64.StdEncoding.EncodeToString([]byte(payload))
	sig := valid[strings.Index(valid, `"sig":"`)+7 : len(valid)-4]
	id := attest.KeyID(publicOf(1))
	flipped := "A" + sig[1:]
	if sig[0] == 'A' {
		flipped = "B" + sig[1:]
	}
	tests := map[string]struct {
		text string
		want attest.VerifyReason
	}{
		"the envelope unchanged, as the control": {envelopeJSON(pt, b64, id, sig), ""},
		"nothing":                                {"", attest.ReasonMalformed},
		"something that is not JSON":             {"seal", attest.ReasonMalformed},
		"a key that is not in the keyring":       {forge(2, pt, payload), attest.ReasonUnknownKey},
		"a foreign key under a trusted key ID":   {strings.Replace(forge(2, pt, payload), attest.KeyID(publicOf(2)), id, 1), attest.ReasonBadSignature},
		"a flipped signature":                    {envelopeJSON(pt, b64, id, flipped), attest.ReasonBadSignature},
		"an empty signature":                     {envelopeJSON(pt, b64, id, ""), attest.ReasonBadSignature},
		"a changed payload":                      {envelopeJSON(pt, base64.StdEncoding.EncodeToString([]byte(strings.Replace(payload, "Approved", "Denied", 1))), id, sig), attest.ReasonBadSignature},
		"the general in-toto payload type":       {forge(1, "application/vnd.in-toto+json", payload), attest.ReasonWrongType},
		"the payload type of a ticket":           {forge(1, attest.KindTicket.PayloadType(), payload), attest.ReasonWrongType},
		"a payload type in another case":         {forge(1, strings.ToUpper(pt), payload), attest.ReasonWrongType},
		"a payload type changed after signing":   {envelopeJSON(attest.KindTicket.PayloadType(), b64, id, sig), attest.ReasonWrongType},
		"URL-safe base64":                        {envelopeJSON(pt, base64.URLEncoding.EncodeToString([]byte(payload+"\xff\xfe")), id, sig), attest.ReasonMalformed},
		"base64 with a line break":               {envelopeJSON(pt, b64[:4]+`\n`+b64[4:], id, sig), attest.ReasonMalformed},
		"base64 without padding":                 {envelopeJSON(pt, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(payload+" ")), "="), id, sig), attest.ReasonMalformed},
		"a signature in bad base64":              {envelopeJSON(pt, b64, id, "*"), attest.ReasonMalformed},
		"a key ID that is no digest":             {envelopeJSON(pt, b64, "key", sig), attest.ReasonMalformed},
		"no signature":                           {`{"payload":"` + b64 + `","payloadType":"` + pt + `","signatures":[]}`, attest.ReasonMalformed},
		"two signatures":                         {`{"payload":"` + b64 + `","payloadType":"` + pt + `","signatures":[{"keyid":"` + id + `","sig":"` + sig + `"},{"keyid":"` + id + `","sig":"` + sig + `"}]}`, attest.ReasonMalformed},
		"an unknown member":                      {strings.Replace(valid, `{"payload"`, `{"aa":1,"payload"`, 1), attest.ReasonUnknownField},
		"an unknown member beside the signature": {strings.Replace(valid, `{"keyid"`, `{"cert":"","keyid"`, 1), attest.ReasonUnknownField},
		"a member name in another case":          {strings.Replace(valid, `"payload"`, `"Payload"`, 1), attest.ReasonUnknownField},
		"a duplicate payload":                    {strings.Replace(valid, `"payloadType"`, `"payload":"","payloadType"`, 1), attest.ReasonMalformed},
		"trailing data":                          {valid + "{}", attest.ReasonMalformed},
		"leading white space":                    {" " + valid, attest.ReasonMalformed},
		"a byte order mark":                      {"\ufeff" + valid, attest.ReasonMalformed},
		"more bytes than the kind allows":        {strings.Repeat(" ", attest.KindReceiptSeal.MaxBytes()+1), attest.ReasonMalformed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out attest.ReceiptSeal
			err := k.Verify(attest.KindReceiptSeal, tc.text, fp, &out)
			if got := attest.ReasonOf(err); got != tc.want {
				t.Fatalf("reason %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}

// TestVerify_RefusesEveryFlippedByte leaves no byte of an envelope free.
func TestVerify_RefusesEveryFlippedByte(t *testing.T) {
	k := keyring(t, 1)
	seal := sampleReceiptSeal()
	valid, err := k.Sign(attest.KindReceiptSeal, "r", seal.Fingerprint, seal)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(valid) {
		for _, bit := range []byte{1, 0x20} {
			b := []byte(valid)
			b[i] ^= bit
			var out attest.ReceiptSeal
			if err := k.Verify(attest.KindReceiptSeal, string(b), seal.Fingerprint, &out); attest.ReasonOf(err) == "" {
				t.Fatalf("accepted with bit %#x of byte %d flipped (%v)", bit, i, err)
			}
		}
	}
}

func TestVerify_RefusesAnEmptyOrOtherExpectation(t *testing.T) {
	k := keyring(t, 1)
	seal := sampleReceiptSeal()
	text, err := k.Sign(attest.KindReceiptSeal, "r", seal.Fingerprint, seal)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"", digestOf("other"), strings.ToUpper(seal.Fingerprint)} {
		var out attest.ReceiptSeal
		if got := attest.ReasonOf(k.Verify(attest.KindReceiptSeal, text, want, &out)); got != attest.ReasonWrongSubject {
			t.Errorf("expecting %q: reason %q, want WrongSubject", want, got)
		}
	}
}

func TestVerify_NeedsAPlaceForThePredicate(t *testing.T) {
	k := keyring(t, 1)
	seal := sampleReceiptSeal()
	text, err := k.Sign(attest.KindReceiptSeal, "r", seal.Fingerprint, seal)
	if err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]any{"nil": nil, "a value": attest.ReceiptSeal{}, "a nil pointer": (*attest.ReceiptSeal)(nil)} {
		if got := attest.ReasonOf(k.Verify(attest.KindReceiptSeal, text, seal.Fingerprint, out)); got != attest.ReasonMalformed {
			t.Errorf("%s: reason %q, want Malformed", name, got)
		}
	}
}

func TestVerify_RefusesAPredicateOfAnotherKind(t *testing.T) {
	k := keyring(t, 1)
	// The record holds exactly a receipt seal: only the kind tells it apart.
	type disguised attest.ReceiptSeal
	seal := sampleReceiptSeal()
	text, err := k.Sign(attest.KindAuditRecord, "r", seal.Fingerprint, disguised(seal))
	if err != nil {
		t.Fatal(err)
	}
	var out attest.ReceiptSeal
	if got := attest.ReasonOf(k.Verify(attest.KindAuditRecord, text, seal.Fingerprint, &out)); got != attest.ReasonWrongType {
		t.Errorf("reason %q, want WrongType", got)
	}
}

func TestSign_RefusesToContradictItself(t *testing.T) {
	k := keyring(t, 1)
	seal := sampleReceiptSeal()
	verifier, err := attest.NewVerifier(publicOf(1))
	if err != nil {
		t.Fatal(err)
	}
	invalid := seal
	invalid.Decision = "Maybe"
	wide := struct {
		Blob string `json:"blob"`
	}{strings.Repeat("x", attest.KindAuditRecord.MaxBytes())}
	tests := map[string]struct {
		k       *attest.Keyring
		kind    attest.PayloadKind
		name    string
		digest  string
		value   any
		wantErr string
	}{
		"without a signing key":               {verifier, attest.KindReceiptSeal, "r", seal.Fingerprint, seal, "this keyring can only verify; give it the signing seed"},
		"for a kind that does not exist":      {k, "receipt", "r", seal.Fingerprint, seal, "signing receipt: there is no such kind of statement"},
		"without a subject name":              {k, attest.KindReceiptSeal, "", seal.Fingerprint, seal, "signing receipt-seal: subject name must have 1 to 1024 bytes"},
		"with a long subject name":            {k, attest.KindReceiptSeal, strings.Repeat("n", 1025), seal.Fingerprint, seal, "signing receipt-seal: subject name must have 1 to 1024 bytes"},
		"with a digest that is none":          {k, attest.KindReceiptSeal, "r", strings.Repeat("g", 64), seal, "signing receipt-seal: subject digest must be 64 lower-case hex digits"},
		"with a predicate of another kind":    {k, attest.KindTicket, "r", seal.Fingerprint, seal, "signing ticket: a predicate of kind receipt-seal was given"},
		"with another subject than inside":    {k, attest.KindReceiptSeal, "r", digestOf("other"), seal, "signing receipt-seal: the predicate's fingerprint is not the subject's digest"},
		"with a field outside its domain":     {k, attest.KindReceiptSeal, "r", seal.Fingerprint, invalid, "signing receipt-seal: decision must be Approved or Denied"},
		"with something JSON cannot hold":     {k, attest.KindAuditRecord, "r", seal.Fingerprint, map[string]any{"f": func() {}}, "signing audit-record: encoding map[string]interface {}: a member cannot be represented in JSON (text that is not valid UTF-8?)"},
		"with a subject name that is no text": {k, attest.KindAuditRecord, "\xff", seal.Fingerprint, struct{}{}, "signing audit-record: subject name must be UTF-8"},
		"with more than the kind may hold":    {k, attest.KindAuditRecord, "r", seal.Fingerprint, wide, "signing audit-record: the envelope has 87968 bytes, at most 65535 are allowed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := tc.k.Sign(tc.kind, tc.name, tc.digest, tc.value)
			if text != "" || err == nil {
				t.Fatalf("signed (err %v)", err)
			}
			if err.Error() != tc.wantErr {
				t.Errorf("error %q, want %q", err, tc.wantErr)
			}
		})
	}
	if _, err := verifier.Sign(attest.KindReceiptSeal, "r", seal.Fingerprint, seal); !errors.Is(err, attest.ErrNoSigningKey) {
		t.Errorf("error %v, want ErrNoSigningKey", err)
	}
}

func TestVerifyError_NamesReasonAndNothingFromTheInput(t *testing.T) {
	const canary = "s3cr3t-canary"
	k := keyring(t, 1)
	valid := statementJSON(t)
	pt := attest.KindReceiptSeal.PayloadType()
	inputs := []string{
		canary, `{"` + canary + `":1}`,
		forge(1, pt, canary),
		forge(1, pt, strings.Replace(valid, `"Approved"`, `"`+canary+`"`, 1)),
		forge(1, pt, strings.Replace(valid, `"decision"`, `"`+canary+`"`, 1)),
		forge(1, canary, valid),
		envelopeJSON(pt, canary, canary, canary),
	}
	for i, input := range inputs {
		var out attest.ReceiptSeal
		err := k.Verify(attest.KindReceiptSeal, input, digestOf(canary), &out)
		if attest.ReasonOf(err) == "" {
			t.Fatalf("input %d was accepted", i)
		}
		if strings.Contains(err.Error(), canary) || !strings.HasPrefix(err.Error(), "verifying receipt-seal: ") {
			t.Errorf("input %d: error text %q", i, err)
		}
	}
	if got := attest.ReasonOf(errors.New("other")); got != "" {
		t.Errorf("ReasonOf(other error) = %q, want empty", got)
	}
}
