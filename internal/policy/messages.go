// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import "strings"

// plainTypes says in plain words what the validator says in its own.
var plainTypes = strings.NewReplacer(
	"Set<__cedar::internal::AnyEntity>", "a set of entities",
	"__cedar::internal::AnyEntity", "an entity",
	"Set<__cedar::internal::Any>", "a set",
	"__cedar::internal::OpenRecord{}", "a record",
)
