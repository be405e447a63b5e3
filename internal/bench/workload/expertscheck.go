// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"math"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Check runs a step and makes sure that it wrote each row that a token has, and that the first, a middle and the last row of
// each expert hold what they should: H of X and W1, and Y of H as it is and W2, in some of their columns.
func (r *ExpertsRun[T]) Check(ctx context.Context) error {
	const nan = 0xff // in every byte
	h, y := make([]T, r.h.Rows*r.h.Cols), make([]T, r.y.Rows*r.y.Cols)
	if err := errors.Join(r.h.Buffer.Fill(ctx, nan), r.y.Buffer.Fill(ctx, nan)); err != nil {
		return err
	}
	if err := errors.Join(r.step(ctx, r.stream), r.stream.Wait(ctx), r.h.Buffer.Read(ctx, h), r.y.Buffer.Read(ctx, y)); err != nil {
		return err
	}
	row := 0
	for i, n := range r.Counts() {
		tokens := int(n)
		if at := firstNaN(y[row*r.Width : (row+tokens)*r.Width]); at >= 0 {
			return fmt.Errorf("%w: Y[%d, %d] is NaN or was not written", ErrWrong, row+at/r.Width, at%r.Width)
		}
		for _, one := range []int{0, tokens / 2, tokens - 1} {
			if tokens == 0 {
				break
			}
			if err := r.checkRow(i, row+one, h, y); err != nil {
				return err
			}
		}
		row += blocksIn(tokens, r.Block) * r.Block
	}
	return nil
}

// columnsChecked are so many of H and of Y in a row.
const columnsChecked = 16

func (r *ExpertsRun[T]) checkRow(expert, row int, h, y []T) error {
	x, w1, w2 := r.hostX()[row*r.Width:], r.hostW1()[expert*r.Hidden*r.Width:], r.hostW2()[expert*r.Hidden*r.Width:]
	of := func(col int) float64 { // an element of H
		across := r.Hidden / r.Block
		block := row/r.Block*across + col/r.Block
		return float64(sparsek.ToFloat32(h[(block*r.Block+row%r.Block)*r.Block+col%r.Block]))
	}
	verify := func(name string, col int, got float64, terms int, term func(k int) (a, b float64), act func(float64) float64) error {
		var sum, magnitude float64
		for k := range terms {
			a, b := term(k)
			sum += a * b
			magnitude += math.Abs(a * b)
		}
		want := act(sum)
		// 1.13: the steepest of GELU. The sums are in fp32; the last term is for how GELU is computed.
		tolerance := 1.13*float64(terms+4)*math.Ldexp(magnitude, -23) + rounding[T]()*math.Abs(want) + math.Ldexp(4+math.Abs(sum), -20)
		if !(math.Abs(got-want) <= tolerance) {
			return fmt.Errorf("%w: %s[%d, %d] = %g, want %g within %g", ErrWrong, name, row, col, got, want, tolerance)
		}
		return nil
	}
	value := func(v T) float64 { return float64(sparsek.ToFloat32(v)) }
	for i := range columnsChecked {
		col := i * r.Hidden / columnsChecked
		if err := verify("H", col, of(col), r.Width, func(k int) (float64, float64) { return value(x[k]), value(w1[col*r.Width+k]) }, gelu); err != nil {
			return err
		}
		col = i * r.Width / columnsChecked
		if err := verify("Y", col, value(y[row*r.Width+col]), r.Hidden, func(k int) (float64, float64) { return of(k), value(w2[k*r.Width+col]) },
			func(x float64) float64 { return x }); err != nil {
			return err
		}
	}
	return nil
}

func gelu(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }

// rounding is the largest relative error of rounding to T.
func rounding[T sparsek.Element]() float64 {
	switch sparsek.DTypeOf[T]() {
	case sparsek.BF16:
		return math.Ldexp(1, -8)
	case sparsek.FP16:
		return math.Ldexp(1, -11)
	}
	return math.Ldexp(1, -24)
}
