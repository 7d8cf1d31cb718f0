// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// IntOrString is a whole number or a text. In JSON it is a number or a string.
type IntOrString struct {
	// IsString says which of the two it is.
	IsString bool
	// Int is the number. Kubernetes limits it to 32 bits.
	Int int32
	// Str is the text.
	Str string
}

var errIntOrString = errors.New("must be a whole number of 32 bits or a string")

// Text returns the value as a text.
func (v IntOrString) Text() string {
	if v.IsString {
		return v.Str
	}
	return strconv.FormatInt(int64(v.Int), 10)
}

// MarshalJSON writes a number or a string.
func (v IntOrString) MarshalJSON() ([]byte, error) {
	if v.IsString {
		return jsontext.AppendQuote(nil, v.Str)
	}
	return strconv.AppendInt(nil, int64(v.Int), 10), nil
}

// UnmarshalJSON accepts a number without fraction and exponent, or a string.
func (v *IntOrString) UnmarshalJSON(data []byte) error {
	if jsontext.Value(data).Kind() == jsontext.KindString {
		text, err := jsontext.AppendUnquote(nil, data)
		*v = IntOrString{IsString: true, Str: string(text)}
		return err
	}
	n, err := strconv.ParseInt(string(data), 10, 32)
	if err != nil {
		return errIntOrString
	}
	*v = IntOrString{Int: int32(n)}
	return nil
}

// Duration is a length of time. In JSON it is a text such as "1h30m0s", which
// is always written in Go's canonical form, however it was read.
type Duration time.Duration

var errDuration = errors.New(`must be a duration such as "90s" or "1h30m"`)

// MarshalJSON writes the canonical text.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON accepts what time.ParseDuration accepts.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return errDuration
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return errDuration
	}
	*d = Duration(parsed)
	return nil
}

// formatNumber writes a finite number as RFC 8785 does.
func formatNumber(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) <= maxSafeInteger {
		return strconv.FormatInt(int64(f), 10)
	}
	return string(jsontext.AppendFloat(nil, f, 64))
}

// maxSafeInteger is the largest integer up to which every integer is a double
// of its own (RFC 7493 section 2.2).
const maxSafeInteger = 1<<53 - 1
