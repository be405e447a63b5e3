// SPDX-License-Identifier: Apache-2.0

package native

// #include "shim.h"
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"time"
	"unsafe"
)

// Addresses are those of operands that the caller keeps alive and, where they are Go's, pinned.
type Addresses []uintptr

func (a Addresses) c() *C.uintptr_t { return (*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(a))) }

// repeated is memory for the times of that many repeats.
func repeated(op string, repeats int) ([]float64, error) {
	if repeats < 1 || repeats > math.MaxInt32 {
		return nil, NewError(op, BadSize, fmt.Sprintf("%d repeats are not in [1, %d]", repeats, math.MaxInt32))
	}
	return make([]float64, repeats), nil
}

// Products are what multiply_time times: one plan's, with operands taken in turn, as many X, B and biases as C, and at
// least one.
type Products struct {
	Plan            unsafe.Pointer
	Alpha, Beta     float32
	B, C            Addresses
	LDB, LDC        int
	Bias, X         Addresses // 0 where the plan has none
	Stream          uintptr
	Warmup, Repeats int
}

// MultiplyTime calls multiply_time. It gives seconds.
func (l *Library) MultiplyTime(p Products) ([]float64, error) {
	const op = "time multiply"
	seconds, err := repeated(op, p.Repeats)
	if err != nil {
		return nil, err
	}
	err = end(op, C.shim_multiply_time(l.api, (*C.sparsek_plan)(p.Plan), p.c(), p.X.c(), p.B.c(), p.C.c(), p.Bias.c(),
		(*C.double)(unsafe.Pointer(&seconds[0]))))
	return seconds, err
}

// Graph is what graph_time times: products of as many plans, Xs, Bs, Cs and biases, at least one, in one graph. The strides
// are those that were planned for, and a bias or an X is 0 for a plan without one.
type Graph struct {
	Plans, B, C, Bias Addresses
	X                 Addresses
	Alpha, Beta       float32
	Warmup, Repeats   int
}

// GraphTime calls graph_time. It gives seconds.
func (l *Library) GraphTime(g Graph) ([]float64, error) {
	const op = "time products in a graph"
	seconds, err := repeated(op, g.Repeats)
	if err != nil {
		return nil, err
	}
	raw := C.shim_products{alpha: C.float(g.Alpha), beta: C.float(g.Beta),
		count: toInt32(len(g.Plans)), warmup: toInt32(g.Warmup), repeats: toInt32(g.Repeats)}
	err = end(op, C.shim_graph_time(l.api, g.Plans.c(), raw, g.X.c(), g.B.c(), g.C.c(), g.Bias.c(), (*C.double)(unsafe.Pointer(&seconds[0]))))
	return seconds, err
}

// Dense is what dense_time times: dense products of sets of operands in device memory, as many A as B and C.
type Dense struct {
	M, N, K         int
	DType           int32
	A, B, C         Addresses
	Stream          uintptr
	Warmup, Repeats int
}

// DenseTime calls dense_time. It gives seconds.
func (l *Library) DenseTime(context unsafe.Pointer, d Dense) ([]float64, error) {
	const op = "time dense product"
	seconds, err := repeated(op, d.Repeats)
	if err != nil {
		return nil, err
	}
	raw := C.sparsek_dense_time_args{abi_size: C.sizeof_sparsek_dense_time_args,
		m: C.int64_t(d.M), n: C.int64_t(d.N), k: C.int64_t(d.K), dtype: C.int32_t(d.DType), set_count: toInt32(len(d.A)),
		warmup: toInt32(d.Warmup), repeats: toInt32(d.Repeats)}
	err = end(op, C.shim_dense_time(l.api, (*C.sparsek_context)(context), raw, d.A.c(), d.B.c(), d.C.c(),
		C.uintptr_t(d.Stream), (*C.double)(unsafe.Pointer(&seconds[0]))))
	return seconds, err
}

// SMsHold calls sms_hold.
func (l *Library) SMsHold(context unsafe.Pointer, count int, seconds float64) (unsafe.Pointer, error) {
	var out *C.sparsek_sm_hold
	err := end("hold SMs", C.shim_sms_hold(l.api, (*C.sparsek_context)(context), toInt32(count), C.double(seconds), &out))
	return unsafe.Pointer(out), err
}

