// SPDX-License-Identifier: Apache-2.0

// Package bench times block-sparse products, in turn with other libraries on the same data, and says how they compare.
package bench

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
	"github.com/sparsek/sparsek/internal/matrix/rng"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// Case is a product that is timed: A of a pattern, or from a file, by a random B, or another product of A.
type Case struct {
	Name           string
	Shape          workload.Shape
	Form           workload.Form
	BlockM, BlockK int
	DType          string // of A, B and C: "bf16", "fp16" or "fp32"; of attention also "e4m3", with an O of bf16
	Seed           uint64

	Pattern  string  // of internal/matrix/pattern; "" where there is a file
	Density  float64 // of the pattern, as far as it takes one
	Shuffled bool    // the pattern's block rows are permuted
	// The pattern is that of a matrix of which this one is the transpose.
	Transposed bool
	// So many patterns with seeds of their own, along the diagonal of a matrix that has nothing else; 0: one.
	Diagonal int
	File     *File

	Attention *workload.Attention // in place of a product
	Experts   *workload.Experts   // in place of a product: a layer of two
	Backward  bool                // of attention: the backward pass is timed

	Graph bool  // timed in a CUDA graph too, where there is a GPU
	Held  []int // timed while so many SMs are held too, where there is a GPU

	Reach      Reach // what the case should reach; empty: nothing is said
	GraphReach Reach // the same in a CUDA graph
}

// File is a matrix that was read from a file.
type File struct {
	Path    string
	Entries *bsr.Entries
}

// Errors of cases from files, wrapped.
var (
	ErrOverflow  = errors.New("values are too large for the element type")
	ErrNotFinite = errors.New("values are infinite or NaN")
)

// Generate makes the pattern of A, which a file must not give.
func (c Case) Generate() (bsr.Pattern, error) {
	if c.Diagonal > 0 {
		return c.generateDiagonal()
	}
	p, err := pattern.Generate(c.spec())
	if err != nil {
		return p, err
	}
	if c.Transposed {
		p = transpose(p)
	}
	if c.Shuffled {
		p = shuffleRows(p, c.Seed)
	}
	return p, nil
}

// generateDiagonal makes the patterns along the diagonal.
func (c Case) generateDiagonal() (bsr.Pattern, error) {
	spec := c.spec()
	whole := bsr.Pattern{BlockRows: c.Diagonal * spec.BlockRows, BlockCols: c.Diagonal * spec.BlockCols, RowPtr: []int32{0}}
	for i := range c.Diagonal {
		spec.Seed = rng.Split(workload.PatternSeed(c.Seed), uint64(i))
		p, err := pattern.Generate(spec)
		if err != nil {
			return p, err
		}
		for r := range p.BlockRows {
			for _, column := range p.Row(r) {
				whole.ColIdx = append(whole.ColIdx, int32(i*spec.BlockCols)+column)
			}
			whole.RowPtr = append(whole.RowPtr, int32(len(whole.ColIdx)))
		}
	}
	return whole, nil
}

// transpose is the pattern of A^T.
func transpose(p bsr.Pattern) bsr.Pattern {
	out := bsr.Pattern{BlockRows: p.BlockCols, BlockCols: p.BlockRows, RowPtr: []int32{0}}
	rows := make([][]int32, p.BlockCols)
	for r := range p.BlockRows {
		for _, column := range p.Row(r) {
			rows[column] = append(rows[column], int32(r))
		}
	}
	for _, row := range rows {
		out.ColIdx = append(out.ColIdx, row...)
		out.RowPtr = append(out.RowPtr, int32(len(out.ColIdx)))
	}
	return out
}

// load makes A.
func load[T sparsek.Element](c Case, e workload.Element[T]) (bsr.Matrix[T], *bsr.Fill, error) {
	if c.File == nil {
		p, err := c.Generate()
		if err != nil {
			return bsr.Matrix[T]{}, nil, err
		}
		return workload.RandomA[T](p, c.Shape.M, c.Shape.K, c.BlockM, c.BlockK, c.Seed), nil, nil
	}
	for i, v := range c.File.Entries.Value {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return bsr.Matrix[T]{}, nil, fmt.Errorf("%w: %v at row %d, column %d of %s: such a product cannot be checked, so it is not timed",
				ErrNotFinite, v, c.File.Entries.Row[i], c.File.Entries.Col[i], c.File.Path)
		}
	}
	blocking, err := bsr.Block(c.File.Entries, c.BlockM, c.BlockK)
	if err != nil {
		return bsr.Matrix[T]{}, nil, fmt.Errorf("%s: %w", c.File.Path, err)
	}
	var count atomic.Int64
	a, fill, err := bsr.Values(blocking, e.CountOverflow(&count))
	if err != nil {
		return bsr.Matrix[T]{}, nil, fmt.Errorf("%s: %w", c.File.Path, err)
	}
	if n := count.Load(); n > 0 {
		return bsr.Matrix[T]{}, nil, fmt.Errorf("%w: %d of %s would become infinite in %s: choose another type, or scale them", ErrOverflow, n, c.File.Path, e.Name)
	}
	return a, &fill, nil
}

// spec says which pattern A has.
func (c Case) spec() pattern.Spec {
	m, k := c.Shape.M/max(1, c.Diagonal), c.Shape.K/max(1, c.Diagonal)
	s := pattern.Spec{
		Name: c.Pattern, BlockRows: blocks(m, c.BlockM), BlockCols: blocks(k, c.BlockK), Density: c.Density,
		Seed: workload.PatternSeed(c.Seed),
	}
	if c.Transposed {
		s.BlockRows, s.BlockCols = s.BlockCols, s.BlockRows
	}
	return s
}

