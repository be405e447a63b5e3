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

// Case is a product that is timed: A of a pattern, or from a file, by a random B.
type Case struct {
	Name           string
	Shape          workload.Shape
	BlockM, BlockK int
	DType          string // of A, B and C: "bf16", "fp16" or "fp32"
	Seed           uint64

	Pattern  string  // of internal/matrix/pattern; "" where there is a file
	Density  float64 // of the pattern, as far as it takes one
	Shuffled bool    // the pattern's block rows are permuted
	File     *File

	Graph bool  // timed in a CUDA graph too, where there is a GPU
	Held  []int // timed while so many SMs are held too, where there is a GPU

	Reach      Reach // what the project wants of the case; empty: nothing is said
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
	p, err := pattern.Generate(c.spec())
	if err != nil || !c.Shuffled {
		return p, err
	}
	return shuffleRows(p, c.Seed), nil
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
	return pattern.Spec{
		Name: c.Pattern, BlockRows: blocks(c.Shape.M, c.BlockM), BlockCols: blocks(c.Shape.K, c.BlockK), Density: c.Density,
		Seed: workload.PatternSeed(c.Seed),
	}
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
	}
	return workload.BFloat16.Size
}

// denseBytes are those of a dense A.
func (c Case) denseBytes() float64 {
	return float64(elementBytes(c.DType)) * float64(c.Shape.M) * float64(c.Shape.K)
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
	type sizes struct{ a, b, c float64 }
	var values, expanded float64
	largest := map[string]sizes{} // by element type; they stay for all its cases
	for _, c := range cases {
		size := float64(elementBytes(c.DType))
		l := largest[c.DType]
		if dense && c.denseBytes() <= largestDense {
			l.a = max(l.a, c.denseBytes())
			expanded = max(expanded, c.denseBytes())
		}
		l.b = max(l.b, size*float64(c.Shape.K)*float64(c.Shape.N))
		l.c = max(l.c, size*float64(c.Shape.M)*float64(c.Shape.N))
		largest[c.DType] = l
		values = max(values, size*c.blocks()*float64(c.BlockM)*float64(c.BlockK)+c.indexBytes())
	}
	total := values
	for _, l := range largest {
		if backend == sparsek.CUDA {
			total += max(l.a, l.b) + l.c
		} else {
			total += l.b + l.c + workload.SetCount*(l.b+l.c)
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
	return predicted
}
