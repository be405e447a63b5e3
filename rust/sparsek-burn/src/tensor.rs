// SPDX-License-Identifier: Apache-2.0

use std::time::Duration;

use burn::backend::Dispatch;
use burn::tensor::{DType, Tensor};

use crate::pattern::share_of;
use crate::{BsrForm, BsrOps, BsrPattern, BsrSide};

/// A block-sparse matrix: a pattern, and its values as a tensor of (blocks, bm, bk), which may have gradients.
#[derive(Clone, Debug)]
pub struct BsrTensor {
    pattern: BsrPattern,
    values: Tensor<3>,
}

impl BsrTensor {
    /// The blocks of a pattern with their values.
    ///
    /// # Panics
    ///
    /// Where the values are not (blocks, bm, bk).
    pub fn new(pattern: BsrPattern, values: Tensor<3>) -> BsrTensor {
        let [bm, bk] = pattern.block();
        assert_eq!(values.dims(), [pattern.blocks(), bm, bk], "the values of {pattern:?}");
        BsrTensor { pattern, values }
    }

    /// The blocks of a dense matrix whose sums of squares are the largest: of all of them the share `density`, rounded up.
    /// The sums are of F64, whatever the matrix is of.
    ///
    /// # Panics
    ///
    /// Where its extents are no multiples of the block's, and where `density` is not in 0..=1.
    pub fn from_dense(dense: Tensor<2>, block: [usize; 2], density: f64) -> BsrTensor {
        assert!((0.0..=1.0).contains(&density), "a density of {density} is not in 0..=1");
        let ([rows, cols], [bm, bk]) = (dense.dims(), block);
        assert!(
            bm > 0 && bk > 0 && rows.is_multiple_of(bm) && cols.is_multiple_of(bk),
            "{rows} x {cols} is no multiple of blocks of {bm} x {bk}"
        );
        let blocks = blocks_of(dense, block);
        let all = blocks.dims()[0];
        let wide = blocks.clone().detach().cast(DType::F64);
        let squares = (wide.clone() * wide).sum_dim(2).sum_dim(1);
        let norms: Vec<f64> = squares.into_data().iter::<f64>().collect();
        let mut largest: Vec<usize> = (0..all).collect();
        largest.sort_by(|a, b| norms[*b].total_cmp(&norms[*a]));
        let mut mask = vec![false; all];
        for block in &largest[..share_of(all, density)] {
            mask[*block] = true;
        }
        BsrTensor::of_blocks(blocks, BsrPattern::of_mask(rows, cols, block, &mask))
    }

    /// The blocks of a dense matrix that a pattern has.
    ///
    /// # Panics
    ///
    /// Where the extents differ.
    pub fn at_pattern(dense: Tensor<2>, pattern: BsrPattern) -> BsrTensor {
        assert_eq!(dense.dims(), pattern.shape(), "a dense matrix for {pattern:?}");
        BsrTensor::of_blocks(blocks_of(dense, pattern.block()), pattern)
    }

    /// Of all blocks, row by row, those of the pattern.
    fn of_blocks(blocks: Tensor<3>, pattern: BsrPattern) -> BsrTensor {
        let across = pattern.shape()[1] / pattern.block()[1];
        let kept: Vec<i64> = pattern
            .places()
            .map(|(row, column)| (row * across + column) as i64)
            .collect();
        let device = blocks.device();
        let values = match kept.is_empty() {
            true => blocks.slice_dim(0, 0..0),
            false => blocks.select(0, Tensor::from_data(kept.as_slice(), &device)),
        };
        BsrTensor::new(pattern, values)
    }

    /// The matrix with its zeros.
    pub fn to_dense(&self) -> Tensor<2> {
        let ([rows, cols], [bm, bk]) = (self.pattern.shape(), self.pattern.block());
        let (down, across) = (rows / bm, cols / bk);
        let device = self.values.device();
        let options = (&device, self.values.dtype());
        let mut all = Tensor::<3>::zeros([down * across, bm, bk], options);
        if self.pattern.blocks() > 0 {
            let places: Vec<i64> = self
                .pattern
                .places()
                .map(|(row, column)| (row * across + column) as i64)
                .collect();
            let places = Tensor::from_data(places.as_slice(), &device);
            all = all.select_assign(0, places, self.values.clone(), burn::tensor::IndexingUpdateOp::Add);
        }
        all.reshape([down, across, bm, bk])
            .swap_dims(1, 2)
            .reshape([rows, cols])
    }

    /// Where it has blocks.
    pub fn pattern(&self) -> &BsrPattern {
        &self.pattern
    }

    /// The values of its blocks.
    pub fn values(&self) -> &Tensor<3> {
        &self.values
    }

    /// The product with a dense matrix of (K, n), of (M, n). Gradients go to the values and to B.
    ///
    /// # Panics
    ///
    /// Where the extents or the types differ, and where there is no libsparsek.
    pub fn matmul(&self, b: Tensor<2>) -> Tensor<2> {
        self.multiply(b, Duration::ZERO)
    }

    pub(crate) fn multiply(&self, b: Tensor<2>, tuning: Duration) -> Tensor<2> {
        let [rows, cols] = self.pattern.shape();
        assert_eq!(b.dims()[0], cols, "a product of {rows} x {cols} with {:?}", b.dims());
        self.dispatch(b, BsrForm::Left, tuning)
    }

    /// X A^T, of (n, M), for X of (n, K): the product of a linear layer with this weight. Gradients go to the values and
    /// to X.
    ///
    /// # Panics
    ///
    /// As [`BsrTensor::matmul`].
    pub fn linear(&self, x: Tensor<2>) -> Tensor<2> {
        let [rows, cols] = self.pattern.shape();
        assert_eq!(
            x.dims()[1],
            cols,
            "a product of {:?} with the transpose of {rows} x {cols}",
            x.dims()
        );
        self.dispatch(x, BsrForm::RightTransposed, Duration::ZERO)
    }

    /// The blocks of X Y^T that a pattern of M x K has, for X of (M, n) and Y of (K, n): what training calls a sampled
    /// dense-dense product. Gradients go to both.
    ///
    /// # Panics
    ///
    /// As [`BsrTensor::matmul`].
    pub fn sample(x: Tensor<2>, y: Tensor<2>, pattern: BsrPattern) -> BsrTensor {
        let ([m, k], [rows, n], [columns, depth]) = (pattern.shape(), x.dims(), y.dims());
        assert!(
            (m, k, n) == (rows, columns, depth),
            "blocks of {m} x {k} of a product of {rows} x {n} and {depth} x {columns}"
        );
        let (x, y) = (x.into_dispatch(), y.into_dispatch());
        let values = Tensor::from_dispatch(Dispatch::bsr_sample(x, y, pattern.clone(), BsrSide::Left));
        BsrTensor { pattern, values }
    }

    fn dispatch(&self, dense: Tensor<2>, form: BsrForm, tuning: Duration) -> Tensor<2> {
        let (values, dense) = (self.values.clone().into_dispatch(), dense.into_dispatch());
        Tensor::from_dispatch(Dispatch::bsr_multiply(
            values,
            dense,
            self.pattern.clone(),
            form,
            tuning,
        ))
    }
}

/// All blocks of a dense matrix, row by row.
fn blocks_of(dense: Tensor<2>, [bm, bk]: [usize; 2]) -> Tensor<3> {
    let [rows, cols] = dense.dims();
    let (down, across) = (rows / bm, cols / bk);
    dense
        .reshape([down, bm, across, bk])
        .swap_dims(1, 2)
        .reshape([down * across, bm, bk])
}
