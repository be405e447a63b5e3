// SPDX-License-Identifier: Apache-2.0

//! Gradients, which are products of the library too.

use std::time::Duration;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind, binary};
use burn::backend::autodiff::{Autodiff, NodeId};
use burn::backend::tensor::FloatTensor;

use crate::{BsrForm, BsrOps, BsrPattern, BsrSide};

/// The operands that gradients read, where they are tracked, and what the operation is.
type State<What> = (Option<NodeId>, Option<NodeId>, BsrPattern, What);

impl<B: BsrOps, C: CheckpointStrategy> BsrOps for Autodiff<B, C> {
    fn bsr_multiply(
        values: FloatTensor<Self>,
        dense: FloatTensor<Self>,
        pattern: BsrPattern,
        form: BsrForm,
        tuning: Duration,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Multiply;

        impl<B: BsrOps> Backward<B, 2> for Multiply {
            type State = State<BsrForm>;

            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
                let (values, dense, pattern, form) = ops.state;
                let values = values.map(|id| checkpointer.retrieve_node_output(id));
                let dense = dense.map(|id| checkpointer.retrieve_node_output(id));
                let other = pattern.clone();
                binary::<B, _, _>(
                    ops.parents,
                    ops.node,
                    grads,
                    |g| {
                        let dense = dense.expect("the dense operand is kept for the values' gradient");
                        let (rows, columns) = if form.reads_rows() { (dense, g) } else { (g, dense) };
                        B::bsr_sample(rows, columns, pattern, form.side())
                    },
                    |g| {
                        let values = values.expect("the values are kept for the dense operand's gradient");
                        B::bsr_multiply(values, g, other, form.other(), Duration::ZERO)
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

    fn bsr_sample(
        rows: FloatTensor<Self>,
        columns: FloatTensor<Self>,
        pattern: BsrPattern,
        side: BsrSide,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Sample;

        impl<B: BsrOps> Backward<B, 2> for Sample {
            type State = State<BsrSide>;

            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
                let (rows, columns, pattern, side) = ops.state;
                let rows = rows.map(|id| checkpointer.retrieve_node_output(id));
                let columns = columns.map(|id| checkpointer.retrieve_node_output(id));
                let other = pattern.clone();
                let [of_columns, of_rows] = side.gradients();
                binary::<B, _, _>(
                    ops.parents,
                    ops.node,
                    grads,
                    |g| {
                        let columns = columns.expect("the columns are kept for the rows' gradient");
                        B::bsr_multiply(g, columns, pattern, of_columns, Duration::ZERO)
                    },
                    |g| {
                        let rows = rows.expect("the rows are kept for the columns' gradient");
                        B::bsr_multiply(g, rows, other, of_rows, Duration::ZERO)
                    },
                );
            }
        }

        let (of_rows, of_columns) = (rows.is_tracked(), columns.is_tracked());
        match Sample
            .prepare::<C>([rows.node(), columns.node()])
            .compute_bound()
            .stateful()
        {
            OpsKind::Tracked(mut prep) => {
                let kept_rows = of_columns.then(|| prep.checkpoint(&rows));
                let kept_columns = of_rows.then(|| prep.checkpoint(&columns));
                let (rows, columns) = (rows.into_primitive(), columns.into_primitive());
                let result = B::bsr_sample(rows, columns, pattern.clone(), side);
                prep.finish((kept_rows, kept_columns, pattern, side), result)
            }
            OpsKind::UnTracked(prep) => {
                let (rows, columns) = (rows.into_primitive(), columns.into_primitive());
                prep.finish(B::bsr_sample(rows, columns, pattern, side))
            }
        }
    }
}
