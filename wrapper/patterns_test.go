// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

func TestPatternFromMask(t *testing.T) {
	t.Run("int16", func(t *testing.T) { onEachRandomly(t, testPatternFromMask[int16]) })
	t.Run("int32", func(t *testing.T) { onEachRandomly(t, testPatternFromMask[int32]) })
	t.Run("int64", func(t *testing.T) { onEachRandomly(t, testPatternFromMask[int64]) })
}

func testPatternFromMask[I Index](t *rapid.T, s *Stream, engine *Engine) {
	sizes := drawPatternSizes(t)
	packed := rapid.Bool().Draw(t, "bits")
	random := rand.New(rand.NewPCG(sizes.seed, 1))
	density := random.Float64()
	stride := sizes.blockCols() + rapid.IntRange(0, 9).Draw(t, "gap")
	if packed {
		stride = (stride + 7) / 8 * 8
	}
	mask := make([]byte, sizes.blockRows()*stride)
	rows := make([]indexRow, sizes.blockRows())
	blocks := 0
	for i := range mask {
		mask[i] = byte(random.IntN(256)) // in gaps
	}
	for r := range rows {
		for c := range sizes.blockCols() {
			at := r*stride + c
			is := random.Float64() < density
			if packed {
				mask[at/8] &^= 1 << (at % 8)
				if is {
					mask[at/8] |= 1 << (at % 8)
				}
			} else {
				mask[at] = 0
				if is {
					mask[at] = byte(1 + random.IntN(255))
				}
			}
			if is {
				rows[r].cols = append(rows[r].cols, c)
				blocks++
			}
		}
	}
	x := newMadeIndex[I](t, engine, sizes, drawCapacity(t, blocks))
	defer x.close()
	buffer := filled(t, engine, append(mask, 0))
	defer buffer.Close()
	if packed {
		enqueued(t, s, PatternFromBits(context.Background(), s, x.DeviceIndex, buffer, stride))
	} else {
		enqueued(t, s, PatternFromMask(context.Background(), s, x.DeviceIndex, buffer, stride))
	}
	x.verify(t, rows)
}

// drawScores are scores of which many are equal, NaN, Inf or -Inf.
func drawScores[T Element](t *rapid.T, sizes patternSizes) Dense[T] {
	random := rand.New(rand.NewPCG(sizes.seed, 2))
	levels := rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "levels")
	scores := randomDense(random, sizes.blockRows(), sizes.blockCols(), rapid.IntRange(0, 3).Draw(t, "gap"), 1, T(0))
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0}
	for i := range scores.Data {
		scores.Data[i] = FromFloat32[T](float32(random.IntN(levels)) - float32(levels/2))
		if random.IntN(4) == 0 {
			scores.Data[i] = FromFloat32[T](float32(special[random.IntN(len(special))]))
		}
	}
	return scores
}