// streamShuffle follows those that internal/bench/workload splits off a seed.
const streamShuffle = 16

// shuffleRows permutes the block rows of a pattern.
func shuffleRows(p bsr.Pattern, seed uint64) bsr.Pattern {
	order := make([]int, p.BlockRows)
	for i := range order {
		order[i] = i
	}
	rng.Shuffle(rng.New(rng.Split(seed, streamShuffle)), order)
	out := bsr.Pattern{BlockRows: p.BlockRows, BlockCols: p.BlockCols, RowPtr: []int32{0}}
	for _, r := range order {
		out.ColIdx = append(out.ColIdx, p.Row(r)...)
		out.RowPtr = append(out.RowPtr, int32(len(out.ColIdx)))
	}
	return out
}

func blocks(extent, block int) int { return (extent + block - 1) / block }

// elementBytes is the size of an element of a type by name.
func elementBytes(dtype string) int {
	switch dtype {
	case workload.Float64.Name:
		return workload.Float64.Size
	case workload.Float32.Name:
		return workload.Float32.Size
	case workload.Float8E4M3.Name:
		return workload.Float8E4M3.Size
	}
	return workload.BFloat16.Size
}

// denseBytes are those of a dense A or, of products other than A B, of the largest matrix of the dense product that
// computes the same.
func (c Case) denseBytes() float64 {
	s := c.Form.Dense(c.Shape)
	elements := float64(s.M) * float64(s.K)
	if c.Form.Op != sparsek.DSD {
		elements = max(elements, float64(s.K)*float64(s.N), float64(s.M)*float64(s.N))
	}
	return float64(elementBytes(c.DType)) * elements
}

// sizes are those of the operands, with a dense A for dense peers, as far as it is not too large.
func (c Case) sizes(dense bool) workload.Sizes {
	if c.Attention != nil || c.Experts != nil {
		return workload.Sizes{}
	}
	values := 0 // of SDD, which writes them: exactly, where blocks() only predicts
	if c.Form.Op == sparsek.SDD {
		if p, err := c.Generate(); err == nil { // else the case fails when it is measured
			values = p.Blocks() * c.BlockM * c.BlockK
		}
	}
	s := c.Form.Sizes(c.Shape, values, c.BlockK)
	if dense && c.denseBytes() <= largestDense {
		d := c.Form.Dense(c.Shape)
		s = s.Larger(workload.Sizes{A: d.M * d.K, B: d.K * d.N, C: d.M * d.N})
	}
	return s
}

// expand is A as a dense row-major matrix, with zeros where no block is stored.
func expand[T sparsek.Element](a bsr.Matrix[T]) []T {
	dense := make([]T, a.Rows*a.Cols)
	for r := range a.BlockRows {
		for i := a.RowPtr[r]; i < a.RowPtr[r+1]; i++ {
			block, first := a.Values[int(i)*a.BlockM*a.BlockK:][:a.BlockM*a.BlockK], int(a.ColIdx[i])*a.BlockK
			for row := range min(a.BlockM, a.Rows-r*a.BlockM) {
				width := min(a.BlockK, a.Cols-first)
				copy(dense[(r*a.BlockM+row)*a.Cols+first:][:width], block[row*a.BlockK:])
			}
		}
	}
	return dense
}

// HostBytes is about how much memory the cases take on the host, with the operands where the back-end has them there,
// and with the dense A of dense peers.
func HostBytes(cases []Case, backend sparsek.Backend, dense bool) float64 {
	var values, expanded float64
	largest := map[string]workload.Sizes{} // by element type; they stay for all its cases
	for _, c := range cases {
		if c.Attention != nil {
			values = max(values, c.attentionBytes(backend))
			continue
		}
		if c.Experts != nil {
			values = max(values, c.expertsBytes(backend))
			continue
		}
		largest[c.DType] = largest[c.DType].Larger(c.sizes(dense && backend == sparsek.CUDA))
		if dense && c.denseBytes() <= largestDense {
			expanded = max(expanded, c.denseBytes())
		}
		values = max(values, float64(elementBytes(c.DType))*c.blocks()*float64(c.BlockM)*float64(c.BlockK)+c.indexBytes())
	}
	total := values
	for dtype, l := range largest {
		size := float64(elementBytes(dtype))
		host, result := size*float64(max(l.A, l.X, l.B)), size*float64(l.C)
		total += host + result
		if backend != sparsek.CUDA {
			total += workload.SetCount * (size*float64(l.X+l.B) + result)
		}
	}
	if backend != sparsek.CUDA {
		total += expanded
	}
	return total
}

// indexBytes is about how much memory on the host the index of A takes.
func (c Case) indexBytes() float64 {
	return workload.IndexBytes(float64(blocks(c.Shape.M, c.BlockM)+blocks(c.Shape.K, c.BlockK)), c.blocks())
}

// blocks is about the number of blocks of A, at most.
func (c Case) blocks() float64 {
	places := float64(blocks(c.Shape.M, c.BlockM)) * float64(blocks(c.Shape.K, c.BlockK))
	if c.File != nil {
		return min(places, float64(len(c.File.Entries.Value)))
	}
	predicted, err := c.spec().Blocks()
	if err != nil { // more than can be counted: Generate refuses them
		return places
	}
	return predicted * float64(max(1, c.Diagonal))
}
