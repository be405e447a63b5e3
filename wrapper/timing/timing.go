// SPDX-License-Identifier: Apache-2.0

// Package timing times products on the device: by CUDA events on a GPU, one behind the other or in a CUDA graph, with
// operands and plans taken in turn, so that they are not in the caches; cuBLAS's dense ones, to compare with;
// and attention.
package timing

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/bridge"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// Options say what is timed.
type Options struct {
	Alpha, Beta float32
	// Taken in turn, so that operands which do not fit into the caches together are cold each time. On a GPU all must
	// be in device memory.
	Operands []sparsek.Operands
	Warmup   int // products before the first that counts
	Repeats  int // at least 1
}

func (o *Options) check(op string) error {
	if o.Repeats < 1 || o.Warmup < 0 {
		return fault(op, "%d repeats after %d products to warm up", o.Repeats, o.Warmup)
	}
	return nil
}

// Products runs Warmup + Repeats products of the plan, one behind the other, and gives the time of each of the last
// Repeats: by CUDA events on a GPU. It waits for the device. ctx is looked at before it begins and about once a second:
// products that have begun are run to their end.
func Products(ctx context.Context, plan *sparsek.Plan, o Options) ([]time.Duration, error) {
	const op = "time multiply"
	use, err := bridge.Begin(ctx, op, []*sparsek.Plan{plan}, o.Operands)
	if err != nil {
		return nil, err
	}
	defer use.End()
	if err := o.check(op); err != nil {
		return nil, err
	}
	var times []time.Duration
	for slice := 1; ; {
		first := len(times) % len(use.C)
		rotated := func(list native.Addresses) native.Addresses { return slices.Concat(list[first:], list[:first]) }
		warmup := o.Warmup
		if len(times) > 0 {
			warmup = 0
			if use.OnGPU { // the first product of a slice is timed with its way to an idle device
				warmup = 1
			}
		}
		seconds, err := use.Native.MultiplyTime(native.Products{
			Plan: use.Plans[0].Pointer, Alpha: o.Alpha, Beta: o.Beta,
			X: rotated(use.X), B: rotated(use.B), C: rotated(use.C), Bias: rotated(use.Bias), LDB: use.Plans[0].LDB, LDC: use.Plans[0].LDC,
			Stream: use.Stream, Warmup: warmup, Repeats: slice,
		})
		if err != nil {
			return nil, err
		}
		times = append(times, durations(seconds)...)
		left := o.Repeats - len(times)
		if left <= 0 {
			return times, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		slice = min(left, maxSlice, max(1, int(sliceTime/max(times[len(times)-1], time.Microsecond))))
	}
}

// How long, about, and with how many products at most the library is left alone between two looks at ctx.
const (
	sliceTime = time.Second
	maxSlice  = 1000 // products, each of which takes a CUDA event
)

func durations(seconds []float64) []time.Duration {
	times := make([]time.Duration, len(seconds))
	for i, s := range seconds {
		times[i] = time.Duration(math.Round(s * float64(time.Second)))
	}
	return times
}

func fault(op, format string, args ...any) error {
	return &sparsek.Error{Op: op, Status: sparsek.ErrBadSize, Msg: fmt.Sprintf(format, args...)}
}
