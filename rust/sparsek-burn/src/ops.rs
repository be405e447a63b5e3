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

use crate::{BsrForm, BsrPattern, products};

/// Products with a block-sparse matrix, for backends that have them.
#[backend_extension(Flex, Autodiff)]
pub trait BsrOps: Backend {
    /// The product of a form. `values` are (blocks, bm, bk). Kernels are measured for about `tuning` where no similar
    /// product has been measured.
    fn bsr_multiply(
        values: FloatTensor<Self>,
        dense: FloatTensor<Self>,
        pattern: BsrPattern,
        form: BsrForm,
        tuning: Duration,
    ) -> FloatTensor<Self>;
}

/// The products that the gradients of [`BsrOps`] are made of, for a gradient `g` of the product.
pub trait BsrGradients: Backend {
    /// The gradient of the dense operand.
    fn bsr_multiply_backward(
        values: FloatTensor<Self>,
        g: FloatTensor<Self>,
        pattern: &BsrPattern,
        form: BsrForm,
    ) -> FloatTensor<Self>;

    /// The gradient of A's values, of (blocks, bm, bk).
    fn bsr_sample(
        g: FloatTensor<Self>,
        dense: FloatTensor<Self>,
        pattern: &BsrPattern,
        form: BsrForm,
    ) -> FloatTensor<Self>;
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
    fn bsr_multiply(
        values: FlexTensor,
        dense: FlexTensor,
        pattern: BsrPattern,
        form: BsrForm,
        tuning: Duration,
    ) -> FlexTensor {
        let n = form.n(dense.layout().shape().dims());
        on_slices!(values, dense, form.shape(pattern.shape()[0], n), |values, dense| {
            products::multiply(&pattern, form, tuning, values, dense, n)
        })
    }
}

impl BsrGradients for Flex {
    fn bsr_multiply_backward(values: FlexTensor, g: FlexTensor, pattern: &BsrPattern, form: BsrForm) -> FlexTensor {
        let n = form.n(g.layout().shape().dims());
        on_slices!(values, g, form.shape(pattern.shape()[1], n), |values, g| {
            products::multiply_backward(pattern, form, values, g, n)
        })
    }

    fn bsr_sample(g: FlexTensor, dense: FlexTensor, pattern: &BsrPattern, form: BsrForm) -> FlexTensor {
        let n = form.n(g.layout().shape().dims());
        let [bm, bk] = pattern.block();
        on_slices!(g, dense, [pattern.blocks(), bm, bk], |g, dense| products::sample(
            pattern, form, g, dense, n
        ))
    }
}

impl<B: BsrOps + BsrGradients, C: CheckpointStrategy> BsrOps for Autodiff<B, C> {
    fn bsr_multiply(
        values: FloatTensor<Self>,
        dense: FloatTensor<Self>,
        pattern: BsrPattern,
        form: BsrForm,
        tuning: Duration,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Multiply;

        impl<B: BsrGradients> Backward<B, 2> for Multiply {
            type State = (Option<NodeId>, Option<NodeId>, BsrPattern, BsrForm);

            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
                let (values, dense, pattern, form) = ops.state;
                let values = values.map(|id| checkpointer.retrieve_node_output(id));
                let dense = dense.map(|id| checkpointer.retrieve_node_output(id));
                binary::<B, _, _>(
                    ops.parents,
                    ops.node,
                    grads,
                    |g| {
                        let dense = dense.expect("the dense operand is kept for the values' gradient");
                        B::bsr_sample(g, dense, &pattern, form)
                    },
                    |g| {
                        let values = values.expect("the values are kept for the dense operand's gradient");
                        B::bsr_multiply_backward(values, g, &pattern, form)
                    },
                );
            }
        }

        let (of_values, of_dense) = (values.is_tracked(), dense.is_tracked());
        match Multiply
            .prepare::<C>([values.node(), dense.node()])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(mut prep) => {
                let kept_values = of_dense.then(|| prep.checkpoint(&values));
                let kept_dense = of_values.then(|| prep.checkpoint(&dense));
                let (values, dense) = (values.into_primitive(), dense.into_primitive());
                let result = B::bsr_multiply(values, dense, pattern.clone(), form, tuning);
                prep.finish((kept_values, kept_dense, pattern, form), result)
            }
            OpsKind::UnTracked(prep) => {
                let (values, dense) = (values.into_primitive(), dense.into_primitive());
                prep.finish(B::bsr_multiply(values, dense, pattern, form, tuning))
            }
        }
    }
}
