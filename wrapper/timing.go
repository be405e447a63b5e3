// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// Operands are B and C of one product.
type Operands[T Element] struct {
	B Operand[T]
	C AnyDense
}

// TimeOptions say what is timed.
type TimeOptions[T Element] struct {
	Alpha, Beta float32
	// Taken in turn, so that operands which do not fit into the caches together are cold each time. On a GPU all must
	// be in device memory.
	Operands []Operands[T]
	Warmup   int // products before the first that counts
	Repeats  int
}

// Time runs Warmup + Repeats products, one behind the other, and gives the time of each of the last Repeats: by CUDA
// events on a GPU. It waits for the device. ctx is looked at before it begins and about once a second: products that
// have begun are run to their end.
func (p *Plan[T]) Time(ctx context.Context, options TimeOptions[T], opts ...MultiplyOption) ([]time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	release, err := useValues(ctx, p)
	if err != nil {
		return nil, err
	}
	defer release()
	r, err := p.newRun("time multiply", opts)
	if err != nil {
		return nil, err
	}
	defer r.end()
	return r.time(ctx, options)
}

// How long, about, and with how many products at most the library is left alone between two looks at ctx.
const (
	sliceTime = time.Second
	maxSlice  = 1000 // products, each of which takes a CUDA event
)

func (r *run[T]) time(ctx context.Context, options TimeOptions[T]) ([]time.Duration, error) {
	b, c, err := r.bind(options.Operands)
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(options.Operands)
	if options.Repeats < 1 || options.Warmup < 0 {
		return nil, fault(r.op, ErrBadSize, "%d repeats after %d products to warm up", options.Repeats, options.Warmup)
	}
	var times []time.Duration
	for slice := 1; ; {
		first := len(times) % len(b)
		rotated := func(list []operand) []uintptr { return addresses(slices.Concat(list[first:], list[:first])) }
		warmup := options.Warmup
		if len(times) > 0 {
			warmup = r.again()
		}
		seconds, err := r.plan.matrix.ctx.lib.multiplyTime(r.plan.handle.pointer, options.Alpha, options.Beta,
			rotated(b), r.plan.ldb, rotated(c), r.plan.ldc, r.bias.address(), r.stream, warmup, slice)
		if err != nil {
			return nil, err
		}
		times = append(times, durations(seconds)...)
		left := options.Repeats - len(times)
		if left <= 0 {
			return times, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		slice = min(left, maxSlice, max(1, int(sliceTime/max(times[len(times)-1], time.Microsecond))))
	}
}

// again is the warm-up of a further slice: on a GPU the first product is timed with its way to an idle device.
func (r *run[T]) again() int {
	if r.plan.matrix.ctx.info.Backend == CUDA {
		return 1
	}
	return 0
}

// bind checks pairs of operands and takes them into use until the run ends. The bias is there when it returns.
func (r *run[T]) bind(pairs []Operands[T]) (b, c []operand, err error) {
	if len(pairs) == 0 {
		return nil, nil, fault(r.op, ErrBadSize, "no operands")
	}
	for i, pair := range pairs {
		ob, oc, err := operands(r.op, pair.B, pair.C)
		if err != nil {
			return nil, nil, fmt.Errorf("operands %d: %w", i, err)
		}
		if err := r.check(ob, oc); err != nil {
			return nil, nil, err
		}
		for _, o := range []operand{ob, oc} {
			if o.buffer == nil && r.plan.matrix.ctx.info.Backend == CUDA {
				return nil, nil, fault(r.op, ErrWrongMemory, "operands %d are in host memory: the copies would be all there is to time; use a DeviceBuffer", i)
			}
			if o.buffer == nil && o.span() > 0 {
				r.pins.Pin(o.host)
			}
		}
		b, c = append(b, ob), append(c, oc)
	}
	if r.plan.bias != NoBias {
		if err := r.settle(r.stageBias()); err != nil {
			return nil, nil, err
		}
	}
	return b, c, nil
}

// addresses are those of operands that are in use.
func addresses(list []operand) []uintptr {
	out := make([]uintptr, len(list))
	for i, o := range list {
		out[i] = uintptr(o.address())
	}
	return out
}

func durations(seconds []float64) []time.Duration {
	times := make([]time.Duration, len(seconds))
	for i, s := range seconds {
		times[i] = duration(s)
	}
	return times
}

func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}
