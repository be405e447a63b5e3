// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// DeviceIndex is an index that a function makes in buffers, in the order of a stream, or as a part of a CUDA graph: the
// host sees nothing of it. ColIdx, and BlockIdx and RowIdx where they are given, have room for as many blocks as ColIdx has
// elements, the capacity.
//
// Fault becomes 0; or a [Status] in the lowest 8 bits and above them the place of the fault. With [ErrOverCapacity] the
// index has as many blocks as there is room for, the first ones in the order of rows and columns. With any other fault it
// has none.
type DeviceIndex[I Index] struct {
	Rows, Cols     int
	BlockM, BlockK int
	RowPtr, ColIdx *DeviceBuffer[I]
	BlockIdx       *DeviceBuffer[I]     // of TransposeIndex, BlockDiagonal and PatternOfBlocks alone; else nil
	RowIdx         *DeviceBuffer[I]     // of ToCSR alone; nil: not wanted
	Blocks         *DeviceBuffer[int64] // (1): the blocks that there are, also above the capacity; nil: not wanted
	Fault          *DeviceBuffer[int64] // (1)
}

// IndexedBy is the matrix of an index that was made, and of values that have room for as many blocks; nil: none.
func IndexedBy[T Element, I Index](x DeviceIndex[I], values *DeviceBuffer[T]) DeviceBSR[T, I] {
	return DeviceBSR[T, I]{Rows: x.Rows, Cols: x.Cols, BlockM: x.BlockM, BlockK: x.BlockK, RowPtr: x.RowPtr, ColIdx: x.ColIdx,
		Values: values, Bound: true}
}

// Norm is one of a block's elements.
type Norm int32

// The norms.
const (
	MaxNorm Norm = 0 // max |x|
	L1Norm  Norm = 1 // sum |x|
	L2Norm  Norm = 2 // sqrt(sum x^2), Frobenius
)

// call is a call that puts work on buffers into a stream. The first fault is kept.
type call struct {
	op     string
	engine *Engine
	stream *Stream
	use    lease
	err    error
}

func newCall(ctx context.Context, op string, s *Stream) *call {
	c := &call{op: op, stream: s}
	if c.err = checkContext(op, ctx); c.err != nil {
		return c
	}
	if c.err = s.made(op); c.err != nil {
		return c
	}
	c.engine = s.engine
	c.err = c.use.add(s.handle)
	return c
}

func (c *call) memory() int32 {
	if c.engine.info.Backend == CPU { // where a buffer is host memory
		return native.Host
	}
	return native.Device
}

// enqueue has the work enqueued, and holds what it uses until the stream has come past it.
func (c *call) enqueue(work func(lib *native.Library, context unsafe.Pointer, stream uintptr) error) error {
	defer c.use.release()
	if c.err != nil {
		return c.err
	}
	err := work(c.engine.lib.native, c.engine.handle.pointer, c.stream.queue.stream)
	c.stream.queue.hold(&c.use, nil, nil) // also after an error: some of it may have been enqueued
	return err
}

// at takes a buffer of at least n elements into use. nil gives nil, which is a fault where it is wanted.
func at[T Element | Index | byte](c *call, name string, b *DeviceBuffer[T], n int, wanted bool) unsafe.Pointer {
	if c.err != nil || b == nil && !wanted {
		return nil
	}
	if c.err = takeBuffer(&c.use, c.op, name, c.engine, b); c.err != nil {
		return nil
	}
	if b.n < n {
		c.err = fault(c.op, ErrBadSize, "%s has %d elements and needs %d", name, b.n, n)
		return nil
	}
	return b.handle.pointer
}

// of is a matrix in buffers, of this call.
func of[T Element, I Index](c *call, a DeviceBSR[T, I]) native.BSR {
	if c.err != nil {
		return native.BSR{}
	}
	raw, _, err := a.raw(c.op, c.engine, &c.use)
	c.err = err
	raw.Memory = c.memory()
	if c.stream != nil && c.stream.queue != nil {
		raw.Stream = c.stream.queue.stream
	}
	return raw
}

// dense is a dense matrix in a buffer, of rows x cols.
func (c *call) dense(name string, o Operand, rows, cols int, dtype DType) (address unsafe.Pointer, x operand) {
	if c.err != nil {
		return nil, x
	}
	if c.err = x.of(c.op, name, o); c.err != nil {
		return nil, x
	}
	switch {
	case x.buffer == nil:
		c.err = fault(c.op, ErrWrongMemory, "%s is not in a buffer", name)
	case x.engine != c.engine:
		c.err = fault(c.op, ErrBadArgument, "%s is in a buffer of another engine", name)
	case x.dtype != dtype:
		c.err = fault(c.op, ErrUnsupportedDType, "%s is of %v where %v is needed", name, x.dtype, dtype)
	default:
		c.err = x.check(c.op, name, rows, cols, -1)
	}
	if c.err == nil {
		c.err = c.use.add(x.buffer)
	}
	if c.err != nil {
		return nil, x
	}
	return unsafe.Add(x.buffer.pointer, x.offset*x.dtype.size()), x
}

