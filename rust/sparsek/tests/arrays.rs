// SPDX-License-Identifier: Apache-2.0

//! Arrays of crate ndarray as operands.

#![cfg(feature = "ndarray")]

mod common;

use common::{Case, Random, assert_close, context};
use ndarray::{Array2, s};
use sparsek::{Error, MatMut, MatRef, Matrix};

#[test]
fn views_are_operands() {
    let mut array = Array2::<f32>::zeros((4, 6));
    let part = MatRef::try_from(array.slice(s![1..3, 2..5])).unwrap();
    assert_eq!((part.rows(), part.cols()), (2, 3));
    assert!(MatMut::try_from(array.slice_mut(s![.., ..4])).is_ok());
    assert!(MatRef::try_from(array.slice(s![..1, ..])).is_ok());
    assert!(MatRef::try_from(array.slice(s![..0, ..])).is_ok());
    for view in [
        array.view().reversed_axes(),
        array.slice(s![..;-1, ..]),
        array.slice(s![.., ..;2]),
    ] {
        let error = MatRef::try_from(view).unwrap_err();
        assert!(
            matches!(error, Error::Extent(_)) && error.to_string().contains("not row-major"),
            "{error}"
        );
    }
    let row = Array2::<f32>::zeros((1, 3));
    assert!(MatRef::try_from(row.broadcast((4, 3)).unwrap()).is_err());
    assert!(MatMut::try_from(array.view_mut().reversed_axes()).is_err());
}

#[test]
fn a_product_of_any_strides() {
    let Some(context) = context() else { return };
    let case = Case::<f64>::new(1, 12, 10, (4, 2), 0.5);
    let matrix = Matrix::new(&context, &case.bsr(), case.values.clone()).unwrap();
    let b = Array2::from_shape_vec((10, 6), Random(2).vector::<f64>(60)).unwrap();
    let turned = b.t().as_standard_layout().into_owned();
    let wide = ndarray::concatenate![ndarray::Axis(1), b, b];
    for array in [b.view(), turned.t(), wide.slice(s![.., 6..])] {
        let c = matrix.dot(&array).unwrap();
        assert_eq!(c.dim(), (12, 6));
        for ((row, col), got) in c.indexed_iter() {
            let (exact, size) = case.product(b.as_slice().unwrap(), 6, row, col);
            assert_close::<f64, f64>(*got, exact, size, 10, (row, col));
        }
    }
    assert!(matrix.dot(&Array2::zeros((9, 6))).is_err());
}
