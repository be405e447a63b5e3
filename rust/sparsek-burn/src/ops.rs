// SPDX-License-Identifier: Apache-2.0

use std::time::Duration;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, binary};
use burn::backend::autodiff::{Autodiff, NodeId};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Flex, backend_extension};
use burn::tensor::{DType, TensorData};
use sparsek::half::{bf16, f16};

use crate::{BsrPattern, products};

/// Products with a block-sparse matrix, for backends that have them.
#[backend_extension(Flex, Autodiff)]
pub trait BsrOps: Backend {
    /// A B, of (M, n). `values` are (blocks, bm, bk), and B is (K, n). Kernels are measured for about `tuning` where no
    /// similar product has been measured.
    fn bsr_multiply(
        values: FloatTensor<Self>,
        b: FloatTensor<Self>,
        pattern: BsrPattern,
        tuning: Duration,
    ) -> FloatTensor<Self>;
}

/// The products that the gradients of [`BsrOps`] are made of.
pub trait BsrGradients: Backend {
    /// A^T G, of (K, n): the gradient of B, for a gradient G, (M, n), of A B.
    fn bsr_multiply_transposed(
        values: FloatTensor<Self>,
        g: FloatTensor<Self>,
        pattern: &BsrPattern,
    ) -> FloatTensor<Self>;

    /// The blocks of G B^T that A has, of (blocks, bm, bk): the gradient of A's values.
    fn bsr_sample(g: FloatTensor<Self>, b: FloatTensor<Self>, pattern: &BsrPattern) -> FloatTensor<Self>;
}

/// Calls a function of two slices with the elements of two tensors of one type, and makes its vector a tensor.
macro_rules! on_slices {
    ($x:expr, $y:expr, $shape:expr, |$a:ident, $b:ident| $call:expr) => {{
        let (x, y): (FlexTensor, FlexTensor) = ($x.to_contiguous(), $y.to_contiguous());
        macro_rules! of {
            ($type:ty) => {{
                let $a: &[$type] = x.as_slice().expect("a contiguous tensor is a slice");
                let $b: &[$type] = y.as_slice().expect("the operands are of one type");
                FlexTensor::from_data(TensorData::new($call, $shape))
            }};
        }
        assert_eq!(
            x.dtype(),
            y.dtype(),
            "the operands of a product with a block-sparse matrix are of one type"
        );
        match x.dtype() {
            DType::F32 => of!(f32),
            DType::F64 => of!(f64),
            DType::F16 => of!(f16),
            DType::BF16 => of!(bf16),
            other => panic!("products with a block-sparse matrix are of F32, F64, F16 or BF16, not {other:?}"),
        }
    }};
}

impl BsrOps for Flex {
    fn bsr_multiply(values: FlexTensor, b: FlexTensor, pattern: BsrPattern, tuning: Duration) -> FlexTensor {
        let n = b.layout().shape()[1];
        on_slices!(values, b, [pattern.shape()[0], n], |values, b| products::multiply(
            &pattern, tuning, values, b, n
        ))
    }
}

impl BsrGradients for Flex {
    fn bsr_multiply_transposed(values: FlexTensor, g: FlexTensor, pattern: &BsrPattern) -> FlexTensor {
        let n = g.layout().shape()[1];
        let shape = [pattern.shape()[1], n];
        on_slices!(values, g, shape, |values, g| products::multiply_transposed(
            pattern, values, g, n
        ))
    }

    fn bsr_sample(g: FlexTensor, b: FlexTensor, pattern: &BsrPattern) -> FlexTensor {
        let n = g.layout().shape()[1];
        let [bm, bk] = pattern.block();
        on_slices!(g, b, [pattern.blocks(), bm, bk], |g, b| products::sample(
            pattern, g, b, n
        ))
    }
}

impl<B: BsrOps + BsrGradients, C: CheckpointStrategy> BsrOps for Autodiff<B, C> {
    fn bsr_multiply(
        values: FloatTensor<Self>,
        b: FloatTensor<Self>,
        pattern: BsrPattern,
        tuning: Duration,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Multiply;

        impl<B: BsrGradients> Backward<B, 2> for Multiply {
            type State = (Option<NodeId>, Option<NodeId>, BsrPattern);

            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
                let (values, b, pattern) = ops.state;
                let values = values.map(|id| checkpointer.retrieve_node_output(id));
                let b = b.map(|id| checkpointer.retrieve_node_output(id));
                binary::<B, _, _>(
                    ops.parents,
                    ops.node,
                    grads,
                    |g| B::bsr_sample(g, b.expect("B is kept for the values' gradient"), &pattern),
                    |g| {
                        let values = values.expect("the values are kept for B's gradient");
                        B::bsr_multiply_transposed(values, g, &pattern)
                    },
                );
            }
        }

        let (of_values, of_b) = (values.is_tracked(), b.is_tracked());
        match Multiply
            .prepare::<C>([values.node(), b.node()])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(mut prep) => {
                let kept_values = of_b.then(|| prep.checkpoint(&values));
                let kept_b = of_values.then(|| prep.checkpoint(&b));
                let result = B::bsr_multiply(values.into_primitive(), b.into_primitive(), pattern.clone(), tuning);
                prep.finish((kept_values, kept_b, pattern), result)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::bsr_multiply(
                values.into_primitive(),
                b.into_primitive(),
                pattern,
                tuning,
            )),
        }
    }
}
