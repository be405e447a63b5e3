// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// What the tests see of the package's inside. They are in a package of their own, since the packages check, timing and
// tuning, which they use, import this one.

const (
	LibraryName = libraryName
	LibraryEnv  = libraryEnv
)

var (
	StatusNames  = statusNames
	BuildFolders = buildFolders
	SearchList   = searchList
)

func SizeOf[T any]() int { return sizeOf[T]() }

func (l *Library) Native() *native.Library    { return l.native }
func (l *Library) StatusName(s Status) string { return l.native.StatusName(int32(s)) }

// Native is the native engine.
func (e *Engine) Native() unsafe.Pointer { return e.handle.pointer }

// Children counts what was made in the engine and is not freed.
func (e *Engine) Children() int {
	e.handle.mu.Lock()
	defer e.handle.mu.Unlock()
	return e.handle.refs - 1
}

// Closed returns a function that says whether the buffer is closed, without keeping it from being collected.
func (b *DeviceBuffer[T]) Closed() func() bool {
	h := b.handle
	return func() bool { return h.open() != nil }
}

// HoldValues has the matrix hold the buffer as it holds values in device memory.
func HoldValues(m *Matrix, b *DeviceBuffer[float32]) { m.values.replace(runtime.Pinner{}, b.handle, b) }

func (m *Matrix) BeginChange(ctx context.Context) error { return m.values.beginChange(ctx) }
func (m *Matrix) EndChange()                            { m.values.endChange() }

// Defer has a stream of the CPU behave like one of a GPU: what its work uses stays in use until it is waited for.
func (s *Stream) Defer() { s.queue.onGPU = true }

// Held counts what the stream's work uses.
func (s *Stream) Held() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.held.handles) + len(s.queue.held.values)
}

// Native is the native plan.
func (p *Plan) Native() unsafe.Pointer { return p.handle.pointer }