func testPatternOfScores[T Element, I Index](t *rapid.T, s *Stream, engine *Engine) {
	sizes := drawPatternSizes(t)
	scores := drawScores[T](t, sizes)
	count := rapid.IntRange(0, sizes.blockCols()+2).Draw(t, "count")
	threshold := float64(rapid.IntRange(-2, 2).Draw(t, "threshold"))
	highest, above := make([]indexRow, sizes.blockRows()), make([]indexRow, sizes.blockRows())
	blocks := 0
	for r := range highest {
		score := func(col int) float64 { return exactly(scores.Data[r*scores.Stride+col]) }
		var cols []int
		for c := range sizes.blockCols() {
			if !math.IsInf(score(c), -1) {
				cols = append(cols, c)
			}
			if score(c) > threshold || math.IsNaN(score(c)) {
				above[r].cols = append(above[r].cols, c)
			}
		}
		slices.SortStableFunc(cols, func(a, b int) int {
			x, y := score(a), score(b)
			if math.IsNaN(x) || math.IsNaN(y) {
				return cmp.Compare(b2i(math.IsNaN(y)), b2i(math.IsNaN(x)))
			}
			return cmp.Compare(y, x)
		})
		cols = cols[:min(count, len(cols))]
		slices.Sort(cols)
		highest[r].cols = cols
		blocks += len(cols)
	}
	x := newMadeIndex[I](t, engine, sizes, drawCapacity(t, blocks))
	defer x.close()
	d := inBuffer(t, engine, scores, rapid.IntRange(0, 2).Draw(t, "offset"))
	defer d.Buffer.Close()
	enqueued(t, s, PatternOfHighest(context.Background(), s, x.DeviceIndex, d, count))
	x.verify(t, highest)
	enqueued(t, s, PatternAbove(context.Background(), s, x.DeviceIndex, d, threshold))
	x.verify(t, above)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestPatternOfScores(t *testing.T) {
	t.Run("fp32", func(t *testing.T) { onEachRandomly(t, testPatternOfScores[float32, int32]) })
	t.Run("bf16", func(t *testing.T) { onEachRandomly(t, testPatternOfScores[BFloat16, int16]) })
	t.Run("fp16", func(t *testing.T) { onEachRandomly(t, testPatternOfScores[Float16, int32]) })
	t.Run("fp64", func(t *testing.T) { onEachRandomly(t, testPatternOfScores[float64, int64]) })
}

// Rows longer than a CTA and its windows.
func TestPatternOfLongRows(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		s := must(engine.NewStream())(t)
		defer s.Close()
		const cols, count = 300_000, 5_000
		sizes := patternSizes{rows: 3, cols: cols, blockM: 1, blockK: 1}
		random := rand.New(rand.NewPCG(8, 8))
		scores := randomDense(random, 3, cols, 0, 0, float32(0))
		columns := make([]int32, 3*count)
		byScore, byColumn := make([]indexRow, 3), make([]indexRow, 3)
		for r := range 3 {
			order := random.Perm(cols)
			for rank, col := range order {
				scores.Data[r*cols+col] = -float32(rank)
			}
			byScore[r].cols = slices.Sorted(slices.Values(order[:count]))
			for i, col := range order[count : 2*count] {
				columns[r*count+i] = int32(col)
			}
			byColumn[r].cols = slices.Sorted(slices.Values(order[count : 2*count]))
		}
		x := newMadeIndex[int32](t, engine, sizes, 3*count)
		enqueued(t, s, PatternOfHighest(context.Background(), s, x.DeviceIndex, inBuffer(t, engine, scores, 0), count))
		x.verify(t, byScore)
		enqueued(t, s, PatternOfColumns(context.Background(), s, x.DeviceIndex, filled(t, engine, columns), count))
		x.verify(t, byColumn)
	})
}

func TestPatternOfColumns(t *testing.T) {
	t.Run("int32", func(t *testing.T) { onEachRandomly(t, testPatternOfColumns[int32, int64]) })
	t.Run("int64", func(t *testing.T) { onEachRandomly(t, testPatternOfColumns[int64, int16]) })
}

func testPatternOfColumns[J, I Index](t *rapid.T, s *Stream, engine *Engine) {
	sizes := drawPatternSizes(t)
	random := rand.New(rand.NewPCG(sizes.seed, 4))
	count := rapid.IntRange(0, 80).Draw(t, "count")
	columns := make([]J, sizes.blockRows()*count+1)
	rows := make([]indexRow, sizes.blockRows())
	blocks := 0
	for r := range rows {
		for i := range count {
			col := random.IntN(sizes.blockCols()+1) - 1
			columns[r*count+i] = J(col)
			if col >= 0 {
				rows[r].cols = append(rows[r].cols, col)
			}
		}
		slices.Sort(rows[r].cols)
		rows[r].cols = slices.Compact(rows[r].cols)
		blocks += len(rows[r].cols)
	}
	x := newMadeIndex[I](t, engine, sizes, drawCapacity(t, blocks))
	defer x.close()
	at := -1
	if len(rows)*count > 0 && rapid.Bool().Draw(t, "faulty") {
		at = rapid.IntRange(0, len(rows)*count-1).Draw(t, "place")
		columns[at] = J(sizes.blockCols())
		columns[rapid.IntRange(at, len(rows)*count-1).Draw(t, "another")] = J(sizes.blockCols() + 7)
	}
	buffer := filled(t, engine, columns)
	defer buffer.Close()
	enqueued(t, s, PatternOfColumns(context.Background(), s, x.DeviceIndex, buffer, count))
	if at >= 0 {
		x.verifyFault(t, ErrColIdxRange, at)
	} else {
		x.verify(t, rows)
	}
}

