// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"
)

// handle is a native object with its users and its children. Once close has begun, new uses are refused; the object
// is freed when the last use is over and the last child is freed, so that handles may be closed in any order.
//
// It is a part of the public object rather than the object itself, so that a clean-up on the public object can hold
// it. (An RWMutex around uses would do, were it not that one call may use the same buffer twice.)
type handle struct {
	kind    string // for messages
	pointer unsafe.Pointer
	parent  *handle // used along with it; may be nil
	free    func()

	uses atomic.Int64 // in progress, and closedBit from the beginning of close on

	mu     sync.Mutex
	idle   sync.Cond // uses is closedBit
	refs   int       // children that are not freed yet, and 1 until it is closed
	queues queueSet  // whose work uses it or a child of it
}

// closedBit is above any number of uses.
const closedBit = 1 << 62

// newHandle makes a handle of a new native object. The parent must be in use by the caller.
func newHandle(kind string, pointer unsafe.Pointer, parent *handle, free func()) *handle {
	h := &handle{kind: kind, pointer: pointer, parent: parent, free: free, refs: 1}
	h.idle.L = &h.mu
	if parent != nil {
		parent.mu.Lock()
		parent.refs++
		parent.mu.Unlock()
	}
	return h
}

// acquire begins a use of h and of what it stands on; release ends it.
func (h *handle) acquire() error {
	if h.parent != nil {
		if err := h.parent.acquire(); err != nil {
			return err
		}
	}
	if h.uses.Add(1)&closedBit != 0 {
		h.release()
		return h.useAfterClose()
	}
	return nil
}

func (h *handle) useAfterClose() error {
	return fmt.Errorf("%w: the %s is closed", ErrClosed, h.kind)
}

func (h *handle) release() {
	for ; h != nil; h = h.parent {
		if h.uses.Add(-1) == closedBit {
			h.mu.Lock()
			h.idle.Broadcast()
			h.mu.Unlock()
		}
	}
}

// open returns an error where h, or what it stands on, is closed. That it is used must be certain by other means.
func (h *handle) open() error {
	for ; h != nil; h = h.parent {
		if h.uses.Load()&closedBit != 0 {
			return h.useAfterClose()
		}
	}
	return nil
}

// enter notes that work of q uses h, which is in use. It returns whether somebody waits for the end of that use.
func (h *handle) enter(q *queue) (wanted bool) {
	for ; h != nil; h = h.parent {
		h.mu.Lock()
		h.queues.add(q)
		wanted = wanted || h.uses.Load()&closedBit != 0
		h.mu.Unlock()
	}
	return wanted
}

// leave takes back enter, for h and all that it stands on: q uses none of them any more.
func (h *handle) leave(q *queue) {
	for ; h != nil; h = h.parent {
		h.mu.Lock()
		h.queues.remove(q)
		h.mu.Unlock()
	}
}

// close waits for the uses in progress, those by streams among them. Closing again does nothing.
func (h *handle) close() {
	if h.uses.Or(closedBit)&closedBit == 0 {
		h.finish()
	}
}

// closeIn is close without a wait for the work of q, behind which `free` frees it. A handle that has children is freed
// as by close, when they are. values: see queue.letGo.
func (h *handle) closeIn(q *queue, values *valueHolder, free func()) {
	if h.uses.Or(closedBit)&closedBit != 0 {
		return
	}
	q.letGo(h, values)
	h.mu.Lock()
	if h.refs == 1 {
		h.free = free
	}
	h.mu.Unlock()
	h.finish()
}

// finish is what is left of close.
func (h *handle) finish() {
	h.mu.Lock()
	queues := h.queues.list()
	h.mu.Unlock()
	for _, q := range queues {
		q.settle()
	}
	h.mu.Lock()
	for h.uses.Load() != closedBit {
		h.idle.Wait()
	}
	h.mu.Unlock()
	h.drop()
}

func (h *handle) drop() {
	h.mu.Lock()
	h.refs--
	last := h.refs == 0
	h.mu.Unlock()
	if !last {
		return
	}
	h.free()
	if h.parent != nil {
		h.parent.drop()
	}
}

// lease is a number of handles in use at once.
type lease struct {
	few  [6]*handle // enough for a product, so that it takes no memory
	n    int        // in few
	more []*handle
}

func (l *lease) add(h *handle) error {
	if err := h.acquire(); err != nil {
		return err
	}
	if l.n < len(l.few) {
		l.few[l.n] = h
		l.n++
	} else {
		l.more = append(l.more, h)
	}
	return nil
}

func (l *lease) release() {
	for _, h := range l.few[:l.n] {
		h.release()
	}
	for _, h := range l.more {
		h.release()
	}
	l.n, l.more = 0, nil
}
