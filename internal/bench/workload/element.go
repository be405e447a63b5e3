// SPDX-License-Identifier: Apache-2.0

// Package workload sets up a block-sparse product from patterns or matrices, runs it, times it and checks it.
package workload

import (
	"math"
	"sync/atomic"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/half"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// Element is what there is to know of an element type.
type Element[T sparsek.Element] struct {
	Name   string // "bf16", "fp16", "fp32", "fp64" or "e4m3"
	Size   int    // bytes
	From64 func(float64) T
	// Encoding is the exact one in .npy files: NumPy has no bfloat16, so that one becomes f4.
	Encoding matio.Encoding[T]
}

// The element types.
var (
	BFloat16 = Element[sparsek.BFloat16]{
		"bf16", 2,
		half.BFloat16From64,
		matio.BFloat16,
	}
	Float16 = Element[sparsek.Float16]{
		"fp16", 2,
		half.Float16From64,
		matio.Float16,
	}
	Float32 = Element[float32]{
		"fp32", 4,
		func(x float64) float32 { return float32(x) },
		matio.Float32,
	}
	Float64 = Element[float64]{
		"fp64", 8,
		func(x float64) float64 { return x },
		matio.Float64,
	}
	// Float8E4M3 is of attention alone.
	Float8E4M3 = Element[sparsek.Float8E4M3]{
		Name: "e4m3", Size: 1,
		From64: half.Float8E4M3From64,
	}
)

// CountOverflow gives From64 with a counter of the finite values that became infinite. It may be called from several
// goroutines.
func (e Element[T]) CountOverflow(count *atomic.Int64) func(float64) T {
	return func(x float64) T {
		v := e.From64(x)
		if _, exact := any(v).(float64); !exact && math.IsInf(float64(sparsek.ToFloat32(v)), 0) && !math.IsInf(x, 0) {
			count.Add(1)
		}
		return v
	}
}
