// SPDX-License-Identifier: Apache-2.0

use std::time::Duration;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, backend_extension};

use crate::{BsrAttention, BsrForm, BsrPattern, BsrSide};

/// Products with a block-sparse matrix A, M x K, for backends that have them. Operands are of one type.
#[backend_extension(
    Flex,
    Autodiff,
    NdArray: cfg(feature = "ndarray"),
    Cube: cfg(feature = "cuda"),
    Fusion: cfg(feature = "cuda")
)]
pub trait BsrOps: Backend {
    /// The product of a form. `values` are A's, (blocks, bm, bk). Kernels are measured for about `tuning` where no similar
    /// product has been measured.
    #[fusion(dtype = values, shape = {
        burn::tensor::Shape::from(form.result(pattern.shape(), form.side().n(dense.dims())))
    })]
    fn bsr_multiply(
        values: FloatTensor<Self>,
        dense: FloatTensor<Self>,
        pattern: BsrPattern,
        form: BsrForm,
        tuning: Duration,
    ) -> FloatTensor<Self>;

    /// The blocks of a dense product where A has blocks, (blocks, bm, bk): of rows columns^T for rows of (M, n) and columns
    /// of (K, n), or for the other side of rows^T columns for rows of (n, M) and columns of (n, K).
    #[fusion(dtype = rows, shape = {
        let [bm, bk] = pattern.block();
        burn::tensor::Shape::from([pattern.blocks(), bm, bk])
    })]
    fn bsr_sample(
        rows: FloatTensor<Self>,
        columns: FloatTensor<Self>,
        pattern: BsrPattern,
        side: BsrSide,
    ) -> FloatTensor<Self>;
}

/// Attention over a layout of blocks, for backends that have it. Operands are of one type, (batch, heads, rows, size).
#[backend_extension(Flex, Autodiff)]
pub trait BsrAttentionOps: Backend {
    /// O, and the logarithms of the sums of exp(scale Q K^T), (batch, heads, queries), which are of F64 for F64 and else of
    /// F32. No gradients pass the latter.
    fn bsr_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        attention: BsrAttention,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradients of Q, K and V, from what [`BsrAttentionOps::bsr_attention`] gave and the gradient of O.
    fn bsr_attention_backward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        o: FloatTensor<Self>,
        lse: FloatTensor<Self>,
        grad_o: FloatTensor<Self>,
        attention: BsrAttention,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}
