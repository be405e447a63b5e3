// SPDX-License-Identifier: Apache-2.0

//! Matrices of crate faer as operands.

#![cfg(feature = "faer")]

mod common;

use common::{Case, Random, assert_close, context};
use faer::Mat;
use sparsek::{MatMut, MatRef, Matrix};

#[test]
fn views_are_operands() {
    let mut matrix = Mat::<f32>::zeros(5, 4);
    for (view, extents) in [
        (matrix.as_ref(), (5, 4)),
        (matrix.as_ref().transpose(), (4, 5)),
        (matrix.as_ref().submatrix(1, 1, 3, 2), (3, 2)),
        (matrix.as_ref().submatrix(1, 1, 0, 2), (0, 2)),
    ] {
        let operand = MatRef::try_from(view).unwrap();
        assert_eq!((operand.rows(), operand.cols()), extents);
    }
    let error = MatRef::try_from(matrix.as_ref().reverse_rows()).unwrap_err();
    assert!(error.to_string().contains("neither row-major"), "{error}");
    assert!(MatMut::try_from(matrix.as_mut()).is_ok());
    assert!(MatMut::try_from(matrix.as_mut().transpose_mut()).is_ok());
    assert!(MatMut::try_from(matrix.as_mut().reverse_rows_mut()).is_err());
}

#[test]
fn products_in_both_orders() {
    let Some(context) = context() else { return };
    let case = Case::<f64>::new(1, 12, 10, (4, 2), 0.5);
    let matrix = Matrix::new(&context, &case.bsr(), case.values.clone()).unwrap();
    let elements: Vec<f64> = Random(2).vector(60);
    let b = Mat::from_fn(10, 6, |row, col| elements[row * 6 + col]);
    let turned = Mat::from_fn(6, 10, |row, col| b[(col, row)]);
    for view in [b.as_ref(), turned.as_ref().transpose()] {
        let mut large = Mat::from_fn(16, 8, |_, _| 7.0);
        let part = large.as_mut().submatrix_mut(2, 1, 12, 6);
        matrix
            .multiply(view.try_into().unwrap(), part.try_into().unwrap())
            .unwrap();
        for (row, col) in (0..16).flat_map(|row| (0..8).map(move |col| (row, col))) {
            if (2..14).contains(&row) && (1..7).contains(&col) {
                let (exact, size) = case.product(&elements, 6, row - 2, col - 1);
                assert_close::<f64, f64>(large[(row, col)], exact, size, 10, (row - 2, col - 1));
            } else {
                assert_eq!(large[(row, col)], 7.0, "around C");
            }
        }
    }
}
