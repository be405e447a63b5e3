// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sync/semaphore"
)

// Matrix is a BSR matrix in a context: its index checked and copied, its values in the back-end's memory.
type Matrix[T Element] struct {
	handle         *handle
	ctx            *Engine
	rows, cols     int
	blockM, blockK int
	blocks         int
	number         uint64 // of this process's matrices, in the order in which they were made
	values         *valueHolder[T]
}

// matrixCount numbers the matrices of the process.
var matrixCount atomic.Uint64

// valueHolder keeps alive the values that the native matrix refers to, and keeps them from changing under a product.
type valueHolder[T Element] struct {
	use    *semaphore.Weighted // 1 for a product, changeValues to change them: a lock that can be given up on
	pinned runtime.Pinner      // on the CPU: the caller's slice
	buffer *DeviceBuffer[T]    // in device memory, the caller's: held as long as it is referred to, or it would be freed
}

// changeValues is above any number of products at a time.
const changeValues = 1 << 32

// NewMatrix checks a's index and takes the matrix into ctx.
//
// On a GPU the values are copied to it. On the CPU they are not: a.Values stays in use, pinned, until SetValues gives
// others, or until the matrix and its plans are closed, and must not change while a product runs.
//
// Each fault of the index has its own status ([ErrColIdxRange] and so on) and names the place.
func NewMatrix[T Element, I Index](ctx *Engine, a BSR[T, I]) (*Matrix[T], error) {
	if err := a.check("create matrix"); err != nil {
		return nil, err
	}
	m := &Matrix[T]{rows: a.Rows, cols: a.Cols, blockM: a.BlockM, blockK: a.BlockK, blocks: len(a.ColIdx)}
	if err := m.create(ctx, a.raw(), a.Values, nil); err != nil {
		return nil, err
	}
	return m, nil
}

// NewDeviceMatrix takes a matrix that is in device memory already. The index is checked and copied within that memory,
// where plans are made of it; the values are referred to, and their buffer cannot be used for anything else meanwhile
// but to be rewritten between products.
func NewDeviceMatrix[T Element, I Index](ctx *Engine, a DeviceBSR[T, I]) (*Matrix[T], error) {
	const op = "create matrix"
	if a.RowPtr == nil || a.ColIdx == nil {
		return nil, fault(op, ErrNullPointer, "RowPtr or ColIdx is nil")
	}
	have := lengths{rowPtr: a.RowPtr.n, colIdx: a.ColIdx.n, noValues: a.Values == nil}
	raw := rawBSR{
		rows: a.Rows, cols: a.Cols, blockM: a.BlockM, blockK: a.BlockK, nnzb: a.ColIdx.n,
		dtype: DTypeOf[T](), indexType: indexTypeOf[I](), memory: memoryDevice, validateDevice: 1,
		rowPtr: a.RowPtr.handle.pointer, colIdx: a.ColIdx.handle.pointer,
	}
	var use lease
	defer use.release()
	if err := takeBuffer(&use, op, "RowPtr", ctx, a.RowPtr); err != nil {
		return nil, err
	}
	if err := takeBuffer(&use, op, "ColIdx", ctx, a.ColIdx); err != nil {
		return nil, err
	}
	if a.Values != nil {
		have.values = a.Values.n
		raw.values = a.Values.handle.pointer
		if err := takeBuffer(&use, op, "Values", ctx, a.Values); err != nil {
			return nil, err
		}
	}
	if err := checkLengths(op, a.Rows, a.BlockM, a.BlockK, have); err != nil {
		return nil, err
	}
	m := &Matrix[T]{rows: a.Rows, cols: a.Cols, blockM: a.BlockM, blockK: a.BlockK, blocks: a.ColIdx.n}
	if err := m.create(ctx, raw, nil, a.Values); err != nil {
		return nil, err
	}
	return m, nil
}

// create makes the native matrix. Its values are a host slice, a buffer or, where both are nil, not there yet.
func (m *Matrix[T]) create(ctx *Engine, a rawBSR, host []T, buffer *DeviceBuffer[T]) error {
	if err := ctx.handle.acquire(); err != nil {
		return err
	}
	defer ctx.handle.release()
	values := &valueHolder[T]{use: semaphore.NewWeighted(changeValues), buffer: buffer}
	if ctx.info.Backend == CPU && len(host) > 0 {
		values.pinned.Pin(unsafe.SliceData(host))
	}
	lib := ctx.lib
	pointer, err := lib.matrixCreate(ctx.handle.pointer, a)
	if err != nil {
		values.pinned.Unpin()
		return err
	}
	m.ctx, m.values, m.number = ctx, values, matrixCount.Add(1)
	m.handle = newHandle("matrix", pointer, ctx.handle, func() {
		lib.matrixDestroy(pointer)
		values.pinned.Unpin()
	})
	runtime.AddCleanup(m, (*handle).close, m.handle)
	return nil
}

