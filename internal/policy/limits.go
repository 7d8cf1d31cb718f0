// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/assent-dev/assent/internal/policy/cedartext"

// Limits bounds policy texts and sets. A value at the limit is accepted.
type Limits struct {
	// TextBytes bounds the Cedar text of one object, in bytes.
	TextBytes int
	// Nesting bounds how deep brackets may be nested, and how many names a path
	// behind "has" may have.
	Nesting int
	// Objects bounds the objects of one namespace, and separately the cluster's.
	Objects int
}

// The default limits.
const (
	DefaultTextBytes = 32 << 10
	DefaultNesting   = 64
	DefaultObjects   = 500
)

// Limits that are nobody's choice: they keep one evaluation short, which
// nothing can interrupt.
const (
	// textWeight bounds tokens plus what "has" with a path unfolds to.
	textWeight = 64 << 10
	// patternBytes bounds the pattern of "like": matching costs the product of
	// the lengths of pattern and text.
	patternBytes = 1 << 10
)

// DefaultLimits returns the limits of the documentation.
func DefaultLimits() Limits {
	return Limits{TextBytes: DefaultTextBytes, Nesting: DefaultNesting, Objects: DefaultObjects}
}

// withDefaults replaces each limit that is not positive.
func (l Limits) withDefaults() Limits {
	defaults := DefaultLimits()
	if l.TextBytes <= 0 {
		l.TextBytes = defaults.TextBytes
	}
	if l.Nesting <= 0 {
		l.Nesting = defaults.Nesting
	}
	if l.Objects <= 0 {
		l.Objects = defaults.Objects
	}
	return l
}

func (l Limits) text() cedartext.Limits {
	return cedartext.Limits{Bytes: l.TextBytes, Nesting: l.Nesting, Weight: textWeight, PatternBytes: patternBytes}
}
