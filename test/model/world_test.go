// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package model

// people change what the decision rests on, call off, delete, create anew and forge.
func (w *world) people(s state, visit func(string, state)) {
	if s.allow && w.change {
		forbidden := s
		forbidden.allow = false
		visit("policy forbids", forbidden)
	}
	if s.allow != s.cachedAllow {
		synced := s
		synced.cachedAllow = s.allow
		visit("the cache follows", synced)
	}
	for i, r := range s.receipts {
		if !r.created && s.exists && int(s.life) == i {
			approved := s
			approved.receipts[i] = receipt{created: true, of: s.life}
			visit("somebody approves", approved)
		}
	}
	if w.cancel && s.granted != noGrant && !s.cancel && !s.phase.terminal() {
		off := s
		off.cancel = true
		visit("somebody calls it off", off)
	}
	w.deletions(s, visit)
	w.forgeries(s, visit)
}

func (w *world) deletions(s state, visit func(string, state)) {
	if w.recreate && s.exists && !s.deleting && s.life == 0 {
		deleted := s
		deleted.deleting = w.has(deletedLast)
		deleted.exists = w.has(deletedLast)
		visit("somebody deletes", deleted)
	}
	if !s.exists && s.life == 0 {
		again := s
		again.written()
		again.exists, again.life = true, 1
		again.phase, again.granted, again.redeemed, again.nonce, again.result = open, noGrant, none, 0, noResult
		again.startOver, again.givenUp, again.cancel = false, false, false
		visit("somebody creates it anew", again)
	}
}

func (w *world) forgeries(s state, visit func(string, state)) {
	if !w.forge || !s.exists || s.phase.terminal() {
		return
	}
	if s.granted == noGrant {
		forged := s
		forged.written()
		forged.granted, forged.phase = forgedGrant, dispatching
		visit("somebody forges a grant", forged)
	}
	if s.granted == ownGrant && s.result == noResult {
		forged := s
		forged.written()
		forged.result = forgedResult
		visit("somebody forges a result", forged)
	}
}

// time moves on: receipts expire, deadlines pass in their order.
func (w *world) time(s state, visit func(string, state)) {
	for i, r := range s.receipts {
		if w.change && r.created && !r.expired {
			expired := s
			expired.receipts[i].expired = true
			visit("a receipt expires", expired)
		}
	}
	later := s
	if s.granted != noGrant && !s.startOver {
		later.startOver = true
		visit("the deadline for starting passes", later)
	}
	if s.redeemed != none && !s.ticketOver[s.life] {
		later = s
		later.ticketOver[s.life] = true
		visit("the ticket's deadline passes", later)
	}
	if s.redeemed != none && !s.givenUp && (s.ticketOver[s.life] || !w.has(ticketFirst)) {
		later = s
		later.givenUp = true
		visit("the call's time is over", later)
	}
}