// Rows is M.
func (m *Matrix[T]) Rows() int { return m.rows }

// Cols is K.
func (m *Matrix[T]) Cols() int { return m.cols }

// Blocks is the number of blocks stored.
func (m *Matrix[T]) Blocks() int { return m.blocks }

// SetValues gives the blocks new values, (blocks, BlockM, BlockK), for the same pattern; plans stay valid. It waits for
// the products in progress, or for the end of ctx: then the values are as they were. As in [NewMatrix], the CPU back-end
// goes on using the slice.
func (m *Matrix[T]) SetValues(ctx context.Context, values []T) error {
	const op = "set values"
	if err := checkValues(op, m.blocks, m.blockM, m.blockK, len(values)); err != nil {
		return err
	}
	if err := m.handle.acquire(); err != nil {
		return err
	}
	defer m.handle.release()
	if err := m.values.beginChange(ctx); err != nil {
		return err
	}
	defer m.values.endChange()

	var pinned runtime.Pinner
	if m.ctx.info.Backend == CPU && len(values) > 0 {
		pinned.Pin(unsafe.SliceData(values))
	}
	err := m.ctx.inStream(func(stream unsafe.Pointer) error {
		return m.ctx.lib.matrixSetValues(m.handle.pointer, addressOf(values), memoryHost, stream)
	})
	if err != nil {
		pinned.Unpin()
		return err
	}
	m.values.replace(pinned, nil)
	return nil
}

// SetDeviceValues is SetValues with values that are in device memory already. They are referred to, not copied; the
// matrix keeps the buffer, which must be of its context.
func (m *Matrix[T]) SetDeviceValues(ctx context.Context, values *DeviceBuffer[T]) error {
	const op = "set values"
	if values == nil {
		return fault(op, ErrNullPointer, "Values is nil")
	}
	if err := checkValues(op, m.blocks, m.blockM, m.blockK, values.n); err != nil {
		return err
	}
	var use lease
	defer use.release()
	if err := use.add(m.handle); err != nil {
		return err
	}
	if err := takeBuffer(&use, op, "Values", m.ctx, values); err != nil {
		return err
	}
	if err := m.values.beginChange(ctx); err != nil {
		return err
	}
	defer m.values.endChange()
	err := m.ctx.inStream(func(stream unsafe.Pointer) error {
		return m.ctx.lib.matrixSetValues(m.handle.pointer, values.handle.pointer, memoryDevice, stream)
	})
	if err != nil {
		return err
	}
	m.values.replace(runtime.Pinner{}, values)
	return nil
}

// beginChange waits for the products in progress and keeps others from beginning, until endChange; or it gives up where
// ctx ends.
func (v *valueHolder[T]) beginChange(ctx context.Context) error {
	return v.use.Acquire(ctx, changeValues)
}

func (v *valueHolder[T]) endChange() { v.use.Release(changeValues) }

// useValues keeps the values of the plans' matrices from changing until release is called, or gives up where ctx ends.
//
// Each matrix is taken once, however many of the plans are of it: a second time would wait behind a writer that waits
// for the first. And all are taken in the order of their numbers: two callers that took them in different orders could
// each wait, behind a writer, for what the other has.
func useValues[T Element](ctx context.Context, plans ...*Plan[T]) (release func(), err error) {
	var matrices []*Matrix[T]
	for _, p := range plans {
		matrices = append(matrices, p.matrix)
	}
	slices.SortFunc(matrices, func(a, b *Matrix[T]) int { return cmp.Compare(a.number, b.number) })
	matrices = slices.Compact(matrices)
	taken := 0
	release = func() {
		for _, m := range matrices[:taken] {
			m.values.use.Release(1)
		}
	}
	for _, m := range matrices {
		if err := m.values.use.Acquire(ctx, 1); err != nil {
			release()
			return nil, err
		}
		taken++
	}
	return release, nil
}

func (v *valueHolder[T]) replace(pinned runtime.Pinner, buffer *DeviceBuffer[T]) {
	v.pinned.Unpin()
	v.pinned, v.buffer = pinned, buffer
}

// takeBuffer takes into use a buffer that must be of ctx. name is the argument's.
func takeBuffer[T Element | Index](use *lease, op, name string, ctx *Engine, b *DeviceBuffer[T]) error {
	if b.ctx != ctx {
		return fault(op, ErrBadArgument, "%s is a buffer of another context than the matrix", name)
	}
	return use.add(b.handle)
}

// Close waits for the calls in progress. Plans of the matrix can then only be closed; with the last of them the
// matrix is freed. Closing again does nothing.
func (m *Matrix[T]) Close() error {
	m.handle.close()
	return nil
}
