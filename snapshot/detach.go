// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"reflect"
	"slices"
	"unicode/utf8"
)

// walker copies a value into its tree and validates the copy.
type walker struct {
	*tree
	lim    limits
	values int       // members and elements so far
	open   []uintptr // the containers around the current value
	maps   addressSet
	spans  []span
	sorted []entry // a stack of members waiting for their turn
}

// detach copies a value. Each map, slice and element of the source is read once,
// so that what is checked is what is kept. The source must not be written to
// meanwhile: for maps Go makes that a fatal error, not one that could be
// returned.
func (w *walker) detach(source any, lim limits) *fault {
	w.lim = lim
	if f := w.value(source); f != nil {
		return f
	}
	if w.overlapping() {
		return refuse(ReasonRepeatedReference)
	}
	return nil
}

// reset makes the walker ready for another value and lets go of the last one.
func (w *walker) reset() {
	clear(w.sorted)
	w.values, w.open, w.spans, w.sorted = 0, w.open[:0], w.spans[:0], w.sorted[:0]
	w.maps.reset()
}

// entry is a member as read from a map.
type entry struct {
	name  string
	value any
}

// value copies one value.
func (w *walker) value(v any) *fault {
	switch v := v.(type) {
	case nil:
		w.add(kindNull)
	case bool:
		w.add(kindOf(v))
	case string:
		return w.copyText(kindString, v)
	case float64:
		return w.number(v, checkFloat(v))
	case []any:
		return w.array(v)
	case map[string]any:
		return w.object(v)
	default:
		f, why, known := integer(v)
		if !known {
			return refuse(ReasonUnsupportedType)
		}
		return w.number(f, why)
	}
	return nil
}

func kindOf(b bool) kind {
	if b {
		return kindTrue
	}
	return kindFalse
}

func (w *walker) number(f float64, why Reason) *fault {
	if why != "" {
		return refuse(why)
	}
	w.addNumber(f)
	return nil
}

// copyText copies a string or a member name. U+FFFD is data here: a default in a
// contract may contain it. The text cannot be shorter than its strings, so it
// is known to be too large before all of them have been looked at.
func (w *walker) copyText(k kind, s string) *fault {
	from := len(w.bytes)
	switch {
	case len(s) > w.lim.stringBytes:
		return refuse(ReasonStringTooLong)
	case from+len(s) > w.lim.bytes:
		return refuse(ReasonTooLarge)
	}
	w.bytes = append(w.bytes, s...)
	if !utf8.Valid(w.bytes[from:]) {
		return refuse(ReasonInvalidUTF8)
	}
	if why := checkText(w.bytes[from:], allowReplacement); why != "" {
		return refuse(why)
	}
	w.addText(k, from, len(w.bytes))
	return nil
}

// array copies a slice.
func (w *walker) array(elements []any) *fault {
	if elements == nil {
		return refuse(ReasonTypedNil)
	}
	if len(elements) == 0 {
		return w.empty(kindBeginArray, kindEndArray)
	}
	first := reflect.ValueOf(elements).Pointer()
	if slices.Contains(w.open, first) {
		return refuse(ReasonCycle)
	}
	w.spans = append(w.spans, span{first, first + uintptr(len(elements))*elementSize})
	if f := w.enter(kindBeginArray, first, len(elements)); f != nil {
		return f
	}
	for i, element := range elements {
		if f := w.value(element); f != nil {
			return f.under(i)
		}
	}
	w.leave(kindEndArray)
	return nil
}

// object copies a map.
func (w *walker) object(m map[string]any) *fault {
	if m == nil {
		return refuse(ReasonTypedNil)
	}
	address := reflect.ValueOf(m).Pointer()
	if !w.maps.add(address) {
		if slices.Contains(w.open, address) {
			return refuse(ReasonCycle)
		}
		return refuse(ReasonRepeatedReference)
	}
	if len(m) == 0 {
		return w.empty(kindBeginObject, kindEndObject)
	}
	if f := w.enter(kindBeginObject, address, len(m)); f != nil {
		return f
	}
	if f := w.members(m); f != nil {
		return f
	}
	w.leave(kindEndObject)
	return nil
}