func TestPatternFromDense(t *testing.T) {
	t.Run("fp32", func(t *testing.T) { onEachRandomly(t, testPatternFromDense[float32, float32, int32]) })
	t.Run("bf16", func(t *testing.T) { onEachRandomly(t, testPatternFromDense[BFloat16, float32, int64]) })
	t.Run("fp16", func(t *testing.T) { onEachRandomly(t, testPatternFromDense[Float16, float32, int16]) })
	t.Run("fp64", func(t *testing.T) { onEachRandomly(t, testPatternFromDense[float64, float64, int32]) })
}

func testPatternFromDense[T, S Element, I Index](t *rapid.T, s *Stream, engine *Engine) {
	sizes := drawPatternSizes(t)
	norm := rapid.SampledFrom([]Norm{MaxNorm, L1Norm, L2Norm}).Draw(t, "norm")
	random := rand.New(rand.NewPCG(sizes.seed, 5))
	turned := rapid.Bool().Draw(t, "column-major")
	lines, length := sizes.rows, sizes.cols
	if turned {
		lines, length = length, lines
	}
	dense := randomDense(random, lines, length, rapid.SampledFrom([]int{0, 1, 8}).Draw(t, "gap"), 1, FromFloat32[T](float32(math.NaN())))
	element := func(row, col int) *T {
		if turned {
			row, col = col, row
		}
		return &dense.Data[row*dense.Stride+col]
	}
	// Whole blocks of zeros, and a NaN here and there.
	for row := range sizes.rows {
		for col := range sizes.cols {
			if (row/sizes.blockM*31+col/sizes.blockK*17)%3 == 0 {
				*element(row, col) = 0
			}
			if random.IntN(4000) == 0 {
				*element(row, col) = FromFloat32[T](float32(math.NaN()))
			}
		}
	}
	threshold := rapid.SampledFrom([]float64{0, 1, 1.9}).Draw(t, "threshold")
	d := inBuffer(t, engine, dense, rapid.SampledFrom([]int{0, 1, 8}).Draw(t, "offset"))
	defer d.Buffer.Close()
	operand := Operand(d)
	if turned {
		operand = Transpose(d)
	}
	all := sizes.blockRows() * sizes.blockCols()
	capacity := rapid.SampledFrom([]int{all, all / 3}).Draw(t, "capacity")
	x := newMadeIndex[I](t, engine, sizes, capacity)
	defer x.close()
	values := newGuarded[T](t, engine, capacity*sizes.blockM*sizes.blockK)
	defer values.close()
	norms := newGuarded[S](t, engine, all)
	defer norms.close()
	enqueued(t, s, PatternFromDense(context.Background(), s, x.DeviceIndex, values.front, operand, norm, threshold, norms.front))

	got := norms.read(t)
	rows := make([]indexRow, sizes.blockRows())
	for r := range rows {
		for c := range sizes.blockCols() {
			want, terms := 0.0, 0
			for row := r * sizes.blockM; row < min((r+1)*sizes.blockM, sizes.rows); row++ {
				for col := c * sizes.blockK; col < min((c+1)*sizes.blockK, sizes.cols); col++ {
					v := math.Abs(exactly(*element(row, col)))
					terms++
					switch norm {
					case MaxNorm:
						want = max(want, v) // NaN where there is one
					case L1Norm:
						want += v
					case L2Norm:
						want += v * v
					}
				}
			}
			if norm == L2Norm {
				want = math.Sqrt(want)
			}
			have := exactly(got[r*sizes.blockCols()+c])
			tolerance := 0.0
			if norm != MaxNorm {
				tolerance = float64(terms+4) * sumRoundoff[S]() * want
			}
			if !within(have, want, tolerance) {
				t.Fatalf("norm %d of block (%d, %d) is %g, want %g", norm, r, c, have, want)
			}
			if have > threshold || math.IsNaN(have) {
				rows[r].cols = append(rows[r].cols, c)
			}
		}
	}
	entries := x.verify(t, rows)
	gathered := values.read(t)
	a := BSR[T, I]{BlockM: sizes.blockM, BlockK: sizes.blockK, RowPtr: x.rowPtr.read(t), ColIdx: x.colIdx.read(t)[:entries]}
	eachElement(a, func(row, col, place int) {
		var want T
		if row < sizes.rows && col < sizes.cols {
			want = *element(row, col)
		}
		if !equalElements([]T{gathered[place]}, []T{want}) {
			t.Fatalf("element (%d, %d) is %v, want %v", row, col, gathered[place], want)
		}
	})
}

