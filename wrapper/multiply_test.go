// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// blocks are those that each back-end must serve: any. The kernels of the GPU are for the large ones.
var blocks = rapid.SampledFrom([][2]int{{1, 1}, {1, 4}, {3, 3}, {8, 8}, {5, 16}, {16, 16}, {32, 16}, {16, 64}, {48, 80}, {96, 32}, {112, 16}, {144, 48}, {64, 64}, {64, 128}, {128, 64}, {128, 128}, {256, 64}})

func drawShape(t *rapid.T) shape {
	block := blocks.Draw(t, "block")
	extent := func(block int, name string) int {
		whole := rapid.IntRange(0, 5).Draw(t, name)
		return max(0, whole*block-rapid.IntRange(0, block-1).Draw(t, name+" short of whole blocks"))
	}
	gap := rapid.OneOf(rapid.SampledFrom([]int{0, 8}), rapid.IntRange(0, 9))
	scalar := rapid.SampledFrom([]float32{0, 1, -1, 0.5, 2.25})
	return shape{
		rows: extent(block[0], "rows"), cols: extent(block[1], "cols"), n: rapid.OneOf(rapid.IntRange(1, 150), rapid.SampledFrom([]int{8, 64, 128, 256})).Draw(t, "n"),
		blockM: block[0], blockK: block[1],
		density: rapid.SampledFrom([]float64{0, 0.1, 0.5, 1}).Draw(t, "density"),
		gapB:    gap.Draw(t, "gap of B"), gapC: gap.Draw(t, "gap of C"),
		alpha: scalar.Draw(t, "alpha"), beta: scalar.Draw(t, "beta"),
		seed: rapid.Uint64().Draw(t, "seed"),
	}
}

func drawEpilogue(t *rapid.T) (Bias, Activation) {
	return rapid.SampledFrom([]Bias{NoBias, RowBias, ColumnBias}).Draw(t, "bias"),
		rapid.SampledFrom([]Activation{NoActivation, ReLU, GELU, SiLU}).Draw(t, "activation")
}

// spoil draws where B holds NaN and Inf, if anywhere.
func spoil[T, C Element, I Index](t *rapid.T, p *product[T, C, I]) {
	switch rapid.SampledFrom([]string{"nowhere", "where no block reads", "anywhere"}).Draw(t, "NaN and Inf in B") {
	case "where no block reads":
		p.poison()
	case "anywhere":
		p.scatter(rapid.Uint64().Draw(t, "seed of NaN and Inf"))
	}
}

func testProducts[T Element, I Index](t *testing.T, engine *Engine) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawShape(rt)
		// The kernels without an epilogue of their own have their turn in most products.
		if rapid.Bool().Draw(rt, "plain") {
			testProduct[T, T, I](rt, engine, s)
			return
		}
		s.bias, s.activation = drawEpilogue(rt)
		switch rapid.SampledFrom([]DType{BF16, FP16, FP32}).Draw(rt, "type of C") {
		case BF16:
			testProduct[T, BFloat16, I](rt, engine, s)
		case FP16:
			testProduct[T, Float16, I](rt, engine, s)
		case FP32:
			testProduct[T, float32, I](rt, engine, s)
		}
	})
}

func testProduct[T, C Element, I Index](t *rapid.T, engine *Engine, s shape) PlanInfo {
	p := newProductTo[T, C, I](s)
	spoil(t, p)
	c, info := p.run(t, engine, rapid.Bool().Draw(t, "in device memory"))
	p.verify(t, engine, info, c)
	return info
}

func TestProducts(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		t.Run("bf16", func(t *testing.T) { testProducts[BFloat16, int32](t, engine) })
		t.Run("fp16", func(t *testing.T) { testProducts[Float16, int64](t, engine) })
		t.Run("fp32", func(t *testing.T) { testProducts[float32, int32](t, engine) })
	})
}

// A, B and C of float64, summed in float64.
func TestDoubleProducts(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		rapid.Check(t, func(rt *rapid.T) {
			s := drawShape(rt)
			s.bias, s.activation = drawEpilogue(rt)
			info := testProduct[float64, float64, int64](rt, engine, s)
			if info.UnitRoundoff != 0x1p-53 {
				rt.Fatalf("unit roundoff %g", info.UnitRoundoff)
			}
		})
	})
}

// The same bits of one kernel, however many columns there are behind.
func TestDoubleColumnsSameBits(t *testing.T) {
	engine := newEngine(t, CPU)
	p := newProduct[float64, int32](shape{rows: 98, cols: 90, n: 77, blockM: 7, blockK: 5, density: 0.4, alpha: 1, seed: 5,
		kernel: "cpu_" + engine.Info().ISA})
	random := rand.New(rand.NewPCG(5, 1))
	for _, list := range [][]float64{p.a.Values, p.b.Data} {
		for i := range list {
			list[i] = random.NormFloat64()
		}
	}
	whole, _ := p.run(t, engine, false)
	for _, n := range []int{13, 3, 2, 1} {
		p.n, p.b.Cols, p.c0.Cols = n, n, n
		part, _ := p.run(t, engine, false)
		for i := range part.Rows {
			for j := range part.Cols {
				if got, want := part.Data[i*part.Stride+j], whole.Data[i*whole.Stride+j]; got != want {
					t.Fatalf("C[%d, %d] = %v with %d columns and %v with 77", i, j, got, n, want)
				}
			}
		}
	}
}

