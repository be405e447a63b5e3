// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/sparsek/sparsek/internal/matrix/pattern"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/internal/abitest"

	. "github.com/sparsek/sparsek/wrapper"
)

// shuffledRows is a pattern whose block rows come in a random order.
func shuffledRows(p bsr.Pattern, seed uint64) bsr.Pattern {
	out := bsr.Pattern{RowPtr: []int32{0}}
	for _, row := range rand.New(rand.NewPCG(seed, 3)).Perm(len(p.RowPtr) - 1) {
		out.ColIdx = append(out.ColIdx, p.ColIdx[p.RowPtr[row]:p.RowPtr[row+1]]...)
		out.RowPtr = append(out.RowPtr, int32(len(out.ColIdx)))
	}
	return out
}

// withoutRows is a pattern some of whose block rows lost their blocks.
func withoutRows(p bsr.Pattern, seed uint64) bsr.Pattern {
	random := rand.New(rand.NewPCG(seed, 4))
	out := bsr.Pattern{RowPtr: []int32{0}}
	for row := range len(p.RowPtr) - 1 {
		if random.IntN(3) > 0 {
			out.ColIdx = append(out.ColIdx, p.ColIdx[p.RowPtr[row]:p.RowPtr[row+1]]...)
		}
		out.RowPtr = append(out.RowPtr, int32(len(out.ColIdx)))
	}
	return out
}

// rowsPlan is what a plan that is not used tells of the rows that share tiles.
type rowsPlan struct {
	digest         uint64
	tiles, entries int64
}

func planOf(t *testing.T, m *Matrix, opts PlanOptions) rowsPlan {
	plan := must(m.Plan(context.Background(), opts))(t)
	defer plan.Close()
	return rowsPlan{abitest.PlanDigest(library(t).Path(), plan.Native()), plan.Info().Tiles, plan.Info().Entries}
}

// compareRows compares the plan of an index on the host with that of the same one in device memory, waited for or not.
func compareRows(t *testing.T, engine *Engine, s *Stream, a BSR[BFloat16, int32], opts PlanOptions) {
	t.Helper()
	host := must(NewMatrix(context.Background(), engine, a))(t)
	defer host.Close()
	rowPtr, colIdx := filled(t, engine, a.RowPtr), filled(t, engine, a.ColIdx)
	defer rowPtr.Close()
	defer colIdx.Close()
	index := DeviceBSR[BFloat16, int32]{Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK, RowPtr: rowPtr, ColIdx: colIdx}
	var device *Matrix
	if s == nil {
		device = must(NewDeviceMatrix(context.Background(), engine, index))(t)
	} else {
		device = must(NewDeviceMatrixIn(context.Background(), s, index))(t)
	}
	defer device.Close()
	want, got := planOf(t, host, opts), planOf(t, device, opts)
	if s != nil { // the host does not know
		got.entries = want.entries
	}
	if want.tiles > got.tiles { // tiles are split only on the host
		got.digest, got.tiles = want.digest, want.tiles
	}
	if want.digest == 0 || got != want {
		t.Errorf("%d rows of blocks of %d, %d columns, %+v: on the host %+v, on the GPU %+v", len(a.RowPtr)-1, a.BlockM, a.Cols/a.BlockK, opts, want, got)
	}
}

