// Copyright The Assent Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import "sync"

// workspace is the memory that one call needs and the next one can use again:
// the lists of a tree, the text and the state of those who fill them. Without
// it, much of the time of a call would go into growing them. Nothing that leaves
// the package refers to it.
type workspace struct {
	tree    tree
	decoder decoder
	walker  walker
	text    []byte // what encode wrote
	slots   []slot // of an Object
	spare   []step // for the tree that takes the place of a decoded one
}

// workspaces keeps idle ones. They differ in nothing but capacity.
var workspaces = sync.Pool{New: func() any {
	w := new(workspace)
	w.decoder.tree, w.walker.tree = &w.tree, &w.tree
	return w
}}

// What an idle workspace may hold on to. Arguments never exceed it, so only a
// large record is given back to the garbage collector.
const (
	maxIdleSteps = 4 * MaxValues
	maxIdleBytes = 3 * MaxBytes
	maxIdleSlots = 256
)

// borrow returns a workspace with an empty tree.
func borrow() *workspace { return workspaces.Get().(*workspace) }

// giveBack empties the workspace and keeps its memory.
func (w *workspace) giveBack() {
	if cap(w.tree.steps) > maxIdleSteps || cap(w.spare) > maxIdleSteps || cap(w.tree.bytes) > maxIdleBytes || cap(w.text) > maxIdleBytes {
		return
	}
	w.tree.reset()
	w.decoder.reset()
	w.walker.reset()
	workspaces.Put(w)
}

// reset empties the tree.
func (t *tree) reset() {
	t.steps, t.texts, t.bytes, t.numbers = t.steps[:0], t.texts[:0], t.bytes[:0], t.numbers[:0]
}
