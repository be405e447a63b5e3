// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"math"
	"runtime"
	"unsafe"
)

// DeviceBuffer is memory of an engine's back-end: device memory on a GPU, host memory aligned to 64 bytes on the CPU.
// [NewBuffer] allocates it; [BufferAt] refers to memory of another library.
type DeviceBuffer[T Element | Index | byte] struct {
	handle *handle
	engine *Engine
	n      int
}

// NewBuffer makes a buffer of n elements, whose values are undefined. Where a CUDA graph uses it, it must be reachable
// until the last replay has ended, see [Engine.StreamAt].
func NewBuffer[T Element | Index | byte](engine *Engine, n int) (*DeviceBuffer[T], error) {
	const op = "create buffer"
	if err := engine.made(op); err != nil {
		return nil, err
	}
	size := sizeOf[T]()
	if n < 0 || n > math.MaxInt/size {
		return nil, fault(op, ErrBadSize, "%d elements of %d bytes", n, size)
	}
	h, err := engine.newMemory(n * size)
	if err != nil {
		return nil, err
	}
	b := &DeviceBuffer[T]{handle: h, engine: engine, n: n}
	runtime.AddCleanup(b, (*handle).close, h)
	return b, nil
}

// BufferAt is a buffer over n elements of memory that another library allocated: on a GPU device memory that the engine's
// device can reach, on the CPU memory of C. It is not checked. The memory must exist until Close, which waits for the
// work on it, in this package's calls and streams, and frees nothing.
func BufferAt[T Element | Index | byte](engine *Engine, address unsafe.Pointer, n int) (*DeviceBuffer[T], error) {
	const op = "take over buffer"
	if err := engine.made(op); err != nil {
		return nil, err
	}
	size := sizeOf[T]()
	switch {
	case n < 0 || n > math.MaxInt/size:
		return nil, fault(op, ErrBadSize, "%d elements of %d bytes", n, size)
	case address == nil && n > 0:
		return nil, fault(op, ErrNullPointer, "the address of %d elements is nil", n)
	case uintptr(address)%uintptr(size) != 0:
		return nil, fault(op, ErrMisaligned, "the address is not aligned to the %d bytes of an element", size)
	}
	if err := engine.handle.acquire(); err != nil {
		return nil, err
	}
	defer engine.handle.release()
	b := &DeviceBuffer[T]{handle: newHandle("buffer", address, engine.handle, func() {}), engine: engine, n: n}
	runtime.AddCleanup(b, (*handle).close, b.handle)
	return b, nil
}

// newMemory makes a buffer without a type, which must be closed.
func (e *Engine) newMemory(bytes int) (*handle, error) {
	if err := e.handle.acquire(); err != nil {
		return nil, err
	}
	defer e.handle.release()
	lib, context := e.lib.native, e.handle.pointer
	pointer, err := lib.BufferCreate(context, bytes)
	if err != nil {
		return nil, err
	}
	// Nobody could be told of a failure to free, nor do anything about it.
	return newHandle("buffer", pointer, e.handle, func() { _ = lib.BufferDestroy(context, pointer) }), nil
}

// Len is the number of elements.
func (b *DeviceBuffer[T]) Len() int { return b.n }

// Pointer is the address of the first element, in device memory on a GPU and in host memory on the CPU, for other
// libraries. It is valid until Close, and as long as the buffer is reachable: runtime.KeepAlive(b) after the last use.
// Streams order the work of other libraries and of this package on it.
func (b *DeviceBuffer[T]) Pointer() unsafe.Pointer { return b.handle.pointer }

// Write copies src to the front of the buffer and returns when that is done; or when ctx ends: then src is read on.
func (b *DeviceBuffer[T]) Write(ctx context.Context, src []T) error {
	return b.transfer("write buffer", ctx, src, b.write)
}

// Read copies the front of the buffer to all of dst and returns when that is done; or when ctx ends: then dst may still
// be written.
func (b *DeviceBuffer[T]) Read(ctx context.Context, dst []T) error {
	return b.transfer("read buffer", ctx, dst, b.read)
}

// Fill sets every byte of the buffer: 0 makes zeros, 0xff makes NaNs. It returns when that is done, or when ctx ends.
func (b *DeviceBuffer[T]) Fill(ctx context.Context, value byte) error {
	return b.transfer("fill buffer", ctx, nil, func(_ []T, stream uintptr) error {
		return b.engine.lib.native.BufferFill(b.engine.handle.pointer, b.handle.pointer, value, b.n*sizeOf[T](), stream)
	})
}

