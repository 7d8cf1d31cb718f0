// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxRequesters bounds how many requesters are remembered. A requester who is
// forgotten starts with a full bucket, which is what they have after a pause
// anyway.
const maxRequesters = 4096

// Rate is a token bucket for each requester. Preparing a call costs more than
// asking for it, so that asking has a limit of its own beside the number of
// open calls. It is safe for concurrent use and never takes more memory than
// its limit of requesters needs.
type Rate struct {
	limit rate.Limit
	burst int

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	limiter *rate.Limiter
	used    time.Time
}

// NewRate returns buckets that hold burst proposals and refill by perSecond.
func NewRate(perSecond float64, burst int) *Rate {
	return &Rate{limit: rate.Limit(perSecond), burst: burst, buckets: map[string]*bucket{}}
}

// Allow takes a token from the requester's bucket, if there is one. A nil Rate
// allows everything.
func (r *Rate) Allow(requester string, now time.Time) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.buckets[requester]
	if !ok {
		r.makeRoom()
		b = &bucket{limiter: rate.NewLimiter(r.limit, r.burst)}
		r.buckets[requester] = b
	}
	b.used = now
	return b.limiter.AllowN(now, 1)
}

// makeRoom forgets the requester who was silent for longest.
func (r *Rate) makeRoom() {
	if len(r.buckets) < maxRequesters {
		return
	}
	oldest := ""
	for name, b := range r.buckets {
		if oldest == "" || b.used.Before(r.buckets[oldest].used) {
			oldest = name
		}
	}
	delete(r.buckets, oldest)
}
