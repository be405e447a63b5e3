// SPDX-License-Identifier: Apache-2.0

package roofline

import (
	"math"
	"testing"

	"github.com/sparsek/sparsek/internal/matrix/pattern"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*math.Abs(want) {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

// Two block rows of 64 x 64 that share a column: 3 blocks, 2 entries where they are merged, panels of 256 and 44
// columns.
func TestWork(t *testing.T) {
	c := Product{M: 128, N: 300, K: 256, BlockM: 64, BlockK: 64, ElementBytes: 2}
	p := bsr.Pattern{BlockRows: 2, BlockCols: 4, RowPtr: []int32{0, 2, 3}, ColIdx: []int32{0, 2, 2}}
	w := WorkOf(c, p, sparsek.PlanInfo{TileM: 128, TileN: 256, Entries: 2})
	near(t, "FLOP", w.FLOP, 2*3*64*64*300)
	near(t, "L2", w.L2, 2*(2*64*300+2*3*64*64))
	near(t, "DRAM", w.DRAM, 2*(3*64*64+2*64*300+128*300))
	if merged, alone := w, WorkOf(c, p, sparsek.PlanInfo{TileM: 64, TileN: 256, Entries: 3}); alone.L2 <= merged.L2 {
		t.Error("entries do not count")
	}
	// A border block brings no rows of B that there are not.
	p.ColIdx = []int32{0, 1, 2}
	p.RowPtr = []int32{0, 3, 3}
	p.BlockCols = 3
	c.K = 130
	near(t, "DRAM at the border", WorkOf(c, p, sparsek.PlanInfo{TileM: 128, TileN: 256}).DRAM, 2*(3*64*64+130*300+128*300))
}

// A block row of 256 in tiles of 128 rows: its entries are counted once, and each of the two tiles loads them.
func TestWorkOfTallBlocks(t *testing.T) {
	c := Product{M: 512, N: 256, K: 512, BlockM: 256, BlockK: 256, ElementBytes: 2}
	p := bsr.Pattern{BlockRows: 2, BlockCols: 2, RowPtr: []int32{0, 1, 3}, ColIdx: []int32{0, 0, 1}}
	w := WorkOf(c, p, sparsek.PlanInfo{TileM: 128, TileN: 256, Entries: 3})
	near(t, "L2", w.L2, 2*(2*3*256*256+3*256*256))
}

// The figures that were measured and worked out by hand for a wall: at blocks of 64, 8192^3, no sharing, a tile 64 x 256
// moves (64 + 256) * 64 * 2 bytes for 2 * 64 * 256 * 64 operations, 51.2 a byte.
func TestBoundsOfSmallBlocks(t *testing.T) {
	generate := func(density float64) bsr.Pattern {
		p, err := pattern.Generate(pattern.Spec{Name: "random", BlockRows: 128, BlockCols: 128, Density: density, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := generate(0.125)
	c := Product{M: 8192, N: 8192, K: 8192, BlockM: 64, BlockK: 64, ElementBytes: 2}
	w := WorkOf(c, p, sparsek.PlanInfo{TileM: 64, TileN: 256, Entries: int64(p.Blocks())})
	near(t, "operations a byte", w.FLOP/w.L2, 51.2)
	bounds := w.Bounds(Ceilings{700e12, l2Rate, dramRateH200})
	if len(bounds) != 3 || bounds[0].Name != "L2" || bounds[1].Name != "tensor" || bounds[2].Name != "DRAM" {
		t.Errorf("bounds are %+v", bounds)
	}
	near(t, "L2 bound", bounds[0].Seconds, w.L2/10.3e12)
	if bounds = w.Bounds(Ceilings{300e12, l2Rate, dramRateH200}); bounds[0].Name != "tensor" {
		t.Errorf("bounds are %+v", bounds)
	}
	near(t, "tensor bound", bounds[0].Seconds, w.FLOP/300e12)
	c.ElementBytes = 4
	near(t, "bytes of fp32", WorkOf(c, p, sparsek.PlanInfo{TileM: 64, TileN: 256, Entries: int64(p.Blocks())}).DRAM, 2*w.DRAM)

	p, c.N, c.ElementBytes = generate(0.2), 16, 2
	w = WorkOf(c, p, sparsek.PlanInfo{TileM: 64, TileN: 256, Entries: int64(p.Blocks())})
	if bounds = w.Bounds(H200()); bounds[0].Name != "DRAM" || math.Abs(bounds[0].Seconds-6.4e-6) > 0.3e-6 {
		t.Errorf("decode: bounds are %+v, want DRAM with about 6.4 us", bounds)
	}
}

// What NVIDIA states for dense bfloat16 on an H200 (SXM), at the clock that it states it for.
func TestTensorRate(t *testing.T) {
	if rate := tensorRate(132, 1.83e9); math.Abs(rate-989.4e12) > 0.1e12 {
		t.Errorf("%g FLOP/s", rate)
	}
	near(t, "an H200", H200().Tensor, 4096*132*1.98e9)
	half := CeilingsOf(sparsek.DeviceInfo{SMs: 66, ClockHz: 1980e6})
	near(t, "half of one", half.Tensor, H200().Tensor/2)
	if half.L2 != l2Rate || half.DRAM != dramRateH200 || CeilingsOf(sparsek.DeviceInfo{SMs: 132}) != H200() {
		t.Errorf("%+v", half)
	}
	if h100 := CeilingsOf(sparsek.DeviceInfo{Name: "NVIDIA H100 80GB HBM3", SMs: 132}); h100.DRAM != dramRateH100 || h100.L2 != l2Rate {
		t.Errorf("an H100: %+v", h100)
	}
}

// What every kernel has to move of few columns, and the operations of many, by type.
func TestOfAnyKernel(t *testing.T) {
	chip := Ceilings{Tensor: 600e12, DRAM: 4e12}
	o := Operands{Values: 1e6, Index: 1e4, B: 1e3, C: 2e3, N: 1, ElementBytes: 4}
	few := OfAnyKernel(chip, o)
	near(t, "few columns", few.Seconds, (4*(1e6+3e3)+4e4)/4e12)
	for size, rate := range map[int]float64{2: 600e12, 4: 100e12, 8: 37.5e12} {
		o := Operands{Values: 1e6, B: 1e6, C: 1e6, N: 4096, ElementBytes: size}
		many := OfAnyKernel(chip, o)
		near(t, "many columns", many.Seconds, 2*1e6*4096/rate)
		if few.Name != "DRAM" || many.Name != "tensor" {
			t.Errorf("bound by %s, then by %s", few.Name, many.Name)
		}
	}
}
