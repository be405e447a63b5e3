// SPDX-License-Identifier: Apache-2.0

//! Random matrices, and their products in f64.
#![allow(dead_code)] // each test program uses a part

use sparsek::half::{bf16, f16};
use sparsek::{Backend, Bsr, Context, ContextOptions, Element, Error, Status};

/// A context on the CPU, or None where there is no library and none is named.
pub(crate) fn context() -> Option<Context> {
    match Context::cpu() {
        Ok(context) => Some(context),
        Err(Error::Library(text)) if std::env::var_os("SPARSEK_LIBRARY").is_none() => {
            eprintln!("skipped: {text}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A context on the GPU, or None where there is none that is served. With SPARSEK_TEST_GPU there has to be one.
pub(crate) fn gpu() -> Option<Context> {
    let options = ContextOptions {
        backend: Backend::Cuda,
        ..Default::default()
    };
    let needed = std::env::var_os("SPARSEK_TEST_GPU").is_some();
    match Context::new(&options) {
        Ok(context) => Some(context),
        Err(error) if error.status() == Some(Status::NoDevice) && !needed => {
            eprintln!("skipped: {error}");
            None
        }
        Err(Error::Library(text)) if std::env::var_os("SPARSEK_LIBRARY").is_none() && !needed => {
            eprintln!("skipped: {text}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// All contexts that there are.
pub(crate) fn contexts() -> Vec<Context> {
    context().into_iter().chain(gpu()).collect()
}

/// By its series, which has no cancellation.
pub(crate) fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for i in 1..200 {
        term *= 2.0 * x * x / (2 * i + 1) as f64;
        sum += term;
    }
    2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp() * sum
}

/// Random numbers, the same each time.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// In [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }

    pub(crate) fn vector<T: Number>(&mut self, len: usize) -> Vec<T> {
        (0..len).map(|_| T::of(self.uniform() * 2.0 - 1.0)).collect()
    }
}

/// An element that tests compute with.
pub(crate) trait Number: Element {
    /// Half the distance from 1 to the next number.
    const ROUNDOFF: f64;
    fn of(value: f64) -> Self;
    fn value(self) -> f64;
}

macro_rules! number {
    ($type:ty, $bits:expr, $of:expr, $value:expr) => {
        impl Number for $type {
            const ROUNDOFF: f64 = 1.0 / (1u64 << $bits) as f64;
            fn of(value: f64) -> Self {
                $of(value)
            }
            fn value(self) -> f64 {
                $value(self)
            }
        }
    };
}
number!(f64, 53, |x| x, |x| x);
number!(f32, 24, |x| x as f32, f64::from);
number!(f16, 11, f16::from_f64, f16::to_f64);
number!(bf16, 8, bf16::from_f64, bf16::to_f64);

/// A random block-sparse matrix, with its elements in f64.
pub(crate) struct Case<T> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) block: (usize, usize),
    pub(crate) row_ptr: Vec<i32>,
    pub(crate) col_idx: Vec<i32>,
    pub(crate) values: Vec<T>,
    pub(crate) dense: Vec<f64>,
}

impl<T: Number> Case<T> {
    pub(crate) fn new(seed: u64, rows: usize, cols: usize, block: (usize, usize), density: f64) -> Case<T> {
        let mut random = Random(seed);
        let (bm, bk) = block;
        let (mut row_ptr, mut col_idx, mut values, mut dense) = (vec![0], vec![], vec![], vec![0.0; rows * cols]);
        for i in 0..rows.div_ceil(bm) {
            for j in 0..cols.div_ceil(bk) {
                if random.uniform() >= density {
                    continue;
                }
                col_idx.push(j as i32);
                for (r, c) in (0..bm).flat_map(|r| (0..bk).map(move |c| (i * bm + r, j * bk + c))) {
                    let value = if c < cols {
                        T::of(random.uniform() * 2.0 - 1.0)
                    } else {
                        T::of(0.0)
                    };
                    values.push(value);
                    if r < rows && c < cols {
                        dense[r * cols + c] = value.value();
                    }
                }
            }
            row_ptr.push(col_idx.len() as i32);
        }
        Case {
            rows,
            cols,
            block,
            row_ptr,
            col_idx,
            values,
            dense,
        }
    }

    pub(crate) fn bsr(&self) -> Bsr<'_, i32> {
        Bsr::new(self.rows, self.cols, self.block, &self.row_ptr, &self.col_idx)
    }

    /// Values that products with the transpose of A may read: those beyond its last row are 0.
    pub(crate) fn values_of_transpose(&self) -> Vec<T> {
        let (mut values, (bm, bk)) = (self.values.clone(), self.block);
        for (row, window) in self.row_ptr.windows(2).enumerate() {
            for block in window[0] as usize..window[1] as usize {
                let inside = bm.min(self.rows - row * bm);
                values[block * bm * bk..][inside * bk..bm * bk].fill(T::of(0.0));
            }
        }
        values
    }

    /// A B and |A| |B| at a place, for a B of n columns.
    pub(crate) fn product<U: Number>(&self, b: &[U], n: usize, row: usize, col: usize) -> (f64, f64) {
        let terms = (0..self.cols).map(|k| self.dense[row * self.cols + k] * b[k * n + col].value());
        terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
    }
}

/// Whether a result of type U is within the error of sums of `terms` products of type T, in all of the size `size`, and
/// of one rounding to U.
pub(crate) fn assert_close<T: Number, U: Number>(got: U, exact: f64, size: f64, terms: usize, place: (usize, usize)) {
    let sums = if T::ROUNDOFF < f32::ROUNDOFF {
        f64::ROUNDOFF
    } else {
        f32::ROUNDOFF
    };
    let bound = (terms + 6) as f64 * sums * (size + exact.abs()) + 2.0 * U::ROUNDOFF * exact.abs() + 1e-7 * U::ROUNDOFF;
    let error = (got.value() - exact).abs();
    assert!(
        error <= bound,
        "at {place:?}: {} in place of {exact}: {error:e} is beyond {bound:e}",
        got.value()
    );
}
