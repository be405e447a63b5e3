// SPDX-License-Identifier: Apache-2.0

//! The products of training, on slices in host memory: dense matrices are row-major without gaps, values are (blocks, bm,
//! bk).

use std::time::Duration;

use sparsek::{Error, MatMut, MatRef, Op, Order, PlanOptions, Product};

use crate::BsrPattern;
use crate::pattern::{Kind, Number};

/// Which product an operation computes with A, M x K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BsrForm {
    /// C = A B: B is (K, n), C is (M, n).
    Left,
    /// Y = X A^T, as of a linear layer: X is (n, K), Y is (n, M).
    Linear,
}

impl BsrForm {
    /// The extent of a dense operand that A does not have.
    pub(crate) fn n(self, shape: [usize; 2]) -> usize {
        match self {
            BsrForm::Left => shape[1],
            BsrForm::Linear => shape[0],
        }
    }

    /// A dense operand with as many rows, or for Linear columns, as A has rows or columns.
    pub(crate) fn shape(self, of_a: usize, n: usize) -> [usize; 2] {
        match self {
            BsrForm::Left => [of_a, n],
            BsrForm::Linear => [n, of_a],
        }
    }

    fn op(self) -> Op {
        match self {
            BsrForm::Left => Op::Dsd,
            BsrForm::Linear => Op::DdsT,
        }
    }

    fn backward(self) -> Op {
        match self {
            BsrForm::Left => Op::DsdT,
            BsrForm::Linear => Op::Dds,
        }
    }
}

/// What a plan is made for, but for n.
pub(crate) fn options(kind: Kind, n: usize) -> PlanOptions {
    let options = PlanOptions::new(n);
    match kind {
        Kind::Forward(form) => options.op(form.op()),
        Kind::Backward(form) => options.op(form.backward()),
        Kind::Sample(BsrForm::Left) => options.op(Op::Sdd).orders(Order::ColumnMajor, Order::RowMajor),
        Kind::Sample(BsrForm::Linear) => options.op(Op::Sdd).order_x(Order::ColumnMajor),
    }
}

/// The product of the form, of `form.shape(M, n)`.
pub(crate) fn multiply<T: Number>(
    pattern: &BsrPattern,
    form: BsrForm,
    tuning: Duration,
    values: &[T],
    dense: &[T],
    n: usize,
) -> Vec<T> {
    let [m, k] = pattern.shape();
    let mut result = vec![T::default(); m * n];
    multiply_into(
        pattern,
        Kind::Forward(form),
        tuning,
        values,
        (dense, form.shape(k, n)),
        (&mut result, form.shape(m, n)),
        n,
    );
    result
}

/// The gradient of the dense operand, for a gradient g of the product.
pub(crate) fn multiply_backward<T: Number>(
    pattern: &BsrPattern,
    form: BsrForm,
    values: &[T],
    g: &[T],
    n: usize,
) -> Vec<T> {
    let [m, k] = pattern.shape();
    let mut result = vec![T::default(); k * n];
    let (from, to) = ((g, form.shape(m, n)), (&mut result[..], form.shape(k, n)));
    multiply_into(pattern, Kind::Backward(form), Duration::ZERO, values, from, to, n);
    result
}

fn multiply_into<T: Number>(
    pattern: &BsrPattern,
    kind: Kind,
    tuning: Duration,
    values: &[T],
    (b, [b_rows, b_cols]): (&[T], [usize; 2]),
    (c, [c_rows, c_cols]): (&mut [T], [usize; 2]),
    n: usize,
) {
    if n == 0 {
        return;
    }
    let mut run = || {
        let (b, c) = (MatRef::new(b, b_rows, b_cols)?, MatMut::new(c, c_rows, c_cols)?);
        pattern.plan(kind, n, tuning)?.multiply(values, b, c)
    };
    run().unwrap_or_else(|error: Error| panic!("{pattern:?}, {kind:?} with {b_rows} x {b_cols}: {error}"));
}

/// The gradient of the values, (blocks, bm, bk), for a gradient g of the product.
pub(crate) fn sample<T: Number>(pattern: &BsrPattern, form: BsrForm, g: &[T], dense: &[T], n: usize) -> Vec<T> {
    let ([m, k], [bm, bk]) = (pattern.shape(), pattern.block());
    let mut values = vec![T::default(); pattern.blocks() * bm * bk];
    if n == 0 || values.is_empty() {
        return values;
    }
    let kind = Kind::Sample(form);
    let mut run = || {
        let (x, b) = match form {
            BsrForm::Left => (MatRef::new(g, m, n)?, MatRef::new(dense, k, n)?.transpose()),
            BsrForm::Linear => (MatRef::new(g, n, m)?.transpose(), MatRef::new(dense, n, k)?),
        };
        let blocks = MatMut::new(&mut values, pattern.blocks() * bm, bk)?;
        pattern.plan(kind, n, Duration::ZERO)?.run(Product::sdd(x, b, blocks))
    };
    run().unwrap_or_else(|error: Error| panic!("{pattern:?}, {kind:?} with n = {n}: {error}"));
    values
}
