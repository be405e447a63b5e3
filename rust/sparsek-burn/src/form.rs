// SPDX-License-Identifier: Apache-2.0

use sparsek::{Op, Order, PlanOptions};

/// Which side of A, M x K, the dense operands of a product are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BsrSide {
    /// They have n columns: (M, n) and (K, n).
    Left,
    /// They have n rows: (n, M) and (n, K).
    Right,
}

/// A product of A, M x K, and a dense matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BsrForm {
    /// A B: B is (K, n), the result (M, n).
    Left,
    /// A^T B: B is (M, n), the result (K, n).
    LeftTransposed,
    /// B A: B is (n, M), the result (n, K).
    Right,
    /// B A^T, as of a linear layer with the weight A: B is (n, K), the result (n, M).
    RightTransposed,
}

impl BsrSide {
    /// The extent of a dense operand that A does not have.
    pub(crate) fn n(self, shape: [usize; 2]) -> usize {
        match self {
            BsrSide::Left => shape[1],
            BsrSide::Right => shape[0],
        }
    }

    /// The shape of a dense operand with as many rows, or columns, as A has rows or columns.
    pub(crate) fn shape(self, of_a: usize, n: usize) -> [usize; 2] {
        match self {
            BsrSide::Left => [of_a, n],
            BsrSide::Right => [n, of_a],
        }
    }

    /// The products that the blocks' gradient has with the operand of A's columns, and with that of A's rows: the
    /// gradients of the other one.
    pub(crate) fn gradients(self) -> [BsrForm; 2] {
        match self {
            BsrSide::Left => [BsrForm::Left, BsrForm::LeftTransposed],
            BsrSide::Right => [BsrForm::RightTransposed, BsrForm::Right],
        }
    }
}

impl BsrForm {
    /// Where the dense operands are.
    pub fn side(self) -> BsrSide {
        match self {
            BsrForm::Left | BsrForm::LeftTransposed => BsrSide::Left,
            BsrForm::Right | BsrForm::RightTransposed => BsrSide::Right,
        }
    }

    /// The product whose operand is of the shape of this one's result, and the other way round: that of the dense
    /// operand's gradient.
    pub(crate) fn other(self) -> BsrForm {
        match self {
            BsrForm::Left => BsrForm::LeftTransposed,
            BsrForm::LeftTransposed => BsrForm::Left,
            BsrForm::Right => BsrForm::RightTransposed,
            BsrForm::RightTransposed => BsrForm::Right,
        }
    }

    /// Whether the dense operand has as many rows, or columns, as A has rows.
    pub(crate) fn reads_rows(self) -> bool {
        matches!(self, BsrForm::LeftTransposed | BsrForm::Right)
    }

    /// The shape of the result, for an A of this shape.
    pub(crate) fn result(self, [m, k]: [usize; 2], n: usize) -> [usize; 2] {
        self.side().shape(if self.reads_rows() { k } else { m }, n)
    }
}

/// What a plan computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Product(BsrForm),
    /// The blocks of a dense product where A has blocks, as the gradient of A's values.
    Sample(BsrSide),
}

/// What a plan is made for, but for n.
pub(crate) fn options(kind: Kind, n: usize) -> PlanOptions {
    let options = PlanOptions::new(n);
    match kind {
        Kind::Product(BsrForm::Left) => options.op(Op::Dsd),
        Kind::Product(BsrForm::LeftTransposed) => options.op(Op::DsdT),
        Kind::Product(BsrForm::Right) => options.op(Op::Dds),
        Kind::Product(BsrForm::RightTransposed) => options.op(Op::DdsT),
        Kind::Sample(BsrSide::Left) => options.op(Op::Sdd).orders(Order::ColumnMajor, Order::RowMajor),
        Kind::Sample(BsrSide::Right) => options.op(Op::Sdd).order_x(Order::ColumnMajor),
    }
}
