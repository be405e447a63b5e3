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
	Op           sparsek.Op // the product; the sizes of B and C are those that it says, and their orders any
	Alpha, Beta  float32
	X            sparsek.Operand // of SDD: of A's type
	B            sparsek.Operand // of A's type, or of DSD a wider one
	C0           sparsek.Operand // C before the product, with C's type, order and stride; not needed where Beta is 0
	C            sparsek.Operand // of any type
	UnitRoundoff float64         // of the kernel: sparsek.PlanInfo.UnitRoundoff
	// ProductRoundoff is sparsek.PlanInfo.ProductRoundoff, where A is of float32.
	ProductRoundoff float64
	Threads         int // 0: one for each core

	BiasKind   sparsek.Bias
	Bias       sparsek.Operand // (rows of C) x 1 or 1 x (its columns), of C's type; not needed where there is none
	Activation sparsek.Activation
}

// Report says how far a result is from the reference. Numbers are over finite elements.
type Report struct {
	Elements                     int     // checked: all of C; of the blocks of SDD, those within A
	Failures                     int     // elements beyond their bound
	MaxAbsC                      float64 // max |C|
	MaxError                     float64 // max |C - reference|
	MaxRatio                     float64 // max |C - reference| / bound: at most 1 where nothing failed
	WorstRow, WorstCol           int     // the element with MaxRatio; of SDD where it is in A
	WorstC, WorstRef, WorstBound float64
	FirstRow, FirstCol           int // the first failure in row order; -1 where there is none
}

// Product compares every element of C with act(pre), pre = alpha A B + beta C0 + bias, or what Args.Op says in place of
// A B, computed in float64 straight from the arrays. Each must be within
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
	x := native.Check{
		A: raw, Op: int32(args.Op), Alpha: args.Alpha, Beta: args.Beta, UnitRoundoff: args.UnitRoundoff, ProductRoundoff: args.ProductRoundoff, Threads: args.Threads,
		BiasKind: int32(args.BiasKind), Activation: int32(args.Activation),
	}
	want, err := sizes(&x, args, a.Rows, a.Cols, len(a.ColIdx)*a.BlockM, a.BlockK)
	if err != nil {
		return Report{}, err
	}
	dtype := int32(sparsek.DTypeOf[T]())
	operand := func(name string, o sparsek.Operand, size [2]int) (bridge.Host, error) {
		host, err := bridge.HostOperand(op, name, o, size[0], size[1], -1)
		if err == nil && host.DType != dtype && (name != "B" || args.Op != sparsek.DSD) {
			err = fault("%s is of %v and A of %v", name, sparsek.DType(host.DType), sparsek.DType(dtype))
		}
		return host, err
	}
	if args.Op == sparsek.SDD {
		host, err := operand("X", args.X, want.x)
		if err != nil {
			return Report{}, err
		}
		x.X, x.OrderX = host.Operand, host.Order
	}
	b, err := operand("B", args.B, want.b)
	if err != nil {
		return Report{}, err
	}
	stride := -1
	if args.Op == sparsek.SDD {
		stride = a.BlockK
	}
	c, err := bridge.HostOperand(op, "C", args.C, want.c[0], want.c[1], stride)
	if err != nil {
		return Report{}, err
	}
	x.B, x.OrderB, x.C, x.OrderC, x.Output = b.Operand, b.Order, c.Operand, c.Order, c.DType
	if args.Op == sparsek.SDD {
		x.C.Stride = 0
	}
	if b.DType != raw.DType {
		x.DTypeB = b.DType
	}
	if args.Beta != 0 {
		c0, err := bridge.HostOperand(op, "C0", args.C0, c.Rows, c.Cols, c.Stride)
		if c0.DType != 0 && c0.DType != c.DType {
			return Report{}, unlike("C0", c0, c)
		}
		if err == nil && c0.Order != c.Order {
			err = fault("C0 and C are of different orders")
		}
		if err != nil {
			return Report{}, err
		}
		x.C0 = c0.Data
	}
	if args.BiasKind != sparsek.NoBias {
		bias, err := bridge.HostBias(op, args.Bias, int32(args.BiasKind), c.Rows, c.Cols)
		if bias.DType != 0 && bias.DType != c.DType {
			return Report{}, unlike("the bias", bias, c)
		}
		if err != nil {
			return Report{}, err
		}
		x.Bias = bias.Data
	}
	r, err := bridge.Library(lib).Check(x)
	return report(r), err
}

func report(r native.CheckReport) Report {
	return Report{
		Elements: int(r.Elements), Failures: int(r.Failures), MaxAbsC: r.MaxAbsC, MaxError: r.MaxError, MaxRatio: r.MaxRatio,
		WorstRow: int(r.WorstRow), WorstCol: int(r.WorstCol), WorstC: r.WorstC, WorstRef: r.WorstRef, WorstBound: r.WorstBound,
		FirstRow: int(r.FirstRow), FirstCol: int(r.FirstCol),
	}
}

// extents are the sizes of X, B and C, rows and columns.
type extents struct{ x, b, c [2]int }

// sizes finds n, and with it the sizes that the operands must have.
func sizes(x *native.Check, args Args, rows, cols, blockRows, blockK int) (extents, error) {
	from, name, byRows := args.B, "B", false
	switch args.Op {
	case sparsek.SDD:
		from, name = args.X, "X"
	case sparsek.DDS, sparsek.DDST:
		byRows = true
	}
	host, err := bridge.HostOperand("check", name, from, -1, -1, -1)
	if err != nil {
		return extents{}, err
	}
	n := host.Cols
	if byRows {
		n = host.Rows
	}
	x.N = n
	switch args.Op {
	case sparsek.DSD:
		return extents{b: [2]int{cols, n}, c: [2]int{rows, n}}, nil
	case sparsek.DSDT:
		return extents{b: [2]int{rows, n}, c: [2]int{cols, n}}, nil
	case sparsek.SDD:
		return extents{x: [2]int{rows, n}, b: [2]int{n, cols}, c: [2]int{blockRows, blockK}}, nil
	case sparsek.DDS:
		return extents{b: [2]int{n, rows}, c: [2]int{n, cols}}, nil
	case sparsek.DDST:
		return extents{b: [2]int{n, cols}, c: [2]int{n, rows}}, nil
	}
	return extents{}, fault("there is no product %v", args.Op)
}

func unlike(name string, o, c bridge.Host) error {
	return fault("%s is of %v and C of %v: they must be of one type", name, sparsek.DType(o.DType), sparsek.DType(c.DType))
}

func fault(format string, args ...any) error {
	return &sparsek.Error{Op: "check", Status: sparsek.ErrBadArgument, Msg: fmt.Sprintf(format, args...)}
}
