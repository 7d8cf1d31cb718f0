// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxSafeInteger is the largest integer that every JSON implementation reads
// back unchanged (RFC 7493 section 2.2).
const maxSafeInteger = 1<<53 - 1

var (
	errUnsafeInteger = errors.New("an integer lies beyond 2^53-1 and would not survive canonical JSON")
	errFloat         = errors.New("floating-point members are not allowed in signed structures")
	errYear          = errors.New("a time lies outside the years 0 to 9999")
)

// encodeOptions make the Go side of a signed structure have exactly one JSON
// form. Numbers are limited to safe integers because RFC 8785 would otherwise
// round them without a word.
var encodeOptions = json.JoinOptions(
	json.Deterministic(true),
	json.WithMarshalers(json.JoinMarshalers(
		json.MarshalToFunc(encodeTime),
		json.MarshalToFunc(refuseUnsafeInt64),
		json.MarshalToFunc(refuseUnsafeUint64),
		json.MarshalToFunc(refuseFloat64),
	)),
)

var decodeOptions = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.MatchCaseInsensitiveNames(false),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
)

// encodeTime writes RFC 3339 in UTC, so that one instant has one text.
func encodeTime(enc *jsontext.Encoder, t time.Time) error {
	u := t.UTC()
	if u.Year() < 0 || u.Year() > 9999 {
		return errYear
	}
	return enc.WriteToken(jsontext.String(u.Format(time.RFC3339Nano)))
}

func refuseUnsafeInt64(_ *jsontext.Encoder, v int64) error {
	if v > maxSafeInteger || v < -maxSafeInteger {
		return errUnsafeInteger
	}
	return errors.ErrUnsupported
}

func refuseUnsafeUint64(_ *jsontext.Encoder, v uint64) error {
	if v > maxSafeInteger {
		return errUnsafeInteger
	}
	return errors.ErrUnsupported
}

func refuseFloat64(*jsontext.Encoder, float64) error { return errFloat }

// Encode returns the RFC 8785 text of a structure with JSON tags. Times are
// RFC 3339 in UTC, integers must be exactly representable as a double, and
// floating-point members are refused.
//
// Signed structures and wire messages are encoded with it; a decoder accepts
// nothing else.
func Encode(v any) ([]byte, error) {
	b, err := json.Marshal(v, encodeOptions)
	text := jsontext.Value(b)
	if err == nil {
		err = text.Canonicalize()
	}
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, plainCause(err))
	}
	return text, nil
}

// plainCause reduces an error of the JSON library, which quotes names and
// values, to the part that Assent itself put there.
func plainCause(err error) error {
	for _, known := range []error{errUnsafeInteger, errFloat, errYear} {
		if errors.Is(err, known) {
			return known
		}
	}
	return errors.New("a member cannot be represented in JSON (text that is not valid UTF-8?)")
}

// Decode reads data into out, a pointer to a structure with JSON tags, and
// accepts only the bytes that [Encode] would produce for the result. out is
// set as a whole or left alone. what names the structure in errors, which are
// always *[VerifyError]; data longer than limit bytes is refused unread.
func Decode(what string, data []byte, limit int, out any) error {
	return decodeChecked(what, data, limit, out, func(any) error { return nil })
}

// decodeChecked lets check see the decoded structure (as a pointer) before out
// is touched.
func decodeChecked(what string, data []byte, limit int, out any, check func(any) error) error {
	target := reflect.ValueOf(out)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return &VerifyError{ReasonMalformed, what, "no place to decode into"}
	}
	fresh := reflect.New(target.Type().Elem())
	if err := parse(what, data, limit, fresh.Interface()); err != nil {
		return err
	}
	again, err := Encode(fresh.Elem().Interface())
	if err != nil || !bytes.Equal(again, data) {
		return notCanonical(what)
	}
	if err := check(fresh.Interface()); err != nil {
		return err
	}
	target.Elem().Set(fresh.Elem())
	return nil
}

// parse reads JSON strictly, but leaves it to the caller to insist on the
// canonical form.
func parse(what string, data []byte, limit int, out any) error {
	if len(data) > limit {
		return &VerifyError{ReasonMalformed, what, fmt.Sprintf("longer than %d bytes", limit)}
	}
	err := json.Unmarshal(data, out, decodeOptions)
	if errors.Is(err, json.ErrUnknownName) {
		return &VerifyError{ReasonUnknownField, what, "has a member that the format does not define"}
	}
	if err != nil {
		return &VerifyError{ReasonMalformed, what, "is not the expected JSON structure"}
	}
	return nil
}

func notCanonical(what string) error {
	return &VerifyError{ReasonMalformed, what, "is not in canonical form"}
}