// sumRoundoff is the unit roundoff of sums of type S.
func sumRoundoff[S Element]() float64 {
	if DTypeOf[S]() == FP64 {
		return math.Ldexp(1, -53)
	}
	return math.Ldexp(1, -24)
}

// A matrix is pruned by its block norms.
func testPatternOfBlocks[T, S Element, J, I Index](t *rapid.T, s *Stream, engine *Engine) {
	background := context.Background()
	sizes := drawPatternSizes(t)
	a := randomBSR[T, J](sizes, rapid.SampledFrom([]float64{0.1, 0.7}).Draw(t, "density"), rapid.Bool().Draw(t, "named"))
	d, free := inBuffers(t, engine, a, 2*rapid.IntRange(0, 1).Draw(t, "bound"))
	defer free()
	norms := newGuarded[S](t, engine, d.ColIdx.Len())
	defer norms.close()
	enqueued(t, s, BlockNorms(background, s, d, rapid.SampledFrom([]Norm{MaxNorm, L1Norm}).Draw(t, "norm"), norms.front))
	scores := norms.read(t)
	count, threshold := rapid.IntRange(0, 6).Draw(t, "count"), 0.0
	if count == 0 {
		threshold = 1.5
		if len(a.ColIdx) > 0 {
			threshold = exactly(scores[rapid.IntRange(0, len(a.ColIdx)-1).Draw(t, "threshold of")])
		}
	}
	rows := make([]indexRow, sizes.blockRows())
	total := 0
	for r := range rows {
		var entries []int
		for e := int(a.RowPtr[r]); e < int(a.RowPtr[r+1]); e++ {
			if count > 0 || exactly(scores[e]) > threshold {
				entries = append(entries, e)
			}
		}
		if count > 0 {
			slices.SortStableFunc(entries, func(x, y int) int { return cmp.Compare(exactly(scores[y]), exactly(scores[x])) })
			entries = entries[:min(count, len(entries))]
			slices.Sort(entries)
		}
		for _, e := range entries {
			block := e
			if a.BlockIdx != nil {
				block = int(a.BlockIdx[e])
			}
			rows[r].cols, rows[r].blocks = append(rows[r].cols, int(a.ColIdx[e])), append(rows[r].blocks, block)
		}
		total += len(entries)
	}
	x := newMadeIndex[I](t, engine, sizes, drawCapacity(t, total))
	defer x.close()
	x.BlockIdx = x.blockIdx.front
	size := sizes.blockM * sizes.blockK
	values := newGuarded[T](t, engine, x.ColIdx.Len()*size)
	defer values.close()
	enqueued(t, s, PatternOfBlocks(background, s, x.DeviceIndex, values.front, d, norms.front, count, threshold))
	entries := x.verify(t, rows)
	got := values.read(t)
	for e, block := range x.blockIdx.read(t)[:entries] {
		if !equalElements(got[e*size:][:size], a.Values[int(block)*size:][:size]) {
			t.Fatalf("the values of entry %d are not those of block %d", e, block)
		}
	}
}

func TestPatternOfBlocks(t *testing.T) {
	t.Run("bf16", func(t *testing.T) { onEachRandomly(t, testPatternOfBlocks[BFloat16, float32, int32, int32]) })
	t.Run("fp32", func(t *testing.T) { onEachRandomly(t, testPatternOfBlocks[float32, float32, int16, int64]) })
	t.Run("fp64", func(t *testing.T) { onEachRandomly(t, testPatternOfBlocks[float64, float64, int64, int16]) })
}
