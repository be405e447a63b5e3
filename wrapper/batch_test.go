// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

// wholeNumbers is a matrix of small whole numbers, with gaps between its rows.
func wholeNumbers[T Element](rows, cols, stride, seed int) Dense[T] {
	d := Dense[T]{Rows: rows, Cols: cols, Stride: stride, Data: make([]T, rows*stride)}
	for i := range d.Data {
		d.Data[i] = FromFloat32[T](float32((i*7+seed*13)%11 - 5))
	}
	return d
}

// part is product i of a batch's operand, or all of it where the products share it.
func part[T Element](d Dense[T], rows, i int) Dense[T] {
	if d.Rows == rows {
		return d
	}
	return Dense[T]{Rows: rows, Cols: d.Cols, Stride: d.Stride, Data: d.Data[i*rows*d.Stride : (i+1)*rows*d.Stride]}
}

// A batch computes what its products do alone, whichever operands they share.
func TestBatch(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		const batch, n = 3, 24
		for _, bias := range []Bias{RowBias, ColumnBias} {
			p := newProduct[BFloat16, int32](shape{rows: 192, cols: 128, n: n, blockM: 32, blockK: 32, density: 0.5, alpha: 1, seed: 9})
			m := must(NewMatrix(context.Background(), engine, p.a))(t)
			plan := must(m.Plan(context.Background(), PlanOptions{N: n, Output: FP32, Bias: bias, Alignment: 2, OwnKernels: true}))(t)
			biasRows, biasCols := p.a.Rows, 1
			if bias == ColumnBias {
				biasRows, biasCols = 1, n
			}
			for shared := range 16 {
				times := func(bit int) int {
					if shared>>bit&1 != 0 {
						return 1
					}
					return batch
				}
				b := wholeNumbers[BFloat16](times(0)*p.a.Cols, n, n+8, 1)
				biases := wholeNumbers[float32](times(1)*biasRows, biasCols, biasCols, 2)
				values := wholeNumbers[BFloat16](times(2)*len(p.a.ColIdx)*32, 32, 32, 3)
				input := wholeNumbers[float32](batch*p.a.Rows, n, n+4, 4)
				if times(3) == 1 {
					input = wholeNumbers[float32](1, n, n+4, 4)
				}
				c, want := wholeNumbers[float32](batch*p.a.Rows, n, n+4, 5), wholeNumbers[float32](batch*p.a.Rows, n, n+4, 5)
				o := Operands{B: b, C: c, Bias: biases, Values: values, Input: input, Batch: batch}
				if err := plan.Multiply(context.Background(), 2, -1, o); err != nil {
					t.Fatal(err)
				}
				for i := range batch {
					one := Operands{B: part(b, p.a.Cols, i), C: part(want, p.a.Rows, i), Bias: part(biases, biasRows, i),
						Values: part(values, len(p.a.ColIdx)*32, i), Input: input}
					if times(3) != 1 {
						one.Input = part(input, p.a.Rows, i)
					}
					if err := plan.Multiply(context.Background(), 2, -1, one); err != nil {
						t.Fatal(err)
					}
				}
				if !slices.Equal(c.Data, want.Data) {
					t.Errorf("%v bias, shared %04b: another result than product by product", bias, shared)
				}
			}
			c := wholeNumbers[float32](p.a.Rows, n, n, 5)
			o := Operands{B: wholeNumbers[BFloat16](p.a.Cols, n, n, 1), C: c, Bias: wholeNumbers[float32](biasRows, biasCols, biasCols, 2), Batch: batch}
			wantFault(t, plan.Multiply(context.Background(), 1, 0, o), ErrBadSize, fmt.Sprintf("C is 192 x 24 where %d x 24 is needed", batch*192))
			o.Batch = -1
			wantFault(t, plan.Multiply(context.Background(), 1, 0, o), ErrBadSize, "Batch is -1")
			plan.Close()
			m.Close()
		}
	})
}

// A product may work in memory of its caller.
func TestOwnWorkspace(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		p := newProduct[BFloat16, int32](shape{rows: 192, cols: 128, n: 25, blockM: 32, blockK: 32, density: 0.5, alpha: 1, seed: 9})
		m := must(NewMatrix(context.Background(), engine, p.a))(t)
		defer m.Close()
		plan := must(m.Plan(context.Background(), p.planOptions(2)))(t) // rows of B at odd places are copied to a workspace
		defer plan.Close()
		bytes := int(plan.Info().ProductBytes)
		if engine.Info().Backend == CPU {
			if bytes != 0 {
				t.Errorf("ProductBytes is %d on the CPU", bytes)
			}
			return
		}
		if plan.Info().Kernel == "gather_bf16_128_256" && bytes == 0 {
			t.Errorf("the product of %s works in no memory", plan.Info().Kernel)
		}
		multiply := func(floats int) (Dense[BFloat16], error) {
			c := p.c0
			c.Data = slices.Clone(c.Data)
			workspace := must(NewBuffer[float32](engine, floats))(t)
			defer workspace.Close()
			return c, plan.Multiply(context.Background(), 1, 0, Operands{B: p.b, C: c, Workspace: DeviceDense[float32]{Rows: 1, Cols: floats, Buffer: workspace}})
		}
		c, err := multiply(bytes/4 + 64)
		if err != nil {
			t.Fatal(err)
		}
		p.verify(t, engine, plan.Info(), c)
		if bytes > 4 {
			_, err = multiply(bytes/4 - 1)
			wantFault(t, err, ErrBadSize, "workspace_bytes")
		}
		o := Operands{B: p.b, C: p.c0, Workspace: wholeNumbers[float32](1, bytes/4+64, bytes/4+64, 0)}
		wantFault(t, plan.Multiply(context.Background(), 1, 0, o), ErrWrongMemory, "Workspace is in host memory")
	})
}