// The planner on the GPU puts the same rows into the same tiles as the one on the host, whatever the pattern: one chunk
// of rows that are matched with each other and several, pairs and larger groups, more rows than a group and fewer.
func TestRowsAreMatchedOnDevice(t *testing.T) {
	engine := newEngine(t, CUDA)
	sizes := []struct{ rows, cols int }{{1, 5}, {2, 70}, {3, 1}, {7, 40}, {9, 33}, {64, 64}, {77, 200}, {131, 100}, {530, 60}, {700, 513}, {300, 2000}}
	kernels := []struct {
		name      string
		n, blockM int
	}{{"skinny_bf16_64_16", 16, 16}, {"skinny_bf16_64_16", 16, 32}, {"tma_bf16_64x2_256", 256, 64}, {"gather_bf16_128_256", 1 << 16, 8}, {"gather_bf16_128_256", 1 << 16, 16}}
	compared := 0
	for _, name := range pattern.Names() {
		t.Run(name, func(t *testing.T) {
			for i, size := range sizes {
				made, err := pattern.Generate(pattern.Spec{Name: name, BlockRows: size.rows, BlockCols: size.cols, Density: 0.02 + 0.1*float64(i%4), Seed: uint64(i)})
				if err != nil {
					continue // not every pattern has every size
				}
				for _, p := range []bsr.Pattern{made, shuffledRows(made, uint64(i)), withoutRows(made, uint64(i))} {
					for _, kernel := range kernels {
						blockK := max(kernel.blockM, 16)
						compareRows(t, engine, nil, BSR[BFloat16, int32]{Rows: size.rows*kernel.blockM - kernel.blockM/2, Cols: size.cols * blockK,
							BlockM: kernel.blockM, BlockK: blockK, RowPtr: p.RowPtr, ColIdx: p.ColIdx}, PlanOptions{N: kernel.n, Kernel: kernel.name})
						compared++
					}
				}
			}
		})
	}
	if compared < 500 {
		t.Error("only", compared, "plans were compared")
	}
}

// So does a plan that nobody waits for, where a product takes so long that this is worth it: here for the want of
// workers.
func TestRowsAreMatchedInStream(t *testing.T) {
	engine := newEngine(t, CUDA)
	s := must(engine.NewStream())(t)
	defer s.Close()
	sizes := []struct{ rows, cols int }{{64, 64}, {131, 100}, {530, 60}, {700, 513}, {300, 2000}}
	for i, size := range sizes {
		made := must(pattern.Generate(pattern.Spec{Name: "random", BlockRows: size.rows, BlockCols: size.cols, Density: 0.1, Seed: uint64(i)}))(t)
		for _, p := range []bsr.Pattern{made, shuffledRows(made, uint64(i)), withoutRows(made, uint64(i))} {
			for _, kernel := range []struct {
				name   string
				blockM int
			}{{"tma_bf16_64x2_256", 64}, {"gather_bf16_128_256", 16}, {"gather_bf16_128_256", 8}} {
				blockK := max(kernel.blockM, 16)
				a := BSR[BFloat16, int32]{Rows: size.rows * kernel.blockM, Cols: size.cols * blockK, BlockM: kernel.blockM, BlockK: blockK, RowPtr: p.RowPtr, ColIdx: p.ColIdx}
				compareRows(t, engine, s, a, PlanOptions{N: 1 << 16, Kernel: kernel.name, Workers: 1})
			}
		}
	}
}

// Where a product is short, neighbours share tiles.
func TestRowsAreMatchedInStreamForLongProducts(t *testing.T) {
	needsAllWorkers(t) // with few, each product is long
	engine := newEngine(t, CUDA)
	s := must(engine.NewStream())(t)
	defer s.Close()
	made := must(pattern.Generate(pattern.Spec{Name: "random", BlockRows: 128, BlockCols: 128, Density: 0.1, Seed: 1}))(t)
	a := BSR[BFloat16, int32]{Rows: 8192, Cols: 8192, BlockM: 64, BlockK: 64, RowPtr: made.RowPtr, ColIdx: made.ColIdx}
	digest := func(n int, order *Stream) uint64 {
		index := DeviceBSR[BFloat16, int32]{Rows: a.Rows, Cols: a.Cols, BlockM: 64, BlockK: 64, RowPtr: filled(t, engine, a.RowPtr), ColIdx: filled(t, engine, a.ColIdx)}
		defer index.RowPtr.Close()
		defer index.ColIdx.Close()
		var m *Matrix
		if order == nil {
			m = must(NewDeviceMatrix(context.Background(), engine, index))(t)
		} else {
			m = must(NewDeviceMatrixIn(context.Background(), order, index))(t)
		}
		defer m.Close()
		return planOf(t, m, PlanOptions{N: n, Kernel: "tma_bf16_64x2_256"}).digest
	}
	if digest(256, s) == digest(256, nil) {
		t.Error("rows are matched for a short product")
	}
	if digest(8192, s) != digest(8192, nil) {
		t.Error("rows are not matched for a long product")
	}
}
