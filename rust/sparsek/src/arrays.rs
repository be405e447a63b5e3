// SPDX-License-Identifier: Apache-2.0

//! Arrays of crate `ndarray` as operands.

use ndarray::{Array2, ArrayBase, ArrayView2, ArrayViewMut2, Data, Ix2};

use crate::operand::Place;
use crate::strides::{layout, span};
use crate::{Buffer, Element, Error, MatMut, MatRef, Matrix, Order, Result};

impl<'a, T> TryFrom<ArrayView2<'a, T>> for MatRef<'a, T> {
    type Error = Error;

    /// A row-major view, or else a column-major one: elements of a row, or of a column, are next to each other, at
    /// increasing addresses. Rows or columns may be apart.
    fn try_from(view: ArrayView2<'a, T>) -> Result<Self> {
        let ((rows, cols), address) = (view.dim(), view.as_ptr());
        match layout((rows, cols), view.strides())? {
            (Order::RowMajor, ld) => MatRef::of_parts(address, span(rows, cols, ld), rows, cols, ld, Place::Host),
            (Order::ColumnMajor, ld) => {
                let turned = MatRef::of_parts(address, span(cols, rows, ld), cols, rows, ld, Place::Host);
                turned.map(MatRef::transpose)
            }
        }
    }
}

impl<'a, T> TryFrom<ArrayViewMut2<'a, T>> for MatMut<'a, T> {
    type Error = Error;

    /// As of [`MatRef`].
    fn try_from(mut view: ArrayViewMut2<'a, T>) -> Result<Self> {
        let ((rows, cols), address) = (view.dim(), view.as_mut_ptr());
        match layout((rows, cols), view.strides())? {
            (Order::RowMajor, ld) => MatMut::of_parts(address, span(rows, cols, ld), rows, cols, ld, Place::Host),
            (Order::ColumnMajor, ld) => {
                let turned = MatMut::of_parts(address, span(cols, rows, ld), cols, rows, ld, Place::Host);
                turned.map(MatMut::transpose)
            }
        }
    }
}

impl<T: Element> Matrix<T> {
    /// A B, for a B with any strides: one that is neither row-major nor column-major is copied. On a GPU B is copied to its memory, and C back.
    ///
    /// # Errors
    ///
    /// As [`Matrix::multiply`].
    pub fn dot<S: Data<Elem = T>>(&self, b: &ArrayBase<S, Ix2>) -> Result<Array2<T>> {
        let (rows, cols) = (self.pattern().rows(), b.ncols());
        let context = self.pattern().context();
        let mut c = Array2::from_elem((rows, cols), T::default());
        if !context.is_cpu() {
            let elements: Vec<T> = b.iter().copied().collect();
            let (from, mut to) = (Buffer::of(context, &elements)?, Buffer::new(context, rows * cols)?);
            self.multiply(from.matrix(b.nrows(), cols)?, to.matrix_mut(rows, cols)?)?;
            to.read(c.as_slice_mut().expect("an array that was just made has no gaps"))?;
        } else if let Ok(b) = MatRef::try_from(b.view()) {
            self.multiply(b, c.view_mut().try_into()?)?;
        } else {
            self.multiply(b.as_standard_layout().view().try_into()?, c.view_mut().try_into()?)?;
        }
        Ok(c)
    }
}
