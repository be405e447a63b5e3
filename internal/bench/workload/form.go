// SPDX-License-Identifier: Apache-2.0

package workload

import sparsek "github.com/sparsek/sparsek/wrapper"

// Form says which product of a matrix is computed, and how its dense operands lie in memory. Its zero value is A B with
// all of them row-major.
type Form struct {
	Op                     sparsek.Op
	OrderX, OrderB, OrderC sparsek.Order
}

// Extent is the number of rows and columns of an operand.
type Extent struct{ Rows, Cols int }

func (e Extent) elements() int { return e.Rows * e.Cols }

// ExtentB are the rows and columns of B, for an A of M x K and N as [sparsek.PlanOptions] has it.
func (f Form) ExtentB(s Shape) Extent {
	switch f.Op {
	case sparsek.DSDT:
		return Extent{s.M, s.N}
	case sparsek.SDD:
		return Extent{s.N, s.K}
	case sparsek.DDS:
		return Extent{s.N, s.M}
	case sparsek.DDST:
		return Extent{s.N, s.K}
	}
	return Extent{s.K, s.N}
}

// ExtentX are those of X, which SDD alone has.
func (f Form) ExtentX(s Shape) Extent {
	if f.Op == sparsek.SDD {
		return Extent{s.M, s.N}
	}
	return Extent{}
}

// ExtentC are those of C, for an A whose blocks are BlockK wide and have so many elements in all.
func (f Form) ExtentC(s Shape, values, blockK int) Extent {
	switch f.Op {
	case sparsek.DSDT:
		return Extent{s.K, s.N}
	case sparsek.SDD:
		return Extent{values / blockK, blockK}
	case sparsek.DDS:
		return Extent{s.N, s.K}
	case sparsek.DDST:
		return Extent{s.N, s.M}
	}
	return Extent{s.M, s.N}
}

// Dense is the dense product that computes the same, or for SDD all that A has places for, as an M x K by a K x N one.
func (f Form) Dense(s Shape) Shape {
	switch f.Op {
	case sparsek.DSDT:
		return Shape{s.K, s.N, s.M}
	case sparsek.SDD:
		return Shape{s.M, s.K, s.N}
	case sparsek.DDS:
		return Shape{s.N, s.K, s.M}
	case sparsek.DDST:
		return Shape{s.N, s.M, s.K}
	}
	return s
}

// ColumnMajor has the letters of those of x, b and c that are column-major, as in "bc".
func (f Form) ColumnMajor() string {
	text := ""
	for _, operand := range []struct {
		name  string
		order sparsek.Order
	}{{"x", f.OrderX}, {"b", f.OrderB}, {"c", f.OrderC}} {
		if operand.order == sparsek.ColumnMajor {
			text += operand.name
		}
	}
	return text
}

// planOptions are those of a plan for N.
func (f Form) planOptions(n int) sparsek.PlanOptions {
	return sparsek.PlanOptions{N: n, Op: f.Op, OrderX: f.OrderX, OrderB: f.OrderB, OrderC: f.OrderC}
}

// over is an operand that fills the front of a buffer.
func over[T sparsek.Element](buffer *sparsek.DeviceBuffer[T], e Extent, order sparsek.Order) sparsek.Operand {
	if order == sparsek.ColumnMajor {
		return sparsek.Transpose(sparsek.DeviceDense[T]{Rows: e.Cols, Cols: e.Rows, Buffer: buffer})
	}
	return sparsek.DeviceDense[T]{Rows: e.Rows, Cols: e.Cols, Buffer: buffer}
}

// window is the part of an operand on the host, which lies in data without gaps, from a row and a column on.
func window[T sparsek.Element](data []T, whole Extent, order sparsek.Order, row, col int, e Extent) sparsek.Operand {
	stride := whole.Cols
	if order == sparsek.ColumnMajor {
		stride, row, col, e = whole.Rows, col, row, Extent{e.Cols, e.Rows}
	}
	d := sparsek.Dense[T]{Rows: e.Rows, Cols: e.Cols, Stride: stride}
	if e.elements() > 0 {
		d.Data = data[row*stride+col:][:(e.Rows-1)*stride+e.Cols]
	}
	if order == sparsek.ColumnMajor {
		return sparsek.Transpose(d)
	}
	return d
}
