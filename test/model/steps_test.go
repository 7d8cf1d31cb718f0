// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package model

// next are the states that one step leads to.
func (w *world) next(s state, visit func(string, state)) {
	for i := range s.controllers {
		w.control(s, i, visit)
	}
	for i := range s.pods {
		w.run(s, i, visit)
	}
	w.people(s, visit)
	w.time(s, visit)
}

// written is a write to the proposal: what anybody read before is old. A
// resourceVersion would say so by another number; that it is another is all
// that counts.
func (s *state) written() {
	for i := range s.controllers {
		s.controllers[i].fresh = false
	}
	for i := range s.pods {
		s.pods[i].fresh = false
	}
}

// control is one step of a controller. It can crash before any of them.
func (w *world) control(s state, i int, visit func(string, state)) {
	c := s.controllers[i]
	if c.step != idle {
		crashed := s
		crashed.controllers[i] = controller{}
		visit("a controller crashes", crashed)
	}
	switch c.step {
	case idle:
		w.look(s, i, visit)
	case committing:
		w.grant(s, i, visit)
	case creating:
		created := s
		created.controllers[i] = controller{}
		if !created.job.exists && created.life == c.of && created.exists {
			created.job = job{true, c.of}
		}
		visit("the Job is created", created)
	case ending:
		w.end(s, i, visit)
	}
}

// look reads the world and decides what to do next.
func (w *world) look(s state, i int, visit func(string, state)) {
	if !s.exists {
		return
	}
	read := s
	c := &read.controllers[i]
	c.fresh, c.of = true, s.life
	if s.phase.terminal() {
		w.retire(s, visit)
		if w.has(endOnce) {
			return
		}
	}
	genuine := s.granted == ownGrant || (s.granted == forgedGrant && !w.has(grantSeal))
	switch {
	case s.granted == noGrant && s.deleting:
		c.step, c.end = ending, cancelled
		visit("a controller sees the deletion", read)
	case s.granted == noGrant || !w.has(oneGrant) && s.redeemed == none:
		w.decide(read, i, visit)
	case !genuine:
		// The status was forged; nothing is done on its account.
		c.step, c.end = ending, tampered
		visit("a controller sees the forgery", read)
	default:
		w.follow(read, i, visit)
	}
	if !w.has(oneGrant) && s.granted != noGrant {
		w.follow(read, i, visit)
	}
}

// decide is the commit point's second decision.
func (w *world) decide(s state, i int, visit func(string, state)) {
	c := &s.controllers[i]
	c.allowed = s.allow
	answer := s.allow
	if !w.has(decideLive) {
		answer = s.cachedAllow
	}
	valid := false
	for _, r := range s.receipts {
		valid = valid || r.created && !r.expired && r.of == s.life
		usable := r.created && (!r.expired || !w.has(receiptExpiry)) && (r.of == s.life || !w.has(receiptUID))
		c.approved = c.approved || usable
	}
	if !answer || !c.approved && w.has(approvalNeeded) {
		return
	}
	// What counts is what was true when it was read.
	c.approved, c.step = valid, committing
	visit("the commit point decides", s)
}

// grant is the compare-and-swap. Its record is durable by now.
func (w *world) grant(s state, i int, visit func(string, state)) {
	c := s.controllers[i]
	s.controllers[i] = controller{}
	if !s.exists || w.has(grantSwap) && (!c.fresh || c.of != s.life) {
		visit("the grant conflicts", s)
		return
	}
	s.written()
	switch {
	case !c.allowed:
		s.breaks(grantWithoutAllow)
	case !c.approved:
		s.breaks(grantWithoutApproval)
	}
	s.grants[s.life]++
	if s.grants[s.life] > 1 {
		s.breaks(grantedTwice)
	}
	if s.phase.terminal() {
		s.breaks(endChanged)
	}
	s.phase, s.granted = dispatching, ownGrant
	s.controllers[i] = controller{step: creating, of: s.life}
	visit("the grant is written", s)
}

// follow says what becomes of a granted call.
func (w *world) follow(s state, i int, visit func(string, state)) {
	c := &s.controllers[i]
	c.step = ending
	quiet := s.podsGone()
	trusted := s.result == trueResult || s.result == forgedResult && !w.has(resultSeal)
	switch {
	case trusted:
		c.end = succeeded
	case s.result == forgedResult:
		c.end = tampered
	case s.redeemed == none || !w.has(unknownIsUnknown) && s.startOver:
		w.followUnredeemed(s, i, visit)
		return
	case (s.cancel || s.deleting) && (quiet || !w.has(stopFirst)):
		c.end = cancelled
	case s.givenUp || quiet && !s.job.exists:
		c.end = indeterminate
	case (s.cancel || s.deleting) && s.job.exists:
		// The Job is deleted, which ends its Pods in their own time.
		s.controllers[i] = controller{}
		s.job.exists = false
		visit("the Job is stopped", s)
		return
	default:
		return
	}
	visit("a controller sees the end", s)
}

func (w *world) followUnredeemed(s state, i int, visit func(string, state)) {
	c := &s.controllers[i]
	switch {
	case s.cancel || s.deleting:
		c.end = cancelled
	case s.startOver:
		c.end = neverStarted
	case !s.job.exists:
		c.step = creating
	default:
		return
	}
	visit("a controller follows", s)
}

