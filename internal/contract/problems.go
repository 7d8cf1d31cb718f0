// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"
)

// problems collects what is wrong with a manifest, so that its author sees all
// of it at once.
type problems struct {
	list CompileErrors
}

// add records a problem. The same one is recorded once, although several
// arguments may lead to it.
func (p *problems) add(reason CompileReason, field, format string, args ...any) {
	e := &CompileError{Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)}
	if !slices.ContainsFunc(p.list, func(known *CompileError) bool { return *known == *e }) {
		p.list = append(p.list, e)
	}
}

// err returns the problems as an error, or nil.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return p.list
}
