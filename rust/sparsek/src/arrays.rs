// SPDX-License-Identifier: Apache-2.0

//! Arrays of crate `ndarray` as operands.

use ndarray::{Array2, ArrayBase, ArrayView2, ArrayViewMut2, Data, Ix2};

use crate::operand::Place;
use crate::{Buffer, Element, Error, MatMut, MatRef, Matrix, Result};

/// The leading dimension of a row-major array.
fn ld(extents: (usize, usize), strides: &[isize]) -> Result<usize> {
    let (rows, cols) = extents;
    let ld = if rows < 2 { cols as isize } else { strides[0] };
    if (cols < 2 || strides[1] == 1) && ld >= cols as isize {
        return Ok(ld as usize);
    }
    Err(Error::Extent(format!(
        "an array of {rows} x {cols} with strides {strides:?} is not row-major: as_standard_layout copies it"
    )))
}

impl<'a, T> TryFrom<ArrayView2<'a, T>> for MatRef<'a, T> {
    type Error = Error;

    /// A view whose elements of a row are next to each other, at increasing addresses. Rows may be apart.
    fn try_from(view: ArrayView2<'a, T>) -> Result<Self> {
        let ((rows, cols), ld) = (view.dim(), ld(view.dim(), view.strides())?);
        let len = if rows == 0 { 0 } else { (rows - 1) * ld + cols };
        MatRef::of_parts(view.as_ptr(), len, rows, cols, ld, Place::Host)
    }
}

impl<'a, T> TryFrom<ArrayViewMut2<'a, T>> for MatMut<'a, T> {
    type Error = Error;

    /// As of [`MatRef`].
    fn try_from(mut view: ArrayViewMut2<'a, T>) -> Result<Self> {
        let ((rows, cols), ld) = (view.dim(), ld(view.dim(), view.strides())?);
        let len = if rows == 0 { 0 } else { (rows - 1) * ld + cols };
        MatMut::of_parts(view.as_mut_ptr(), len, rows, cols, ld, Place::Host)
    }
}

impl<T: Element> Matrix<T> {
    /// A B, for a B with any strides: one that is not row-major is copied. On a GPU B is copied to its memory, and C back.
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
