// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"

	"github.com/sparsek/sparsek/internal/matrix/rng"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// Problem is a product Alpha A B, or another of [sparsek.Op] with the sizes that it says.
type Problem[T sparsek.Element] struct {
	A     bsr.Matrix[T]  // M x K
	B     matio.Dense[T] // K x N
	Alpha float32

	// How the operands lie in memory when they are multiplied; X, B and C here are row-major.
	Form
	X matio.Dense[T] // of SDD

	narrow sparsek.DType // in which the library gets A, whose values are of it; 0: T
}

// N is the extent of the dense operands that A does not have.
func (p *Problem[T]) N() int {
	if p.Op == sparsek.DDS || p.Op == sparsek.DDST {
		return p.B.Rows
	}
	if p.Op == sparsek.SDD {
		return p.X.Cols
	}
	return p.B.Cols
}

// ExtentC are the rows and columns of C.
func (p *Problem[T]) ExtentC() (rows, cols int) {
	e := p.Form.ExtentC(Shape{p.A.Rows, p.N(), p.A.Cols}, len(p.A.Values), p.A.BlockK)
	return e.Rows, e.Cols
}

// columns is a column-major copy of a matrix.
type columns[T sparsek.Element] struct {
	sparsek.Operand
	rows, cols int
	data       []T
}

// read copies the matrix to rows.
func (c columns[T]) read(to []T) {
	for i := range c.rows {
		for j := range c.cols {
			to[i*c.cols+j] = c.data[j*c.rows+i]
		}
	}
}

// laid is a row-major matrix in another order, a copy where that is not its own.
func laid[T sparsek.Element](d matio.Dense[T], order sparsek.Order) sparsek.Operand {
	if order == sparsek.RowMajor {
		return sparsek.Dense[T]{Rows: d.Rows, Cols: d.Cols, Data: d.Data}
	}
	c := columns[T]{rows: d.Rows, cols: d.Cols, data: make([]T, len(d.Data))}
	for i := range d.Rows {
		for j := range d.Cols {
			c.data[j*d.Rows+i] = d.Data[i*d.Cols+j]
		}
	}
	c.Operand = sparsek.Transpose(sparsek.Dense[T]{Rows: d.Cols, Cols: d.Rows, Data: c.data})
	return c
}

// Streams of a seed, one for each thing that is made of it.
const (
	streamPattern = iota
	streamA
	streamB
	streamBias
	streamX
)

// PatternSeed is the seed of the pattern that belongs to a problem's seed.
func PatternSeed(seed uint64) uint64 { return rng.Split(seed, streamPattern) }

// IndexBytes predicts how much memory on the host the index of a matrix takes with its plan, for the sum of the numbers of
// its block rows and block columns, and that of its blocks: the index here, the library's copy, and the plan's entries.
func IndexBytes(extents, blocks float64) float64 { return 64*extents + 26*blocks }

// RandomA gives a pattern values from [-1, 1), and zeros where its blocks stand out over rows x cols.
func RandomA[T sparsek.Element](p bsr.Pattern, rows, cols, blockM, blockK int, seed uint64) bsr.Matrix[T] {
	m := bsr.Matrix[T]{
		Rows: rows, Cols: cols, BlockM: blockM, BlockK: blockK,
		Pattern: p, Values: make([]T, p.Blocks()*blockM*blockK),
	}
	rng.Fill(m.Values, rng.Split(seed, streamA), sparsek.FromFloat32[T])
	for r := range p.BlockRows {
		for i := p.RowPtr[r]; i < p.RowPtr[r+1]; i++ {
			block := m.Values[int(i)*blockM*blockK:][:blockM*blockK]
			insideRows, insideCols := min(blockM, rows-r*blockM), min(blockK, cols-int(p.ColIdx[i])*blockK)
			for row := range insideRows {
				clear(block[row*blockK+insideCols : (row+1)*blockK])
			}
			clear(block[insideRows*blockK:])
		}
	}
	return m
}

// RandomB makes a dense matrix of values from [-1, 1).
func RandomB[T sparsek.Element](rows, cols int, seed uint64) matio.Dense[T] {
	return random[T](rows, cols, seed, streamB)
}

// RandomX makes another one.
func RandomX[T sparsek.Element](rows, cols int, seed uint64) matio.Dense[T] {
	return random[T](rows, cols, seed, streamX)
}

func random[T sparsek.Element](rows, cols int, seed, stream uint64) matio.Dense[T] {
	d := matio.Dense[T]{Rows: rows, Cols: cols, Data: make([]T, rows*cols)}
	rng.Fill(d.Data, rng.Split(seed, stream), sparsek.FromFloat32[T])
	return d
}

// EffectiveFLOP counts the operations on stored blocks.
func (p *Problem[T]) EffectiveFLOP() float64 {
	return 2 * float64(p.A.Blocks()) * float64(p.A.BlockM) * float64(p.A.BlockK) * float64(p.N())
}

// DenseFLOP counts the operations that a dense product of the same size takes.
func (p *Problem[T]) DenseFLOP() float64 {
	return 2 * float64(p.A.Rows) * float64(p.A.Cols) * float64(p.N())
}

// Matrix takes A into c.
func (p *Problem[T]) Matrix(ctx context.Context, engine *sparsek.Engine) (*sparsek.Matrix, error) {
	return p.matrix().take(ctx, engine)
}

func (p *Problem[T]) b() sparsek.Dense[T] {
	return sparsek.Dense[T]{Rows: p.B.Rows, Cols: p.B.Cols, Data: p.B.Data}
}