func (s *state) podsGone() bool {
	for i, p := range s.pods {
		if i != copied && p.of == s.life && (p.place == started || p.place == asked || p.place == holding) {
			return false
		}
	}
	return true
}

// end writes an end.
func (w *world) end(s state, i int, visit func(string, state)) {
	c := s.controllers[i]
	s.controllers[i] = controller{}
	if !s.exists || w.has(endSwap) && (!c.fresh || c.of != s.life) {
		visit("the end conflicts", s)
		return
	}
	s.written()
	if s.phase.terminal() && s.phase != c.end {
		s.breaks(endChanged)
	}
	switch {
	case c.end == succeeded && s.effects[s.life] == 0:
		s.breaks(succeededWithoutEffect)
	case c.end == neverStarted && s.effects[s.life] > 0:
		s.breaks(neverStartedButDid)
	}
	s.forged[s.life] = s.forged[s.life] || c.end == tampered
	s.phase, s.job.exists = c.end, false
	visit("an end is written", s)
}

// retire lets a proposal go that is being deleted and has ended.
func (w *world) retire(s state, visit func(string, state)) {
	if s.deleting {
		s.exists, s.deleting = false, false
		visit("the proposal goes", s)
	}
}

// run is one step of a Pod and of the endpoint that it asks.
func (w *world) run(s state, i int, visit func(string, state)) {
	p := s.pods[i]
	if p.place != noPod && p.place != gone {
		killed := s
		killed.pods[i] = pod{place: gone}
		visit("a Pod dies", killed)
	}
	switch p.place {
	case noPod:
		w.start(s, i, visit)
	case started:
		w.ask(s, i, visit)
	case asked:
		w.redeem(s, i, visit)
	case holding:
		w.begin(s, i, visit)
	case effected:
		w.report(s, i, visit)
	}
}

// start makes a Pod: the Job controller may make a second one, and anybody who
// may create Pods may copy one. A container that starts again draws a nonce anew.
func (w *world) start(s state, i int, visit func(string, state)) {
	if !s.job.exists || i != copied && i >= w.pods || i == copied && !w.copied {
		return
	}
	s.pods[i] = pod{place: started, of: s.job.of, nonce: uint8(i)}
	visit("a Pod starts", s)
}

// ask is the endpoint looking at a request.
func (w *world) ask(s state, i int, visit func(string, state)) {
	p := &s.pods[i]
	refused := s
	refused.pods[i] = pod{place: gone}
	ours := s.job.exists && s.job.of == p.of && p.of == s.life
	mine := s.redeemed == uint8(i) && s.nonce == p.nonce
	switch {
	case !s.exists || s.granted == noGrant || s.granted == forgedGrant && w.has(grantSeal),
		!ours && w.has(podOfJob),
		i == copied && w.has(podUnchanged),
		w.has(redeemOpen) && (s.phase.terminal() || s.result != noResult || s.deleting),
		w.has(redeemOnce) && s.redeemed != none && !mine,
		w.has(redeemDeadline) && s.redeemed == none && s.startOver:
		visit("a request is refused", refused)
		return
	}
	if mine {
		p.place = holding
		visit("the ticket is fetched again", s)
		return
	}
	p.place, p.fresh, p.late = asked, true, s.startOver
	visit("a request is looked at", s)
	if !p.restarted && w.restarts {
		p.place, p.fresh, p.restarted, p.nonce = started, false, true, p.nonce+pods
		visit("a container starts again", s)
	}
}

// redeem is the compare-and-swap of the endpoint. Its answer may be lost.
func (w *world) redeem(s state, i int, visit func(string, state)) {
	p := &s.pods[i]
	if !s.exists || w.has(redeemSwap) && !p.fresh {
		p.place, p.fresh = started, false
		visit("a redemption conflicts", s)
		return
	}
	s.written()
	if s.phase.terminal() {
		s.breaks(endChanged)
	}
	if p.late {
		s.breaks(startedLate)
	}
	s.phase, s.redeemed, s.nonce = running, uint8(i), p.nonce
	p.place = started
	visit("the answer is lost", s)
	p.place = holding
	visit("the call is handed out", s)
}

// begin is the effect.
func (w *world) begin(s state, i int, visit func(string, state)) {
	p := &s.pods[i]
	if s.ticketOver[p.of] && w.has(ticketDeadline) {
		*p = pod{place: gone}
		visit("a runner is too late", s)
		return
	}
	s.effects[p.of]++
	switch {
	case s.effects[p.of] > 1:
		s.breaks(effectTwice)
	case i == copied:
		s.breaks(wrongPod)
	case s.grants[p.of] == 0 || s.life == p.of && s.granted == forgedGrant:
		s.breaks(effectWithoutGrant)
	case s.forged[p.of]:
		// It ended as tampered with: nothing was claimed about its effect, and
		// the grant stays in the audit log.
	case s.life != p.of || !s.exists:
		s.breaks(lostTrack)
	case s.phase == neverStarted:
		s.breaks(neverStartedButDid)
	case s.phase.terminal():
		s.breaks(effectAfterEnd)
	}
	p.place = effected
	visit("the effect begins", s)
}

func (w *world) report(s state, i int, visit func(string, state)) {
	of := s.pods[i].of
	s.pods[i] = pod{place: gone}
	if s.exists && !s.phase.terminal() && s.redeemed == uint8(i) && of == s.life && s.result == noResult {
		s.written()
		s.result = trueResult
	}
	visit("a report arrives", s)
}
