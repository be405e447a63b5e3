// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"
	"sync"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// queue is a native stream with what its work uses. Nobody asks the device when that work is done, which would cost as
// much as the work: whoever needs a thing back waits for the streams that use it.
//
// It is a part of the public stream rather than the stream itself, so that a stream that is used by nobody but its work
// can be collected.
type queue struct {
	lib     *native.Library
	context unsafe.Pointer
	stream  uintptr
	onGPU   bool

	mu   sync.Mutex
	held held
}

// held is what the work of a stream uses, each thing once however often it is used.
type held struct {
	handles map[*handle]struct{}
	values  map[*valueHolder]struct{}
	pins    []*runtime.Pinner
}

// hold takes over from a call what its work uses: handles in use, the values of a matrix (nil: none) and pinned memory
// (nil: none).
func (q *queue) hold(use *lease, values *valueHolder, pins *runtime.Pinner) {
	if !q.onGPU { // the work is done
		use.release()
		if values != nil {
			values.use.Release(1)
		}
		if pins != nil {
			pins.Unpin()
		}
		return
	}
	wanted := false
	q.mu.Lock()
	for _, h := range use.few[:use.n] {
		wanted = q.holdHandle(h) || wanted
	}
	for _, h := range use.more {
		wanted = q.holdHandle(h) || wanted
	}
	if values != nil {
		wanted = q.holdValues(values) || wanted
	}
	if pins != nil {
		q.held.pins = append(q.held.pins, pins)
	}
	q.mu.Unlock()
	use.n, use.more = 0, nil
	if wanted {
		go q.settle()
	}
}

// holdHandle takes over one use of h. It returns whether somebody waits for its end.
func (q *queue) holdHandle(h *handle) (wanted bool) {
	if _, again := q.held.handles[h]; again {
		h.release()
		return false
	}
	if q.held.handles == nil {
		q.held.handles = make(map[*handle]struct{})
	}
	q.held.handles[h] = struct{}{}
	return h.enter(q)
}

// holdValues is holdHandle for the values of a matrix.
func (q *queue) holdValues(v *valueHolder) (wanted bool) {
	if _, again := q.held.values[v]; again {
		v.use.Release(1)
		return false
	}
	if q.held.values == nil {
		q.held.values = make(map[*valueHolder]struct{})
	}
	q.held.values[v] = struct{}{}
	return v.enter(q)
}

// holds returns whether h, where there is one, is in use by the queue's work, and nobody waits for the end of that. q.mu is held.
func (q *queue) holds(h *handle) bool {
	if h == nil {
		return true
	}
	_, held := q.held.handles[h]
	return held && h.open() == nil
}

// letGo releases h and the values, where the queue's work uses them, though it may not have ended: the caller sees to it
// that they are freed behind it.
func (q *queue) letGo(h *handle, values *valueHolder) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, held := q.held.handles[h]; held {
		delete(q.held.handles, h)
		h.leave(q)
		for other := range q.held.handles { // some of them stand on what h stood on
			other.enter(q)
		}
		h.release()
	}
	if _, held := q.held.values[values]; held {
		delete(q.held.values, values)
		values.leave(q)
		values.use.Release(1)
	}
}

// take empties the queue's hands. What it had must be released, or held again.
func (q *queue) take() held {
	q.mu.Lock()
	defer q.mu.Unlock()
	taken := q.held
	q.held = held{}
	for h := range taken.handles {
		h.leave(q)
	}
	for v := range taken.values {
		v.leave(q)
	}
	return taken
}

// holdAgain gives back what take took.
func (q *queue) holdAgain(taken held) {
	wanted := false
	q.mu.Lock()
	for h := range taken.handles {
		wanted = q.holdHandle(h) || wanted
	}
	for v := range taken.values {
		wanted = q.holdValues(v) || wanted
	}
	q.held.pins = append(q.held.pins, taken.pins...)
	q.mu.Unlock()
	if wanted {
		go q.settle()
	}
}

func (h held) release() {
	for _, pins := range h.pins {
		pins.Unpin()
	}
	for v := range h.values {
		v.use.Release(1)
	}
	for h := range h.handles {
		h.release()
	}
}

// wait waits for the work so far and releases what it used. Where ctx ends first, that stays in use.
func (q *queue) wait(ctx context.Context) error {
	taken := q.take()
	err := waitStream(ctx, q.lib, q.context, q.stream)
	if err != nil && ctx.Err() != nil {
		q.holdAgain(taken)
		return err
	}
	// With an error of the device its work is over, too.
	taken.release()
	return err
}

// settle is wait, for as long as it takes. An error is the device's, which the next call on it reports.
func (q *queue) settle() { _ = q.wait(context.Background()) }

// waitStream waits in the driver where ctx cannot end, and else polls.
func waitStream(ctx context.Context, lib *native.Library, context unsafe.Pointer, stream uintptr) error {
	if ctx.Done() == nil {
		return lib.StreamSynchronize(context, stream)
	}
	return poll(ctx, func() (bool, error) { return lib.StreamDone(context, stream) })
}
