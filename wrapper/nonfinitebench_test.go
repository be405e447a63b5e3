// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// BenchmarkNonFinite is the time of a product whose B holds Inf and NaN over that of the product with a finite B, by each
// kernel of a GPU: random patterns and windows, 12.5 %. Products that the kernel does not serve are left out.
func BenchmarkNonFinite(b *testing.B) {
	engine := newEngine(b, CUDA)
	for _, kernel := range must(engine.Library().Kernels())(b) {
		if kernel.DTypeB != 0 || kernel.DType == 0 {
			continue // as with one type; another library's
		}
		if kernel.DType == FP16 {
			continue // as bfloat16
		}
		switch kernel.DType {
		case BF16:
			benchmarkNonFinite[BFloat16](b, engine, kernel, 2048)
		case FP32:
			benchmarkNonFinite[float32](b, engine, kernel, 2048)
		case FP64:
			benchmarkNonFinite[float64](b, engine, kernel, 1024)
		}
	}
}

// nonFiniteTimed are those of nonFinite that are timed: columns of each tile, of each 8 columns of C, and all.
var nonFiniteTimed = []struct {
	name string
	of   func(row, col, k int) bool
	as   float64
}{
	{"one in each 256 columns", func(row, col, k int) bool { return row == k/2 && col%256 == 0 }, math.Inf(1)},
	{"one in each 8 columns", func(row, col, k int) bool { return row == (k/2+col*7)%k && col%8 == 0 }, math.Inf(1)},
	{"a row", func(row, _, k int) bool { return row == k/2 }, math.Inf(1)},
	{"all Inf", func(_, _, _ int) bool { return true }, math.Inf(1)},
	{"all NaN", func(_, _, _ int) bool { return true }, math.NaN()},
}

func benchmarkNonFinite[T Element](b *testing.B, engine *Engine, kernel Kernel, extent int) {
	blocks := nonFiniteBlocks(kernel)
	if strings.HasPrefix(kernel.Name, "packed_fp64_") || strings.HasPrefix(kernel.Name, "packed_fp32_") {
		blocks = [][2]int{{1, 1}, {3, 3}, {12, 12}}
	} else if strings.HasPrefix(kernel.Name, "packed_") {
		blocks = [][2]int{{4, 4}, {8, 8}, {12, 12}, {16, 16}, {32, 32}}
	} else if strings.HasPrefix(kernel.Name, "scatter_") {
		blocks = [][2]int{{1, 1}, {3, 3}, {8, 8}}
	} else if strings.HasPrefix(kernel.Name, "planes") {
		blocks = append(blocks, [2]int{16, 16}, [2]int{32, 32}, [2]int{64, 64})
	} else if strings.HasPrefix(kernel.Name, "simt_") || strings.HasPrefix(kernel.Name, "few_columns") {
		blocks = [][2]int{{4, 4}, {8, 8}, {16, 16}}
	}
	if strings.HasPrefix(kernel.Name, "packed_") || strings.HasPrefix(kernel.Name, "gather_") {
		extent *= 2
	}
	columns := extent
	if isSkinnyFMA(kernel) {
		columns = 16
	}
	for _, few := range []string{"skinny_bf16_64_16", "few_columns"} {
		if strings.HasPrefix(kernel.Name, few) {
			columns = 16
		}
	}
	for _, block := range blocks {
		for _, window := range []bool{false, true} {
			p := newProduct[T, int32](shape{rows: extent / block[0] * block[0], cols: extent / block[1] * block[1], n: columns, blockM: block[0], blockK: block[1], density: 0.125, alpha: 1, seed: 1})
			if window {
				p.setPattern(windows(len(p.a.RowPtr)-1, p.a.Cols/block[1]), func() T { return FromFloat32[T](0.5) })
			}
			name := fmt.Sprintf("%s/%dx%d,window=%v", kernel.Name, block[0], block[1], window)
			b.Run(name, func(b *testing.B) { timeNonFinite(b, engine, kernel, p, false) })
			if strings.HasPrefix(kernel.Name, "scatter_") {
				b.Run(name+",device values", func(b *testing.B) { timeNonFinite(b, engine, kernel, p, true) })
				few := newProduct[T, int32](shape{rows: p.a.Rows, cols: p.a.Cols, n: 128, blockM: 1, blockK: 1, alpha: 1, seed: 1})
				few.a = p.a // several CTAs share a tile of so few columns
				b.Run(name+",128 columns", func(b *testing.B) { timeNonFinite(b, engine, kernel, few, false) })
			}
		}
	}
}

// windows are blocks next to the diagonal, an eighth of each row.
func windows(rows, cols int) [][]int32 {
	pattern := make([][]int32, rows)
	for i := range pattern {
		width := max(1, cols/8)
		first := min(max(0, i*cols/rows-width/2), cols-width)
		for col := first; col < first+width; col++ {
			pattern[i] = append(pattern[i], int32(col))
		}
	}
	return pattern
}

// onDevice: A's values are in device memory, so that no plan keeps them as its kernel reads them.
func timeNonFinite[T Element](b *testing.B, engine *Engine, kernel Kernel, p *product[T, T, int32], onDevice bool) {
	ctx := b.Context()
	m := must(NewMatrix(ctx, engine, p.a))(b)
	defer m.Close()
	if onDevice {
		values := filled(b, engine, p.a.Values)
		defer values.Close()
		if err := SetDeviceValues(ctx, m, values); err != nil {
			b.Fatal(err)
		}
	}
	options := PlanOptions{N: p.n, Kernel: kernel.Name, Compute: computeOf(kernel.Name)}
	at := func(row, col int) int { return row*p.b.Stride + col }
	if options.Compute == TF32 { // reads B with K contiguous
		options.OrderB = ColumnMajor
		at = func(row, col int) int { return col*p.b.Rows + row }
	}
	plan, err := m.Plan(ctx, options)
	if err != nil {
		b.Skip(err)
	}
	defer plan.Close()
	in, out := must(NewBuffer[T](engine, len(p.b.Data)))(b), must(NewBuffer[T](engine, len(p.c0.Data)))(b)
	defer in.Close()
	defer out.Close()
	products := native.Products{Plan: plan.Native(), Alpha: 1, B: native.Addresses{uintptr(in.Pointer())},
		C: native.Addresses{uintptr(out.Pointer())}, Bias: native.Addresses{0}, X: native.Addresses{0}, Warmup: 3, Repeats: 11}
	median := func() float64 {
		if err := in.Write(ctx, p.b.Data); err != nil {
			b.Fatal(err)
		}
		seconds := must(engine.Library().Native().MultiplyTime(products))(b)
		slices.Sort(seconds)
		return seconds[len(seconds)/2] * 1e6
	}
	random := rand.New(rand.NewPCG(1, 1))
	for i := range p.b.Data {
		p.b.Data[i] = smallValue[T](random)
	}
	for b.Loop() {
		finite := median()
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(finite, "us")
		kept := slices.Clone(p.b.Data)
		for _, kind := range nonFiniteTimed {
			for row := range p.b.Rows {
				for col := range p.n {
					if kind.of(row, col, p.b.Rows) {
						p.b.Data[at(row, col)] = FromFloat32[T](float32(kind.as))
					}
				}
			}
			b.ReportMetric(median()/finite, strings.ReplaceAll(kind.name, " ", "_"))
			copy(p.b.Data, kept)
		}
	}
}
