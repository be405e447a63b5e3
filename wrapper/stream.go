// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"
	"time"
	"unsafe"
)

// Stream is a queue of work on a context's device, a cudaStream_t; on the CPU, where a product is finished when the
// call returns, it is nothing.
type Stream struct {
	handle *handle
	ctx    *Context
}

// NewStream makes a stream.
func (c *Context) NewStream() (*Stream, error) {
	if err := c.handle.acquire(); err != nil {
		return nil, err
	}
	defer c.handle.release()
	lib, context := c.lib, c.handle.pointer
	pointer, err := lib.streamCreate(context)
	if err != nil {
		return nil, err
	}
	h := newHandle("stream", pointer, c.handle, func() { _ = lib.streamDestroy(context, pointer) })
	s := &Stream{handle: h, ctx: c}
	runtime.AddCleanup(s, (*handle).close, h)
	return s, nil
}

// Wait returns when all work in the stream is done, or, with ctx.Err(), when ctx is.
func (s *Stream) Wait(ctx context.Context) error {
	if err := s.handle.acquire(); err != nil {
		return err
	}
	defer s.handle.release()
	return s.ctx.waitStream(ctx, s.handle.pointer)
}

// Close waits for the calls in progress and frees the stream. Closing again does nothing.
func (s *Stream) Close() error {
	s.handle.close()
	return nil
}

const (
	firstPoll = 10 * time.Microsecond
	lastPoll  = time.Millisecond
)

// waitStream waits in the driver where ctx cannot end, and else polls, less and less often.
func (c *Context) waitStream(ctx context.Context, stream unsafe.Pointer) error {
	if ctx.Done() == nil {
		return c.lib.streamSynchronize(c.handle.pointer, stream)
	}
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		if done, err := c.lib.streamDone(c.handle.pointer, stream); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