// SMsRelease calls sms_release.
func (l *Library) SMsRelease(hold unsafe.Pointer) (expired bool, err error) {
	var out C.int32_t
	err = end("release SMs", C.shim_sms_release(l.api, (*C.sparsek_sm_hold)(hold), &out))
	return out != 0, err
}

// Check is sparsek_check_args. The arrays of A and all else are in host memory.
type Check struct {
	A                    BSR
	N                    int
	B, C                 Operand
	C0, Bias             unsafe.Pointer // with C's stride, and one after the other; nil where there is none
	Alpha, Beta          float32
	UnitRoundoff         float64
	ProductRoundoff      float64
	Threads              int
	DTypeB, Output       int32 // type of B; of C0, C and the bias
	BiasKind, Activation int32

	Op                     int32
	OrderX, OrderB, OrderC int32
	X                      Operand // SDD's
}

// CheckReport is sparsek_check_report.
type CheckReport struct {
	Elements, Failures           int64
	MaxAbsC, MaxError, MaxRatio  float64
	WorstRow, WorstCol           int64
	WorstC, WorstRef, WorstBound float64
	FirstRow, FirstCol           int64
}

// Check calls check. The report is filled in where an element is beyond its bound, too.
func (l *Library) Check(x Check) (CheckReport, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	pinned := func(p unsafe.Pointer) unsafe.Pointer {
		if p != nil {
			pins.Pin(p)
		}
		return p
	}
	a := x.A.c(&pins)
	pins.Pin(&a)
	args := C.sparsek_check_args{abi_size: C.sizeof_sparsek_check_args,
		a: &a, n: C.int64_t(x.N), b: pinned(x.B.Data), ldb: C.int64_t(x.B.Stride),
		c0: pinned(x.C0), c: pinned(x.C.Data), ldc: C.int64_t(x.C.Stride),
		alpha: C.float(x.Alpha), beta: C.float(x.Beta), unit_roundoff: C.double(x.UnitRoundoff), product_roundoff: C.double(x.ProductRoundoff), threads: toInt32(x.Threads),
		dtype_b: C.int32_t(x.DTypeB), dtype_c: C.int32_t(x.Output), bias_kind: C.int32_t(x.BiasKind), activation: C.int32_t(x.Activation), bias: pinned(x.Bias),
		op: C.int32_t(x.Op), order_x: C.int32_t(x.OrderX), order_b: C.int32_t(x.OrderB), order_c: C.int32_t(x.OrderC),
		x: pinned(x.X.Data), ldx: C.int64_t(x.X.Stride),
	}
	var out C.sparsek_check_report
	err := end("check", C.shim_check(l.api, &args, &out))
	return reportOf(&out), err
}

func reportOf(out *C.sparsek_check_report) CheckReport {
	return CheckReport{
		Elements: int64(out.elements), Failures: int64(out.failures),
		MaxAbsC: float64(out.max_abs_c), MaxError: float64(out.max_error), MaxRatio: float64(out.max_ratio),
		WorstRow: int64(out.worst_row), WorstCol: int64(out.worst_col),
		WorstC: float64(out.worst_c), WorstRef: float64(out.worst_ref), WorstBound: float64(out.worst_bound),
		FirstRow: int64(out.first_row), FirstCol: int64(out.first_col),
	}
}

// MultiplyAt calls multiply for the first of the products, without waiting.
func (l *Library) MultiplyAt(p Products) error {
	return end("multiply", C.shim_multiply_at(l.api, (*C.sparsek_plan)(p.Plan), p.c(), p.X.c(), p.B.c(), p.C.c(), p.Bias.c()))
}

func (p *Products) c() C.shim_products {
	return C.shim_products{
		alpha: C.float(p.Alpha), beta: C.float(p.Beta), ldb: C.int64_t(p.LDB), ldc: C.int64_t(p.LDC),
		count: toInt32(len(p.B)), warmup: toInt32(p.Warmup), repeats: toInt32(p.Repeats), stream: C.uintptr_t(p.Stream),
	}
}

// MultiplyLoop calls multiply Repeats times in a loop of C, with the first of the operands, and gives how long that took:
// what a call from Go is compared with.
func (l *Library) MultiplyLoop(p Products) (time.Duration, error) {
	var nanoseconds C.int64_t
	err := end("multiply", C.shim_multiply_loop(l.api, (*C.sparsek_plan)(p.Plan), p.c(), p.X.c(), p.B.c(), p.C.c(), p.Bias.c(), &nanoseconds))
	return time.Duration(nanoseconds), err
}