// members copies the content of a map. It is sorted before it is looked at, so
// that the first fault is the same one every time.
func (w *walker) members(m map[string]any) *fault {
	base := len(w.sorted)
	for name, value := range m {
		w.sorted = append(w.sorted, entry{name, value})
	}
	top := len(w.sorted)
	slices.SortFunc(w.sorted[base:], func(a, b entry) int { return compareUTF16(a.name, b.name) })
	for i := base; i < top; i++ {
		if f := w.member(w.sorted[i].name, w.sorted[i].value); f != nil {
			return f.under(i - base)
		}
	}
	clear(w.sorted[base:])
	w.sorted = w.sorted[:base]
	return nil
}

// member copies one member.
func (w *walker) member(name string, value any) *fault {
	if f := w.copyText(kindName, name); f != nil {
		return f
	}
	return w.value(value)
}

// empty copies a container without content. It cannot contain itself.
func (w *walker) empty(begin, end kind) *fault {
	if len(w.open) == MaxDepth {
		return refuse(ReasonDepth)
	}
	w.add(begin)
	w.add(end)
	return nil
}

// enter opens a container of n values, unless it is too deep or too large. It
// decides before the values are read, so that neither limit costs more than it
// allows.
func (w *walker) enter(begin kind, address uintptr, n int) *fault {
	switch {
	case len(w.open) == MaxDepth:
		return refuse(ReasonDepth)
	case n > w.lim.values-w.values:
		return refuse(ReasonTooManyValues)
	}
	w.values += n
	w.open = append(w.open, address)
	w.steps = append(w.steps, step{kind: begin, index: index(n)})
	return nil
}

// leave closes the container that was opened last.
func (w *walker) leave(end kind) {
	w.open = w.open[:len(w.open)-1]
	w.add(end)
}

// elementSize is the distance between the elements of a slice in memory.
var elementSize = reflect.TypeFor[any]().Size()

// span is the memory of the elements of one slice, as half-open addresses.
type span struct{ from, to uintptr }

// overlapping reports whether two slices share an element. They need not start
// at the same place to do so, which is why they are compared all at once.
func (w *walker) overlapping() bool {
	slices.SortFunc(w.spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(w.spans); i++ {
		if w.spans[i].from < w.spans[i-1].to {
			return true
		}
	}
	return false
}

// addressSet remembers addresses by open addressing: a map of Go would cost
// more than the rest of the walk. The addresses stay valid because the source is
// reachable, and reflect makes it escape to the heap, where nothing moves.
type addressSet struct {
	slots []uintptr
	mask  uint64 // their number, a power of two, less one
	count int
}

// minSlots is the size of a set in the beginning.
const minSlots = 16

// reset empties the set. A large set that was hardly used is dropped, because
// emptying it would cost more than filling a small one.
func (s *addressSet) reset() {
	if len(s.slots) > minSlots*(1+s.count) {
		s.slots, s.mask = nil, 0
	}
	clear(s.slots)
	s.count = 0
}

// add reports whether the address is new.
func (s *addressSet) add(address uintptr) bool {
	if 2*s.count >= len(s.slots) {
		s.grow()
	}
	slot := s.find(address)
	if *slot == address {
		return false
	}
	*slot = address
	s.count++
	return true
}

// find returns the slot that holds the address or would hold it.
func (s *addressSet) find(address uintptr) *uintptr {
	// Fibonacci hashing; the low bits of addresses carry no information.
	const golden = 0x9E3779B97F4A7C15
	for i := uint64(address) * golden >> 32; ; i++ {
		slot := &s.slots[i&s.mask]
		if *slot == address || *slot == 0 {
			return slot
		}
	}
}

func (s *addressSet) grow() {
	old := s.slots
	s.mask = max(minSlots-1, 2*s.mask+1)
	s.slots = make([]uintptr, s.mask+1)
	for _, address := range old {
		if address != 0 {
			*s.find(address) = address
		}
	}
}
