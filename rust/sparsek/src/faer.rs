// SPDX-License-Identifier: Apache-2.0

//! Matrices of crate `faer` as operands.

use crate::operand::Place;
use crate::strides::{layout, span};
use crate::{Error, MatMut, MatRef, Order, Result};

impl<'a, T> TryFrom<faer::MatRef<'a, T>> for MatRef<'a, T> {
    type Error = Error;

    /// A column-major matrix, as those are that faer makes, or a row-major one. Columns or rows may be apart.
    fn try_from(view: faer::MatRef<'a, T>) -> Result<Self> {
        let ((rows, cols), address) = (view.shape(), view.as_ptr());
        match layout((rows, cols), &[view.row_stride(), view.col_stride()])? {
            (Order::RowMajor, ld) => MatRef::of_parts(address, span(rows, cols, ld), rows, cols, ld, Place::Host),
            (Order::ColumnMajor, ld) => {
                let turned = MatRef::of_parts(address, span(cols, rows, ld), cols, rows, ld, Place::Host);
                turned.map(MatRef::transpose)
            }
        }
    }
}

impl<'a, T> TryFrom<faer::MatMut<'a, T>> for MatMut<'a, T> {
    type Error = Error;

    /// As of [`MatRef`].
    fn try_from(view: faer::MatMut<'a, T>) -> Result<Self> {
        let ((rows, cols), strides) = (view.shape(), [view.row_stride(), view.col_stride()]);
        let address = view.as_ptr_mut();
        match layout((rows, cols), &strides)? {
            (Order::RowMajor, ld) => MatMut::of_parts(address, span(rows, cols, ld), rows, cols, ld, Place::Host),
            (Order::ColumnMajor, ld) => {
                let turned = MatMut::of_parts(address, span(cols, rows, ld), cols, rows, ld, Place::Host);
                turned.map(MatMut::transpose)
            }
        }
    }
}
