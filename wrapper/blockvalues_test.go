// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// valuesCase is a matrix whose values are worked on, in buffers of an engine.
type valuesCase[T Element, I Index] struct {
	a BSR[T, I]
	d DeviceBSR[T, I]
}

func drawValuesCase[T Element, I Index](t *rapid.T, engine *Engine) (c valuesCase[T, I], free func()) {
	sizes := drawPatternSizes(t)
	c.a = randomBSR[T, I](sizes, rapid.SampledFrom([]float64{0, 0.2, 0.7}).Draw(t, "density"), rapid.Bool().Draw(t, "named"))
	random := rand.New(rand.NewPCG(sizes.seed, 20))
	if rapid.Bool().Draw(t, "with NaN and Inf") {
		eachElement(c.a, func(row, col, place int) {
			if row < sizes.rows && col < sizes.cols && random.IntN(50) == 0 {
				c.a.Values[place] = FromFloat32[T](float32([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[random.IntN(3)]))
			}
		})
	}
	more := rapid.IntRange(0, 1).Draw(t, "bound") * 3
	c.d, free = inBuffers(t, engine, c.a, more)
	return c, free
}

// on is the same matrix in buffers of another engine.
func (c valuesCase[T, I]) on(t rapid.TB, engine *Engine) (valuesCase[T, I], func()) {
	d, free := inBuffers(t, engine, c.a, c.d.ColIdx.Len()-len(c.a.ColIdx))
	return valuesCase[T, I]{c.a, d}, free
}

func testBlockNormsAndSums[T, S Element, I Index](t *testing.T) {
	cpu := newEngine(t, CPU)
	cpuStream := must(cpu.NewStream())(t)
	defer cpuStream.Close()
	onEachRandomly(t, func(t *rapid.T, s *Stream, engine *Engine) {
		c, free := drawValuesCase[T, I](t, engine)
		defer free()
		norm := rapid.SampledFrom([]Norm{MaxNorm, L1Norm, L2Norm}).Draw(t, "norm")
		norms, rows := c.norms(t, engine, s, norm, DTypeOf[S]()), c.sums(t, engine, s, false)
		columns := c.sums(t, engine, s, true)
		c.verifyNorms(t, norms, norm, sumRoundoff[S]())
		c.verifySums(t, rows, columns, sumRoundoff[S]())
		host, freeHost := c.on(t, cpu)
		defer freeHost()
		if !equalElements(norms, host.norms(t, cpu, cpuStream, norm, DTypeOf[S]())) || !equalElements(rows, host.sums(t, cpu, cpuStream, false)) ||
			!equalElements(columns, host.sums(t, cpu, cpuStream, true)) {
			t.Fatal("the CPU gives other bits")
		}
	})
}

// asDoubles are sums of either type, exactly.
func asDoubles[S Element](from []S) []float64 {
	out := make([]float64, len(from))
	for i, x := range from {
		out[i] = exactly(x)
	}
	return out
}

func (c valuesCase[T, I]) norms(t rapid.TB, engine *Engine, s *Stream, norm Norm, dtype DType) []float64 {
	if dtype == FP64 {
		return normsOf[T, float64](t, engine, s, c, norm)
	}
	return normsOf[T, float32](t, engine, s, c, norm)
}

func normsOf[T, S Element, I Index](t rapid.TB, engine *Engine, s *Stream, c valuesCase[T, I], norm Norm) []float64 {
	out := newGuarded[S](t, engine, c.d.ColIdx.Len())
	defer out.close()
	enqueued(t, s, BlockNorms(context.Background(), s, c.d, norm, out.front))
	return asDoubles(out.read(t)[:len(c.a.ColIdx)])
}

func (c valuesCase[T, I]) sums(t rapid.TB, engine *Engine, s *Stream, columns bool) []float64 {
	if DTypeOf[T]() == FP64 {
		return sumsOf[T, float64](t, engine, s, c, columns)
	}
	return sumsOf[T, float32](t, engine, s, c, columns)
}

func sumsOf[T, S Element, I Index](t rapid.TB, engine *Engine, s *Stream, c valuesCase[T, I], columns bool) []float64 {
	background := context.Background()
	if !columns {
		out := newGuarded[S](t, engine, c.a.Rows)
		defer out.close()
		enqueued(t, s, SumRows(background, s, c.d, out.front))
		return asDoubles(out.read(t))
	}
	turned := patternSizes{rows: c.a.Cols, cols: c.a.Rows, blockM: c.a.BlockK, blockK: c.a.BlockM}
	x := newMadeIndex[I](t, engine, turned, c.d.ColIdx.Len())
	defer x.close()
	x.BlockIdx = x.blockIdx.front
	out := newGuarded[S](t, engine, c.a.Cols)
	defer out.close()
	transpose := IndexedBy(x.DeviceIndex, c.d.Values)
	transpose.BlockIdx, transpose.Bound = x.BlockIdx, c.d.Bound
	enqueued(t, s, TransposeIndex(background, s, x.DeviceIndex, c.d), SumColumns(background, s, transpose, out.front))
	return asDoubles(out.read(t))
}

func (c valuesCase[T, I]) verifyNorms(t rapid.TB, got []float64, norm Norm, u float64) {
	t.Helper()
	for e := range c.a.ColIdx {
		block, r := e, 0
		if c.a.BlockIdx != nil {
			block = int(c.a.BlockIdx[e])
		}
		for int(c.a.RowPtr[r+1]) <= e {
			r++
		}
		want := 0.0
		for i := range min(c.a.BlockM, c.a.Rows-r*c.a.BlockM) {
			for j := range c.a.BlockK {
				v := math.Abs(exactly(c.a.Values[(block*c.a.BlockM+i)*c.a.BlockK+j]))
				switch norm {
				case MaxNorm:
					want = max(want, v)
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
		tolerance := 0.0
		if norm != MaxNorm {
			tolerance = float64(c.a.BlockM*c.a.BlockK+4) * u * want
		}
		if !within(got[e], want, tolerance) {
			t.Fatalf("norm %d of block %d is %g, want %g", norm, e, got[e], want)
		}
	}
}

func (c valuesCase[T, I]) verifySums(t rapid.TB, rows, columns []float64, u float64) {
	t.Helper()
	type sum struct{ sum, size, terms float64 }
	wantRows, wantColumns := make([]sum, c.a.Rows), make([]sum, c.a.Cols)
	eachElement(c.a, func(row, col, place int) {
		if row >= c.a.Rows || col >= c.a.Cols {
			return
		}
		v := exactly(c.a.Values[place])
		for _, to := range []*sum{&wantRows[row], &wantColumns[col]} {
			to.sum += v
			to.size += math.Abs(v)
			to.terms++
		}
	})
	for _, each := range []struct {
		name string
		got  []float64
		want []sum
	}{{"row", rows, wantRows}, {"column", columns, wantColumns}} {
		for i, want := range each.want {
			if !within(each.got[i], want.sum, want.terms*u*1.01*want.size) {
				t.Fatalf("sum of %s %d is %g, want %g", each.name, i, each.got[i], want.sum)
			}
		}
	}
}

func TestBlockNormsAndSums(t *testing.T) {
	t.Run("bf16", testBlockNormsAndSums[BFloat16, float32, int32])
	t.Run("fp16", testBlockNormsAndSums[Float16, float32, int64])
	t.Run("fp32", testBlockNormsAndSums[float32, float32, int16])
	t.Run("fp64", testBlockNormsAndSums[float64, float64, int32])
}

func testDenseAndBlocks[T Element, I Index](t *rapid.T, s *Stream, engine *Engine) {
	background := context.Background()
	c, free := drawValuesCase[T, I](t, engine)
	defer free()
	turned := rapid.Bool().Draw(t, "column-major")
	lines, length := c.a.Rows, c.a.Cols
	if turned {
		lines, length = length, lines
	}
	gap, offset := rapid.SampledFrom([]int{0, 3, 8}).Draw(t, "gap"), rapid.SampledFrom([]int{0, 1, 8}).Draw(t, "offset")
	want := Dense[T]{Rows: lines, Cols: length, Stride: length + gap, Data: make([]T, lines*(length+gap)+guardBand)}
	for i := range want.Data {
		if i%max(1, want.Stride) >= length || i/max(1, want.Stride) >= lines {
			want.Data[i] = guardValue[T]()
		}
	}
	at := func(row, col int) int {
		if turned {
			row, col = col, row
		}
		return row*want.Stride + col
	}
	eachElement(c.a, func(row, col, place int) {
		if row < c.a.Rows && col < c.a.Cols {
			want.Data[at(row, col)] = c.a.Values[place]
		}
	})
	all := want
	all.Data = make([]T, len(want.Data))
	for i := range all.Data {
		all.Data[i] = guardValue[T]()
	}
	d := inBuffer(t, engine, all, offset)
	defer d.Buffer.Close()
	operand := Operand(d)
	if turned {
		operand = Transpose(d)
	}
	values := newGuarded[T](t, engine, c.d.Values.Len())
	defer values.close()
	enqueued(t, s, ToDense(background, s, c.d, operand), GatherValues(background, s, c.d, operand, values.front))
	got := make([]T, d.Buffer.Len())
	if err := d.Buffer.Read(background, got); err != nil {
		t.Fatal(err)
	}
	if !equalElements(got[offset:], want.Data) {
		t.Fatal("the dense matrix is another")
	}
	gathered := values.read(t)
	eachElement(c.a, func(row, col, place int) {
		value := c.a.Values[place]
		if row >= c.a.Rows || col >= c.a.Cols {
			value = 0
		}
		if !equalElements([]T{value}, []T{gathered[place]}) {
			t.Fatalf("element (%d, %d) is %v, want %v", row, col, gathered[place], value)
		}
	})
}

func TestDenseAndBlocks(t *testing.T) {
	t.Run("bf16", func(t *testing.T) { onEachRandomly(t, testDenseAndBlocks[BFloat16, int32]) })
	t.Run("fp32", func(t *testing.T) { onEachRandomly(t, testDenseAndBlocks[float32, int64]) })
	t.Run("fp64", func(t *testing.T) { onEachRandomly(t, testDenseAndBlocks[float64, int16]) })
}

// rounded is x in the type of sums of T, and narrowed is that in T.
func rounded[T Element](x float64) float64 {
	if DTypeOf[T]() == FP64 {
		return x
	}
	return float64(float32(x))
}

func narrowedTo[T Element](x float64) T {
	if DTypeOf[T]() == FP64 {
		return any(x).(T)
	}
	return FromFloat32[T](float32(x))
}

func testScaleAndCombine[T, S Element, I Index](t *rapid.T, s *Stream, engine *Engine) {
	background := context.Background()
	c, free := drawValuesCase[T, I](t, engine)
	defer free()
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 21))
	factors := func(n int) []S {
		out := make([]S, n)
		for i := range out {
			out[i] = smallValue[S](random)
		}
		return out
	}
	rowFactors, columnFactors := factors(c.a.Rows), factors(c.a.Cols)
	rowBuffer, columnBuffer := filled(t, engine, rowFactors), filled(t, engine, columnFactors)
	defer rowBuffer.Close()
	defer columnBuffer.Close()
	byRow, byColumn := rowBuffer, columnBuffer
	if rapid.Bool().Draw(t, "no row factors") {
		byRow, rowFactors = nil, nil
	}
	if rapid.Bool().Draw(t, "no column factors") {
		byColumn, columnFactors = nil, nil
	}
	out := newGuarded[T](t, engine, c.d.Values.Len())
	defer out.close()
	verify := func(what string, got []T, want func(row, col, place int) T) {
		t.Helper()
		eachElement(c.a, func(row, col, place int) {
			if w := want(row, col, place); !equalElements([]T{got[place]}, []T{w}) {
				t.Fatalf("%s: element (%d, %d) is %v, want %v", what, row, col, got[place], w)
			}
		})
	}
	value := func(place int) float64 { return exactly(c.a.Values[place]) }
	scaled := func(row, col, place int) T {
		x := value(place)
		if row < len(rowFactors) {
			x = rounded[T](x * exactly(rowFactors[row]))
		}
		if col < len(columnFactors) {
			x = rounded[T](x * exactly(columnFactors[col]))
		}
		return narrowedTo[T](x)
	}
	enqueued(t, s, ScaleValues(background, s, c.d, byRow, byColumn, out.front))
	verify("scale", out.read(t), scaled)

	other := make([]T, c.d.Values.Len())
	for i := range other {
		other[i] = smallValue[T](random)
	}
	b := filled(t, engine, other)
	defer b.Close()
	alpha, beta := 4*random.Float64()-2, 4*random.Float64()-2
	a32, b32 := rounded[T](alpha), rounded[T](beta)
	enqueued(t, s, MultiplyValues(background, s, alpha, c.d, b, out.front))
	verify("multiply", out.read(t), func(_, _, place int) T {
		return narrowedTo[T](rounded[T](rounded[T](a32*value(place)) * exactly(other[place])))
	})
	enqueued(t, s, AddValues(background, s, alpha, c.d, beta, b, b), ScaleValues(background, s, c.d, byRow, byColumn, c.d.Values))
	got := make([]T, b.Len())
	if err := b.Read(background, got); err != nil {
		t.Fatal(err)
	}
	verify("add in place", got, func(_, _, place int) T {
		return narrowedTo[T](rounded[T](rounded[T](a32*value(place)) + rounded[T](b32*exactly(other[place]))))
	})
	if err := c.d.Values.Read(background, got); err != nil {
		t.Fatal(err)
	}
	verify("scale in place", got, scaled)
}

func TestScaleAndCombine(t *testing.T) {
	t.Run("bf16", func(t *testing.T) { onEachRandomly(t, testScaleAndCombine[BFloat16, float32, int32]) })
	t.Run("fp16", func(t *testing.T) { onEachRandomly(t, testScaleAndCombine[Float16, float32, int16]) })
	t.Run("fp32", func(t *testing.T) { onEachRandomly(t, testScaleAndCombine[float32, float32, int64]) })
	t.Run("fp64", func(t *testing.T) { onEachRandomly(t, testScaleAndCombine[float64, float64, int32]) })
}

// Of an index with room for more blocks, BlockIdx may name any place of the values.
func TestCombinedWhereBlockIdxNames(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		s := must(engine.NewStream())(t)
		defer s.Close()
		background := context.Background()
		a := DeviceBSR[float32, int32]{Rows: 2, Cols: 2, BlockM: 2, BlockK: 2, Bound: true,
			RowPtr: filled(t, engine, []int32{0, 1}), ColIdx: filled(t, engine, []int32{0, 0}), BlockIdx: filled(t, engine, []int32{1, 0}),
			Values: filled(t, engine, []float32{0, 0, 0, 0, 1, 2, 3, 4})}
		b, out := filled(t, engine, []float32{0, 0, 0, 0, 5, 6, 7, 8}), filled(t, engine, make([]float32, 8))
		got := make([]float32, 8)
		enqueued(t, s, MultiplyValues(background, s, 2, a, b, out))
		if err := out.Read(background, got); err != nil || !slices.Equal(got[4:], []float32{10, 24, 42, 64}) {
			t.Errorf("products: %v, %v", got, err)
		}
		enqueued(t, s, AddValues(background, s, 1, a, 10, b, out))
		if err := out.Read(background, got); err != nil || !slices.Equal(got[4:], []float32{51, 62, 73, 84}) {
			t.Errorf("sums: %v, %v", got, err)
		}
	})
}
