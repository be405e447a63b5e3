// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"math"

	"github.com/sparsek/sparsek/wrapper/half"
)

// BFloat16 is the bit pattern of a bfloat16: 1 sign, 8 exponent and 7 fraction bits. Package half converts slices.
type BFloat16 = half.BFloat16

// Float16 is the bit pattern of an IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits. Package half converts
// slices.
type Float16 = half.Float16

// Float8E4M3 is the bit pattern of an E4M3 of OCP's FP8: 1 sign, 4 exponent and 3 fraction bits, no infinities. Package half
// converts slices.
type Float8E4M3 = half.Float8E4M3

// Element is the type of the elements of A, B and C. Products are accumulated in float32, those of float64 in float64.
// B, C and the bias are all of float64, or none. A may be of a narrower type than B ([PlanOptions].DTypeB): of BFloat16 or
// Float16 with a B of float32, and of any other type with a B of float64. Float8E4M3 is for Q, K and V of [Attention.Forward]
// alone: [ErrUnsupportedDType] elsewhere.
type Element interface {
	BFloat16 | Float16 | float32 | float64 | Float8E4M3
}

// Index is the type of a matrix's row pointers and column indices.
type Index interface {
	int16 | int32 | int64
}

// ToBFloat16 rounds to nearest, ties to even; values beyond the largest finite one become infinite.
func ToBFloat16(x float32) BFloat16 { return half.ToBFloat16(x) }

// ToFloat16 rounds to nearest, ties to even; values beyond the largest finite one become infinite.
func ToFloat16(x float32) Float16 { return half.ToFloat16(x) }

// ToFloat8E4M3 rounds to nearest, ties to even; values beyond the largest one, 448, become that of their sign.
func ToFloat8E4M3(x float32) Float8E4M3 { return half.ToFloat8E4M3(x) }

// FromFloat32 gives the T nearest to x, as [ToBFloat16], [ToFloat16] and [ToFloat8E4M3] do.
func FromFloat32[T Element](x float32) T {
	var out T
	switch p := any(&out).(type) {
	case *BFloat16:
		*p = ToBFloat16(x)
	case *Float16:
		*p = ToFloat16(x)
	case *Float8E4M3:
		*p = ToFloat8E4M3(x)
	case *float32:
		*p = x
	case *float64:
		*p = float64(x)
	}
	return out
}

// ToFloat32 gives the value of x, exactly, or for float64 the nearest float32.
func ToFloat32[T Element](x T) float32 {
	switch v := any(x).(type) {
	case BFloat16:
		return v.Float32()
	case Float16:
		return v.Float32()
	case Float8E4M3:
		return v.Float32()
	case float32:
		return v
	case float64:
		return float32(v)
	}
	return float32(math.NaN()) // not reached: Element has no other type
}
