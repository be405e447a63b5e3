// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sync/semaphore"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// Matrix is a BSR matrix in an engine: its index checked and copied, its values in the back-end's memory.
//
// The type of its elements is a value ([Matrix.DType]), not a type parameter, and so is that of a plan: a plan's C may
// be of another type than A and B and is chosen at run time, so that parameters could state but a part of what has to
// agree. Data have type parameters ([BSR], [Dense], [DeviceBuffer]); each call compares their types with the plan's.
type Matrix struct {
	handle         *handle
	engine         *Engine
	rows, cols     int
	blockM, blockK int
	blocks         int
	dtype          DType
	number         uint64 // of this process's matrices, in the order in which they were made
	inStream       bool   // its index is checked in a stream, and nobody waited for that
	values         *valueHolder
}

// matrixCount numbers the matrices of the process.
var matrixCount atomic.Uint64

// NewMatrix checks a's index and takes the matrix into the engine. ctx is looked at before that.
//
// On a GPU the values are copied to it. On the CPU they are not: a.Values stays in use, pinned, until [SetValues] gives
// others, or until the matrix and its plans are closed, and must not change while a product runs.
//
// Each fault of the index has its own status ([ErrColIdxRange] and so on) and names the place.
func NewMatrix[T Element, I Index](ctx context.Context, engine *Engine, a BSR[T, I]) (*Matrix, error) {
	const op = "create matrix"
	if err := checkContext(op, ctx); err != nil {
		return nil, err
	}
	if err := a.check(op); err != nil {
		return nil, err
	}
	m := &Matrix{rows: a.Rows, cols: a.Cols, blockM: a.BlockM, blockK: a.BlockK, blocks: len(a.ColIdx), dtype: DTypeOf[T]()}
	raw := a.raw()
	raw.Frozen = a.Frozen
	if err := m.create(op, engine, raw, &valueHolder{}, addressOf(a.Values)); err != nil {
		return nil, err
	}
	return m, nil
}

// NewDeviceMatrix takes a matrix that is in device memory already. The index is checked and copied within that memory,
// where plans are made of it; the values are referred to, and their buffer must not be used for anything else meanwhile
// but to be rewritten between products, unless they are Frozen. ctx is looked at before that.
func NewDeviceMatrix[T Element, I Index](ctx context.Context, engine *Engine, a DeviceBSR[T, I]) (*Matrix, error) {
	return newDeviceMatrix(ctx, engine, nil, a)
}

// NewDeviceMatrixIn is [NewDeviceMatrix] in the order of stream s: the index is checked and copied, and plans are made,
// behind what s holds already, and neither waits for that. So a pattern that the GPU has just made can be multiplied by
// without the host; [Matrix.Release] and [Plan.Release] give all of it back in the same way.
//
// Similar block rows share tiles, as they do in plans that are waited for, where a product is expected to take so long
// that finding them is worth it for a plan that is used twice.
//
// A fault of the index comes with [Matrix.Check]. Until then the matrix can be used like any other; a plan of an index
// that is faulty has no entries, and its products are act(beta C + bias).
func NewDeviceMatrixIn[T Element, I Index](ctx context.Context, s *Stream, a DeviceBSR[T, I]) (*Matrix, error) {
	if err := s.made("create matrix"); err != nil {
		return nil, err
	}
	return newDeviceMatrix(ctx, s.engine, s, a)
}

