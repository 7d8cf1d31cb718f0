// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"fmt"
	"time"
)

// maxNameBytes bounds names, UIDs and other short texts in signed structures.
// Kubernetes names have at most 253 characters; user names may be longer.
const maxNameBytes = 1024

// fields collects the first broken rule of a structure. Messages name the
// field and the rule, never the value.
type fields struct{ err error }

func (f *fields) fail(field, rule string) {
	if f.err == nil {
		f.err = fmt.Errorf("%s %s", field, rule)
	}
}

func (f *fields) require(ok bool, field, rule string) {
	if !ok {
		f.fail(field, rule)
	}
}

func (f *fields) name(field, v string) {
	if v == "" || len(v) > maxNameBytes {
		f.fail(field, fmt.Sprintf("must have 1 to %d bytes", maxNameBytes))
	}
}

func (f *fields) optionalName(field, v string) {
	if len(v) > maxNameBytes {
		f.fail(field, fmt.Sprintf("must have at most %d bytes", maxNameBytes))
	}
}

func (f *fields) sha256(field, v string) {
	f.require(isHex(v, 64), field, "must be 64 lower-case hex digits")
}

func (f *fields) time(field string, t time.Time) {
	f.require(!t.IsZero(), field, "must be set")
}

// after demands that a deadline lies after the moment of issue, so that a
// statement that was never valid cannot exist.
func (f *fields) after(field string, t, issued time.Time) {
	f.require(t.After(issued), field, "must be later than issuedAt")
}

func (f *fields) notNegative(field string, v int64) {
	f.require(v >= 0, field, "must not be negative")
}
