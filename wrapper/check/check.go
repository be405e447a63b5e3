// SPDX-License-Identifier: Apache-2.0

// Package check compares the result of a block-sparse product with one in float64, element by element, within an error
// bound that is derived and not chosen.
package check

import (
	"fmt"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/bridge"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// Args are a product and its result, all in host memory.
type Args struct {
	Alpha, Beta  float32
	B            sparsek.Operand // K x N, of A's type
	C0           sparsek.Operand // C before the product, with C's type and stride; not needed where Beta is 0
	C            sparsek.Operand // M x N, of any type
	UnitRoundoff float64         // of the kernel: sparsek.PlanInfo.UnitRoundoff
	// ProductRoundoff is sparsek.PlanInfo.ProductRoundoff, where A is of float32.
	ProductRoundoff float64
	Threads         int // 0: one for each core

	BiasKind   sparsek.Bias
	Bias       sparsek.Operand // M x 1 or 1 x N, of C's type; not needed where there is none
	Activation sparsek.Activation
}

// Report says how far a result is from the reference. Numbers are over finite elements.
type Report struct {
	Elements                     int     // checked: always M * N
	Failures                     int     // elements beyond their bound
	MaxAbsC                      float64 // max |C|
	MaxError                     float64 // max |C - reference|
	MaxRatio                     float64 // max |C - reference| / bound: at most 1 where nothing failed
	WorstRow, WorstCol           int     // the element with MaxRatio
	WorstC, WorstRef, WorstBound float64
	FirstRow, FirstCol           int // the first failure in row order; -1 where there is none
}

// Product compares every element of C with act(pre), pre = alpha A B + beta C0 + bias, computed in float64 straight from
// the arrays. Each must be within
//
//	lambda E + r u32 (|pre| + E) + u |act(pre)|
//	gamma = p + (1 + p) L UnitRoundoff / (1 - L UnitRoundoff)
//	E = gamma |alpha| sum|a||b| + k u32 (|alpha sum ab| + |beta c0| + |bias|)
//
// where L is the number of products summed into the element, p is ProductRoundoff, u32 = 2^-24, u the unit roundoff of C's type, k = 2, with a
// bias 3 (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1), lambda the activation's
// Lipschitz constant (1; GELU 1.13, SiLU 1.1), r what its evaluation adds (0; GELU and SiLU 4), and terms for underflow
// that sparsek.h lists, where it also says what they are for float64; where act(pre) is NaN or infinite, the element must be so too. If one is not, the error is
// [sparsek.ErrCheckFailed] and the report is filled in all the same.
func Product[T sparsek.Element, I sparsek.Index](lib *sparsek.Library, a sparsek.BSR[T, I], args Args) (Report, error) {
	const op = "check"
	raw, err := bridge.BSR(op, &a)
	if err != nil {
		return Report{}, err
	}
	b, err := bridge.HostOperand(op, "B", args.B, a.Cols, -1, -1)
	if err != nil {
		return Report{}, err
	}
	if b.DType != int32(sparsek.DTypeOf[T]()) {
		return Report{}, fault("B is of %v and A of %v", sparsek.DType(b.DType), sparsek.DTypeOf[T]())
	}
	c, err := bridge.HostOperand(op, "C", args.C, a.Rows, b.Cols, -1)
	if err != nil {
		return Report{}, err
	}
	x := native.Check{
		A: raw, N: b.Cols, Alpha: args.Alpha, Beta: args.Beta, B: b.Operand, C: c.Operand,
		UnitRoundoff: args.UnitRoundoff, ProductRoundoff: args.ProductRoundoff, Threads: args.Threads,
		Output: c.DType, BiasKind: int32(args.BiasKind), Activation: int32(args.Activation),
	}
	if args.Beta != 0 {
		c0, err := bridge.HostOperand(op, "C0", args.C0, a.Rows, b.Cols, c.Stride)
		if c0.DType != 0 && c0.DType != c.DType {
			return Report{}, unlike("C0", c0, c)
		}
		if err != nil {
			return Report{}, err
		}
		x.C0 = c0.Data
	}
	if args.BiasKind != sparsek.NoBias {
		bias, err := bridge.HostBias(op, args.Bias, int32(args.BiasKind), a.Rows, b.Cols)
		if bias.DType != 0 && bias.DType != c.DType {
			return Report{}, unlike("the bias", bias, c)
		}
		if err != nil {
			return Report{}, err
		}
		x.Bias = bias.Data
	}
	r, err := bridge.Library(lib).Check(x)
	return Report{
		Elements: int(r.Elements), Failures: int(r.Failures), MaxAbsC: r.MaxAbsC, MaxError: r.MaxError, MaxRatio: r.MaxRatio,
		WorstRow: int(r.WorstRow), WorstCol: int(r.WorstCol), WorstC: r.WorstC, WorstRef: r.WorstRef, WorstBound: r.WorstBound,
		FirstRow: int(r.FirstRow), FirstCol: int(r.FirstCol),
	}, err
}

func unlike(name string, o, c bridge.Host) error {
	return fault("%s is of %v and C of %v: they must be of one type", name, sparsek.DType(o.DType), sparsek.DType(c.DType))
}

func fault(format string, args ...any) error {
	return &sparsek.Error{Op: "check", Status: sparsek.ErrBadArgument, Msg: fmt.Sprintf(format, args...)}
}