// blockCounts are the block rows and columns.
func blockCounts(rows, cols, blockM, blockK int) (blockRows, blockCols int) {
	if rows < 0 || cols < 0 || blockM < 1 || blockK < 1 {
		return 0, 0 // refused by the library
	}
	return rows/blockM + min(1, rows%blockM), cols/blockK + min(1, cols%blockK)
}

// made are the arguments that say what index is made.
func made[I Index](c *call, to DeviceIndex[I]) native.PatternArgs {
	if c.err != nil {
		return native.PatternArgs{}
	}
	blockRows, _ := blockCounts(to.Rows, to.Cols, to.BlockM, to.BlockK)
	args := native.PatternArgs{Rows: to.Rows, Cols: to.Cols, BlockM: to.BlockM, BlockK: to.BlockK, IndexType: indexTypeOf[I](),
		Memory: c.memory(), Stream: c.stream.queue.stream}
	args.RowPtr = at(c, "RowPtr", to.RowPtr, blockRows+1, true)
	args.ColIdx = at(c, "ColIdx", to.ColIdx, 0, true)
	if c.err != nil {
		return args
	}
	args.Capacity = to.ColIdx.n
	args.BlockIdx = at(c, "BlockIdx", to.BlockIdx, args.Capacity, false)
	args.RowIdx = at(c, "RowIdx", to.RowIdx, args.Capacity, false)
	args.Blocks = at(c, "Blocks", to.Blocks, 1, false)
	args.Fault = at(c, "Fault", to.Fault, 1, true)
	return args
}

// room gives the made index values, where they are wanted.
func room[T Element](c *call, args *native.PatternArgs, values *DeviceBuffer[T]) {
	if values == nil {
		return
	}
	args.DType = int32(DTypeOf[T]())
	args.Values = at(c, "values", values, args.Capacity*max(0, args.BlockM)*max(0, args.BlockK), true)
}

func (c *call) makePattern(what native.Make, args native.PatternArgs) error {
	return c.enqueue(func(lib *native.Library, context unsafe.Pointer, _ uintptr) error {
		return lib.MakePattern(c.op, context, what, args)
	})
}

// PatternFromMask makes the index of the blocks whose byte in mask is not 0. mask is (block rows, block columns), row by
// row, stride bytes apart (0: no gaps).
func PatternFromMask[I Index](ctx context.Context, s *Stream, to DeviceIndex[I], mask *DeviceBuffer[byte], stride int) error {
	return patternFromMask(ctx, s, to, mask, stride, false)
}

// PatternFromBits is [PatternFromMask] with a bit for each block: block 8i + j of a row is bit j of byte i. stride counts
// bits, and is a multiple of 8; 0: rows follow each other, each from a byte on.
func PatternFromBits[I Index](ctx context.Context, s *Stream, to DeviceIndex[I], mask *DeviceBuffer[byte], stride int) error {
	return patternFromMask(ctx, s, to, mask, stride, true)
}

func patternFromMask[I Index](ctx context.Context, s *Stream, to DeviceIndex[I], mask *DeviceBuffer[byte], stride int, packed bool) error {
	c := newCall(ctx, "make pattern from mask", s)
	args := made(c, to)
	blockRows, blockCols := blockCounts(to.Rows, to.Cols, to.BlockM, to.BlockK)
	args.Stride, args.Bits = stride, packed
	unit := 1
	if packed {
		unit, blockCols = 8, (blockCols+7)/8*8
	}
	if stride == 0 {
		stride = blockCols
	}
	args.Source = at(c, "mask", mask, max(0, (blockRows-1)*stride+blockCols)/unit, true)
	return c.makePattern(native.FromMask, args)
}

// scores are a number for each block, (block rows, block columns), row-major.
func scores[T Element, I Index](c *call, to DeviceIndex[I], of DeviceDense[T], args *native.PatternArgs) {
	blockRows, blockCols := blockCounts(to.Rows, to.Cols, to.BlockM, to.BlockK)
	at, x := c.dense("scores", of, blockRows, blockCols, DTypeOf[T]())
	args.Source, args.Stride, args.SourceDType = at, x.stride, int32(DTypeOf[T]())
}

