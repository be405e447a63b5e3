// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"context"
	"fmt"
	"runtime"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/bridge"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// DenseOperands are A, B and C of one dense product, without gaps between rows.
type DenseOperands[T sparsek.BFloat16 | sparsek.Float16] struct{ A, B, C sparsek.DeviceDense[T] }

// DenseOptions say which dense products are timed.
type DenseOptions[T sparsek.BFloat16 | sparsek.Float16] struct {
	// Taken in turn, so that operands which do not fit into the caches together are cold each time. All are of one size.
	Operands []DenseOperands[T]
	Warmup   int // products before the first that counts
	Repeats  int
}

// Dense times dense products C = A B by cuBLAS, to compare with, as [Products] times block-sparse ones. cuBLAS is
// opened by the first call: the one of the environment variable SPARSEK_CUBLAS (the library's file, its folder, or
// Python's folder nvidia) or, where that is not set, the one that the loader finds. Where there is none, and on the
// CPU, the error is [sparsek.ErrNoLibrary]. It waits for the device. ctx is looked at before it begins.
func Dense[T sparsek.BFloat16 | sparsek.Float16](ctx context.Context, engine *sparsek.Engine, o DenseOptions[T]) ([]time.Duration, error) {
	const op = "time dense product"
	if len(o.Operands) == 0 {
		return nil, fault(op, "no operands")
	}
	use, err := bridge.BeginEngine(ctx, op, engine)
	if err != nil {
		return nil, err
	}
	defer use.End()
	defer runtime.KeepAlive(o.Operands)
	m, k, n := o.Operands[0].A.Rows, o.Operands[0].A.Cols, o.Operands[0].B.Cols
	dense := native.Dense{M: m, N: n, K: k, DType: int32(sparsek.DTypeOf[T]()), Warmup: o.Warmup, Repeats: o.Repeats}
	for i, set := range o.Operands {
		for _, part := range []struct {
			name       string
			d          sparsek.DeviceDense[T]
			rows, cols int
			list       *native.Addresses
		}{{"A", set.A, m, k, &dense.A}, {"B", set.B, k, n, &dense.B}, {"C", set.C, m, n, &dense.C}} {
			address, err := use.Take(part.name, part.d, part.rows, part.cols)
			if err != nil {
				return nil, fmt.Errorf("operands %d: %w", i, err)
			}
			*part.list = append(*part.list, address)
		}
	}
	var seconds []float64
	err = use.InStream(func(stream uintptr) (err error) {
		dense.Stream = stream
		seconds, err = use.Native.DenseTime(use.Context, dense)
		return err
	})
	if err != nil {
		return nil, err
	}
	return durations(seconds), nil
}
