// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"math"
	"runtime"
	"time"
	"unsafe"
)

// Operands are B and C of one product.
type Operands[T Element] struct{ B, C Operand[T] }

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
// events on a GPU. It waits for the device. ctx is looked at before it begins.
func (p *Plan[T]) Time(ctx context.Context, options TimeOptions[T], opts ...MultiplyOption) ([]time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := p.newRun("time multiply", opts)
	if err != nil {
		return nil, err
	}
	defer r.end()
	return r.time(options)
}

func (r *run[T]) time(options TimeOptions[T]) ([]time.Duration, error) {
	if len(options.Operands) == 0 {
		return nil, fault(r.op, ErrBadSize, "no operands")
	}
	p := r.plan
	native := p.matrix.ctx
	b := make([]uintptr, len(options.Operands))
	c := make([]uintptr, len(options.Operands))
	for i, pair := range options.Operands {
		if pair.B == nil || pair.C == nil {
			return nil, fault(r.op, ErrNullPointer, "B or C of operands %d is nil", i)
		}
		ob, oc := pair.B.operand(), pair.C.operand()
		if err := r.check(ob, oc); err != nil {
			return nil, err
		}
		for _, o := range []operand[T]{ob, oc} {
			if o.buffer == nil && native.info.Backend == CUDA {
				return nil, fault(r.op, ErrWrongMemory, "operands %d are in host memory: the copies would be all there is to time; use a DeviceBuffer", i)
			}
			if o.buffer == nil && o.span() > 0 {
				r.pins.Pin(unsafe.SliceData(o.host))
			}
		}
		b[i], c[i] = uintptr(ob.address()), uintptr(oc.address())
	}
	seconds, err := native.lib.multiplyTime(p.handle.pointer, options.Alpha, options.Beta, b, p.ldb, c, p.ldc,
		r.stream, options.Warmup, options.Repeats)
	runtime.KeepAlive(options.Operands)
	if err != nil {
		return nil, err
	}
	times := make([]time.Duration, len(seconds))
	for i, s := range seconds {
		times[i] = time.Duration(math.Round(s * float64(time.Second)))
	}
	return times, nil
}
