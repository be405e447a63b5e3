// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"
	"time"
	"unsafe"
)

// DenseOperands are A, B and C of one dense product, without gaps between rows.
type DenseOperands[T BFloat16 | Float16] struct{ A, B, C DeviceDense[T] }

// DenseTimeOptions say which dense products are timed.
type DenseTimeOptions[T BFloat16 | Float16] struct {
	// Taken in turn, so that operands which do not fit into the caches together are cold each time. All are of one size.
	Operands []DenseOperands[T]
	Warmup   int // products before the first that counts
	Repeats  int
}

// TimeDense times dense products C = A B by cuBLAS, to compare with, as [Plan.Time] times block-sparse ones. cuBLAS is
// opened by the first call: the one of the environment variable SPARSEK_CUBLAS (the library's file, its folder, or
// Python's folder nvidia) or, where that is not set, the one that the loader finds. Where there is none, and on the
// CPU, the error is [ErrNoLibrary]. It waits for the device. ctx is looked at before it begins.
func TimeDense[T BFloat16 | Float16](ctx context.Context, c *Engine, options DenseTimeOptions[T]) ([]time.Duration, error) {
	const op = "time dense product"
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(options.Operands) == 0 {
		return nil, fault(op, ErrBadSize, "no operands")
	}
	var use lease
	defer use.release()
	if err := use.add(c.handle); err != nil {
		return nil, err
	}
	m, k, n := options.Operands[0].A.Rows, options.Operands[0].A.Cols, options.Operands[0].B.Cols
	var lists [3][]operand
	for _, set := range options.Operands {
		for i, part := range []struct {
			name       string
			d          DeviceDense[T]
			rows, cols int
		}{{"A", set.A, m, k}, {"B", set.B, k, n}, {"C", set.C, m, n}} {
			o := part.d.operand()
			if o.buffer == nil {
				return nil, fault(op, ErrNullPointer, "%s has no buffer", part.name)
			}
			if o.ctx != c {
				return nil, fault(op, ErrBadArgument, "%s's buffer is of another context", part.name)
			}
			if err := o.check(op, part.name, part.rows, part.cols, part.cols); err != nil {
				return nil, err
			}
			if err := use.add(o.buffer); err != nil {
				return nil, err
			}
			lists[i] = append(lists[i], o)
		}
	}
	var seconds []float64
	err := c.inStream(func(stream unsafe.Pointer) (err error) {
		seconds, err = c.lib.denseTime(c.handle.pointer, m, n, k, DTypeOf[T](), addresses(lists[0]), addresses(lists[1]), addresses(lists[2]),
			stream, options.Warmup, options.Repeats)
		return err
	})
	runtime.KeepAlive(options.Operands)
	if err != nil {
		return nil, err
	}
	return durations(seconds), nil
}
