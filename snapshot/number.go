// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxExactInteger is 2^53: up to here every integer is a double of its own.
const maxExactInteger = 1 << 53

// parseNumber converts a number token, which already follows the grammar, and
// returns the reason when the number is outside the domain.
//
// RFC 8785 rounds every number to a double and prints that double. For a
// quantity that is harmless; for an identifier it names somebody else, so an
// integer that would come out as another integer is refused instead.
func parseNumber(token []byte) (float64, Reason) {
	if n, ok := parseShortInteger(token); ok {
		return n, ""
	}
	if len(token) > MaxNumberBytes {
		return 0, ReasonNumberTooLong
	}
	f, err := strconv.ParseFloat(string(token), 64)
	switch {
	case err != nil:
		// The grammar was checked, so this can only be the range.
		return 0, ReasonNumberRange
	case f == 0 && math.Signbit(f):
		return 0, ReasonNegativeZero
	case f == 0 && !isZeroToken(token):
		return 0, ReasonUnderflow
	case math.Abs(f) >= maxExactInteger && denotesOtherInteger(string(token), f):
		return 0, ReasonUnsafeInteger
	}
	return f, ""
}

// parseShortInteger handles the common case without strconv: up to 15 digits
// are always exact.
func parseShortInteger(token []byte) (float64, bool) {
	const maxDigits = 15
	digits := token
	if digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) > maxDigits {
		return 0, false
	}
	n := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) == len(token) {
		return float64(n), true
	}
	// Negative zero is left to the general path, which names the reason.
	return -float64(n), n != 0
}

// isZeroToken reports whether all digits before the exponent are zero.
func isZeroToken(token []byte) bool {
	for _, c := range token {
		if c >= '1' && c <= '9' {
			return false
		}
		if c == 'e' || c == 'E' {
			break
		}
	}
	return true
}

// denotesOtherInteger reports whether the token is integer-valued and the
// canonical text of f, the double nearest to it, denotes a different number.
func denotesOtherInteger(token string, f float64) bool {
	digits, exponent := decimal(token)
	if exponent < 0 {
		return false // has a fraction: a quantity, rounded as RFC 8785 says
	}
	canonicalDigits, canonicalExponent := decimal(string(jsontext.AppendFloat(nil, f, 64)))
	return digits != canonicalDigits || exponent != canonicalExponent
}

// decimal splits a finite, non-zero number text into its significant digits,
// without zeros at either end, and a power of ten. Two texts denote the same
// magnitude exactly if both agree.
func decimal(text string) (digits string, exponent int) {
	mantissa := strings.TrimPrefix(text, "-")
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		// The value is finite and not zero and the mantissa at most
		// MaxNumberBytes long, so the exponent is small.
		exponent, _ = strconv.Atoi(mantissa[i+1:])
		mantissa = mantissa[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	exponent -= len(fraction)
	digits = strings.TrimRight(all, "0")
	exponent += len(all) - len(digits)
	return strings.TrimLeft(digits, "0"), exponent
}

// appendNumber writes a finite number other than negative zero in the form of
// RFC 8785 section 3.2.2.3.
func appendNumber(dst []byte, f float64) []byte {
	if n := int64(f); float64(n) == f && n < maxExactInteger && n > -maxExactInteger {
		return strconv.AppendInt(dst, n, 10)
	}
	return jsontext.AppendFloat(dst, f, 64)
}

// checkFloat returns the reason why a float64 of a tree is outside the domain.
func checkFloat(f float64) Reason {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return ReasonNumberRange
	case f == 0 && math.Signbit(f):
		return ReasonNegativeZero
	}
	return ""
}

// integer converts the Go integer types to a double. known is false for every
// other type. An integer is outside the domain unless it is exactly a double
// and the canonical text of that double denotes the same integer: 2^60 is a
// double, but RFC 8785 prints it as 1152921504606847000.
func integer(v any) (f float64, why Reason, known bool) {
	switch n := v.(type) {
	case int:
		return signed(int64(n))
	case int8:
		return signed(int64(n))
	case int16:
		return signed(int64(n))
	case int32:
		return signed(int64(n))
	case int64:
		return signed(n)
	}
	return unsignedOf(v)
}

func unsignedOf(v any) (f float64, why Reason, known bool) {
	switch n := v.(type) {
	case uint:
		return unsigned(uint64(n))
	case uint8:
		return unsigned(uint64(n))
	case uint16:
		return unsigned(uint64(n))
	case uint32:
		return unsigned(uint64(n))
	case uint64:
		return unsigned(n)
	}
	return 0, "", false
}

func signed(n int64) (float64, Reason, bool) {
	return exactly(float64(n), strconv.FormatInt(n, 10))
}

func unsigned(n uint64) (float64, Reason, bool) {
	return exactly(float64(n), strconv.FormatUint(n, 10))
}

// exactly accepts f when both the double and its canonical text are the
// integer that text spells.
func exactly(f float64, text string) (float64, Reason, bool) {
	if math.Abs(f) < maxExactInteger {
		return f, "", true
	}
	if strconv.FormatFloat(f, 'f', 0, 64) != text || string(jsontext.AppendFloat(nil, f, 64)) != text {
		return 0, ReasonUnsafeInteger, true
	}
	return f, "", true
}
