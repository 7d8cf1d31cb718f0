// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import "strings"

// Stage names the step of preparation that refused a call. The set is closed:
// admission answers, conditions and metrics use these words.
type Stage string

const (
	// StageDecode refuses the raw text before anybody interprets it.
	StageDecode Stage = "decode"
	// StageSchema refuses well-formed arguments that break the tool's contract.
	StageSchema Stage = "schema"
	// StageScope refuses arguments that point outside the permitted targets.
	StageScope Stage = "scope"
	// StageSnapshot refuses values that have no unambiguous canonical text.
	StageSnapshot Stage = "snapshot"
	// StageEffect refuses arguments from which no effect can be resolved.
	StageEffect Stage = "effect"
)

// Reason is a stable word for why something was refused. Tests, dashboards and
// other implementations compare it; its spelling never changes once released.
// The stages schema, scope and effect belong to other packages, which define
// reasons of their own.
type Reason string

// Reasons about the text. They occur at stage decode for raw text and at stage
// snapshot for text that was expected to be canonical already.
const (
	// ReasonSyntax: the text is not one JSON value by the grammar of RFC 8259.
	ReasonSyntax Reason = "Syntax"
	// ReasonTrailingData: something other than white space follows the value.
	ReasonTrailingData Reason = "TrailingData"
	// ReasonDuplicateKey: a member name occurs twice in one object, compared
	// after unescaping (RFC 7493 section 2.3).
	ReasonDuplicateKey Reason = "DuplicateKey"
	// ReasonNumberTooLong: a number token is longer than [MaxNumberBytes].
	ReasonNumberTooLong Reason = "NumberTooLong"
	// ReasonUnderflow: a number other than zero would become zero.
	ReasonUnderflow Reason = "Underflow"
	// ReasonLoneSurrogate: an escape denotes half of a surrogate pair
	// (RFC 7493 section 2.1, RFC 8785 section 3.2.2.2).
	ReasonLoneSurrogate Reason = "LoneSurrogate"
	// ReasonReplacementChar: raw arguments contain U+FFFD, which kube-apiserver
	// puts in the place of bytes that it could not read.
	ReasonReplacementChar Reason = "ReplacementChar"
	// ReasonNotCanonical: the text is valid, but it is not its own canonical
	// form, so it cannot be the text that somebody decided on.
	ReasonNotCanonical Reason = "NotCanonical"
)

// Reasons about values, at stage decode for raw text and at stage snapshot for
// trees.
const (
	// ReasonTooLarge: the text exceeds the byte limit.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonTooManyValues: more members and elements than the limit.
	ReasonTooManyValues Reason = "TooManyValues"
	// ReasonStringTooLong: a string or member name exceeds the byte limit.
	ReasonStringTooLong Reason = "StringTooLong"
	// ReasonDepth: arrays and objects are nested deeper than [MaxDepth].
	ReasonDepth Reason = "Depth"
	// ReasonInvalidUTF8: a string is not well-formed UTF-8 (RFC 3629).
	ReasonInvalidUTF8 Reason = "InvalidUTF8"
	// ReasonNoncharacter: a string contains a Unicode noncharacter
	// (RFC 7493 section 2.1).
	ReasonNoncharacter Reason = "Noncharacter"
	// ReasonNumberRange: a number is not a finite IEEE 754 double.
	ReasonNumberRange Reason = "NumberRange"
	// ReasonNegativeZero: a number is negative zero, which RFC 8785 would print
	// as 0: two values, one text.
	ReasonNegativeZero Reason = "NegativeZero"
	// ReasonUnsafeInteger: the canonical text would denote another integer.
	ReasonUnsafeInteger Reason = "UnsafeInteger"
)

