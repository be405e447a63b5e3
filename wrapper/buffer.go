// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"math"
	"runtime"
	"unsafe"
)

// DeviceBuffer is memory of a context's back-end: device memory on a GPU, host memory aligned to 64 bytes on the CPU.
type DeviceBuffer[T Element | Index] struct {
	handle *handle
	ctx    *Engine
	n      int
}

// NewBuffer makes a buffer of n elements, which hold anything.
func NewBuffer[T Element | Index](ctx *Engine, n int) (*DeviceBuffer[T], error) {
	size := sizeOf[T]()
	if n < 0 || n > math.MaxInt/size {
		return nil, fault("create buffer", ErrBadSize, "%d elements of %d bytes", n, size)
	}
	h, err := ctx.newMemory(n * size)
	if err != nil {
		return nil, err
	}
	b := &DeviceBuffer[T]{handle: h, ctx: ctx, n: n}
	runtime.AddCleanup(b, (*handle).close, h)
	return b, nil
}

// newMemory makes a buffer without a type, which must be closed.
func (c *Engine) newMemory(bytes int) (*handle, error) {
	if err := c.handle.acquire(); err != nil {
		return nil, err
	}
	defer c.handle.release()
	lib, context := c.lib, c.handle.pointer
	pointer, err := lib.bufferCreate(context, bytes)
	if err != nil {
		return nil, err
	}
	// A failure to free has nobody to be told, and nothing to be done about.
	return newHandle("buffer", pointer, c.handle, func() { _ = lib.bufferDestroy(context, pointer) }), nil
}

// Len is the number of elements.
func (b *DeviceBuffer[T]) Len() int { return b.n }

// Write copies src to the front of the buffer, and returns when that is done.
func (b *DeviceBuffer[T]) Write(src []T) error {
	const op = "write buffer"
	if len(src) > b.n {
		return fault(op, ErrBadSize, "%d elements into a buffer of %d", len(src), b.n)
	}
	return b.transfer(func(stream unsafe.Pointer) error {
		return b.ctx.lib.bufferWrite(b.ctx.handle.pointer, b.handle.pointer, addressOf(src), len(src)*sizeOf[T](), stream)
	})
}

// Read copies the front of the buffer to all of dst, and returns when that is done.
func (b *DeviceBuffer[T]) Read(dst []T) error {
	const op = "read buffer"
	if len(dst) > b.n {
		return fault(op, ErrBadSize, "%d elements out of a buffer of %d", len(dst), b.n)
	}
	return b.transfer(func(stream unsafe.Pointer) error {
		return b.ctx.lib.bufferRead(b.ctx.handle.pointer, addressOf(dst), b.handle.pointer, len(dst)*sizeOf[T](), stream)
	})
}

// Fill sets every byte of the buffer: 0 makes zeros, 0xff makes NaNs.
func (b *DeviceBuffer[T]) Fill(value byte) error {
	return b.transfer(func(stream unsafe.Pointer) error {
		return b.ctx.lib.bufferFill(b.ctx.handle.pointer, b.handle.pointer, value, b.n*sizeOf[T](), stream)
	})
}

// Close waits for the calls in progress and frees the memory. Closing again does nothing.
func (b *DeviceBuffer[T]) Close() error {
	b.handle.close()
	return nil
}

// transfer enqueues a copy and waits for it.
func (b *DeviceBuffer[T]) transfer(enqueue func(stream unsafe.Pointer) error) error {
	if err := b.handle.acquire(); err != nil {
		return err
	}
	defer b.handle.release()
	return b.ctx.inStream(enqueue)
}

// inStream enqueues work in a stream of its own and waits for it. The context must be in use.
func (c *Engine) inStream(enqueue func(stream unsafe.Pointer) error) error {
	stream, err := c.pool.get()
	if err != nil {
		return err
	}
	defer c.pool.put(stream)
	err = enqueue(stream)
	// Waited for even if it failed: some of it may have been enqueued.
	if waitErr := c.lib.streamSynchronize(c.handle.pointer, stream); err == nil {
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
