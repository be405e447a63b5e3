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
	ctx    *Engine
}

// NewStream makes a stream.
func (c *Engine) NewStream() (*Stream, error) {
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

// waitStream waits in the driver where ctx cannot end, and else polls.
func (c *Engine) waitStream(ctx context.Context, stream unsafe.Pointer) error {
	if ctx.Done() == nil {
		return c.lib.streamSynchronize(c.handle.pointer, stream)
	}
	return poll(ctx, func() (bool, error) { return c.lib.streamDone(c.handle.pointer, stream) })
}

// poll asks until the answer is yes, an error comes, or ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	for begun := time.Now(); ; {
		if yes, err := done(); yes || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		pause := pollPause(time.Since(begun))
		if pause == 0 {
			runtime.Gosched()
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

const (
	spinFor   = time.Millisecond
	lastPause = time.Millisecond
)

// pollPause is how long to sleep before asking again. Most products are done before the shortest sleep would be over,
// so at first there is none; then what was waited already is prolonged by an eighth at most.
func pollPause(waited time.Duration) time.Duration {
	if waited < spinFor {
		return 0
	}
	return min(waited/8, lastPause)
}