// Reasons that only trees and records can have, at stage snapshot.
const (
	// ReasonUnsupportedType: a Go value outside the domain described at [New].
	ReasonUnsupportedType Reason = "UnsupportedType"
	// ReasonTypedNil: a nil map or slice, which is neither null nor empty.
	ReasonTypedNil Reason = "TypedNil"
	// ReasonCycle: a map or slice contains itself.
	ReasonCycle Reason = "Cycle"
	// ReasonRepeatedReference: a map, or memory of a slice, is reachable twice.
	ReasonRepeatedReference Reason = "RepeatedReference"
	// ReasonSelfCheck: two canonicalisers disagree, or the text does not decode
	// to the tree. Nothing is known to cause it; the call is refused.
	ReasonSelfCheck Reason = "SelfCheck"
	// ReasonReservedMember: a record brings a member of its own named "v" or
	// "kind", which would undo the separation of hash domains.
	ReasonReservedMember Reason = "ReservedMember"
	// ReasonPolicyMutatedArguments: a view no longer equals the snapshot. The
	// spelling is RFC-0016's.
	ReasonPolicyMutatedArguments Reason = "policy_mutated_arguments"
)

// ReasonSchema stands in for an error of a schema step that is not an [*Error]
// itself: its text may quote arguments and is therefore not repeated.
const ReasonSchema Reason = "Schema"

// advice says, per reason, what is wrong and what to change. Constant text
// only: whatever came from the input must not get into an error, because
// errors end up in logs and in answers to other people (RFC-0016, "Snapshot
// Failures").
var advice = map[Reason]string{
	ReasonSyntax:                 "not a JSON text; send exactly one JSON value as RFC 8259 defines it",
	ReasonTrailingData:           "data follows the JSON value; send exactly one value",
	ReasonDuplicateKey:           "a member name occurs twice in one object; name each member once",
	ReasonNumberTooLong:          "a number has too many characters; shorten it to 800 bytes",
	ReasonUnderflow:              "a number is too small and would become zero; send 0 or a larger number",
	ReasonLoneSurrogate:          "an escape denotes half of a surrogate pair; send both halves",
	ReasonReplacementChar:        "a string contains U+FFFD, the mark of destroyed input; send the intended character",
	ReasonNotCanonical:           "the text is not in canonical form (RFC 8785); prepare the call again",
	ReasonTooLarge:               "the text exceeds the size limit; send less",
	ReasonTooManyValues:          "too many members and elements; send fewer",
	ReasonStringTooLong:          "a string exceeds the length limit; shorten it",
	ReasonDepth:                  "nested too deeply; flatten the value to 64 levels",
	ReasonInvalidUTF8:            "a string is not well-formed UTF-8; encode it as UTF-8",
	ReasonNoncharacter:           "a string contains a Unicode noncharacter; remove it",
	ReasonNumberRange:            "a number is not a finite double; send it as a string",
	ReasonNegativeZero:           "a number is negative zero; send 0",
	ReasonUnsafeInteger:          "an integer cannot be kept exactly; send it as a string",
	ReasonUnsupportedType:        "a value is not JSON data; use nil, bool, string, float64, an integer, []any or map[string]any",
	ReasonTypedNil:               "a map or slice is nil; use an untyped nil or an empty one",
	ReasonCycle:                  "a value contains itself; build a tree",
	ReasonRepeatedReference:      "a map or slice is used in two places; copy it",
	ReasonSelfCheck:              "the canonical text failed its self-check; report this with the versions in use",
	ReasonReservedMember:         "the members v and kind are reserved; rename the member",
	ReasonPolicyMutatedArguments: "the view differs from the snapshot; a policy must not change its input",
	ReasonSchema:                 "the schema step refused the arguments; compare them with the tool's contract",
}

// Error says at which stage and why something was refused. It never contains
// an argument value or a name taken from the arguments.
type Error struct {
	// Stage is the step that refused.
	Stage Stage
	// Reason is the stable word for why.
	Reason Reason
	// Path leads to the offending value: the declared name of an argument, or
	// positions only, like "/0/3". In an array a position is the index. In an
	// object it is the ordinal of the member, from 0: in order of appearance
	// for raw text, in canonical order for trees. Empty means the whole value, or
	// that the position is not known.
	Path string
}

// Error names stage, reason and position and says what to change.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("refused at stage ")
	b.WriteString(string(e.Stage))
	b.WriteString(": ")
	b.WriteString(string(e.Reason))
	if e.Path != "" {
		b.WriteString(" at ")
		b.WriteString(e.Path)
	}
	if text, ok := advice[e.Reason]; ok {
		b.WriteString(": ")
		b.WriteString(text)
	}
	return b.String()
}
