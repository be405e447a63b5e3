// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"
	"time"
)

// Stream is a queue of work on an engine's device, a cudaStream_t; on the CPU, where work is done when the call that
// enqueues it returns, it is nothing.
//
// What the work of a stream uses (plans with the values of their matrices, buffers, host memory of copies) stays in use
// until the stream has been waited for: by [Stream.Wait], or by whoever needs it back, such as [SetValues] or a Close.
// So nothing is freed or changed under a kernel that reads it. Programs that enqueue without an end call Wait now and
// then, lest host memory of copies is held for good.
type Stream struct {
	handle *handle
	engine *Engine
	queue  *queue
}

// NewStream makes a stream. It does not wait for the default stream, nor the default stream for it.
func (e *Engine) NewStream() (*Stream, error) {
	const op = "create stream"
	if err := e.made(op); err != nil {
		return nil, err
	}
	if err := e.handle.acquire(); err != nil {
		return nil, err
	}
	defer e.handle.release()
	lib, context := e.lib.native, e.handle.pointer
	native, err := lib.StreamCreate(context)
	if err != nil {
		return nil, err
	}
	return e.newStream(native, func() { _ = lib.StreamDestroy(context, native) }), nil
}

// StreamAt is a stream that another library made: cudaStream is a cudaStream_t of the engine's device and its primary
// context (0, 1 and 2 are CUDA's default streams). It must exist until Close, which waits for its work and destroys
// nothing.
//
// Where the stream is being captured into a CUDA graph, what is enqueued becomes a part of the graph. What the graph
// uses must then stay open, and its values where they are, for as long as the graph runs; nothing of this package may
// wait for the stream before the capture is over. The graph does not keep buffers, matrices and plans open: one that the
// program does not refer to any more is closed by the garbage collector, and replays then read and write memory that is
// free. So call [runtime.KeepAlive] with all of them behind the last replay, or keep them where they are reachable
// until then.
func (e *Engine) StreamAt(cudaStream uintptr) (*Stream, error) {
	const op = "take over stream"
	if err := e.made(op); err != nil {
		return nil, err
	}
	if err := e.handle.acquire(); err != nil {
		return nil, err
	}
	defer e.handle.release()
	return e.newStream(cudaStream, func() {}), nil
}

// newStream makes a stream of a native one. The engine must be in use by the caller.
func (e *Engine) newStream(native uintptr, free func()) *Stream {
	h := newHandle("stream", nil, e.handle, free)
	q := &queue{lib: e.lib.native, context: e.handle.pointer, stream: native, onGPU: e.info.Backend == CUDA}
	s := &Stream{handle: h, engine: e, queue: q}
	runtime.AddCleanup(s, (*handle).close, h)
	return s
}

// Handle is the native stream, a cudaStream_t, for other libraries. It is valid until Close.
func (s *Stream) Handle() uintptr { return s.queue.stream }

// Wait returns when all work that was enqueued before is done, or, with ctx.Err(), when ctx ends.
func (s *Stream) Wait(ctx context.Context) error {
	const op = "wait for stream"
	if err := s.made(op); err != nil {
		return err
	}
	if err := checkContext(op, ctx); err != nil {
		return err
	}
	if err := s.handle.acquire(); err != nil {
		return err
	}
	defer s.handle.release()
	return s.queue.wait(ctx)
}

// Close waits for the calls in progress and for the stream's work, and frees the stream. Closing again does nothing.
func (s *Stream) Close() error {
	if s.made("close") == nil {
		s.handle.close()
	}
	return nil
}

// using takes a stream of the engine into use until done is called.
func (s *Stream) using(op string, engine *Engine) (done func(), err error) {
	if err := s.made(op); err != nil {
		return nil, err
	}
	if s.engine != engine {
		return nil, fault(op, ErrBadArgument, "the stream is of another engine")
	}
	if err := s.handle.acquire(); err != nil {
		return nil, err
	}
	return s.handle.release, nil
}

// made refuses a nil stream and the zero value.
func (s *Stream) made(op string) error {
	if s == nil || s.handle == nil {
		return fault(op, ErrNullPointer, "there is no stream: make one by Engine.NewStream or Engine.StreamAt")
	}
	return nil
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
