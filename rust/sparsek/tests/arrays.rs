// SPDX-License-Identifier: Apache-2.0

//! Arrays of crate ndarray as operands.

#![cfg(feature = "ndarray")]

mod common;

use common::{Case, Random, assert_close, context, contexts};
use ndarray::{Array2, s};
use sparsek::{Bsr, Error, MatMut, MatRef, Matrix};

#[test]
fn views_are_operands() {
    let mut array = Array2::<f32>::zeros((4, 6));
    let part = MatRef::try_from(array.slice(s![1..3, 2..5])).unwrap();
    assert_eq!((part.rows(), part.cols()), (2, 3));
    assert!(MatMut::try_from(array.slice_mut(s![.., ..4])).is_ok());
    assert!(MatRef::try_from(array.slice(s![..1, ..])).is_ok());
    assert!(MatRef::try_from(array.slice(s![..0, ..])).is_ok());
    for extents in [(0, 3), (3, 0), (0, 0)] {
        let empty = MatRef::try_from(Array2::<f32>::zeros(extents).view()).map(|view| (view.rows(), view.cols()));
        assert_eq!(empty.unwrap(), extents);
    }
    let turned = MatRef::try_from(array.view().reversed_axes()).unwrap();
    assert_eq!((turned.rows(), turned.cols()), (6, 4));
    for view in [
        array.slice(s![..;-1, ..]),
        array.slice(s![.., ..;-1]),
        array.slice(s![.., ..;2]),
    ] {
        let error = MatRef::try_from(view).unwrap_err();
        assert!(
            matches!(error, Error::Extent(_)) && error.to_string().contains("neither row-major"),
            "{error}"
        );
    }
    let row = Array2::<f32>::zeros((1, 3));
    assert!(MatRef::try_from(row.broadcast((4, 3)).unwrap()).is_err());
    assert!(MatMut::try_from(array.slice_mut(s![..;2, ..;2])).is_err());
    assert!(MatMut::try_from(array.view_mut().reversed_axes()).is_ok());
}

#[test]
fn a_product_of_any_strides() {
    let Some(context) = context() else { return };
    let case = Case::<f64>::new(1, 12, 10, (4, 2), 0.5);
    let matrix = Matrix::new(&context, &case.bsr(), case.values.clone()).unwrap();
    let b = Array2::from_shape_vec((10, 6), Random(2).vector::<f64>(60)).unwrap();
    let turned = b.t().as_standard_layout().into_owned();
    let wide = ndarray::concatenate![ndarray::Axis(1), b, b];
    let reversed = b.slice(s![..;-1, ..]).as_standard_layout().into_owned();
    for array in [
        b.view(),
        turned.t(),
        wide.slice(s![.., 6..]),
        reversed.slice(s![..;-1, ..]),
    ] {
        let c = matrix.dot(&array).unwrap();
        assert_eq!(c.dim(), (12, 6));
        for ((row, col), got) in c.indexed_iter() {
            let (exact, size) = case.product(b.as_slice().unwrap(), 6, row, col);
            assert_close::<f64, f64>(*got, exact, size, 10, (row, col));
        }
    }
    assert!(matrix.dot(&Array2::zeros((9, 6))).is_err());
    assert_eq!(matrix.dot(&Array2::zeros((10, 0))).unwrap().dim(), (12, 0));
    let none = Matrix::new(&context, &Bsr::new(4, 0, (4, 2), &[0i32, 0], &[]), vec![]).unwrap();
    assert_eq!(
        none.dot(&Array2::<f64>::zeros((0, 3))).unwrap(),
        Array2::<f64>::zeros((4, 3))
    );

    // Column-major parts of larger arrays, of B and of C. What is around C stays.
    let mut large = Array2::<f64>::from_elem((9, 16), 7.0);
    for (from, columns) in [(b.view(), 6), (turned.t(), 6), (b.slice(s![.., 1..2]), 1)] {
        let mut part = large.slice_mut(s![2..2 + columns, 4..16]).reversed_axes();
        part.fill(f64::NAN);
        let to = MatMut::try_from(part).unwrap();
        matrix.multiply(from.try_into().unwrap(), to).unwrap();
        let wanted = matrix.dot(&from).unwrap();
        for ((row, col), got) in large.indexed_iter() {
            let inside = (2..2 + columns).contains(&row) && (4..16).contains(&col);
            let want = if inside { wanted[(col - 4, row - 2)] } else { 7.0 };
            assert!(
                (got - want).abs() < 1e-12,
                "at ({row}, {col}): {got} in place of {want}"
            );
        }
        large.fill(7.0);
    }
}

#[test]
fn arrays_go_to_each_context_and_back() {
    for context in contexts() {
        let case = Case::<f64>::new(2, 24, 20, (4, 4), 0.5);
        let matrix = Matrix::new(&context, &case.bsr(), case.values.clone()).unwrap();
        let b = Array2::from_shape_vec((20, 7), Random(3).vector::<f64>(140)).unwrap();
        for c in [
            matrix.dot(&b).unwrap(),
            matrix.dot(&b.t().as_standard_layout().t()).unwrap(),
        ] {
            for ((row, col), got) in c.indexed_iter() {
                let (exact, size) = case.product(b.as_slice().unwrap(), 7, row, col);
                assert_close::<f64, f64>(*got, exact, size, 20, (row, col));
            }
        }
    }
}
