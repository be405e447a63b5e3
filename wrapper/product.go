// SPDX-License-Identifier: Apache-2.0

package sparsek

import "fmt"

// Op is the product of a plan. A is the matrix, M x K; N is PlanOptions.N.
type Op int32

// The products.
const (
	DSD  Op = 0 // C = act(alpha A B + beta C + bias): B is K x N, C is M x N
	DSDT Op = 1 // C = act(alpha A^T B + beta C + bias): B is M x N, C is K x N
	// SDD gives blocks, act(alpha X B + beta C) where A has them: X is M x N, B is N x K, and C the blocks one below the
	// other, (blocks BlockM) x BlockK, in the places that A's values have. What a block has beyond A becomes 0. A's values
	// are not read. There is no bias.
	SDD  Op = 2
	DDS  Op = 3 // C = act(alpha B A + beta C + bias): B is N x M, C is N x K
	DDST Op = 4 // C = act(alpha B A^T + beta C + bias): B is N x K, C is N x M
)

// String is "dsd", "dsd_t", "sdd", "dds" or "dds_t".
func (o Op) String() string {
	names := [...]string{"dsd", "dsd_t", "sdd", "dds", "dds_t"}
	if o < 0 || int(o) >= len(names) {
		return fmt.Sprintf("Op(%d)", int32(o))
	}
	return names[o]
}

// Order is how a dense matrix lies in memory.
type Order int32

// The orders.
const (
	RowMajor    Order = 0
	ColumnMajor Order = 1 // see Transpose
)

func (o Order) String() string {
	switch o {
	case RowMajor:
		return "row-major"
	case ColumnMajor:
		return "column-major"
	}
	return fmt.Sprintf("Order(%d)", int32(o))
}

func (o Order) other() Order {
	if o == RowMajor {
		return ColumnMajor
	}
	return RowMajor
}

// Transpose is the transpose of a dense matrix where it lies: of a row-major one of N x K, a column-major one of K x N.
// A plan takes it where PlanOptions has that order. nil stays nil.
func Transpose(o Operand) Operand {
	if missing(o) {
		return nil
	}
	return transpose{o}
}

type transpose struct{ of Operand }

func (t transpose) operand() operand {
	o := t.of.operand()
	o.rows, o.cols, o.order = o.cols, o.rows, o.order.other()
	return o
}

// extent is the size of a dense matrix.
type extent struct{ rows, cols int }

// extents are those of the dense operands of one product with n: X (of SDD alone), B and C.
func (m *Matrix) extents(op Op, n int) (x, b, c extent) {
	switch op {
	case DSDT:
		return x, extent{m.rows, n}, extent{m.cols, n}
	case SDD:
		return extent{m.rows, n}, extent{n, m.cols}, extent{m.blocks * m.blockM, m.blockK}
	case DDS:
		return x, extent{n, m.rows}, extent{n, m.cols}
	case DDST:
		return x, extent{n, m.cols}, extent{n, m.rows}
	}
	return x, extent{m.cols, n}, extent{m.rows, n}
}

// line is how many elements of e follow each other in memory.
func (e extent) line(order Order) int {
	if order == ColumnMajor {
		return e.rows
	}
	return e.cols
}