// PatternAbove makes the index of the blocks whose scores, (block rows, block columns), are above the threshold, or NaN.
func PatternAbove[T Element, I Index](ctx context.Context, s *Stream, to DeviceIndex[I], of DeviceDense[T], threshold float64) error {
	c := newCall(ctx, "make pattern from scores", s)
	args := made(c, to)
	scores(c, to, of, &args)
	args.Threshold = threshold
	return c.makePattern(native.FromMask, args)
}

// PatternOfHighest makes the index of the count blocks of each block row that have the highest scores. Of equal scores
// those of lower columns are taken; NaN is the highest score, and blocks of -Inf are never taken.
func PatternOfHighest[T Element, I Index](ctx context.Context, s *Stream, to DeviceIndex[I], of DeviceDense[T], count int) error {
	c := newCall(ctx, "make pattern from the highest scores", s)
	args := made(c, to)
	scores(c, to, of, &args)
	args.Count = count
	return c.makePattern(native.FromTopK, args)
}

// PatternOfColumns makes the index of the block columns that columns names, (block rows, count), in any order. A negative
// one names no block, and one that occurs twice in a row counts once.
func PatternOfColumns[J, I Index](ctx context.Context, s *Stream, to DeviceIndex[I], columns *DeviceBuffer[J], count int) error {
	c := newCall(ctx, "make pattern from columns", s)
	args := made(c, to)
	blockRows, _ := blockCounts(to.Rows, to.Cols, to.BlockM, to.BlockK)
	args.Source = at(c, "columns", columns, blockRows*max(0, count), true)
	args.SourceIndexType, args.Count = indexTypeOf[J](), count
	return c.makePattern(native.FromTopK, args)
}

// PatternFromDense makes the index of the blocks of a dense matrix in a buffer (a [DeviceDense], or its [Transpose]) whose
// norm is above the threshold, or NaN, and gathers their values, unless values is nil. norms, of float32, or float64 where
// the matrix is of it, gets the norms of all blocks, (block rows, block columns).
func PatternFromDense[T, S Element, I Index](ctx context.Context, s *Stream, to DeviceIndex[I], values *DeviceBuffer[T], dense Operand,
	norm Norm, threshold float64, norms *DeviceBuffer[S]) error {
	c := newCall(ctx, "make pattern from dense matrix", s)
	args := made(c, to)
	room(c, &args, values)
	data, x := c.dense("dense", dense, to.Rows, to.Cols, DTypeOf[T]())
	args.Source, args.Stride, args.Order, args.SourceDType = data, x.stride, int32(x.order), int32(DTypeOf[T]())
	args.Norm, args.Threshold = int32(norm), threshold
	blockRows, blockCols := blockCounts(to.Rows, to.Cols, to.BlockM, to.BlockK)
	args.Norms = at(c, "norms", norms, blockRows*blockCols, true)
	c.ofSums("norms", DTypeOf[T](), DTypeOf[S]())
	return c.makePattern(native.FromDense, args)
}

// ofSums makes sure that a buffer has the type of sums of dtype.
func (c *call) ofSums(name string, dtype, have DType) {
	want := FP32
	if dtype == FP64 {
		want = FP64
	}
	if c.err == nil && have != want {
		c.err = fault(c.op, ErrUnsupportedDType, "%s is of %v where %v is needed", name, have, want)
	}
}

// PatternFromCSR makes the index of the blocks that have elements of csr, a matrix in CSR: one with blocks of 1 x 1. Their
// values, with zeros for what is absent, come to values, unless it is nil.
func PatternFromCSR[T Element, J, I Index](ctx context.Context, s *Stream, to DeviceIndex[I], values *DeviceBuffer[T], csr DeviceBSR[T, J]) error {
	c := newCall(ctx, "make pattern from CSR", s)
	args := made(c, to)
	room(c, &args, values)
	args.From = []native.BSR{of(c, csr)}
	return c.makePattern(native.FromCSR, args)
}

// PatternFromCOO is [PatternFromCSR] of elements in the order of their rows and columns: element i is in row rows[i] and
// column cols[i].
func PatternFromCOO[T Element, J, I Index](ctx context.Context, s *Stream, to DeviceIndex[I], values *DeviceBuffer[T],
	rows, cols *DeviceBuffer[J], elements *DeviceBuffer[T]) error {
	c := newCall(ctx, "make pattern from COO", s)
	args := made(c, to)
	room(c, &args, values)
	from := native.BSR{Rows: to.Rows, Cols: to.Cols, BlockM: 1, BlockK: 1, DType: int32(DTypeOf[T]()), IndexType: indexTypeOf[J](),
		Memory: args.Memory, Stream: args.Stream}
	from.ColIdx = at(c, "cols", cols, 0, true)
	if c.err == nil {
		from.Blocks = cols.n
	}
	args.Source = at(c, "rows", rows, from.Blocks, true)
	from.Values = at(c, "elements", elements, from.Blocks, values != nil)
	args.From = []native.BSR{from}
	return c.makePattern(native.FromCSR, args)
}

