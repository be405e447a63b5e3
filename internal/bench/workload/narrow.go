// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"math"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/check"
)

// NarrowA rounds A to a type that is narrower than T, in which the library then gets it, and counts the finite values that
// became infinite.
func (p *Problem[T]) NarrowA(to sparsek.DType) (overflows int64) {
	p.narrow = to
	switch to {
	case sparsek.BF16:
		return round(p.A.Values, BFloat16)
	case sparsek.FP16:
		return round(p.A.Values, Float16)
	}
	return round(p.A.Values, Float32)
}

func round[T, A sparsek.Element](values []T, to Element[A]) (overflows int64) {
	for i, v := range values {
		x := float64Of(v)
		rounded := float64Of(to.From64(x))
		if math.IsInf(rounded, 0) && !math.IsInf(x, 0) {
			overflows++
		}
		values[i] = of64[T](rounded)
	}
	return overflows
}

func float64Of[T sparsek.Element](v T) float64 {
	if x, ok := any(v).(float64); ok {
		return x
	}
	return float64(sparsek.ToFloat32(v))
}

// of64 is x in T, which holds it exactly.
func of64[T sparsek.Element](x float64) T {
	var out T
	if p, ok := any(&out).(*float64); ok {
		*p = x
		return out
	}
	return sparsek.FromFloat32[T](float32(x))
}

// typed is A in the type in which the library gets it.
type typed interface {
	take(ctx context.Context, engine *sparsek.Engine) (*sparsek.Matrix, error)
	check(lib *sparsek.Library, args check.Args) (check.Report, error)
}

func (p *Problem[T]) matrix() typed {
	switch p.narrow {
	case sparsek.BF16:
		return converted[sparsek.BFloat16](p.A)
	case sparsek.FP16:
		return converted[sparsek.Float16](p.A)
	case sparsek.FP32:
		return converted[float32](p.A)
	}
	return matrixOf[T](sparsek.BSROf(p.A))
}

func converted[A, T sparsek.Element](a bsr.Matrix[T]) matrixOf[A] {
	values := make([]A, len(a.Values))
	for i, v := range a.Values {
		values[i] = sparsek.FromFloat32[A](sparsek.ToFloat32(v))
	}
	return matrixOf[A](sparsek.BSROf(bsr.Matrix[A]{Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK, Pattern: a.Pattern, Values: values}))
}

type matrixOf[A sparsek.Element] sparsek.BSR[A, int32]

func (m matrixOf[A]) take(ctx context.Context, engine *sparsek.Engine) (*sparsek.Matrix, error) {
	return sparsek.NewMatrix(ctx, engine, sparsek.BSR[A, int32](m))
}

func (m matrixOf[A]) check(lib *sparsek.Library, args check.Args) (check.Report, error) {
	return check.Product(lib, sparsek.BSR[A, int32](m), args)
}
