// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

// Limits of arguments. They bound what one request can cost: within them the
// worst input takes milliseconds and a few megabytes, and everything that a
// decision rests on still fits into one Kubernetes object. A value at the limit
// is accepted.
const (
	// MaxBytes bounds the raw text and, separately, the canonical text, in
	// bytes. Both are needed: 1e20 grows from 4 to 21 bytes.
	MaxBytes = 64 << 10
	// MaxDepth bounds how many arrays and objects may be open at once.
	MaxDepth = 64
	// MaxValues bounds members and elements in all, not counting the root.
	MaxValues = 4096
	// MaxStringBytes bounds one string or member name, in bytes of UTF-8
	// after unescaping.
	MaxStringBytes = 32 << 10
	// MaxNumberBytes bounds a number token. strconv.ParseFloat drops integer
	// digits beyond 800 without moving the decimal point, so that longer
	// tokens mean one number in Go and another elsewhere. RFC 8259 section 9
	// permits such a limit.
	MaxNumberBytes = 800
)

// Limits of records that are hashed but not sent by an agent: contracts,
// fingerprints, bindings. See [Hash] and [CanonicalObject].
const (
	// MaxRecordBytes bounds the canonical text of a record, in bytes.
	MaxRecordBytes = 4 << 20
	// MaxRecordValues bounds members and elements of a record in all.
	MaxRecordValues = 256 << 10
	// MaxRecordStringBytes bounds one string of a record, in bytes of UTF-8.
	MaxRecordStringBytes = 1 << 20
)

// limits is one column of the table above, passed along explicitly.
type limits struct {
	bytes       int
	values      int
	stringBytes int
}

// argumentLimits returns what holds for arguments.
func argumentLimits() limits {
	return limits{bytes: MaxBytes, values: MaxValues, stringBytes: MaxStringBytes}
}

// recordLimits returns what holds for records.
func recordLimits() limits {
	return limits{bytes: MaxRecordBytes, values: MaxRecordValues, stringBytes: MaxRecordStringBytes}
}
