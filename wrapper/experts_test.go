// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/foreign"
)

// experts is a layer of a dropless mixture of experts, H = act(X W1) and Y = H W2 of each expert's rows. Each expert has
// rows from a block row on, as many as its count of tokens says, which the host does not read.
type experts[T Element] struct {
	count, tokens, width, hidden, block int

	index          *madeIndex[int32]
	counts         *DeviceBuffer[int32]
	bins           guarded[int32]
	x, y           DeviceDense[T] // (rows, width)
	w1, w2         DeviceDense[T] // (count hidden, width): W1 of each expert transposed
	h              DeviceDense[T] // the blocks
	first, second  *Plan
	layout1        *PlanLayout
	layout2        *PlanLayout
	memory1        *DeviceBuffer[int64]
	memory2        *DeviceBuffer[int64]
	hostW1, hostW2 Dense[T]
	hostX          Dense[T]
	rng            *rand.Rand
}

func newExperts[T Element](t *testing.T, engine *Engine, count, tokens, width, hidden, block int) *experts[T] {
	e := &experts[T]{count: count, tokens: tokens, width: width, hidden: hidden, block: block, rng: rand.New(rand.NewPCG(uint64(block), 5))}
	rows := (tokens/block + count) * block // however the tokens are distributed
	sizes := patternSizes{rows: rows, cols: count * hidden, blockM: block, blockK: block}
	capacity := rows / block * (hidden / block)
	e.index = newMadeIndex[int32](t, engine, sizes, capacity)
	e.counts, e.bins = must(NewBuffer[int32](engine, count))(t), newGuarded[int32](t, engine, count+1)
	e.hostW1, e.hostW2 = randomDense(e.rng, count*hidden, width, 0, 0, T(0)), randomDense(e.rng, count*hidden, width, 0, 0, T(0))
	e.w1, e.w2 = inBuffer(t, engine, e.hostW1, 0), inBuffer(t, engine, e.hostW2, 0)
	zeros := func(rows, cols int) DeviceDense[T] {
		return inBuffer(t, engine, Dense[T]{Rows: rows, Cols: cols, Data: make([]T, rows*cols)}, 0)
	}
	e.x, e.y, e.h = zeros(rows, width), zeros(rows, width), zeros(capacity*block, block)
	plan := func(options PlanOptions) (*PlanLayout, *DeviceBuffer[int64], *Plan) {
		options.N = width
		layout := must(engine.MeasurePlan(PatternSizes{Rows: rows, Cols: count * hidden, BlockM: block, BlockK: block, Blocks: capacity, DType: DTypeOf[T]()}, options))(t)
		memory := must(NewBuffer[int64](engine, layout.MemoryLen()))(t)
		var workspace *DeviceBuffer[int64]
		if layout.WorkspaceLen() > 0 {
			workspace = must(NewBuffer[int64](engine, layout.WorkspaceLen()))(t)
		}
		return layout, memory, must(layout.Plan(memory, workspace))(t)
	}
	e.layout1, e.memory1, e.first = plan(PlanOptions{Op: SDD, OrderB: ColumnMajor, Activation: GELU})
	e.layout2, e.memory2, e.second = plan(PlanOptions{})
	return e
}

// step is what a step of training puts into its stream: by what the counts are then.
func (e *experts[T]) step(ctx context.Context, s *Stream) error {
	made := IndexedBy[T](e.index.DeviceIndex, nil)
	return errors.Join(PatternFromCounts(ctx, s, e.index.DeviceIndex, e.counts, e.bins.front),
		WritePlan(ctx, s, e.layout1, made, e.memory1, nil), WritePlan(ctx, s, e.layout2, made, e.memory2, nil),
		e.first.Enqueue(ctx, s, 1, 0, Operands{X: e.x, B: Transpose(e.w1), C: e.h}),
		e.second.Enqueue(ctx, s, 1, 0, Operands{B: e.w2, C: e.y, Values: e.h}))
}

// draw gives each expert tokens, and X. Rows that no token has hold NaN, which must stay in them.
func (e *experts[T]) draw(t *testing.T, share func(expert int) float64) []int32 {
	t.Helper()
	counts := make([]int32, e.count)
	var total float64
	for i := range counts {
		total += share(i)
	}
	for range e.tokens {
		at := e.rng.Float64() * total
		i := 0
		for i < e.count-1 && at >= share(i) {
			at -= share(i)
			i++
		}
		counts[i]++
	}
	e.hostX = randomDense(e.rng, e.x.Rows, e.width, 0, 0, T(0))
	row := 0
	for _, n := range counts {
		end := row + int(n)
		for row += (int(n) + e.block - 1) / e.block * e.block; end < row; end++ {
			for j := range e.width {
				e.hostX.Data[end*e.width+j] = FromFloat32[T](float32(math.NaN()))
			}
		}
	}
	nan := make([]T, len(e.hostX.Data))
	for i := range nan {
		nan[i] = FromFloat32[T](float32(math.NaN()))
	}
	blocks := make([]T, e.h.Rows*e.block)
	for i := range blocks {
		blocks[i] = guardValue[T]()
	}
	background := context.Background()
	if err := errors.Join(e.counts.Write(background, counts), e.x.Buffer.Write(background, e.hostX.Data), e.y.Buffer.Write(background, nan),
		e.h.Buffer.Write(background, blocks)); err != nil {
		t.Fatal(err)
	}
	return counts
}

