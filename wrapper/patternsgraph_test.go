// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/foreign"
)

// A graph makes a pattern of what a mask holds by then, takes its values from a dense matrix, plans a product of it,
// and multiplies; and the same for a topology of experts. The host is asked for nothing between two replays.
func TestPatternsInGraph(t *testing.T) {
	engine := newEngine(t, CUDA)
	library := must(foreign.Open(true, engine.Info().Device))(t)
	defer library.Close()
	s := must(engine.StreamAt(library.Stream()))(t)
	defer s.Close()
	background := context.Background()
	const blocks, n = 80, 64
	sizes := patternSizes{rows: 512, cols: 1024, blockM: 32, blockK: 64}
	x := newMadeIndex[int32](t, engine, sizes, blocks)
	mask := must(NewBuffer[byte](engine, sizes.blockRows()*sizes.blockCols()))(t)
	counts, bins := must(NewBuffer[int32](engine, 4))(t), must(NewBuffer[int32](engine, 5))(t)
	random := rand.New(rand.NewPCG(1, 1))
	dense := randomDense(random, sizes.rows, sizes.cols, 0, 0, BFloat16(0))
	b := randomDense(random, sizes.cols, n, 0, 0, BFloat16(0))
	denseBuffer, bBuffer := inBuffer(t, engine, dense, 0), inBuffer(t, engine, b, 0)
	values := must(NewBuffer[BFloat16](engine, blocks*32*64))(t)
	layout := must(engine.MeasurePlan(PatternSizes{Rows: sizes.rows, Cols: sizes.cols, BlockM: 32, BlockK: 64, Blocks: blocks, DType: BF16}, PlanOptions{N: n}))(t)
	memory, planFault := must(NewBuffer[int64](engine, layout.MemoryLen()))(t), must(NewBuffer[int64](engine, 1))(t)
	var workspace *DeviceBuffer[int64]
	if layout.WorkspaceLen() > 0 {
		workspace = must(NewBuffer[int64](engine, layout.WorkspaceLen()))(t)
	}
	plan := must(layout.Plan(memory, workspace))(t)
	defer plan.Close()
	c := inBuffer(t, engine, Dense[BFloat16]{Rows: sizes.rows, Cols: n, Stride: n, Data: make([]BFloat16, sizes.rows*n)}, 0)
	turned := newMadeIndex[int32](t, engine, patternSizes{rows: sizes.cols, cols: sizes.rows, blockM: 64, blockK: 32}, blocks)
	turned.BlockIdx = turned.blockIdx.front
	made := IndexedBy[BFloat16](x.DeviceIndex, nil)
	product := func() error {
		return errors.Join(GatherValues(background, s, made, denseBuffer, values), WritePlan(background, s, layout, made, memory, planFault),
			plan.Enqueue(background, s, 1, 0, Operands{B: bBuffer, C: c, Values: DeviceDense[BFloat16]{Rows: blocks * 32, Cols: 64, Buffer: values}}),
			TransposeIndex(background, s, turned.DeviceIndex, made))
	}
	verify := func(rows []indexRow) {
		t.Helper()
		x.verify(t, rows)
		columns := make([]indexRow, sizes.blockCols())
		p := product0(sizes, dense, b)
		place := 0
		for r, row := range rows {
			for _, col := range row.cols {
				columns[col].cols, columns[col].blocks = append(columns[col].cols, r), append(columns[col].blocks, place)
				place++
			}
		}
		turned.verify(t, columns)
		random := make([][]int32, len(rows))
		for r, row := range rows {
			for _, col := range row.cols {
				random[r] = append(random[r], int32(col))
			}
		}
		p.setPattern(random, func() BFloat16 { return 0 })
		eachElement(p.a, func(row, col, place int) { p.a.Values[place] = dense.Data[row*dense.Stride+col] })
		got := p.newC()
		if err := c.Buffer.Read(background, got.Data); err != nil {
			t.Fatal(err)
		}
		info := plan.Info()
		info.UnitRoundoff = 1. / (1 << 23)
		p.verify(t, engine, info, got)
	}

	byMask := must(library.Capture(foreign.CaptureGlobal, func() error {
		return errors.Join(PatternFromMask(background, s, x.DeviceIndex, mask, 0), product())
	}))(t)
	defer byMask.Close()
	byCounts := must(library.Capture(foreign.CaptureThreadLocal, func() error {
		return errors.Join(PatternFromCounts(background, s, x.DeviceIndex, counts, bins), product())
	}))(t)
	defer byCounts.Close()
	// What graphs use stays, though nothing of this test names it any more.
	defer runtime.KeepAlive([]any{x, turned, mask, counts, bins, denseBuffer, bBuffer, values, memory, planFault, workspace, c})
	for range 5 {
		host := make([]byte, mask.Len())
		rows := make([]indexRow, sizes.blockRows())
		for i := range host {
			if random.IntN(5) == 0 {
				host[i] = 1
				rows[i/sizes.blockCols()].cols = append(rows[i/sizes.blockCols()].cols, i%sizes.blockCols())
			}
		}
		if err := errors.Join(mask.Write(background, host), byMask.Launch(), library.Wait()); err != nil {
			t.Fatal(err)
		}
		verify(rows)

		tokens, rows := make([]int32, 4), nil
		for i := range tokens {
			tokens[i] = int32(random.IntN(5 * 32))
			for range (tokens[i] + 31) / 32 {
				rows = append(rows, indexRow{cols: []int{4 * i, 4*i + 1, 4*i + 2, 4*i + 3}})
			}
		}
		if len(rows) > sizes.blockRows() {
			continue
		}
		rows = append(rows, make([]indexRow, sizes.blockRows()-len(rows))...)
		if err := errors.Join(counts.Write(background, tokens), byCounts.Launch(), library.Wait()); err != nil {
			t.Fatal(err)
		}
		verify(rows)
	}
}

