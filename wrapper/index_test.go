// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// shuffled is a matrix with the same product: its block rows unsorted, its blocks of values in another order, or both.
func shuffled[T Element, I Index](a BSR[T, int32], rows, blocks bool, seed uint64) BSR[T, I] {
	random := rand.New(rand.NewPCG(seed, 13))
	size := a.BlockM * a.BlockK
	order := random.Perm(len(a.ColIdx)) // where each block of values goes
	if !blocks {
		for i := range order {
			order[i] = i
		}
	}
	s := BSR[T, I]{Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK, Values: slices.Clone(a.Values), Unsorted: rows}
	for _, v := range a.RowPtr {
		s.RowPtr = append(s.RowPtr, I(v))
	}
	places := make([]int, len(a.ColIdx)) // of the entries of a, in the order of s
	for i := range places {
		places[i] = i
	}
	for row := range len(a.RowPtr) - 1 {
		own := places[a.RowPtr[row]:a.RowPtr[row+1]]
		if rows {
			random.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
		}
	}
	for i, from := range places {
		s.ColIdx = append(s.ColIdx, I(a.ColIdx[from]))
		at := i
		if blocks {
			at = order[i]
			s.BlockIdx = append(s.BlockIdx, I(at))
		}
		copy(s.Values[at*size:(at+1)*size], a.Values[from*size:(from+1)*size])
	}
	return s
}

func testShuffled[I Index](t *testing.T, engine *Engine) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawShape(rt)
		p := newProduct[BFloat16, int32](s)
		a := shuffled[BFloat16, I](p.a, rapid.Bool().Draw(rt, "rows"), rapid.Bool().Draw(rt, "blocks"), s.seed)
		before := slices.Clone(a.Values)
		m := must(NewMatrix(context.Background(), engine, a))(rt)
		defer m.Close()
		plan := must(m.Plan(context.Background(), p.planOptions(SizeOf[BFloat16]())))(rt)
		defer plan.Close()
		c := p.newC()
		if err := plan.Multiply(context.Background(), p.alpha, p.beta, Operands{B: p.b, C: c}); err != nil {
			rt.Fatal(err)
		}
		p.verify(rt, engine, plan.Info(), c)
		if !slices.Equal(a.Values, before) {
			rt.Fatal("the caller's values were moved")
		}
		// The check reads the same matrix.
		if report, err := check.Product(engine.Library(), a, p.checkArgs(c, plan.Info())); err != nil || report.Elements != p.a.Rows*p.n {
			rt.Fatalf("%v\n%+v", err, report)
		}
	})
}

// The index as people have it: unsorted rows, blocks of values in an order of their own, int16.
func TestShuffledIndex(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		t.Run("int16", func(t *testing.T) { testShuffled[int16](t, engine) })
		t.Run("int32", func(t *testing.T) { testShuffled[int32](t, engine) })
		t.Run("int64", func(t *testing.T) { testShuffled[int64](t, engine) })
	})
}

func testShuffledOnDevice[I Index](t *testing.T, engine *Engine) {
	s := must(engine.NewStream())(t)
	defer s.Close()
	rapid.Check(t, func(rt *rapid.T) {
		multiplyShuffled[I](rt, engine, s, drawShape(rt), rapid.Bool().Draw(rt, "rows"), rapid.Bool().Draw(rt, "blocks"))
	})
	// So many blocks in a row that they are sorted in another way.
	multiplyShuffled[I](t, engine, s, shape{rows: 20, cols: 2500 * 8, blockM: 8, blockK: 8, n: 16, density: 0.9, alpha: 1, seed: 3}, true, true)
}

