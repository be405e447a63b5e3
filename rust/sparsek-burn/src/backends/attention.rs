// SPDX-License-Identifier: Apache-2.0

//! Attention in host memory, and its gradients.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::autodiff::{Autodiff, NodeId};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{AutodiffBackend, Flex};
use burn::tensor::{DType, Element, TensorData};
use sparsek::half::{bf16, f16};

use crate::{BsrAttention, BsrAttentionOps};

/// Calls a function with the type of the elements.
macro_rules! for_type {
    ($dtype:expr, $call:ident::<_>($($argument:expr),*)) => {
        match $dtype {
            DType::F32 => $call::<f32>($($argument),*),
            DType::F64 => $call::<f64>($($argument),*),
            DType::F16 => $call::<f16>($($argument),*),
            DType::BF16 => $call::<bf16>($($argument),*),
            other => panic!("attention over blocks is of F32, F64, F16 or BF16, not {other:?}"),
        }
    };
}

/// A type of elements, and those of a contiguous tensor of it.
trait Number: Element + sparsek::Element {
    fn elements(tensor: &FlexTensor) -> Option<&[Self]>;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn elements(tensor: &FlexTensor) -> Option<&[Self]> {
                tensor.as_slice()
            }
        }
    )*};
}
numbers!(f32, f64, f16, bf16);

/// The elements and extents of a contiguous operand of attention.
fn slice<T: Number>(tensor: &FlexTensor) -> (&[T], [usize; 4]) {
    let elements = T::elements(tensor).expect("Q, K, V, O and gradients of one attention are of one type");
    (elements, tensor.layout().shape().dims())
}

fn tensor<T: Element, const D: usize>(elements: Vec<T>, extents: [usize; D]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(elements, extents))
}

impl BsrAttentionOps for Flex {
    fn bsr_attention(q: FlexTensor, k: FlexTensor, v: FlexTensor, attention: BsrAttention) -> (FlexTensor, FlexTensor) {
        fn forward<T: Number + sparsek::Element<Sum: Number>>(
            q: &FlexTensor,
            k: &FlexTensor,
            v: &FlexTensor,
            attention: &BsrAttention,
        ) -> (FlexTensor, FlexTensor) {
            let [q, k, v] = [slice::<T>(q), slice(k), slice(v)];
            let [batch, heads, queries, _] = q.1;
            let (o, lse) = attention.forward_slices([q, k, v]);
            (
                tensor(o, [batch, heads, queries, v.1[3]]),
                tensor(lse, [batch, heads, queries]),
            )
        }
        let [q, k, v] = [q, k, v].map(|tensor| tensor.to_contiguous());
        for_type!(q.dtype(), forward::<_>(&q, &k, &v, &attention))
    }

    fn bsr_attention_backward(
        q: FlexTensor,
        k: FlexTensor,
        v: FlexTensor,
        o: FlexTensor,
        lse: FlexTensor,
        grad_o: FlexTensor,
        attention: BsrAttention,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        fn backward<T: Number + sparsek::Element<Sum: Number>>(
            qkv: [&FlexTensor; 3],
            [o, lse, grad_o]: [&FlexTensor; 3],
            attention: &BsrAttention,
        ) -> (FlexTensor, FlexTensor, FlexTensor) {
            let lse = T::Sum::elements(lse).expect("what the forward pass gave is of the type of its sums");
            let qkv = qkv.map(slice::<T>);
            let [dq, dk, dv] = attention.backward_slices(qkv, (slice(o).0, lse, slice(grad_o).0));
            let [q, k, v] = qkv.map(|(_, extents)| extents);
            (tensor(dq, q), tensor(dk, k), tensor(dv, v))
        }
        let [q, k, v] = [q, k, v].map(|tensor| tensor.to_contiguous());
        let [o, lse, grad_o] = [o, lse, grad_o].map(|tensor| tensor.to_contiguous());
        for_type!(q.dtype(), backward::<_>([&q, &k, &v], [&o, &lse, &grad_o], &attention))
    }
}

impl<B: BsrAttentionOps, C: CheckpointStrategy> BsrAttentionOps for Autodiff<B, C> {
    fn bsr_attention(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        attention: BsrAttention,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        #[derive(Debug)]
        struct Attend;

        /// Q, K and V, what the forward pass gave, and the attention.
        type State<B> = ([NodeId; 3], (FloatTensor<B>, FloatTensor<B>), BsrAttention);

        impl<B: BsrAttentionOps> Backward<B, 3> for Attend {
            type State = State<B>;

            fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
                let (qkv, (o, lse), attention) = ops.state;
                let grad_o = grads.consume::<B>(&ops.node);
                let [q, k, v] = qkv.map(|id| checkpointer.retrieve_node_output(id));
                let (dq, dk, dv) = B::bsr_attention_backward(q, k, v, o, lse, grad_o, attention);
                for (parent, gradient) in ops.parents.into_iter().zip([dq, dk, dv]) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, gradient);
                    }
                }
            }
        }

        match Attend
            .prepare::<C>([q.node(), k.node(), v.node()])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(mut prep) => {
                let kept = [&q, &k, &v].map(|tensor| prep.checkpoint(tensor));
                let [q, k, v] = [q, k, v].map(|tensor| tensor.into_primitive());
                let (o, lse) = B::bsr_attention(q, k, v, attention.clone());
                let state = (kept, (o.clone(), lse.clone()), attention);
                (prep.finish(state, o), Self::from_inner(lse))
            }
            OpsKind::UnTracked(prep) => {
                let [q, k, v] = [q, k, v].map(|tensor| tensor.into_primitive());
                let (o, lse) = B::bsr_attention(q, k, v, attention);
                (prep.finish(o), Self::from_inner(lse))
            }
        }
    }

    fn bsr_attention_backward(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        o: FloatTensor<Self>,
        lse: FloatTensor<Self>,
        grad_o: FloatTensor<Self>,
        attention: BsrAttention,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let operands = [q, k, v, o, lse, grad_o];
        assert!(
            operands.iter().all(|operand| !operand.is_tracked()),
            "the gradients of attention over blocks have no gradients themselves"
        );
        let [q, k, v, o, lse, grad_o] = operands.map(|tensor| tensor.into_primitive());
        let (dq, dk, dv) = B::bsr_attention_backward(q, k, v, o, lse, grad_o, attention);
        (Self::from_inner(dq), Self::from_inner(dk), Self::from_inner(dv))
    }
}
