// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// PoolRows computes what gates score: of each column of each block of rows of x its mean, its maximum and its minimum, behind
// what is in stream s already; on the CPU it is done on return. x: queries or keys, (batch, heads, rows, size), of a size of at
// most 4096. block: rows of a block, of which the last may have fewer. out: (batch, heads, blocks, 3 size) without gaps, of
// float32, or of float64 where x is of it: the means of a block, then its maxima and its minima. The same x gives the same bits
// each time. A maximum and a minimum with NaN are NaN.
func PoolRows(ctx context.Context, s *Stream, x HeadsOperand, block int, out HeadsOperand) error {
	const op = "pool rows"
	var pins runtime.Pinner
	defer pins.Unpin() // host memory is the CPU's, which is done then
	c := newCall(ctx, op, s)
	var args native.PoolArgs
	if c.err == nil {
		args, c.err = c.pool(x, block, out, &pins)
	}
	err := c.enqueue(func(lib *native.Library, engine unsafe.Pointer, stream uintptr) error {
		return lib.AttentionPool(engine, args, stream)
	})
	runtime.KeepAlive(x)
	runtime.KeepAlive(out)
	return err
}

// pool checks the operands, and takes them into use.
func (c *call) pool(x HeadsOperand, block int, out HeadsOperand, pins *runtime.Pinner) (args native.PoolArgs, err error) {
	const numbers = 3 // of a column
	if x == nil || out == nil {
		return args, fault(c.op, ErrNullPointer, "x or out is nil")
	}
	if block < 1 {
		return args, fault(c.op, ErrBadSize, "blocks of %d rows", block)
	}
	from, to := x.heads(), out.heads()
	if err := from.check(c.op, "x", from.extents, from.dtype); err != nil {
		return args, err
	}
	sums := FP32
	if from.dtype == FP64 {
		sums = FP64
	}
	want := from.extents
	want[2], want[3] = (want[2]+block-1)/block, numbers*want[3]
	if err := to.check(c.op, "out", want, sums); err != nil {
		return args, err
	}
	if to.stride != [3]int{} {
		return args, fault(c.op, ErrBadLeadingDimension, "out has strides: it is without gaps")
	}
	args = native.PoolArgs{Extents: from.extents, Block: block, X: native.Tensor{Stride: from.stride}, DType: int32(from.dtype), Memory: c.memory()}
	if args.X.Data, err = c.address("x", from, pins); err != nil {
		return args, err
	}
	args.Out, err = c.address("out", to, pins)
	return args, err
}
