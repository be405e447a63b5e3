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

func planOf(t *testing.T, m *Matrix, kernel string, n int) rowsPlan {
	plan := must(m.Plan(context.Background(), PlanOptions{N: n, Kernel: kernel}))(t)
	defer plan.Close()
	return rowsPlan{abitest.PlanDigest(library(t).Path(), plan.Native()), plan.Info().Tiles, plan.Info().Entries}
}

func compareRows(t *testing.T, engine *Engine, a BSR[BFloat16, int32], kernel string, n int) {
	host := must(NewMatrix(context.Background(), engine, a))(t)
	defer host.Close()
	rowPtr, colIdx := filled(t, engine, a.RowPtr), filled(t, engine, a.ColIdx)
	defer rowPtr.Close()
	defer colIdx.Close()
	device := must(NewDeviceMatrix(context.Background(), engine, DeviceBSR[BFloat16, int32]{Rows: a.Rows, Cols: a.Cols,
		BlockM: a.BlockM, BlockK: a.BlockK, RowPtr: rowPtr, ColIdx: colIdx}))(t)
	defer device.Close()
	want, got := planOf(t, host, kernel, n), planOf(t, device, kernel, n)
	if want.tiles > got.tiles { // tiles are split only on the host
		got.digest, got.tiles = want.digest, want.tiles
	}
	if want.digest == 0 || got != want {
		t.Errorf("%d rows of blocks of %d, %d columns, %s: on the host %+v, on the GPU %+v", len(a.RowPtr)-1, a.BlockM, a.Cols/a.BlockK, kernel, want, got)
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
						compareRows(t, engine, BSR[BFloat16, int32]{Rows: size.rows*kernel.blockM - kernel.blockM/2, Cols: size.cols * blockK,
							BlockM: kernel.blockM, BlockK: blockK, RowPtr: p.RowPtr, ColIdx: p.ColIdx}, kernel.name, kernel.n)
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
