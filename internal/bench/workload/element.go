// SPDX-License-Identifier: Apache-2.0

// Package workload sets up a block-sparse product from patterns or matrices, runs it, times it and checks it.
package workload

import (
	"encoding/binary"
	"math"
	"sync/atomic"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/half"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// Element is what there is to know of an element type.
type Element[T sparsek.Element] struct {
	Name   string // "bf16", "fp16" or "fp32"
	Size   int    // bytes
	From64 func(float64) T
	// Encoding is the exact one in .npy files: NumPy has no bfloat16, so that one becomes f4.
	Encoding matio.Encoding[T]
}

// The element types.
var (
	BFloat16 = Element[sparsek.BFloat16]{
		"bf16", 2,
		func(x float64) sparsek.BFloat16 { return sparsek.BFloat16(half.BFloat16From64(x)) },
		matio.Encoding[sparsek.BFloat16]{Type: "<f4", Size: 4, Put: func(dst []byte, v sparsek.BFloat16) {
			binary.LittleEndian.PutUint32(dst, math.Float32bits(v.Float32()))
		}},
	}
	Float16 = Element[sparsek.Float16]{
		"fp16", 2,
		func(x float64) sparsek.Float16 { return sparsek.Float16(half.Float16From64(x)) },
		matio.Encoding[sparsek.Float16]{Type: "<f2", Size: 2, Put: func(dst []byte, v sparsek.Float16) {
			binary.LittleEndian.PutUint16(dst, uint16(v))
		}},
	}
	Float32 = Element[float32]{
		"fp32", 4,
		func(x float64) float32 { return float32(x) },
		matio.Encoding[float32]{Type: "<f4", Size: 4, Put: func(dst []byte, v float32) {
			binary.LittleEndian.PutUint32(dst, math.Float32bits(v))
		}},
	}
)

// CountOverflow gives From64 with a counter of the finite values that became infinite. It may be called from several
// goroutines.
func (e Element[T]) CountOverflow(count *atomic.Int64) func(float64) T {
	return func(x float64) T {
		v := e.From64(x)
		if math.IsInf(float64(sparsek.ToFloat32(v)), 0) && !math.IsInf(x, 0) {
			count.Add(1)
		}
		return v
	}
}
