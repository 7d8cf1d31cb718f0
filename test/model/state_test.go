// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// guard is one check of the protocol.
type guard int

const (
	// decideLive: the commit point asks policy by what is, not by what a cache says.
	decideLive guard = iota
	// approvalNeeded: without a receipt nothing is granted.
	approvalNeeded
	// receiptUID: a receipt counts for one object, not for its name.
	receiptUID
	// receiptExpiry: a receipt counts until it expires.
	receiptExpiry
	// grantSwap: the grant is written only over the version that was decided on.
	grantSwap
	// grantSeal: a grant that somebody else wrote is none.
	grantSeal
	// oneGrant: what was granted is not decided on again.
	oneGrant
	// redeemSwap: a redemption is written only over the version that was looked at.
	redeemSwap
	// redeemOnce: what one runner fetched, no other gets.
	redeemOnce
	// redeemDeadline: after the deadline nobody gets the call.
	redeemDeadline
	// redeemOpen: what has ended is not handed out.
	redeemOpen
	// podOfJob: the Pod belongs to the Job of this grant.
	podOfJob
	// podUnchanged: the Pod is what the Job makes.
	podUnchanged
	// ticketDeadline: a runner begins nothing after its ticket's deadline.
	ticketDeadline
	// ticketFirst: the ticket ends before the call is given up.
	ticketFirst
	// endSwap: an end is written only over the version that was looked at.
	endSwap
	// endOnce: what has ended does not end again.
	endOnce
	// resultSeal: a result that somebody else wrote is none.
	resultSeal
	// stopFirst: a call that is called off ends when its Pod is gone.
	stopFirst
	// unknownIsUnknown: a redeemed call without a result is never called unstarted.
	unknownIsUnknown
	// deletedLast: a proposal goes when it has ended, not before.
	deletedLast

	guards
)

var guardNames = [guards]string{
	"decideLive", "approvalNeeded", "receiptUID", "receiptExpiry", "grantSwap", "grantSeal", "oneGrant",
	"redeemSwap", "redeemOnce", "redeemDeadline", "redeemOpen", "podOfJob", "podUnchanged",
	"ticketDeadline", "ticketFirst", "endSwap", "endOnce", "resultSeal", "stopFirst", "unknownIsUnknown", "deletedLast",
}

type phase uint8

const (
	open phase = iota
	dispatching
	running
	succeeded
	neverStarted
	indeterminate
	cancelled
	// tampered: somebody else wrote the status. Whether anything runs is not
	// claimed to be known.
	tampered
)

func (p phase) terminal() bool { return p >= succeeded }

// life is one of the two objects that the name has in turn.
type life uint8

const (
	controllers = 2
	receipts    = 2
	// pods 0 and 1 are of the Job; the last one is somebody's copy.
	pods   = 3
	copied = 2
	none   = 0xff
)

// state is the whole world. It is comparable, so that a map can hold those
// that were seen.
type state struct {
	// The proposal as it is stored.
	life     life
	exists   bool
	deleting bool
	phase    phase
	granted  grant
	redeemed uint8 // the Pod
	nonce    uint8
	result   result

	// What else the decision rests on, and what a cache says of it.
	allow, cachedAllow bool
	receipts           [receipts]receipt

	job  job
	pods [pods]pod
	// Time only moves on.
	startOver, givenUp, cancel bool
	ticketOver                 [2]bool

	controllers [controllers]controller

	// What happened, for the invariants.
	effects [2]uint8
	grants  [2]uint8
	forged  [2]bool
	broken  fault
}

type grant uint8

const (
	noGrant grant = iota
	ownGrant
	forgedGrant
)

type result uint8

const (
	noResult result = iota
	trueResult
	forgedResult
)

type receipt struct {
	created, expired bool
	of               life
}

type job struct {
	exists bool
	of     life
}

// place is where a Pod's runner is.
type place uint8

const (
	noPod place = iota
	started
	// asked: an endpoint has looked at the request and is about to write.
	asked
	// holding: the runner has the ticket.
	holding
	effected
	gone
)

type pod struct {
	place place
	of    life
	nonce uint8
	// fresh says that nobody has written the proposal since an endpoint looked.
	fresh bool
	// late says that the deadline for starting had passed when an endpoint looked.
	late bool
	// restarted says that its container started again.
	restarted bool
}

// step is where a controller is.
type step uint8

const (
	idle step = iota
	committing
	creating
	ending
)

type controller struct {
	step step
	// fresh says that nobody has written the proposal since it was read.
	fresh bool
	of    life
	end   phase
	// allowed and approved are what the commit point saw.
	allowed, approved bool
}

func (c controller) less(d controller) bool {
	key := func(c controller) [6]uint8 {
		return [6]uint8{uint8(c.step), bit(c.fresh), uint8(c.of), uint8(c.end), bit(c.allowed), bit(c.approved)}
	}
	a, b := key(c), key(d)
	return slices.Compare(a[:], b[:]) < 0
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// fault is the first invariant that was broken.
type fault uint8

const (
	fine fault = iota
	effectWithoutGrant
	effectTwice
	grantWithoutAllow
	grantWithoutApproval
	grantedTwice
	wrongPod
	effectAfterEnd
	neverStartedButDid
	succeededWithoutEffect
	endChanged
	startedLate
	lostTrack
)

var faultNames = map[fault]string{
	effectWithoutGrant: "I1: an effect without a grant", grantWithoutAllow: "I1: a grant that policy did not allow",
	effectTwice: "I2: a second effect of one call", grantedTwice: "I2: a second grant of one call",
	grantWithoutApproval: "I3: a grant without a valid receipt",
	wrongPod:             "I4: an effect by a Pod that is not what was granted",
	endChanged:           "I6: an end that changed", effectAfterEnd: "an effect after the call was given up",
	neverStartedButDid: "an effect of a call that was reported as never started", succeededWithoutEffect: "success without an effect",
	startedLate: "a call that was handed out after its deadline", lostTrack: "an effect of a call whose record is gone",
}

func initial() state {
	return state{exists: true, redeemed: none, allow: true, cachedAllow: true}
}

// scenario is what can happen beside the ordinary course of a call. All of it
// at once has too many states; whatever can go wrong together is in one.
type scenario struct {
	name string
	// pods is how many Pods can be started, of which the last may be a copy.
	pods   int
	copied bool
	// restarts lets a container start again within its Pod.
	restarts bool
	cancel   bool
	recreate bool
	forge    bool
	// change lets policy forbid, the cache lag, and receipts expire.
	change bool
}

var scenarios = []scenario{
	{name: "a second Pod, a copied Pod, a container that starts again", pods: 2, copied: true, restarts: true, cancel: true},
	{name: "two Pods while the decision changes", pods: 2, change: true, cancel: true},
	{name: "deleted and created anew while Pods run", pods: 2, recreate: true, cancel: true},
	{name: "deleted and created anew while the decision changes", pods: 0, recreate: true, change: true, cancel: true},
	{name: "status forged while it runs and is called off", pods: 2, forge: true, cancel: true, restarts: true},
	{name: "status forged while the decision changes", pods: 1, forge: true, change: true},
}

// world steps the model, with some guards taken out.
type world struct {
	scenario
	without [guards]bool
}

func (w *world) has(g guard) bool { return !w.without[g] }

func (s *state) breaks(f fault) {
	if s.broken == fine {
		s.broken = f
	}
}