// newDeviceMatrix makes a matrix in the order of s, or waits for it where that is nil.
func newDeviceMatrix[T Element, I Index](ctx context.Context, engine *Engine, s *Stream, a DeviceBSR[T, I]) (*Matrix, error) {
	const op = "create matrix"
	if err := checkContext(op, ctx); err != nil {
		return nil, err
	}
	var use lease
	defer use.release()
	raw, values, err := a.raw(op, engine, &use)
	if err != nil {
		return nil, err
	}
	raw.Frozen = a.Frozen
	if s != nil {
		if err := use.add(s.handle); err != nil {
			return nil, err
		}
		raw.Stream, raw.Async = s.queue.stream, true
	}
	m := &Matrix{rows: a.Rows, cols: a.Cols, blockM: a.BlockM, blockK: a.BlockK, blocks: a.ColIdx.n, dtype: DTypeOf[T](), inStream: s != nil}
	err = m.create(op, engine, raw, values, nil)
	if s != nil { // also after an error: some of it may have been enqueued
		s.queue.hold(&use, nil, nil)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// raw is C's form of a, and what holds its values. Its buffers are taken into use.
func (a *DeviceBSR[T, I]) raw(op string, engine *Engine, use *lease) (raw native.BSR, values *valueHolder, err error) {
	if a.RowPtr == nil || a.ColIdx == nil {
		return raw, nil, fault(op, ErrNullPointer, "RowPtr or ColIdx is nil")
	}
	have := lengths{rowPtr: a.RowPtr.n, colIdx: a.ColIdx.n, noValues: a.Values == nil, noBlockIdx: a.BlockIdx == nil}
	raw = native.BSR{
		Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK, Blocks: a.ColIdx.n,
		DType: int32(DTypeOf[T]()), IndexType: indexTypeOf[I](), Memory: native.Device, Bound: a.Bound, Unsorted: a.Unsorted,
	}
	if err := takeBuffer(use, op, "RowPtr", engine, a.RowPtr); err != nil {
		return raw, nil, err
	}
	if err := takeBuffer(use, op, "ColIdx", engine, a.ColIdx); err != nil {
		return raw, nil, err
	}
	raw.RowPtr, raw.ColIdx = a.RowPtr.handle.pointer, a.ColIdx.handle.pointer
	if a.BlockIdx != nil {
		have.blockIdx = a.BlockIdx.n
		if err := takeBuffer(use, op, "BlockIdx", engine, a.BlockIdx); err != nil {
			return raw, nil, err
		}
		raw.BlockIdx = a.BlockIdx.handle.pointer
	}
	values = &valueHolder{}
	if a.Values != nil {
		have.values = a.Values.n
		if err := takeBuffer(use, op, "Values", engine, a.Values); err != nil {
			return raw, nil, err
		}
		raw.Values = a.Values.handle.pointer
		values.buffer, values.keep = a.Values.handle, a.Values
	}
	return raw, values, checkLengths(op, a.Rows, a.BlockM, a.BlockK, have)
}

// create makes the native matrix. On the CPU the host's values, if there are any, are pinned for its life.
func (m *Matrix) create(op string, engine *Engine, a native.BSR, values *valueHolder, host unsafe.Pointer) error {
	if err := engine.made(op); err != nil {
		return err
	}
	if err := engine.handle.acquire(); err != nil {
		return err
	}
	defer engine.handle.release()
	values.use = semaphore.NewWeighted(changeValues)
	if engine.info.Backend == CPU && host != nil {
		values.pinned.Pin(host)
	}
	lib := engine.lib.native
	pointer, err := lib.MatrixCreate(engine.handle.pointer, a)
	if err != nil {
		values.pinned.Unpin()
		return err
	}
	m.engine, m.values, m.number = engine, values, matrixCount.Add(1)
	m.handle = newHandle("matrix", pointer, engine.handle, func() {
		lib.MatrixDestroy(pointer)
		values.pinned.Unpin()
	})
	runtime.AddCleanup(m, (*handle).close, m.handle)
	return nil
}

// Check returns the fault of the index of a matrix that was made by [NewDeviceMatrixIn], which it waits for, or ctx.Err()
// where ctx ends first. Of other matrices it is known that there is none.
func (m *Matrix) Check(ctx context.Context) error {
	const op = "check matrix"
	if err := m.made(op); err != nil {
		return err
	}
	if err := checkContext(op, ctx); err != nil {
		return err
	}
	if err := m.handle.acquire(); err != nil {
		return err
	}
	defer m.handle.release()
	lib := m.engine.lib.native
	if ctx.Done() == nil {
		return lib.MatrixStatus(m.handle.pointer, true)
	}
	return poll(ctx, func() (bool, error) {
		err := lib.MatrixStatus(m.handle.pointer, false)
		if errors.Is(err, ErrNotReady) {
			return false, nil
		}
		return true, err
	})
}

// Release is [Matrix.Close] for a matrix whose plans were released, or used in s alone and closed: it waits for no work
// of s, and gives the memory back behind it, in the order of s. A program that makes a matrix and a plan for a new pattern
// with each step releases both in the stream of the step.
func (m *Matrix) Release(s *Stream) error {
	const op = "release matrix"
	if err := m.made(op); err != nil {
		return err
	}
	done, err := s.using(op, m.engine)
	if err != nil {
		return err
	}
	defer done()
	lib, pointer := m.engine.lib.native, m.handle.pointer
	m.handle.closeIn(s.queue, m.values, func() {
		lib.MatrixRelease(pointer, s.queue.stream)
		m.values.pinned.Unpin()
	})
	return nil
}

// Rows is M.
func (m *Matrix) Rows() int { return m.rows }

// Cols is K.
func (m *Matrix) Cols() int { return m.cols }

// Blocks is the number of blocks stored.
func (m *Matrix) Blocks() int { return m.blocks }

// DType is the type of the elements of A, and so of B where a plan does not say otherwise.
func (m *Matrix) DType() DType { return m.dtype }

// SetValues gives the blocks of m new values, (blocks, BlockM, BlockK), for the same pattern; plans stay valid. It waits
// for the products in progress, those in streams among them, or for the end of ctx: then the values are as they were.
// As in [NewMatrix], the CPU back-end goes on using the slice.
func SetValues[T Element](ctx context.Context, m *Matrix, values []T) error {
	const op = "set values"
	done, err := changing[T](op, ctx, m, len(values), nil)
	if err != nil {
		return err
	}
	defer done()
	var pinned runtime.Pinner
	if m.engine.info.Backend == CPU && len(values) > 0 {
		pinned.Pin(unsafe.SliceData(values))
	}
	err = m.engine.inStream(func(stream uintptr) error {
		return m.engine.lib.native.MatrixSetValues(m.handle.pointer, addressOf(values), native.Host, stream)
	})
	if err != nil {
		pinned.Unpin()
		return err
	}
	m.values.replace(pinned, nil, nil)
	return nil
}

// SetDeviceValues is [SetValues] with values that are in device memory already. They are referred to, not copied; the
// matrix keeps the buffer, which must be of its engine. Where the matrix is Frozen, plans pack them.
func SetDeviceValues[T Element](ctx context.Context, m *Matrix, values *DeviceBuffer[T]) error {
	const op = "set values"
	if values == nil {
		return fault(op, ErrNullPointer, "Values is nil")
	}
	take := func(use *lease) error { return takeBuffer(use, op, "Values", m.engine, values) }
	done, err := changing[T](op, ctx, m, values.n, take)
	if err != nil {
		return err
	}
	defer done()
	err = m.engine.inStream(func(stream uintptr) error {
		return m.engine.lib.native.MatrixSetValues(m.handle.pointer, values.handle.pointer, native.Device, stream)
	})
	if err != nil {
		return err
	}
	m.values.replace(runtime.Pinner{}, values.handle, values)
	return nil
}

// changing checks that m takes so many values of T and has its values to itself until done is called. take may take more
// into use.
func changing[T Element](op string, ctx context.Context, m *Matrix, n int, take func(*lease) error) (done func(), err error) {
	if err := m.made(op); err != nil {
		return nil, err
	}
	if err := checkContext(op, ctx); err != nil {
		return nil, err
	}
	if got := DTypeOf[T](); got != m.dtype {
		return nil, fault(op, ErrBadArgument, "Values is of %v and the matrix of %v", got, m.dtype)
	}
	if err := checkValues(op, m.blocks, m.blockM, m.blockK, n); err != nil {
		return nil, err
	}
	use := &lease{}
	if err := use.add(m.handle); err != nil {
		return nil, err
	}
	if take != nil {
		if err := take(use); err != nil {
			use.release()
			return nil, err
		}
	}
	if err := m.values.beginChange(ctx); err != nil {
		use.release()
		return nil, err
	}
	return func() {
		m.values.endChange()
		use.release()
	}, nil
}

// takeBuffer takes into use a buffer that must be of the engine. name is the argument's.
func takeBuffer[T Element | Index | byte](use *lease, op, name string, engine *Engine, b *DeviceBuffer[T]) error {
	if err := b.made(op); err != nil {
		return err
	}
	if b.engine != engine {
		return fault(op, ErrBadArgument, "%s is a buffer of another engine than the matrix", name)
	}
	return use.add(b.handle)
}

// Close waits for the calls in progress and for the streams' work. Plans of the matrix can then only be closed; with the
// last of them the matrix is freed. Closing again does nothing.
func (m *Matrix) Close() error {
	if m.made("close") == nil {
		m.handle.close()
	}
	return nil
}

// made refuses a nil matrix and the zero value.
func (m *Matrix) made(op string) error {
	if m == nil || m.handle == nil {
		return fault(op, ErrNullPointer, "there is no matrix: make one by NewMatrix or NewDeviceMatrix")
	}
	return nil
}
