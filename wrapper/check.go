// SPDX-License-Identifier: Apache-2.0

package sparsek

// CheckArgs are a product and its result, all in host memory.
type CheckArgs[T Element] struct {
	Alpha, Beta  float32
	B            Dense[T] // K x N
	C0           AnyDense // C before the product, with C's type and stride; not needed where Beta is 0
	C            AnyDense // M x N, of any type
	UnitRoundoff float64  // of the kernel: PlanInfo.UnitRoundoff
	Threads      int      // 0: one for each core

	BiasKind   Bias
	Bias       AnyDense // M x 1 or 1 x N, of C's type; not needed where there is none
	Activation Activation
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

// Check compares every element of C with act(pre), pre = alpha A B + beta C0 + bias, computed in float64 straight from
// the arrays. Each must be within
//
//	lambda E + r u32 (|pre| + E) + u |act(pre)|,  gamma = L UnitRoundoff / (1 - L UnitRoundoff)
//	E = gamma |alpha| sum|a||b| + k u32 (|alpha sum ab| + |beta c0| + |bias|)
//
// where L is the number of products summed into the element, u32 = 2^-24, u the unit roundoff of C's type, k = 2, with a
// bias 3 (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1), lambda the activation's
// Lipschitz constant (1; GELU 1.13, SiLU 1.1), r what its evaluation adds (0; GELU and SiLU 4), and terms for underflow
// that sparsek.h tells; where act(pre) is NaN or infinite, the element must be so too. If one is not, the error is
// [ErrCheckFailed] and the report is filled in all the same.
func Check[T Element, I Index](lib *Library, a BSR[T, I], args CheckArgs[T]) (Report, error) {
	const op = "check"
	if err := a.check(op); err != nil {
		return Report{}, err
	}
	b := args.B.operand()
	if err := b.check(op, "B", a.Cols, b.cols, -1); err != nil {
		return Report{}, err
	}
	c, err := hostOperand(op, "C", args.C)
	if err != nil {
		return Report{}, err
	}
	if err := c.check(op, "C", a.Rows, b.cols, -1); err != nil {
		return Report{}, err
	}
	raw := rawCheck{
		a: a.raw(), n: b.cols, alpha: args.Alpha, beta: args.Beta,
		b: rawOperand{b.address(), b.stride}, c: rawOperand{c.address(), c.stride},
		unitRoundoff: args.UnitRoundoff, threads: args.Threads,
		output: c.dtype, biasKind: args.BiasKind, activation: args.Activation,
	}
	if args.Beta != 0 {
		c0, err := alike(op, "C0", args.C0, c)
		if err != nil {
			return Report{}, err
		}
		if err := c0.check(op, "C0", a.Rows, b.cols, c.stride); err != nil {
			return Report{}, err
		}
		raw.c0 = c0.address()
	}
	if args.BiasKind != NoBias {
		bias, err := alike(op, "the bias", args.Bias, c)
		if err != nil {
			return Report{}, err
		}
		if err := bias.checkBias(op, args.BiasKind, a.Rows, b.cols); err != nil {
			return Report{}, err
		}
		raw.bias = bias.address()
	}
	return lib.check(raw)
}

// hostOperand is d, which must be in host memory.
func hostOperand(op, name string, d AnyDense) (operand, error) {
	if missing(d) {
		return operand{}, fault(op, ErrNullPointer, "%s is nil", name)
	}
	o := d.operand()
	if o.buffer != nil {
		return operand{}, fault(op, ErrWrongMemory, "%s is in a buffer: read it to host memory first", name)
	}
	return o, nil
}

// alike is d, which must be in host memory and of c's type.
func alike(op, name string, d AnyDense, c operand) (operand, error) {
	o, err := hostOperand(op, name, d)
	if err == nil && o.dtype != c.dtype {
		return operand{}, fault(op, ErrBadArgument, "%s is of %v and C of %v: they must be of one type", name, o.dtype, c.dtype)
	}
	return o, err
}
