// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"math"
	"regexp"
	"strconv"

	"github.com/assent-dev/assent/snapshot"
)

// bounds are the limits of a number, both of them inclusive.
type bounds struct {
	min, max float64
	clamp    bool
}

// unbounded accepts every number.
func unbounded() bounds { return bounds{min: math.Inf(-1), max: math.Inf(1)} }

// apply returns the number inside the bounds, or why there is none.
func (b bounds) apply(f float64) (float64, refusal) {
	if f >= b.min && f <= b.max {
		return f, ""
	}
	if !b.clamp {
		return 0, ReasonOutOfRange
	}
	return math.Max(b.min, math.Min(b.max, f)), ""
}

// The grammar of numbers in texts is JSON's: no sign for positive numbers, no
// leading zeros, which some read as octal, no underscores, no hexadecimal.
var (
	integerText = regexp.MustCompile(`\A-?(?:0|[1-9][0-9]*)\z`)
	numberText  = regexp.MustCompile(`\A-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\z`)
)

// acceptInteger accepts a whole number that is a double of its own. Larger ones
// are not representable in JSON as others read it (RFC 7493 section 2.2).
func (a *argument) acceptInteger(v any) (float64, refusal) {
	f, why := a.readNumber(v, integerText)
	if why != "" {
		return 0, why
	}
	if f != math.Trunc(f) || math.Abs(f) > maxSafeInteger {
		return 0, ReasonInvalidNumber
	}
	return a.bounds.apply(f)
}

// acceptNumber accepts a finite number.
func (a *argument) acceptNumber(v any) (float64, refusal) {
	f, why := a.readNumber(v, numberText)
	if why != "" {
		return 0, why
	}
	return a.bounds.apply(f)
}

// readNumber reads a JSON number, or a text in the grammar given. Under the
// encoding String there are only texts.
func (a *argument) readNumber(v any, grammar *regexp.Regexp) (float64, refusal) {
	text, isText := v.(string)
	if !isText {
		f, isNumber := v.(float64)
		if !isNumber || a.asText {
			return 0, ReasonWrongType
		}
		return f, ""
	}
	if len(text) > snapshot.MaxNumberBytes || !grammar.MatchString(text) {
		return 0, ReasonInvalidNumber
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f == 0 && (math.Signbit(f) || !isZeroText(text)) {
		return 0, ReasonInvalidNumber
	}
	return f, ""
}

// isZeroText reports whether a number's text denotes zero, and not a number so
// small that it became zero.
func isZeroText(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c == 'e' || c == 'E':
			return true
		case c >= '1' && c <= '9':
			return false
		}
	}
	return true
}

// durationText is what ToolClad documents: seconds, or hours, minutes, seconds
// and milliseconds with their units, in this order.
var durationText = regexp.MustCompile(`\A(?:([0-9]{1,9})(\.[0-9]{1,3})?|(?:([0-9]{1,6})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?(?:([0-9]{1,9})ms)?)\z`)

// normaliseDuration turns a duration into seconds, which is the only spelling
// that commands, policies and hashes see.
func normaliseDuration(a *argument, text string) (string, refusal) {
	m := durationText.FindStringSubmatch(text)
	if m == nil {
		return "", ReasonInvalidDuration
	}
	part := func(i int) int64 {
		n, _ := strconv.ParseInt(m[i], 10, 64) // digits, or nothing, which is 0
		return n
	}
	millis := part(3)*3_600_000 + part(4)*60_000 + part(5)*1_000 + part(6) + part(1)*1_000
	if m[2] != "" {
		fraction, _ := strconv.ParseFloat("0"+m[2], 64)
		millis += int64(math.Round(fraction * 1_000))
	}
	if millis == 0 {
		return "", ReasonInvalidDuration
	}
	seconds, why := a.bounds.apply(float64(millis) / 1_000)
	if why != "" {
		return "", why
	}
	return formatNumber(seconds), ""
}
