// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// The functions of this file put work on the values of a matrix in buffers into a stream and wait for nothing. The index is
// not checked, see CheckIndex. Sums are in float32, of float64 in float64, in an order that depends on sizes and types
// alone: the same bits each time, on a GPU and on the CPU.

func (c *call) workOnValues(what native.Work, args native.ValuesArgs) error {
	return c.enqueue(func(lib *native.Library, context unsafe.Pointer, _ uintptr) error {
		return lib.WorkOnValues(c.op, context, what, args)
	})
}

// blocks takes a buffer with room for the values of a.
func blocks[T Element, I Index](c *call, name string, b *DeviceBuffer[T], a DeviceBSR[T, I]) unsafe.Pointer {
	if c.err != nil {
		return nil
	}
	return at(c, name, b, a.ColIdx.n*max(0, a.BlockM)*max(0, a.BlockK), true)
}

// ToDense writes a to out, a dense matrix in a buffer (a [DeviceDense], or its [Transpose]), zeros included.
func ToDense[T Element, I Index](ctx context.Context, s *Stream, a DeviceBSR[T, I], out Operand) error {
	c := newCall(ctx, "make dense matrix", s)
	args := native.ValuesArgs{A: of(c, a)}
	data, x := c.dense("out", out, a.Rows, a.Cols, DTypeOf[T]())
	args.Out, args.Stride, args.Order = data, x.stride, int32(x.order)
	return c.workOnValues(native.ToDense, args)
}

// GatherValues writes the blocks of a dense matrix in a buffer (a [DeviceDense], or its [Transpose]) to out, in the places
// that a's Values have. What blocks have beyond the matrix is 0. a.Values is not used.
func GatherValues[T Element, I Index](ctx context.Context, s *Stream, a DeviceBSR[T, I], dense Operand, out *DeviceBuffer[T]) error {
	c := newCall(ctx, "gather values", s)
	args := native.ValuesArgs{A: of(c, a), Out: blocks(c, "out", out, a)}
	data, x := c.dense("dense", dense, a.Rows, a.Cols, DTypeOf[T]())
	args.B, args.Stride, args.Order = data, x.stride, int32(x.order)
	return c.workOnValues(native.GatherValues, args)
}

// BlockNorms writes the norm of each block to out, of float32, or float64 where a is of it, in the order of ColIdx. Rows
// beyond the last do not count.
func BlockNorms[T, S Element, I Index](ctx context.Context, s *Stream, a DeviceBSR[T, I], norm Norm, out *DeviceBuffer[S]) error {
	c := newCall(ctx, "norm blocks", s)
	args := native.ValuesArgs{A: of(c, a), Norm: int32(norm)}
	if c.err == nil {
		args.Out = at(c, "out", out, a.ColIdx.n, true)
	}
	c.ofSums("out", DTypeOf[T](), DTypeOf[S]())
	return c.workOnValues(native.BlockNorms, args)
}

// SumRows writes the sums of a's rows to out, of float32, or float64 where a is of it.
func SumRows[T, S Element, I Index](ctx context.Context, s *Stream, a DeviceBSR[T, I], out *DeviceBuffer[S]) error {
	return sumRows(ctx, s, a, false, out)
}

// SumColumns writes the sums of the columns of the matrix that a is the transpose of: a has an index of [TransposeIndex],
// and the Values of that matrix. out is as in [SumRows].
func SumColumns[T, S Element, I Index](ctx context.Context, s *Stream, a DeviceBSR[T, I], out *DeviceBuffer[S]) error {
	return sumRows(ctx, s, a, true, out)
}

func sumRows[T, S Element, I Index](ctx context.Context, s *Stream, a DeviceBSR[T, I], transposed bool, out *DeviceBuffer[S]) error {
	c := newCall(ctx, "sum values", s)
	args := native.ValuesArgs{A: of(c, a), Transposed: transposed, Out: at(c, "out", out, max(0, a.Rows), true)}
	c.ofSums("out", DTypeOf[T](), DTypeOf[S]())
	return c.workOnValues(native.SumRows, args)
}

// ScaleValues writes to out element (i, j) of a times rowFactors[i], times columnFactors[j]; nil: 1. Factors are of float32,
// or float64 where a is of it. out may be a.Values. What blocks have beyond the matrix has the factor 1.
func ScaleValues[T, S Element, I Index](ctx context.Context, s *Stream, a DeviceBSR[T, I], rowFactors, columnFactors *DeviceBuffer[S], out *DeviceBuffer[T]) error {
	c := newCall(ctx, "scale values", s)
	args := native.ValuesArgs{A: of(c, a), Out: blocks(c, "out", out, a),
		RowFactors:    at(c, "rowFactors", rowFactors, max(0, a.Rows), false),
		ColumnFactors: at(c, "columnFactors", columnFactors, max(0, a.Cols), false)}
	c.ofSums("factors", DTypeOf[T](), DTypeOf[S]())
	return c.workOnValues(native.ScaleValues, args)
}

// MultiplyValues writes alpha * a.Values * b to out, element by element: b and out have blocks in the same places. Each
// operation is rounded. out may be a.Values or b.
func MultiplyValues[T Element, I Index](ctx context.Context, s *Stream, alpha float64, a DeviceBSR[T, I], b, out *DeviceBuffer[T]) error {
	c := newCall(ctx, "multiply values", s)
	args := native.ValuesArgs{A: of(c, a), Alpha: alpha, B: blocks(c, "b", b, a), Out: blocks(c, "out", out, a)}
	return c.workOnValues(native.MultiplyValues, args)
}

// AddValues writes alpha * a.Values + beta * b to out, as [MultiplyValues] does.
func AddValues[T Element, I Index](ctx context.Context, s *Stream, alpha float64, a DeviceBSR[T, I], beta float64, b, out *DeviceBuffer[T]) error {
	c := newCall(ctx, "add values", s)
	args := native.ValuesArgs{A: of(c, a), Alpha: alpha, Beta: beta, B: blocks(c, "b", b, a), Out: blocks(c, "out", out, a)}
	return c.workOnValues(native.AddValues, args)
}
