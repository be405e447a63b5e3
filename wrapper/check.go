// SPDX-License-Identifier: Apache-2.0

package sparsek

// CheckArgs are a product and its result, all in host memory.
type CheckArgs[T Element] struct {
	Alpha, Beta  float32
	B            Dense[T] // K x N
	C0           Dense[T] // C before the product, with C's stride; not needed where Beta is 0
	C            Dense[T] // M x N
	UnitRoundoff float64  // of the kernel: PlanInfo.UnitRoundoff
	Threads      int      // 0: one for each core
}

// Report says how far a result is from the reference. Numbers are over finite elements.
type Report struct {
	Elements                     int64   // checked: always M * N
	Failures                     int64   // elements beyond their bound
	MaxAbsC                      float64 // max |C|
	MaxError                     float64 // max |C - reference|
	MaxRatio                     float64 // max |C - reference| / bound: at most 1 where nothing failed
	WorstRow, WorstCol           int64   // the element with MaxRatio
	WorstC, WorstRef, WorstBound float64
	FirstRow, FirstCol           int64 // the first failure in row order; -1 where there is none
}

// Check compares every element of C with alpha A B + beta C0, computed in float64 straight from the arrays. Each must
// be within
//
//	gamma |alpha| sum|a||b| + 2 u32 (|alpha sum ab| + |beta c0|) + u |reference|,  gamma = L UnitRoundoff / (1 - L UnitRoundoff)
//
// where L is the number of products summed into the element, u32 = 2^-24 and u the unit roundoff of T (Higham,
// Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1); where the reference is NaN or infinite, the
// element must be so too. If one is not, the error is [ErrCheckFailed] and the report is filled in all the same.
func Check[T Element, I Index](lib *Library, a BSR[T, I], args CheckArgs[T]) (Report, error) {
	const op = "check"
	if err := a.check(op); err != nil {
		return Report{}, err
	}
	b, c := args.B.operand(), args.C.operand()
	if err := b.check(op, "B", a.Cols, b.cols, -1); err != nil {
		return Report{}, err
	}
	if err := c.check(op, "C", a.Rows, b.cols, -1); err != nil {
		return Report{}, err
	}
	raw := rawCheck{
		a: a.raw(), n: b.cols, alpha: args.Alpha, beta: args.Beta,
		b: rawOperand{b.address(), b.stride}, c: rawOperand{c.address(), c.stride},
		unitRoundoff: args.UnitRoundoff, threads: args.Threads,
	}
	if args.Beta != 0 {
		c0 := args.C0.operand()
		if err := c0.check(op, "C0", a.Rows, b.cols, c.stride); err != nil {
			return Report{}, err
		}
		raw.c0 = c0.address()
	}
	return lib.check(raw)
}
