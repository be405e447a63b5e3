// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"slices"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

// layer is a matrix of weights, and the products with it. All of them share one copy of the weights.
type layer[T float32 | float64] struct {
	weights sparsek.BSR[T, int32]
	matrix  *sparsek.Matrix
	// y = act(W x); the gradient of x, W^T g; and W - rate g x^T where W has blocks.
	forward, backward, step *sparsek.Plan
}

// newLayer has all blocks of dense weights, (rows, cols).
func newLayer[T float32 | float64](rows, cols, block int, dense []float64) *layer[T] {
	l := &layer[T]{weights: sparsek.BSR[T, int32]{Rows: rows, Cols: cols, BlockM: block, BlockK: block, RowPtr: []int32{0}}}
	for r := range rows / block {
		for c := range cols / block {
			l.weights.ColIdx = append(l.weights.ColIdx, int32(c))
			for i := range block {
				for _, v := range dense[(r*block+i)*cols+c*block:][:block] {
					l.weights.Values = append(l.weights.Values, T(v))
				}
			}
		}
		l.weights.RowPtr = append(l.weights.RowPtr, int32(len(l.weights.ColIdx)))
	}
	return l
}

func (l *layer[T]) blocks() int { return len(l.weights.ColIdx) }

// plan makes the products for the pattern as it is now, for so many samples.
func (l *layer[T]) plan(ctx context.Context, engine *sparsek.Engine, samples int, activation sparsek.Activation) (err error) {
	l.close()
	if l.matrix, err = sparsek.NewMatrix(ctx, engine, l.weights); err != nil {
		return err
	}
	for _, p := range []struct {
		plan **sparsek.Plan
		opts sparsek.PlanOptions
	}{
		{&l.forward, sparsek.PlanOptions{N: samples, Activation: activation}},
		{&l.backward, sparsek.PlanOptions{N: samples, Op: sparsek.DSDT}},
		{&l.step, sparsek.PlanOptions{N: samples, Op: sparsek.SDD, OrderB: sparsek.ColumnMajor}},
	} {
		if *p.plan, err = l.matrix.Plan(ctx, p.opts); err != nil {
			return err
		}
	}
	return nil
}

// values are the blocks one below the other.
func (l *layer[T]) values() sparsek.Dense[T] {
	return sparsek.Dense[T]{Rows: l.blocks() * l.weights.BlockM, Cols: l.weights.BlockK, Data: l.weights.Values}
}

// descend is W - rate g x^T.
func (l *layer[T]) descend(ctx context.Context, rate float64, g, x sparsek.Dense[T]) error {
	return l.step.Multiply(ctx, float32(-rate), 1, sparsek.Operands{X: g, B: sparsek.Transpose(x), C: l.values()})
}

// prune leaves the given number of blocks, those of the largest norm.
func (l *layer[T]) prune(count int) {
	w := &l.weights
	area := w.BlockM * w.BlockK
	norm := make([]float64, l.blocks())
	order := make([]int, l.blocks())
	for e := range order {
		order[e] = e
		for _, v := range w.Values[e*area:][:area] {
			norm[e] += float64(v) * float64(v)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(norm[b], norm[a]) })
	kept := make([]bool, l.blocks())
	for _, e := range order[:min(count, len(order))] {
		kept[e] = true
	}
	next := sparsek.BSR[T, int32]{Rows: w.Rows, Cols: w.Cols, BlockM: w.BlockM, BlockK: w.BlockK, RowPtr: []int32{0}}
	for r := range len(w.RowPtr) - 1 {
		for e := w.RowPtr[r]; e < w.RowPtr[r+1]; e++ {
			if kept[e] {
				next.ColIdx = append(next.ColIdx, w.ColIdx[e])
				next.Values = append(next.Values, w.Values[int(e)*area:][:area]...)
			}
		}
		next.RowPtr = append(next.RowPtr, int32(len(next.ColIdx)))
	}
	l.weights = next
}

func (l *layer[T]) close() {
	for _, p := range []*sparsek.Plan{l.forward, l.backward, l.step} {
		_ = p.Close()
	}
	if l.matrix != nil {
		_ = l.matrix.Close()
	}
	l.forward, l.backward, l.step, l.matrix = nil, nil, nil, nil
}

// network is second relu(first x), with the activations and gradients of one batch, which is all samples.
type network[T float32 | float64] struct {
	*problem
	engine        *sparsek.Engine
	first, second *layer[T]
	all           [2]int // blocks in the beginning

	x, y, h, gradY, gradH sparsek.Dense[T]
}

func newNetwork[T float32 | float64](ctx context.Context, engine *sparsek.Engine, p *problem) (*network[T], error) {
	dense := func(rows int) sparsek.Dense[T] {
		return sparsek.Dense[T]{Rows: rows, Cols: p.samples, Data: make([]T, rows*p.samples)}
	}
	n := &network[T]{problem: p, engine: engine, x: dense(p.inputs), h: dense(p.hidden), y: dense(p.outputs), gradH: dense(p.hidden), gradY: dense(p.outputs),
		first: newLayer[T](p.hidden, p.inputs, p.block, p.first), second: newLayer[T](p.outputs, p.hidden, p.block, p.second)}
	n.all = [2]int{n.first.blocks(), n.second.blocks()}
	for i, v := range p.x {
		n.x.Data[i] = T(v)
	}
	return n, n.plan(ctx)
}

func (n *network[T]) plan(ctx context.Context) error {
	return errors.Join(n.first.plan(ctx, n.engine, n.samples, sparsek.ReLU), n.second.plan(ctx, n.engine, n.samples, sparsek.NoActivation))
}

// forward gives the loss, half the mean square of what is wrong with an output, and leaves its gradient in gradY.
func (n *network[T]) forward(ctx context.Context) (loss float64, err error) {
	if err := n.first.forward.Multiply(ctx, 1, 0, sparsek.Operands{B: n.x, C: n.h}); err != nil {
		return 0, err
	}
	if err := n.second.forward.Multiply(ctx, 1, 0, sparsek.Operands{B: n.h, C: n.y}); err != nil {
		return 0, err
	}
	for i, y := range n.y.Data {
		wrong := y - T(n.target[i])
		loss += float64(wrong) * float64(wrong)
		n.gradY.Data[i] = wrong / T(n.samples)
	}
	return loss / 2 / float64(n.samples), nil
}

// backward changes both layers by one step.
func (n *network[T]) backward(ctx context.Context) error {
	if err := n.second.backward.Multiply(ctx, 1, 0, sparsek.Operands{B: n.gradY, C: n.gradH}); err != nil {
		return err
	}
	for i, h := range n.h.Data {
		if h == 0 {
			n.gradH.Data[i] = 0
		}
	}
	return errors.Join(n.second.descend(ctx, n.rate, n.gradY, n.h), n.first.descend(ctx, n.rate, n.gradH, n.x))
}

// prune leaves a share of the blocks that were there in the beginning.
func (n *network[T]) prune(ctx context.Context, share float64) error {
	n.first.prune(int(share * float64(n.all[0])))
	n.second.prune(int(share * float64(n.all[1])))
	return n.plan(ctx)
}

func (n *network[T]) close() {
	n.first.close()
	n.second.close()
}