// multiplyShuffled multiplies by a matrix of device arrays that is waited for, and by one that is not.
func multiplyShuffled[I Index](t rapid.TB, engine *Engine, stream *Stream, s shape, rows, blocks bool) {
	t.Helper()
	background := context.Background()
	p := newProduct[BFloat16, int32](s)
	a := shuffled[BFloat16, I](p.a, rows, blocks, s.seed)
	waited, done, err := onDevice(t, engine, a)
	must(waited, err)(t)
	defer done()
	async, closeArrays := inStream(t, stream, engine, a)
	defer closeArrays()
	for _, m := range []*Matrix{waited, async} {
		plan := must(m.Plan(background, p.planOptions(SizeOf[BFloat16]())))(t)
		c := p.newC()
		if err := plan.Multiply(background, p.alpha, p.beta, Operands{B: p.b, C: c}); err != nil {
			t.Fatal(err)
		}
		p.verify(t, engine, plan.Info(), c)
		plan.Close()
	}
	if err := errors.Join(async.Check(background), async.Close()); err != nil {
		t.Fatal(err)
	}
}

// The same from device arrays.
func TestShuffledIndexOnDevice(t *testing.T) {
	engine := newEngine(t, CUDA)
	t.Run("int16", func(t *testing.T) { testShuffledOnDevice[int16](t, engine) })
	t.Run("int32", func(t *testing.T) { testShuffledOnDevice[int32](t, engine) })
	t.Run("int64", func(t *testing.T) { testShuffledOnDevice[int64](t, engine) })
}

// The same plan whether or not a matrix came sorted: each kernel, with values given later.
func TestShuffledIndexOfEachKernel(t *testing.T) {
	test := func(t *testing.T, engine *Engine, kernel Kernel) {
		rapid.Check(t, func(rt *rapid.T) {
			s := drawServed(rt, kernel)
			if !serves[BFloat16, BFloat16](rt, engine, s) {
				s.n, s.gapB, s.gapC = (s.n+7)/8*8, s.gapB/8*8, s.gapC/8*8
			}
			p := newProduct[BFloat16, int32](s)
			a := shuffled[BFloat16, int64](p.a, true, true, s.seed)
			values := a.Values
			a.Values = nil
			m := must(NewMatrix(context.Background(), engine, a))(rt)
			defer m.Close()
			if err := SetValues(context.Background(), m, values); err != nil {
				rt.Fatal(err)
			}
			plan := must(m.Plan(context.Background(), p.planOptions(16)))(rt)
			defer plan.Close()
			c := p.newC()
			if err := plan.Multiply(context.Background(), p.alpha, p.beta, p.operands(p.b, c, p.bias)); err != nil {
				rt.Fatal(err)
			}
			p.verify(rt, engine, plan.Info(), c)
		})
	}
	skip := func(*testing.T, *Engine, Kernel) {}
	onEachKernel(t, test, skip, skip, skip)
}

func TestShuffledIndexFaults(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		for _, fault := range []struct {
			spoil    func(*BSR[float32, int64])
			status   Status
			speaksOf string
		}{
			{func(a *BSR[float32, int64]) { a.ColIdx = []int64{1, 1, 0} }, ErrColIdxUnsorted, "or set SPARSEK_BSR_SORT"},
			{func(a *BSR[float32, int64]) { a.ColIdx, a.Unsorted = []int64{1, 1, 1}, true }, ErrColIdxRepeated, "col_idx[2] = 1 repeats col_idx[1]"},
			{func(a *BSR[float32, int64]) { a.ColIdx, a.Unsorted = []int64{1, 2, 0}, true }, ErrColIdxRange, "col_idx[1] = 2"},
			{func(a *BSR[float32, int64]) { a.BlockIdx = []int64{0, 3, 1} }, ErrBlockIdxRange, "block_idx[1] = 3"},
			{func(a *BSR[float32, int64]) { a.BlockIdx = []int64{0, 1, -1} }, ErrBlockIdxRange, "block_idx[2] = -1"},
			{func(a *BSR[float32, int64]) { a.BlockIdx = []int64{0, 1} }, ErrBadSize, "BlockIdx has 2 entries"},
		} {
			a := small()
			fault.spoil(&a)
			_, err := NewMatrix(context.Background(), engine, a)
			wantFault(t, err, fault.status, fault.speaksOf)
			if engine.Info().Backend != CUDA {
				continue
			}
			_, done, err := onDevice(t, engine, a)
			done()
			wantFault(t, err, fault.status, fault.speaksOf)
		}
	})
}
