// SPDX-License-Identifier: Apache-2.0

//! The three products of training, on slices in host memory: dense matrices are row-major without gaps, values are
//! (blocks, bm, bk).

use std::time::Duration;

use sparsek::{MatMut, MatRef};

use crate::BsrPattern;
use crate::pattern::Number;

/// A B: B has n columns.
pub(crate) fn multiply<T: Number>(pattern: &BsrPattern, tuning: Duration, values: &[T], b: &[T], n: usize) -> Vec<T> {
    let [rows, cols] = pattern.shape();
    let mut c = vec![T::default(); rows * n];
    if c.is_empty() {
        return c;
    }
    let done = MatRef::new(b, cols, n)
        .and_then(|b| Ok((b, MatMut::new(&mut c, rows, n)?)))
        .and_then(|(b, c)| pattern.plan(n, tuning).multiply(values, b, c));
    if let Err(error) = done {
        panic!("{pattern:?} times {cols} x {n}: {error}");
    }
    c
}

/// A^T G: G has n columns.
pub(crate) fn multiply_transposed<T: Number>(pattern: &BsrPattern, values: &[T], g: &[T], n: usize) -> Vec<T> {
    let (transposed, order) = pattern.transposed();
    let [bm, bk] = pattern.block();
    let mut turned = Vec::with_capacity(values.len());
    for block in order {
        let block = &values[block * bm * bk..][..bm * bk];
        turned.extend((0..bk).flat_map(|col| (0..bm).map(move |row| block[row * bk + col])));
    }
    multiply(transposed, Duration::ZERO, &turned, g, n)
}

/// The blocks of G B^T that the pattern has: G and B have n columns. Sums are of 64 bits.
pub(crate) fn sample<T: Number>(pattern: &BsrPattern, g: &[T], b: &[T], n: usize) -> Vec<T> {
    let [bm, bk] = pattern.block();
    let dot = |x: &[T], y: &[T]| x.iter().zip(y).map(|(x, y)| x.to_f64() * y.to_f64()).sum::<f64>();
    let mut values = Vec::with_capacity(pattern.blocks() * bm * bk);
    for (row, column) in pattern.places() {
        for r in row * bm..(row + 1) * bm {
            let of_g = &g[r * n..(r + 1) * n];
            values.extend((column * bk..(column + 1) * bk).map(|c| T::from_f64(dot(of_g, &b[c * n..(c + 1) * n]))));
        }
    }
    values
}
