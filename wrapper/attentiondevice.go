// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"errors"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// NewDeviceAttentionIn makes attention over the blocks of a layout that lies in device memory, in the order of stream s:
// the layout is copied, checked and listed behind what s holds already, and nothing waits for that. So blocks that the
// GPU has just chosen can be used without the host. Sizes are those of [NewAttention]; where layout.Bound is set,
// ColIdx has room for all the layouts to come. ctx is looked at before that.
//
// A fault of the index comes with [Attention.Check]. Of such a layout no query sees a key.
func NewDeviceAttentionIn[T Element, I Index](ctx context.Context, s *Stream, layout DeviceBSR[T, I], opts AttentionOptions) (*Attention, error) {
	const op = "create attention"
	if err := checkContext(op, ctx); err != nil {
		return nil, err
	}
	if err := s.made(op); err != nil {
		return nil, err
	}
	if opts.Workers == 0 {
		opts.Workers = s.engine.workers
	}
	raw, err := opts.raw(op, DTypeOf[T]())
	if err != nil {
		return nil, err
	}
	var use lease
	defer use.release()
	bsr, err := layout.asLayout(op, s, &use)
	if err != nil {
		return nil, err
	}
	raw.Layout = &bsr
	a, err := s.engine.attention(raw, DTypeOf[T](), opts)
	s.queue.hold(&use, nil, nil) // also after an error: some of it may have been enqueued
	return a, err
}

// UpdateAttention gives attention that was made by [NewDeviceAttentionIn] another layout, of the same sizes and blocks and
// with no more of them, in the order of s: calls that came before have to be before it in s. It waits for nothing, and
// can be captured into a graph. A fault of the index comes with [Attention.Check]. ctx is looked at before that.
func UpdateAttention[T Element, I Index](ctx context.Context, s *Stream, a *Attention, layout DeviceBSR[T, I]) error {
	const op = "update attention"
	if err := a.made(op); err != nil {
		return err
	}
	if err := checkContext(op, ctx); err != nil {
		return err
	}
	done, err := s.using(op, a.engine)
	if err != nil {
		return err
	}
	defer done()
	var use lease
	defer use.release()
	bsr, err := layout.asLayout(op, s, &use)
	if err != nil {
		return err
	}
	if err := use.add(a.handle); err != nil {
		return err
	}
	err = a.engine.lib.native.AttentionUpdate(a.handle.pointer, bsr)
	s.queue.hold(&use, nil, nil) // also after an error: some of it may have been enqueued
	return err
}

// asLayout is C's form of a layout that is read in the order of s. Its buffers, and s, are taken into use.
func (a *DeviceBSR[T, I]) asLayout(op string, s *Stream, use *lease) (native.BSR, error) {
	if a.Values != nil {
		return native.BSR{}, fault(op, ErrBadArgument, "the layout has Values: a pattern without them is needed")
	}
	raw, _, err := a.raw(op, s.engine, use)
	if err != nil {
		return raw, err
	}
	raw.Stream, raw.Async = s.queue.stream, true
	return raw, use.add(s.handle)
}

// Check returns the fault of the layout of attention that was made by [NewDeviceAttentionIn], which it waits for, or
// ctx.Err() where ctx ends first. Of other layouts it is known that there is none.
func (a *Attention) Check(ctx context.Context) error {
	const op = "check attention's layout"
	if err := a.made(op); err != nil {
		return err
	}
	if err := checkContext(op, ctx); err != nil {
		return err
	}
	if err := a.handle.acquire(); err != nil {
		return err
	}
	defer a.handle.release()
	lib := a.engine.lib.native
	if ctx.Done() == nil {
		return lib.AttentionStatus(a.handle.pointer, true)
	}
	return poll(ctx, func() (bool, error) {
		err := lib.AttentionStatus(a.handle.pointer, false)
		if errors.Is(err, ErrNotReady) {
			return false, nil
		}
		return true, err
	})
}