// The check of float64 sees an error of 1e-11.
func TestDoubleCheck(t *testing.T) {
	engine := newEngine(t, CPU)
	p := newProduct[float64, int32](shape{rows: 60, cols: 90, n: 9, blockM: 6, blockK: 5, density: 0.4, alpha: 0.5, beta: 2, seed: 6, bias: RowBias, activation: SiLU})
	c, info := p.run(t, engine, false)
	p.verify(t, engine, info, c)
	c.Data[3*c.Stride+4] += 1e-11
	report, err := check.Product(engine.Library(), p.a, check.Args{B: p.b, C0: p.c0, C: c, Alpha: p.alpha, Beta: p.beta,
		BiasKind: p.biasKind, Bias: p.bias, Activation: p.activation, UnitRoundoff: info.UnitRoundoff})
	if !errors.Is(err, ErrCheckFailed) || report.Failures != 1 || report.FirstRow != 3 || report.FirstCol != 4 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestDoubleFaults(t *testing.T) {
	a := BSR[float64, int64]{Rows: 4, Cols: 6, BlockM: 2, BlockK: 3, RowPtr: []int64{0, 1, 3}, ColIdx: []int64{1, 0, 1}, Values: make([]float64, 18)}
	engine := newEngine(t, CPU)
	matrix := must(NewMatrix(t.Context(), engine, a))(t)
	_, err := matrix.Plan(t.Context(), PlanOptions{N: 8, Output: FP32})
	wantFault(t, err, ErrUnsupportedDType, "C is of SPARSEK_FP64 (4) where B is")
	_, err = must(NewMatrix(t.Context(), engine, small()))(t).Plan(t.Context(), PlanOptions{N: 8, Output: FP64})
	wantFault(t, err, ErrUnsupportedDType, "and only then")
}

// The shapes that the tensor-core kernels are for: whole tiles, aligned.
func TestWholeTiles(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		for _, block := range []int{64, 128} {
			p := newProduct[BFloat16, int32](shape{rows: 384, cols: 384, n: 256, blockM: block, blockK: block,
				density: 0.3, alpha: 1, beta: 0.5, seed: 3})
			for _, onDevice := range []bool{false, true} {
				c, info := p.run(t, engine, onDevice)
				p.verify(t, engine, info, c)
				t.Logf("blocks of %d: kernel %s", block, info.Kernel)
			}
		}
	})
}

// NaN and Inf in rows of B that no block reads, and in a C that is not to be read, never reach C.
func TestAbsentBlocksDoNotLeak(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		for seed := range uint64(4) {
			for _, block := range []int{3, 64, 128} {
				p := newProduct[Float16, int32](shape{rows: 4 * block, cols: 6 * block, n: 72, blockM: block, blockK: block,
					density: 0.2, alpha: 2, seed: seed})
				p.poison()
				c, info := p.run(t, engine, true)
				p.verify(t, engine, info, c)
			}
		}
	})
}

// A matrix may be in the device's memory already. On the CPU there is no such memory.
func TestMatrixInDeviceMemory(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		p := newProduct[BFloat16, int32](shape{rows: 256, cols: 192, n: 64, blockM: 64, blockK: 64, density: 0.7, alpha: 1, beta: 1, seed: 4})
		rowPtr, colIdx, values := upload(t, engine, p.a.RowPtr), upload(t, engine, p.a.ColIdx), upload(t, engine, p.a.Values)
		a := DeviceBSR[BFloat16, int32]{Rows: p.a.Rows, Cols: p.a.Cols, BlockM: p.a.BlockM, BlockK: p.a.BlockK,
			RowPtr: rowPtr, ColIdx: colIdx, Values: values}
		m, err := NewDeviceMatrix(context.Background(), engine, a)
		if engine.Info().Backend == CPU {
			wantFault(t, err, ErrWrongMemory, "")
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		plan := must(m.Plan(context.Background(), PlanOptions{N: p.n}))(t)
		defer plan.Close()
		for range 2 {
			c := p.newC()
			if err := plan.Multiply(context.Background(), p.alpha, p.beta, Operands{B: p.b, C: c}); err != nil {
				t.Fatal(err)
			}
			p.verify(t, engine, plan.Info(), c)
			for i := range p.a.Values {
				p.a.Values[i] = FromFloat32[BFloat16](2 * p.a.Values[i].Float32())
			}
			if err := SetDeviceValues(context.Background(), m, upload(t, engine, p.a.Values)); err != nil {
				t.Fatal(err)
			}
		}

		p.a.ColIdx[len(p.a.ColIdx)-1] = 3
		if err := colIdx.Write(context.Background(), p.a.ColIdx); err != nil {
			t.Fatal(err)
		}
		_, err = NewDeviceMatrix(context.Background(), engine, a)
		wantFault(t, err, ErrColIdxRange, "col_idx[")
		a.RowPtr = colIdx
		_, err = NewDeviceMatrix(context.Background(), engine, a)
		wantFault(t, err, ErrBadSize, "RowPtr has")
	})
}

func upload[T Element | Index | byte](t *testing.T, engine *Engine, data []T) *DeviceBuffer[T] {
	buffer := must(NewBuffer[T](engine, len(data)))(t)
	if err := buffer.Write(context.Background(), data); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { buffer.Close() })
	return buffer
}
