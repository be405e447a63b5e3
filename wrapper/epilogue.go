// SPDX-License-Identifier: Apache-2.0

package sparsek

import "fmt"

// DType names a type of elements where it is chosen at run time.
type DType int32

// The types of elements.
const (
	BF16 DType = 1 // BFloat16
	FP16 DType = 2 // Float16
	FP32 DType = 3 // float32
	FP64 DType = 4 // float64: where B is of it, so are C and the bias, and only then
	E4M3 DType = 5 // Float8E4M3: of Q, K and V of attention's forward pass alone
)

func (d DType) String() string {
	switch d {
	case BF16:
		return "bf16"
	case FP16:
		return "fp16"
	case FP32:
		return "fp32"
	case FP64:
		return "fp64"
	case E4M3:
		return "e4m3"
	}
	return fmt.Sprintf("DType(%d)", int32(d))
}

// DTypeOf names T.
func DTypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case BFloat16:
		return BF16
	case Float16:
		return FP16
	case float64:
		return FP64
	case Float8E4M3:
		return E4M3
	}
	return FP32
}

// size is in bytes; 0 where there is no such type.
func (d DType) size() int {
	switch d {
	case E4M3:
		return 1
	case BF16, FP16:
		return 2
	case FP32:
		return 4
	case FP64:
		return 8
	}
	return 0
}

// Bias says which elements of C a bias belongs to.
type Bias int32

// The kinds of bias.
const (
	NoBias     Bias = 0
	RowBias    Bias = 1 // M x 1: one value for each row of C
	ColumnBias Bias = 2 // 1 x N: one value for each column of C
)

func (b Bias) String() string {
	switch b {
	case NoBias:
		return "none"
	case RowBias:
		return "row"
	case ColumnBias:
		return "column"
	}
	return fmt.Sprintf("Bias(%d)", int32(b))
}

// Activation is a function that each element of C goes through, in float32, before it is rounded. NaN stays NaN, Inf stays
// Inf, and -Inf becomes 0 (without an activation it stays -Inf).
type Activation int32

// The activations.
const (
	NoActivation Activation = 0
	ReLU         Activation = 1 // max(x, 0)
	GELU         Activation = 2 // x/2 (1 + erf(x / sqrt 2)), not its approximation by tanh
	SiLU         Activation = 3 // x / (1 + exp(-x))
)

func (a Activation) String() string {
	switch a {
	case NoActivation:
		return "none"
	case ReLU:
		return "relu"
	case GELU:
		return "gelu"
	case SiLU:
		return "silu"
	}
	return fmt.Sprintf("Activation(%d)", int32(a))
}

// Compute says how elements of A and B are multiplied.
type Compute int32

// The ways to multiply.
const (
	// Exact multiplies float32 with an error like that of a chain of fused multiply-adds in float32, and float64 of ones
	// in float64. Products of 16-bit elements are exact.
	Exact Compute = 0
	// TF32 allows a kernel for float32 to round elements of A and B to TF32 first, which has 10 bits of fraction:
	// [PlanInfo].ProductRoundoff says what that costs. On the CPU products are as with Exact, and kernels for GPUs do
	// not serve it yet.
	TF32 Compute = 1
)

func (c Compute) String() string {
	switch c {
	case Exact:
		return "exact"
	case TF32:
		return "tf32"
	}
	return fmt.Sprintf("Compute(%d)", int32(c))
}

// checkBias makes sure that o is a bias of that kind for a C of rows x cols, or biases of columns for several of them.
func (o *operand) checkBias(op string, kind Bias, rows, cols, ofColumns int) error {
	if kind == RowBias {
		cols = 1
	} else {
		rows = ofColumns
	}
	if err := o.check(op, "the bias", rows, cols, -1); err != nil {
		return err
	}
	count, length := o.lines()
	turned := o.order == ColumnMajor && count > 1 && length > 1
	if turned || count > 1 && o.stride != length {
		return fault(op, ErrBadLeadingDimension, "the bias is %v with a stride of %d: its values must lie one after the other", o.order, o.stride)
	}
	return nil
}
