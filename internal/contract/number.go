// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

// durationUnit is a unit of durations, in milliseconds.
type durationUnit struct {
	suffix string
	millis int64
}

// durationUnits are the units; in a text the larger one comes first.
var durationUnits = []durationUnit{{"h", 3_600_000}, {"ms", 1}, {"m", 60_000}, {"s", 1_000}}

// normaliseDuration turns a duration into seconds, which is the only spelling
// that commands, policies and hashes see. It reads what ToolClad documents:
// seconds, or hours, minutes, seconds and milliseconds with their units.
func normaliseDuration(a *argument, text string) (string, refusal) {
	millis, ok := durationMillis(text)
	if !ok || millis == 0 {
		return "", ReasonInvalidDuration
	}
	seconds, why := a.bounds.apply(float64(millis) / 1_000)
	if why != "" {
		return "", why
	}
	return formatNumber(seconds), ""
}

// durationMillis reads a duration.
func durationMillis(text string) (int64, bool) {
	if strings.Trim(text, "0123456789.") == "" {
		return plainSeconds(text)
	}
	var sum int64
	last := int64(math.MaxInt64)
	for text != "" {
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		if digits == 0 || digits > 9 {
			return 0, false
		}
		n, _ := strconv.ParseInt(text[:digits], 10, 64) // at most nine digits
		text = text[digits:]
		unit := slices.IndexFunc(durationUnits, func(u durationUnit) bool { return strings.HasPrefix(text, u.suffix) })
		if unit < 0 || durationUnits[unit].millis >= last {
			return 0, false
		}
		last = durationUnits[unit].millis
		text = text[len(durationUnits[unit].suffix):]
		sum += n * last
	}
	return sum, true
}

// plainSeconds reads seconds with at most three digits after the point, which
// is also the form that normalisation results in.
func plainSeconds(text string) (int64, bool) {
	whole, fraction, point := strings.Cut(text, ".")
	if whole == "" || len(whole) > 12 || point && (fraction == "" || len(fraction) > 3 || strings.Contains(fraction, ".")) {
		return 0, false
	}
	f, _ := strconv.ParseFloat(text, 64) // a short decimal number
	return int64(math.Round(f * 1_000)), true
}
