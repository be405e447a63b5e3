// SPDX-License-Identifier: Apache-2.0

//! Backends whose tensors are in host memory.

use std::time::Duration;

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::{DType, TensorData};
use sparsek::half::{bf16, f16};

use crate::{BsrForm, BsrOps, BsrPattern, BsrSide, products};

/// Calls a function of two slices with the elements of two contiguous tensors of one type, and makes its vector data of a
/// shape.
macro_rules! on_slices {
    ($x:expr, $y:expr, $shape:expr, |$a:ident, $b:ident| $call:expr) => {{
        macro_rules! of {
            ($type:ty) => {{
                let $a: &[$type] = $x.as_slice().expect("a contiguous tensor is a slice");
                let $b: &[$type] = $y.as_slice().expect("the operands are of one type");
                TensorData::new($call, $shape)
            }};
        }
        assert_eq!(
            $x.dtype(),
            $y.dtype(),
            "the operands of a product with a block-sparse matrix are of one type"
        );
        match $x.dtype() {
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
        let (values, dense) = (values.to_contiguous(), dense.to_contiguous());
        let shape = dense.layout().shape().dims();
        let result = form.result(pattern.shape(), form.side().n(shape));
        FlexTensor::from_data(on_slices!(values, dense, result, |values, dense| {
            products::multiply_slices((&pattern, form, tuning), values, (dense, shape))
        }))
    }

    fn bsr_sample(rows: FlexTensor, columns: FlexTensor, pattern: BsrPattern, side: BsrSide) -> FlexTensor {
        let (rows, columns) = (rows.to_contiguous(), columns.to_contiguous());
        let (of_rows, of_columns) = (rows.layout().shape().dims(), columns.layout().shape().dims());
        let [bm, bk] = pattern.block();
        FlexTensor::from_data(on_slices!(
            rows,
            columns,
            [pattern.blocks(), bm, bk],
            |rows, columns| { products::sample_slices((&pattern, side), (rows, of_rows), (columns, of_columns)) }
        ))
    }
}

#[cfg(feature = "ndarray")]
#[expect(deprecated, reason = "Burn calls its backend of ndarray so")]
mod ndarray {
    use burn::backend::NdArray;
    use burn::backend::ops::FloatTensorOps;
    use burn::backend::tensor::FloatTensor;
    use burn::tensor::read_sync;

    use super::*;

    /// The elements of a tensor, row-major.
    fn data(tensor: FloatTensor<NdArray>) -> TensorData {
        read_sync(NdArray::float_into_data(tensor)).expect("a tensor in host memory can be read")
    }

    fn tensor(data: TensorData) -> FloatTensor<NdArray> {
        NdArray::float_from_data(data, &Default::default())
    }

    impl BsrOps for NdArray {
        fn bsr_multiply(
            values: FloatTensor<Self>,
            dense: FloatTensor<Self>,
            pattern: BsrPattern,
            form: BsrForm,
            tuning: Duration,
        ) -> FloatTensor<Self> {
            let (values, dense) = (data(values), data(dense));
            let shape = dense.shape().dims();
            let result = form.result(pattern.shape(), form.side().n(shape));
            tensor(on_slices!(values, dense, result, |values, dense| {
                products::multiply_slices((&pattern, form, tuning), values, (dense, shape))
            }))
        }

        fn bsr_sample(
            rows: FloatTensor<Self>,
            columns: FloatTensor<Self>,
            pattern: BsrPattern,
            side: BsrSide,
        ) -> FloatTensor<Self> {
            let (rows, columns) = (data(rows), data(columns));
            let (of_rows, of_columns) = (rows.shape().dims(), columns.shape().dims());
            let [bm, bk] = pattern.block();
            tensor(on_slices!(
                rows,
                columns,
                [pattern.blocks(), bm, bk],
                |rows, columns| { products::sample_slices((&pattern, side), (rows, of_rows), (columns, of_columns)) }
            ))
        }
    }
}