// verify compares H and Y of each expert with sums in float64, of Y those of H as it is.
func (e *experts[T]) verify(t *testing.T, counts []int32) {
	t.Helper()
	h, y := make([]T, e.h.Rows*e.block), make([]T, e.y.Rows*e.width)
	if err := errors.Join(e.h.Buffer.Read(context.Background(), h), e.y.Buffer.Read(context.Background(), y)); err != nil {
		t.Fatal(err)
	}
	bins, across := e.bins.read(t), e.hidden/e.block
	place := func(row, col int) int { // in h, of an expert's column
		return ((row/e.block*across+col/e.block)*e.block+row%e.block)*e.block + col%e.block
	}
	row := 0
	for i, n := range counts {
		if int(bins[i])*e.block != row {
			t.Fatalf("expert %d begins at block row %d, not %d", i, bins[i], row/e.block)
		}
		for r := row; r < row+int(n); r++ {
			for col := range e.hidden {
				var a sumOfProducts
				for j := range e.width {
					a.add(exactly(e.hostX.Data[r*e.width+j]), exactly(e.hostW1.Data[(i*e.hidden+col)*e.width+j]))
				}
				a.verify(t, exactly(h[place(r, col)]), GELU, roundoff[T](), "H", r, col)
			}
			for col := range e.width {
				var b sumOfProducts
				for j := range e.hidden {
					b.add(exactly(h[place(r, j)]), exactly(e.hostW2.Data[(i*e.hidden+j)*e.width+col]))
				}
				b.verify(t, exactly(y[r*e.width+col]), NoActivation, roundoff[T](), "Y", r, col)
			}
		}
		row += (int(n) + e.block - 1) / e.block * e.block
	}
	if end := int(bins[e.count]) * e.block; end != row {
		t.Fatalf("the last expert ends at row %d, not %d", end, row)
	}
	for at, v := range y[row*e.width:] {
		if exactly(v) != 0 {
			t.Fatalf("element %d behind the last expert is %v", at, v)
		}
	}
	for at, v := range h[row/e.block*across*e.block*e.block:] {
		if v != guardValue[T]() {
			t.Fatalf("element %d behind the last block was written: %v", at, v)
		}
	}
}

// sumOfProducts is an element of a product, with what its error may be.
type sumOfProducts struct {
	sum, magnitude float64
	terms          int
}

func (s *sumOfProducts) add(a, b float64) {
	s.sum += a * b
	s.magnitude += math.Abs(a * b)
	s.terms++
}

func (s *sumOfProducts) verify(t *testing.T, got float64, activation Activation, rounding float64, name string, row, col int) {
	t.Helper()
	tolerance := 1.13*float64(s.terms+4)*math.Ldexp(s.magnitude, -23) + math.Ldexp(4+math.Abs(s.sum), -20)
	want := activated(activation, s.sum)
	tolerance += rounding * math.Abs(want)
	if !within(got, want, tolerance) {
		t.Fatalf("%s[%d, %d] = %g, want %g within %g", name, row, col, got, want, tolerance)
	}
}

// shares are how tokens are distributed among experts.
var shares = []struct {
	name string
	of   func(expert int) float64
}{
	{"even", func(int) float64 { return 1 }},
	{"uneven", func(i int) float64 { return math.Exp2(float64(-i)) }},
	{"some empty", func(i int) float64 { return float64(i % 2) }},
	{"one", func(i int) float64 { return float64(max(0, i-2)) }},
}

// A layer of experts computes what each expert does, whatever the counts of tokens are.
func TestExperts(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		s := must(engine.NewStream())(t)
		defer s.Close()
		t.Run("b8", func(t *testing.T) { stepExperts(t, s, newExperts[float32](t, engine, 4, 61, 20, 24, 8)) })
		for _, block := range []int{32, 64, 128} {
			t.Run(fmt.Sprintf("b%d", block), func(t *testing.T) { stepExperts(t, s, newExperts[BFloat16](t, engine, 4, 300, 72, 2*block, block)) })
		}
	})
}

func stepExperts[T Element](t *testing.T, s *Stream, e *experts[T]) {
	for _, share := range shares {
		counts := e.draw(t, share.of)
		enqueued(t, s, e.step(context.Background(), s))
		if t.Run(share.name, func(t *testing.T) { e.verify(t, counts) }); t.Failed() {
			return
		}
	}
}

// A graph has a pattern, two plans and two products of whatever the counts are when it is replayed.
func TestExpertsInGraph(t *testing.T) {
	engine := newEngine(t, CUDA)
	library := must(foreign.Open(true, engine.Info().Device))(t)
	defer library.Close()
	s := must(engine.StreamAt(library.Stream()))(t)
	defer s.Close()
	for _, block := range []int{64, 128} {
		e := newExperts[BFloat16](t, engine, 4, 600, 136, 2*block, block)
		graph := must(library.Capture(foreign.CaptureGlobal, func() error { return e.step(context.Background(), s) }))(t)
		for _, share := range shares {
			counts := e.draw(t, share.of)
			if err := errors.Join(graph.Launch(), library.Wait()); err != nil {
				t.Fatal(err)
			}
			if t.Run(share.name, func(t *testing.T) { e.verify(t, counts) }); t.Failed() {
				break
			}
		}
		graph.Close()
		runtime.KeepAlive(e)
	}
}
