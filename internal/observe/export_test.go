// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import "runtime"

// AwaitWaiting returns once so many wait for a read that has not begun.
func AwaitWaiting(s *Shared, n int) {
	for waiting := -1; waiting != n; runtime.Gosched() {
		waiting = 0
		s.mu.Lock()
		for _, q := range s.reads {
			waiting += q.waiting
		}
		s.mu.Unlock()
	}
}
