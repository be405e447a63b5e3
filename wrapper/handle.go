// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"fmt"
	"maps"
	"slices"
	"sync"
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

	mu     sync.Mutex
	idle   sync.Cond
	users  int
	refs   int // children that are not freed yet, and 1 until it is closed
	closed bool
	queues map[*queue]struct{} // whose work uses it or a child of it
}

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
	h.mu.Lock()
	closed := h.closed
	if !closed {
		h.users++
	}
	h.mu.Unlock()
	if closed {
		if h.parent != nil {
			h.parent.release()
		}
		return fmt.Errorf("%w: the %s is closed", ErrClosed, h.kind)
	}
	return nil
}

func (h *handle) release() {
	h.mu.Lock()
	h.users--
	if h.users == 0 {
		h.idle.Broadcast()
	}
	h.mu.Unlock()
	if h.parent != nil {
		h.parent.release()
	}
}

// enter notes that work of q uses h, which is in use. It returns whether somebody waits for the end of that use.
func (h *handle) enter(q *queue) (wanted bool) {
	for ; h != nil; h = h.parent {
		h.mu.Lock()
		if h.queues == nil {
			h.queues = make(map[*queue]struct{})
		}
		h.queues[q] = struct{}{}
		wanted = wanted || h.closed
		h.mu.Unlock()
	}
	return wanted
}

// leave takes back enter, for h and all that it stands on: q uses none of them any more.
func (h *handle) leave(q *queue) {
	for ; h != nil; h = h.parent {
		h.mu.Lock()
		delete(h.queues, q)
		h.mu.Unlock()
	}
}

// close waits for the uses in progress, those by streams among them. Closing again does nothing.
func (h *handle) close() {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return
	}
	h.closed = true
	queues := slices.Collect(maps.Keys(h.queues))
	h.mu.Unlock()
	for _, q := range queues {
		q.settle()
	}
	h.mu.Lock()
	for h.users > 0 {
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
type lease struct{ handles []*handle }

func (l *lease) add(h *handle) error {
	if err := h.acquire(); err != nil {
		return err
	}
	l.handles = append(l.handles, h)
	return nil
}

func (l *lease) release() {
	for _, h := range l.handles {
		h.release()
	}
	l.handles = nil
}