// product0 is the product of a matrix whose pattern is set later.
func product0(sizes patternSizes, dense, b Dense[BFloat16]) *product[BFloat16, BFloat16, int32] {
	p := &product[BFloat16, BFloat16, int32]{n: b.Cols, alpha: 1, b: b}
	p.a = BSR[BFloat16, int32]{Rows: sizes.rows, Cols: sizes.cols, BlockM: sizes.blockM, BlockK: sizes.blockK}
	p.c0 = Dense[BFloat16]{Rows: sizes.rows, Cols: b.Cols, Stride: b.Cols, Data: make([]BFloat16, sizes.rows*b.Cols)}
	return p
}

// Each of the functions can be captured.
func TestAllPatternWorkInGraph(t *testing.T) {
	engine := newEngine(t, CUDA)
	library := must(foreign.Open(true, engine.Info().Device))(t)
	defer library.Close()
	s := must(engine.StreamAt(library.Stream()))(t)
	defer s.Close()
	background := context.Background()
	sizes := patternSizes{rows: 96, cols: 80, blockM: 16, blockK: 16, seed: 3}
	a := randomBSR[float32, int32](sizes, 0.5, false)
	d, free := inBuffers(t, engine, a, 0)
	defer free()
	x, y := newMadeIndex[int32](t, engine, sizes, 30), newMadeIndex[int32](t, engine, patternSizes{rows: 96, cols: 80, blockM: 1, blockK: 1}, len(a.Values))
	z := newMadeIndex[int32](t, engine, patternSizes{rows: 192, cols: 160, blockM: 16, blockK: 16}, 60)
	dense := DeviceDense[float32]{Rows: 96, Cols: 80, Buffer: must(NewBuffer[float32](engine, 96*80))(t)}
	norms, values := must(NewBuffer[float32](engine, 30))(t), must(NewBuffer[float32](engine, 30*256))(t)
	elements := must(NewBuffer[float32](engine, len(a.Values)))(t)
	scores := DeviceDense[float32]{Rows: 6, Cols: 5, Buffer: norms}
	columns, rowSums := filled(t, engine, make([]int32, 12)), must(NewBuffer[float32](engine, 96))(t)
	y.RowIdx = y.rowIdx.front
	fault := must(NewBuffer[int64](engine, 1))(t)
	graph := must(library.Capture(foreign.CaptureGlobal, func() error {
		return errors.Join(
			ToDense(background, s, d, dense),
			PatternFromDense(background, s, x.DeviceIndex, values, Operand(dense), L2Norm, 0, norms),
			PatternAbove(background, s, x.DeviceIndex, scores, 0),
			PatternOfHighest(background, s, x.DeviceIndex, scores, 2),
			PatternOfColumns(background, s, x.DeviceIndex, columns, 2),
			ToCSR(background, s, y.DeviceIndex, elements, d),
			PatternFromCOO(background, s, x.DeviceIndex, values, y.rowIdx.front, y.colIdx.front, elements),
			PatternFromCSR(background, s, x.DeviceIndex, values, IndexedBy(y.DeviceIndex, elements)),
			BlockDiagonal(background, s, z.DeviceIndex, []DeviceBSR[float32, int32]{d, d}),
			CheckIndex(background, s, IndexedBy[float32](z.DeviceIndex, nil), fault),
			GatherValues(background, s, IndexedBy[float32](x.DeviceIndex, nil), dense, values),
			SumRows(background, s, IndexedBy(x.DeviceIndex, values), rowSums),
			ScaleValues(background, s, IndexedBy(x.DeviceIndex, values), rowSums, nil, values),
			AddValues(background, s, 1, IndexedBy(x.DeviceIndex, values), 1, values, values),
			MultiplyValues(background, s, 1, IndexedBy(x.DeviceIndex, values), values, values),
			BlockNorms(background, s, IndexedBy(x.DeviceIndex, values), MaxNorm, norms),
		)
	}))(t)
	defer graph.Close()
	defer runtime.KeepAlive([]any{d, x, y, z, dense, norms, values, elements, columns, rowSums, fault})
	for range 3 {
		if err := errors.Join(graph.Launch(), library.Wait()); err != nil {
			t.Fatal(err)
		}
	}
	// A in blocks again, whose elements are 2 (A row sum)^2; and their norms.
	sums := make([]float32, 96)
	must(0, rowSums.Read(background, sums))(t)
	rows := make([]indexRow, sizes.blockRows())
	for r := range rows {
		for e := a.RowPtr[r]; e < a.RowPtr[r+1]; e++ {
			rows[r].cols = append(rows[r].cols, int(a.ColIdx[e]))
		}
	}
	x.verify(t, rows)
	got := make([]float32, 30*256)
	must(0, values.Read(background, got))(t)
	eachElement(a, func(row, _, place int) {
		want := 2 * (a.Values[place] * sums[row])
		if got[place] != want*want {
			t.Fatalf("element %d is %g, want %g", place, got[place], want*want)
		}
	})
	told := []int64{-1}
	if err := fault.Read(background, told); err != nil || told[0] != 0 {
		t.Fatalf("fault %#x, %v", told[0], err)
	}
}
