// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// model is a graph convolutional network of two layers (Kipf and Welling 2017) in an engine's memory,
//
//	scores = S ReLU(S X W0 + b0) W1 + b1
//
// with the normalized adjacency S and the features X as sparse matrices of single elements. All four products are this
// library's, and what lies between them stays in the engine's memory. The dense product by W1 is a sparse one too: the
// hidden layer (nodes, 16) is, as it lies in memory, a matrix of 16 x 16 blocks of which each block row has one.
type model struct {
	nodes, blocks int // blocks of the hidden layer

	wordsByHidden, layerByClasses *sparsek.Plan // X W0; the hidden layer by W1
	mixHidden, mixClasses         *sparsek.Plan // S times those, with the bias, and ReLU for the first

	first, bias0, second, bias1                *sparsek.DeviceBuffer[float32]
	wordSums, layer, classSums, scoresInEngine *sparsek.DeviceBuffer[float32]
	stream                                     *sparsek.Stream
}

// newModel makes the plans and copies the weights. What it makes is added to owned, also where it fails.
func newModel(ctx context.Context, engine *sparsek.Engine, l *library, owned *closers) (*model, error) {
	m := &model{nodes: len(l.class), blocks: (len(l.class) + hidden - 1) / hidden}
	if err := m.makePlans(ctx, engine, l, owned); err != nil {
		return nil, err
	}
	for _, weights := range []struct {
		to   **sparsek.DeviceBuffer[float32]
		from []float64
	}{{&m.first, l.network.first}, {&m.bias0, l.network.bias0}, {&m.second, l.network.second}, {&m.bias1, l.network.bias1}} {
		if err := newBuffer(ctx, engine, weights.to, toFloat32(weights.from), owned); err != nil {
			return nil, err
		}
	}
	for _, between := range []struct {
		to       **sparsek.DeviceBuffer[float32]
		elements int
	}{{&m.wordSums, m.nodes * hidden}, {&m.layer, m.blocks * hidden * hidden}, {&m.classSums, m.nodes * classes}, {&m.scoresInEngine, m.nodes * classes}} {
		// The hidden layer's last block has zeros below the last node, which no product overwrites.
		if err := newBuffer(ctx, engine, between.to, make([]float32, between.elements), owned); err != nil {
			return nil, err
		}
	}
	var err error
	m.stream, err = engine.NewStream()
	return m, owned.add(m.stream, err)
}

func (m *model) makePlans(ctx context.Context, engine *sparsek.Engine, l *library, owned *closers) error {
	features, _, err := bsr.Convert(&l.features, 1, 1, func(x float64) float32 { return float32(x) })
	if err != nil {
		return err
	}
	adjacency, _, err := bsr.Convert(&l.adjacency, 1, 1, func(x float64) float32 { return float32(x) })
	if err != nil {
		return err
	}
	layer := sparsek.BSR[float32, int32]{Rows: m.nodes, Cols: hidden, BlockM: hidden, BlockK: hidden,
		RowPtr: make([]int32, m.blocks+1), ColIdx: make([]int32, m.blocks)} // each product brings its values
	for r := range m.blocks {
		layer.RowPtr[r+1] = int32(r) + 1
	}
	x, err := sparsek.NewMatrix(ctx, engine, sparsek.BSROf(features))
	if err := owned.add(x, err); err != nil {
		return err
	}
	s, err := sparsek.NewMatrix(ctx, engine, sparsek.BSROf(adjacency))
	if err := owned.add(s, err); err != nil {
		return err
	}
	h, err := sparsek.NewMatrix(ctx, engine, layer)
	if err := owned.add(h, err); err != nil {
		return err
	}
	for _, p := range []struct {
		to      **sparsek.Plan
		matrix  *sparsek.Matrix
		options sparsek.PlanOptions
	}{
		{&m.wordsByHidden, x, sparsek.PlanOptions{N: hidden}},
		{&m.mixHidden, s, sparsek.PlanOptions{N: hidden, Bias: sparsek.ColumnBias, Activation: sparsek.ReLU}},
		{&m.layerByClasses, h, sparsek.PlanOptions{N: classes}},
		{&m.mixClasses, s, sparsek.PlanOptions{N: classes, Bias: sparsek.ColumnBias}},
	} {
		*p.to, err = p.matrix.Plan(ctx, p.options)
		if err := owned.add(*p.to, err); err != nil {
			return err
		}
	}
	return nil
}

// forward computes the scores (nodes, classes) of all nodes. On a GPU the four products and the copy of the scores follow
// each other in a stream, and the host waits once.
func (m *model) forward(ctx context.Context, scores []float32) error {
	view := func(buffer *sparsek.DeviceBuffer[float32], rows, cols int) sparsek.Operand {
		return sparsek.DeviceDense[float32]{Rows: rows, Cols: cols, Buffer: buffer}
	}
	wordSums, layer := view(m.wordSums, m.nodes, hidden), view(m.layer, m.nodes, hidden)
	classSums, all := view(m.classSums, m.nodes, classes), view(m.scoresInEngine, m.nodes, classes)
	for _, p := range []struct {
		plan     *sparsek.Plan
		operands sparsek.Operands
	}{
		{m.wordsByHidden, sparsek.Operands{B: view(m.first, words, hidden), C: wordSums}},
		{m.mixHidden, sparsek.Operands{B: wordSums, C: layer, Bias: view(m.bias0, 1, hidden)}},
		{m.layerByClasses, sparsek.Operands{Values: view(m.layer, m.blocks*hidden, hidden), B: view(m.second, hidden, classes), C: classSums}},
		{m.mixClasses, sparsek.Operands{B: classSums, C: all, Bias: view(m.bias1, 1, classes)}},
	} {
		if err := p.plan.Enqueue(ctx, m.stream, 1, 0, p.operands); err != nil {
			return err
		}
	}
	if err := m.scoresInEngine.ReadAsync(m.stream, scores); err != nil {
		return err
	}
	return m.stream.Wait(ctx)
}

// newBuffer makes a buffer with these values.
func newBuffer(ctx context.Context, engine *sparsek.Engine, to **sparsek.DeviceBuffer[float32], values []float32, owned *closers) (err error) {
	*to, err = sparsek.NewBuffer[float32](engine, len(values))
	if err := owned.add(*to, err); err != nil {
		return err
	}
	return (*to).Write(ctx, values)
}

func toFloat32(from []float64) []float32 {
	to := make([]float32, len(from))
	for i, x := range from {
		to[i] = float32(x)
	}
	return to
}

// closers are what to close, the last first.
type closers []interface{ Close() error }

// add takes c over where err is nil. It returns err.
func (l *closers) add(c interface{ Close() error }, err error) error {
	if err == nil {
		*l = append(*l, c)
	}
	return err
}

func (l closers) close() (err error) {
	for i := len(l) - 1; i >= 0; i-- {
		err = errors.Join(err, l[i].Close())
	}
	return err
}
