// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import "slices"

// Object is an object of arguments on its way to a snapshot, as [PrepareObject]
// hands it to a schema step: the members that were decoded, in canonical order,
// and what the step sets. It is empty once the step has returned.
type Object struct {
	tree  *tree
	text  string // the bytes of the tree as they were decoded
	slots []slot
	sent  int // how many of the slots were decoded; the rest was set
}

// slot is one member.
type slot struct {
	name string
	// from and to are where the value's steps are, and before them the step of
	// the name.
	from, to int32
	// value replaces what was decoded when set is true.
	value any
	set   bool
}

// PrepareObject is [Prepare] for a schema step that looks at the members of an
// object one by one and changes few of them: what it leaves alone was detached
// when it was decoded, so that neither maps are built nor copied. What it sets is
// copied and validated as by [New].
//
// The schema step gets nil for arguments that are not an object; it should refuse
// them, since no step can change them. It may keep what [Object.Value] returns.
//
// The errors are those of Prepare.
func PrepareObject(raw string, schema func(*Object) error) (*Snapshot, error) {
	w := borrow()
	defer w.giveBack()
	if f := w.decoder.decode(raw, argumentLimits(), refuseReplacement); f != nil {
		return nil, f.at(StageDecode)
	}
	o := w.openObject(raw)
	defer w.closeObject(o)
	if err := schema(o); err != nil {
		return nil, hideText(err)
	}
	if f := w.assemble(o); f != nil {
		return nil, f.at(StageSnapshot)
	}
	return seal(standard().canonical(w, argumentLimits()))
}

// openObject returns the members of the tree, or nil when it is another value.
func (w *workspace) openObject(raw string) *Object {
	t := &w.tree
	if t.steps[0].kind != kindBeginObject {
		return nil
	}
	b := builder{tree: t, text: t.immutable(raw)}
	w.slots = w.slots[:0]
	at := int32(1)
	for range t.steps[0].index {
		to := t.after(at + 1)
		w.slots = append(w.slots, slot{name: b.string(t.steps[at].index), from: at, to: to})
		at = to
	}
	return &Object{tree: t, text: b.text, slots: w.slots, sent: len(w.slots)}
}

// after returns where the value that begins at a step ends.
func (t *tree) after(at int32) int32 {
	for depth := 0; ; at++ {
		switch t.steps[at].kind {
		case kindBeginArray, kindBeginObject:
			depth++
		case kindEndArray, kindEndObject:
			depth--
		default:
			// Everything else is one step.
		}
		if depth == 0 {
			return at + 1
		}
	}
}

// closeObject makes an object useless to a schema step that kept it, and lets go
// of what the step has set.
func (w *workspace) closeObject(o *Object) {
	if o == nil {
		return
	}
	clear(o.slots)
	if w.slots = o.slots; cap(w.slots) > maxIdleSlots {
		w.slots = nil
	}
	*o = Object{}
}

// Len returns how many members were decoded.
func (o *Object) Len() int { return o.sent }

// Name returns the name of the member at a position of the canonical order.
func (o *Object) Name(i int) string { return o.slots[:o.sent][i].name }

// Value returns the value of the member at a position, as it was decoded. Each
// call builds objects and arrays afresh.
func (o *Object) Value(i int) any {
	b := builder{tree: o.tree, text: o.text, next: int(o.slots[:o.sent][i].from) + 1}
	return b.value()
}

// Text returns the value of the member at a position if it is a string. Unlike
// Value it costs no allocation.
func (o *Object) Text(i int) (text string, isText bool) {
	s := o.tree.steps[o.slots[:o.sent][i].from+1]
	if s.kind != kindString {
		return "", false
	}
	b := builder{tree: o.tree, text: o.text}
	return b.string(s.index), true
}

// Replace gives the member at a position another value.
func (o *Object) Replace(i int, value any) {
	s := &o.slots[:o.sent][i]
	s.value, s.set = value, true
}

// Add adds a member. A name that is there already is refused when the step has
// returned, with [ReasonDuplicateKey].
func (o *Object) Add(name string, value any) {
	o.slots = append(o.slots, slot{name: name, value: value, set: true})
}

// assemble makes the tree of the object as the schema step left it.
func (w *workspace) assemble(o *Object) *fault {
	if o == nil || !slices.ContainsFunc(o.slots, func(s slot) bool { return s.set }) {
		return nil
	}
	if len(o.slots) > o.sent {
		slices.SortStableFunc(o.slots, func(a, b slot) int { return compareUTF16(a.name, b.name) })
	}
	decoded := w.tree.steps
	w.tree.steps, w.spare = w.spare[:0], decoded
	if f := w.beginAssembly(o, decoded); f != nil {
		return f
	}
	for i, s := range o.slots {
		if i > 0 && s.name == o.slots[i-1].name {
			return refuse(ReasonDuplicateKey).under(i)
		}
		if !s.set {
			w.tree.steps = append(w.tree.steps, decoded[s.from:s.to]...)
			continue
		}
		if f := w.walker.member(s.name, s.value); f != nil {
			return f.under(i)
		}
	}
	w.walker.leave(kindEndObject)
	if w.walker.overlapping() {
		return refuse(ReasonRepeatedReference)
	}
	return nil
}

// beginAssembly opens the object and charges what stays of it to the limits.
func (w *workspace) beginAssembly(o *Object, decoded []step) *fault {
	w.walker.lim = argumentLimits()
	for _, s := range o.slots {
		for _, kept := range decoded[s.from:s.to] {
			if !s.set && (kept.kind == kindBeginArray || kept.kind == kindBeginObject) {
				w.walker.values += int(kept.index)
			}
		}
	}
	// Texts that are replaced are still among the bytes. What is too large in
	// the end is found when it is written.
	w.walker.lim.bytes += len(w.tree.bytes)
	const nowhere = 0 // the address of no value
	return w.walker.enter(kindBeginObject, nowhere, len(o.slots))
}
