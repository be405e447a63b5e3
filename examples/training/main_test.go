// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"testing"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

// masked is a dense matrix, (rows, cols), some blocks of which are 0 and stay it.
type masked struct {
	rows, cols, block int
	w                 []float64
	kept              []bool // of each block, row by row
}

func newMasked(rows, cols, block int, w []float64) *masked {
	m := &masked{rows: rows, cols: cols, block: block, w: slices.Clone(w), kept: make([]bool, rows/block*(cols/block))}
	for i := range m.kept {
		m.kept[i] = true
	}
	return m
}

func (m *masked) blockOf(i, k int) int { return i/m.block*(m.cols/m.block) + k/m.block }

// times is w x, or its transpose's product.
func (m *masked) times(x []float64, samples int, transposed bool) []float64 {
	rows := m.rows
	if transposed {
		rows = m.cols
	}
	y := make([]float64, rows*samples)
	for i := range m.rows {
		for k := range m.cols {
			to, from := i, k
			if transposed {
				to, from = k, i
			}
			for j := range samples {
				y[to*samples+j] += m.w[i*m.cols+k] * x[from*samples+j]
			}
		}
	}
	return y
}

func (m *masked) descend(rate float64, g, x []float64, samples int) {
	for i := range m.rows {
		for k := range m.cols {
			if !m.kept[m.blockOf(i, k)] {
				continue
			}
			sum := 0.0
			for j := range samples {
				sum += g[i*samples+j] * x[k*samples+j]
			}
			m.w[i*m.cols+k] -= float64(float32(rate)) * sum
		}
	}
}

func (m *masked) prune(count int) {
	norm := make([]float64, len(m.kept))
	for i := range m.rows {
		for k := range m.cols {
			norm[m.blockOf(i, k)] += m.w[i*m.cols+k] * m.w[i*m.cols+k]
		}
	}
	order := make([]int, len(norm))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(norm[b], norm[a]) })
	for _, block := range order[count:] {
		m.kept[block] = false
	}
	for i := range m.rows {
		for k := range m.cols {
			if !m.kept[m.blockOf(i, k)] {
				m.w[i*m.cols+k] = 0
			}
		}
	}
}

// losses trains the network with dense matrices in float64.
func losses(p *problem) (list []float64) {
	first, second := newMasked(p.hidden, p.inputs, p.block, p.first), newMasked(p.outputs, p.hidden, p.block, p.second)
	for step := range p.steps + 1 {
		h := first.times(p.x, p.samples, false)
		for i := range h {
			h[i] = max(h[i], 0)
		}
		y := second.times(h, p.samples, false)
		loss := 0.0
		for i := range y {
			y[i] -= p.target[i]
			loss += y[i] * y[i]
			y[i] /= float64(p.samples)
		}
		list = append(list, loss/2/float64(p.samples))
		if step == p.steps {
			break
		}
		gradH := second.times(y, p.samples, true)
		for i := range h {
			if h[i] == 0 {
				gradH[i] = 0
			}
		}
		second.descend(p.rate, y, h, p.samples)
		first.descend(p.rate, gradH, p.x, p.samples)
		if step%p.pruneEvery == p.pruneEvery-1 {
			share := p.kept(step)
			first.prune(int(share * float64(len(first.kept))))
			second.prune(int(share * float64(len(second.kept))))
		}
	}
	return list
}

func compare[T float32 | float64](t *testing.T, c config, want []float64, tolerance float64) {
	t.Helper()
	got, err := run[T](t.Context(), c, t.Output())
	if errors.Is(err, sparsek.ErrLibraryNotFound) {
		t.Skip("skipped: libsparsek.so not found")
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, loss := range got {
		if math.Abs(loss-want[i]) > tolerance*want[i] {
			t.Fatalf("step %d: loss %v, want %v", i, loss, want[i])
		}
	}
}

// The losses are those of a dense network whose pruned blocks are masked, in float64.
func TestLosses(t *testing.T) {
	c := small()
	c.steps, c.pruneEvery = 60, 10
	want := losses(newProblem(c))
	compare[float64](t, c, want, 1e-10)
	compare[float32](t, c, want, 1e-3)
	if last := want[len(want)-1]; last > want[0]/2 {
		t.Errorf("the loss is %v after %v: nothing is learned", last, want[0])
	}
}
