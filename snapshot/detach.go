// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"reflect"
	"slices"
	"unicode/utf8"
)

// kind says what an item of a detached tree is.
type kind uint8

const (
	kindNull kind = iota
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindBeginArray
	kindEndArray
	kindBeginObject
	kindName
	kindEndObject
)

// item is one step through a detached tree. A tree is held as the list of its
// items in canonical order, members sorted: nothing in it refers to the source
// but strings, which nobody can change, and the self-check can follow it token
// by token.
type item struct {
	text   string // of a name or string
	number float64
	kind   kind
}

// detach copies a tree into items and validates the copy. Each map, slice and
// element of the source is read once, so that what is checked is what is kept.
// The source must not be written to meanwhile: for maps Go makes that a fatal
// error, not one that could be returned.
func detach(tree any, lim limits) ([]item, *fault) {
	w := walker{lim: lim}
	if f := w.value(tree); f != nil {
		return nil, f
	}
	return w.items, nil
}

// walker carries what a walk through a tree collects.
type walker struct {
	items  []item
	values int
	lim    limits
	open   []uintptr // the containers around the current value
	seen   addressSet
	sorted []member // a stack of members waiting for their turn
}

// member is a name with its value as read from a map.
type member struct {
	name  string
	value any
}

// value copies one value.
func (w *walker) value(v any) *fault {
	switch v := v.(type) {
	case nil:
		w.add(item{kind: kindNull})
	case bool:
		w.add(item{kind: kindOf(v)})
	case string:
		return w.text(kindString, v)
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

func (w *walker) add(i item) { w.items = append(w.items, i) }

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
	w.add(item{kind: kindNumber, number: f})
	return nil
}

// text copies a string or a member name. U+FFFD is data here: a default in a
// contract may contain it.
func (w *walker) text(k kind, s string) *fault {
	switch {
	case len(s) > w.lim.stringBytes:
		return refuse(ReasonStringTooLong)
	case !utf8.ValidString(s):
		return refuse(ReasonInvalidUTF8)
	}
	if why := checkText(s, allowReplacement); why != "" {
		return refuse(why)
	}
	w.add(item{kind: k, text: s})
	return nil
}

// array copies a slice. Its elements are marked one by one, because two slices
// may share memory without starting at the same place.
func (w *walker) array(elements []any) *fault {
	if elements == nil {
		return refuse(ReasonTypedNil)
	}
	first := reflect.ValueOf(elements).Pointer()
	if f := w.enter(first, len(elements)); f != nil {
		return f
	}
	w.add(item{kind: kindBeginArray})
	for i, element := range elements {
		if !w.seen.add(first + uintptr(i)*reflect.TypeFor[any]().Size()) {
			return refuse(ReasonRepeatedReference)
		}
		if f := w.value(element); f != nil {
			return f.under(i)
		}
	}
	w.add(item{kind: kindEndArray})
	w.leave()
	return nil
}

// object copies a map. Members are sorted before they are looked at, so that
// the first fault is the same one every time.
func (w *walker) object(m map[string]any) *fault {
	if m == nil {
		return refuse(ReasonTypedNil)
	}
	address := reflect.ValueOf(m).Pointer()
	if f := w.enter(address, len(m)); f != nil {
		return f
	}
	if !w.seen.add(address) {
		return refuse(ReasonRepeatedReference)
	}
	w.add(item{kind: kindBeginObject})
	base := len(w.sorted)
	for name, value := range m {
		w.sorted = append(w.sorted, member{name, value})
	}
	top := len(w.sorted)
	slices.SortFunc(w.sorted[base:], func(a, b member) int { return compareUTF16(a.name, b.name) })
	for i := base; i < top; i++ {
		if f := w.text(kindName, w.sorted[i].name); f != nil {
			return f.under(i - base)
		}
		if f := w.value(w.sorted[i].value); f != nil {
			return f.under(i - base)
		}
	}
	w.sorted = w.sorted[:base]
	w.add(item{kind: kindEndObject})
	w.leave()
	return nil
}

// enter opens a container of n values and refuses it inside itself, too deep or
// too large: before its members are read, so that neither limit costs more than
// it allows.
func (w *walker) enter(address uintptr, n int) *fault {
	switch {
	case n > 0 && slices.Contains(w.open, address):
		return refuse(ReasonCycle)
	case len(w.open) == MaxDepth:
		return refuse(ReasonDepth)
	case n > w.lim.values-w.values:
		return refuse(ReasonTooManyValues)
	}
	w.values += n
	w.open = append(w.open, address)
	return nil
}

func (w *walker) leave() { w.open = w.open[:len(w.open)-1] }

// addressSet remembers addresses by open addressing: a map of Go would cost
// more than the rest of the walk. The addresses stay valid because the tree is
// reachable, and reflect makes it escape to the heap, where nothing moves.
type addressSet struct {
	slots []uintptr
	count int
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
	mask := uint64(len(s.slots) - 1)
	for i := uint64(address) * golden >> 32; ; i++ {
		slot := &s.slots[i&mask]
		if *slot == address || *slot == 0 {
			return slot
		}
	}
}

func (s *addressSet) grow() {
	const firstSize = 64
	old := s.slots
	s.slots = make([]uintptr, max(firstSize, 2*len(old)))
	for _, address := range old {
		if address != 0 {
			*s.find(address) = address
		}
	}
}