// WriteAsync enqueues a copy of src to the front of the buffer in s. src must not be changed until the stream has come
// past the copy (see [Stream]); until then it is pinned. The copy is asynchronous where the memory of src is page-locked;
// else the call may take as long as the copy and what is in the stream before it. On the CPU it is done on return.
func (b *DeviceBuffer[T]) WriteAsync(s *Stream, src []T) error {
	return b.enqueue("write buffer", s, src, b.write)
}

// ReadAsync enqueues a copy of the front of the buffer to all of dst in s. dst must be left alone until the stream has
// come past the copy (see [Stream]); until then it is pinned. As to page-locked memory see [DeviceBuffer.WriteAsync].
func (b *DeviceBuffer[T]) ReadAsync(s *Stream, dst []T) error {
	return b.enqueue("read buffer", s, dst, b.read)
}

// Close waits for the calls in progress and for the streams' work, and frees the memory. Closing again does nothing.
func (b *DeviceBuffer[T]) Close() error {
	if b.made("close") == nil {
		b.handle.close()
	}
	return nil
}

func (b *DeviceBuffer[T]) write(src []T, stream uintptr) error {
	return b.engine.lib.native.BufferWrite(b.engine.handle.pointer, b.handle.pointer, addressOf(src), len(src)*sizeOf[T](), stream)
}

func (b *DeviceBuffer[T]) read(dst []T, stream uintptr) error {
	return b.engine.lib.native.BufferRead(b.engine.handle.pointer, addressOf(dst), b.handle.pointer, len(dst)*sizeOf[T](), stream)
}

// made refuses a nil buffer and the zero value.
func (b *DeviceBuffer[T]) made(op string) error {
	if b == nil || b.handle == nil {
		return fault(op, ErrNullPointer, "there is no buffer: make one by NewBuffer or BufferAt")
	}
	return nil
}

// checkCopy makes sure that a copy of so many elements fits.
func (b *DeviceBuffer[T]) checkCopy(op string, elements int) error {
	if err := b.made(op); err != nil {
		return err
	}
	if elements > b.n {
		return fault(op, ErrBadSize, "%d elements are copied to or from a buffer of %d", elements, b.n)
	}
	return nil
}

// transfer copies in a stream of its own and waits for it, or for the end of ctx.
func (b *DeviceBuffer[T]) transfer(op string, ctx context.Context, host []T, copy func([]T, uintptr) error) error {
	if err := b.checkCopy(op, len(host)); err != nil {
		return err
	}
	if err := checkContext(op, ctx); err != nil {
		return err
	}
	if err := b.handle.acquire(); err != nil {
		return err
	}
	e := b.engine
	stream, err := e.pool.get()
	if err != nil {
		b.handle.release()
		return err
	}
	pins := &runtime.Pinner{}
	if len(host) > 0 {
		pins.Pin(unsafe.SliceData(host))
	}
	end := func() {
		pins.Unpin()
		e.pool.put(stream)
		b.handle.release()
	}
	err = copy(host, stream)
	waitErr := waitStream(ctx, e.lib.native, e.handle.pointer, stream)
	if waitErr != nil && ctx.Err() != nil {
		go func() { // the device is still at it
			_ = e.lib.native.StreamSynchronize(e.handle.pointer, stream)
			end()
		}()
		return waitErr
	}
	end()
	if err == nil {
		err = waitErr
	}
	return err
}

// enqueue copies in s, which uses the buffer and the host memory from then on.
func (b *DeviceBuffer[T]) enqueue(op string, s *Stream, host []T, copy func([]T, uintptr) error) error {
	if err := b.checkCopy(op, len(host)); err != nil {
		return err
	}
	if err := s.made(op); err != nil {
		return err
	}
	if s.engine != b.engine {
		return fault(op, ErrBadArgument, "the stream is of another engine than the buffer")
	}
	use := &lease{}
	if err := use.add(b.handle); err != nil {
		return err
	}
	if err := use.add(s.handle); err != nil {
		use.release()
		return err
	}
	pins := &runtime.Pinner{}
	if len(host) > 0 {
		pins.Pin(unsafe.SliceData(host))
	}
	err := copy(host, s.queue.stream)
	s.queue.hold(use, nil, pins) // also after an error: some of it may have been enqueued
	return err
}

// inStream enqueues work in a stream of its own and waits for it. The engine must be in use.
func (e *Engine) inStream(enqueue func(stream uintptr) error) error {
	stream, err := e.pool.get()
	if err != nil {
		return err
	}
	defer e.pool.put(stream)
	err = enqueue(stream)
	// Waited for even if it failed: some of it may have been enqueued.
	if waitErr := e.lib.native.StreamSynchronize(e.handle.pointer, stream); err == nil {
		err = waitErr
	}
	return err
}

func sizeOf[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// addressOf is the address of the first element; nil where there is none.
func addressOf[T any](s []T) unsafe.Pointer {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(s))
}
