// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

func (e *evaluator) nearMisses(bool) []NearMiss { return nil }