// PatternOfBlocks makes the index of those blocks of a that have the count highest scores of their block row, or with count = 0
// of those whose scores are above the threshold, or NaN: of what is left of a when it is pruned. Scores are in the order of
// a's entries, as [BlockNorms] writes them. BlockIdx must be there, and gets the blocks of a. values, unless it is nil, gets
// copies of their values in the new order. a's index is not checked.
func PatternOfBlocks[T, S Element, J, I Index](ctx context.Context, s *Stream, to DeviceIndex[I], values *DeviceBuffer[T], a DeviceBSR[T, J],
	scores *DeviceBuffer[S], count int, threshold float64) error {
	c := newCall(ctx, "make pattern from blocks", s)
	args := made(c, to)
	room(c, &args, values)
	args.From = []native.BSR{of(c, a)}
	args.Source = at(c, "scores", scores, args.From[0].Blocks, true)
	args.SourceDType, args.Count, args.Threshold = int32(DTypeOf[S]()), count, threshold
	return c.makePattern(native.FromBlocks, args)
}

// PatternFromCounts makes the topology of experts that have counts[i] tokens: a block-diagonal matrix in which expert i has
// as many block rows as its tokens fill, behind those of the experts before, and all block columns from i Cols /
// len(counts) to the next expert's. bins[i] gets the first block row of expert i, at most the largest number of its type;
// it has one element more than counts, the end. What is behind the end of the last expert has no blocks.
func PatternFromCounts[J, I Index](ctx context.Context, s *Stream, to DeviceIndex[I], counts *DeviceBuffer[J], bins *DeviceBuffer[I]) error {
	c := newCall(ctx, "make pattern from counts", s)
	args := made(c, to)
	args.Source = at(c, "counts", counts, 1, true)
	args.SourceIndexType = indexTypeOf[J]()
	if c.err == nil {
		args.Count = counts.n
	}
	args.Bins = at(c, "bins", bins, args.Count+1, true)
	return c.makePattern(native.FromCounts, args)
}

// BlockDiagonal makes the index of one block-diagonal matrix of several, so that one product multiplies B's below each
// other into C's below each other. The sizes of all but the last are multiples of the block. The values of the result are
// theirs behind each other; or BlockIdx names their places, if those of each matrix have room for its capacity.
func BlockDiagonal[T Element, J, I Index](ctx context.Context, s *Stream, to DeviceIndex[I], matrices []DeviceBSR[T, J]) error {
	c := newCall(ctx, "make block-diagonal pattern", s)
	args := made(c, to)
	for _, a := range matrices {
		args.From = append(args.From, of(c, a))
	}
	return c.makePattern(native.BlockDiagonal, args)
}

// TransposeIndex makes the index of the transpose of a, whose Values stay where they are: BlockIdx names a's blocks. The
// capacity is at least that of a.
func TransposeIndex[T Element, J, I Index](ctx context.Context, s *Stream, to DeviceIndex[I], a DeviceBSR[T, J]) error {
	c := newCall(ctx, "transpose index", s)
	args := made(c, to)
	args.From = []native.BSR{of(c, a)}
	return c.makePattern(native.Transposed, args)
}

// ToCSR makes the elements of a as CSR: the index of a matrix with blocks of 1 x 1, and with RowIdx as COO. Their values
// come to values, unless it is nil. Zeros in blocks are elements. a's index is not checked.
func ToCSR[T Element, J, I Index](ctx context.Context, s *Stream, to DeviceIndex[I], values *DeviceBuffer[T], a DeviceBSR[T, J]) error {
	c := newCall(ctx, "make CSR", s)
	args := made(c, to)
	room(c, &args, values)
	args.From = []native.BSR{of(c, a)}
	return c.makePattern(native.ToCSR, args)
}

// CheckIndex looks for a fault of a's index: fault, of one element, becomes 0, or the [Status] in the lowest 8 bits and
// above them its place in RowPtr, ColIdx or BlockIdx.
func CheckIndex[T Element, I Index](ctx context.Context, s *Stream, a DeviceBSR[T, I], fault *DeviceBuffer[int64]) error {
	c := newCall(ctx, "check index", s)
	raw := of(c, a)
	out := at(c, "fault", fault, 1, true)
	return c.enqueue(func(lib *native.Library, context unsafe.Pointer, _ uintptr) error {
		return lib.PatternCheck(context, raw, out)
	})
}
