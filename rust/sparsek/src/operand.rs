// SPDX-License-Identifier: Apache-2.0

use std::marker::PhantomData;

use crate::{Buffer, Element, Error, Result};

/// In which memory an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    /// That of the CUDA device of this number.
    Device(i32),
    /// Whoever gave the address answers for it.
    Unknown,
}

impl Place {
    /// Refuses an operand that is elsewhere than `needed`.
    #[inline]
    pub(crate) fn must_be(self, needed: Place, what: &str) -> Result<()> {
        if self == needed || self == Place::Unknown {
            return Ok(());
        }
        Err(self.elsewhere(needed, what))
    }

    #[cold]
    fn elsewhere(self, needed: Place, what: &str) -> Error {
        let name = |place| match place {
            Place::Host => "the host".to_owned(),
            Place::Device(device) => format!("CUDA device {device}"),
            Place::Unknown => "whoever gave it".to_owned(),
        };
        Error::Memory(format!(
            "{what} is in memory of {}, and the plan is one of {}",
            name(self),
            name(needed)
        ))
    }
}

/// How a dense matrix lies in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Row by row: (rows, cols):(ld, 1).
    #[default]
    RowMajor,
    /// Column by column: (rows, cols):(1, ld).
    ColumnMajor,
}

impl Order {
    fn other(self) -> Order {
        match self {
            Order::RowMajor => Order::ColumnMajor,
            Order::ColumnMajor => Order::RowMajor,
        }
    }
}

/// A dense matrix that is read: row-major, (rows, cols):(ld, 1), or as [`MatRef::transpose`] gives it.
#[derive(Clone, Copy, Debug)]
pub struct MatRef<'a, T> {
    pub(crate) address: *const T,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) ld: usize,
    pub(crate) order: Order,
    pub(crate) place: Place,
    memory: PhantomData<&'a [T]>,
}

// SAFETY: it is a borrow of elements, as a slice is.
unsafe impl<T: Sync> Send for MatRef<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for MatRef<'_, T> {}

/// A dense matrix that is written: row-major, (rows, cols):(ld, 1), or as [`MatMut::transpose`] gives it. Elements between
/// its rows, or columns, are left alone.
#[derive(Debug)]
pub struct MatMut<'a, T> {
    pub(crate) address: *mut T,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) ld: usize,
    pub(crate) order: Order,
    pub(crate) place: Place,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: it is an exclusive borrow of elements, as a slice is.
unsafe impl<T: Send> Send for MatMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for MatMut<'_, T> {}

impl<'a, T> MatRef<'a, T> {
    /// A slice of rows * cols elements.
    ///
    /// # Errors
    ///
    /// [`Error::Extent`] where it has fewer or more.
    pub fn new(elements: &'a [T], rows: usize, cols: usize) -> Result<MatRef<'a, T>> {
        whole(elements.len(), rows, cols)?;
        MatRef::with_ld(elements, rows, cols, cols)
    }

    /// A slice of rows that begin `ld` elements apart.
    ///
    /// # Errors
    ///
    /// [`Error::Extent`] where `ld` is below `cols`, or the slice too short.
    pub fn with_ld(elements: &'a [T], rows: usize, cols: usize, ld: usize) -> Result<MatRef<'a, T>> {
        MatRef::of_parts(elements.as_ptr(), elements.len(), rows, cols, ld, Place::Host)
    }

    /// Elements at an address, in whatever memory.
    ///
    /// # Safety
    ///
    /// The memory is one that the back-end of the product may read, lives for `'a` and beyond the product, and is not
    /// written meanwhile. `ld` is at least `cols`, and there are `(rows - 1) * ld + cols` elements.
    pub unsafe fn from_raw(address: *const T, rows: usize, cols: usize, ld: usize) -> MatRef<'a, T> {
        MatRef {
            address,
            rows,
            cols,
            ld,
            order: Order::RowMajor,
            place: Place::Unknown,
            memory: PhantomData,
        }
    }

    /// The caller answers for the address: `len` elements that live for `'a`.
    pub(crate) fn of_parts(
        address: *const T,
        len: usize,
        rows: usize,
        cols: usize,
        ld: usize,
        place: Place,
    ) -> Result<MatRef<'a, T>> {
        fits(len, rows, cols, ld)?;
        Ok(MatRef {
            address,
            rows,
            cols,
            ld,
            order: Order::RowMajor,
            place,
            memory: PhantomData,
        })
    }

    /// The transpose, where it lies: of a row-major matrix a column-major one. A plan takes it where its options have that
    /// order.
    #[must_use]
    pub fn transpose(self) -> Self {
        let MatRef { rows, cols, order, .. } = self;
        MatRef {
            rows: cols,
            cols: rows,
            order: order.other(),
            ..self
        }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols
    }
}

impl<'a, T> MatMut<'a, T> {
    /// A slice of rows * cols elements.
    ///
    /// # Errors
    ///
    /// [`Error::Extent`] where it has fewer or more.
    pub fn new(elements: &'a mut [T], rows: usize, cols: usize) -> Result<MatMut<'a, T>> {
        whole(elements.len(), rows, cols)?;
        MatMut::with_ld(elements, rows, cols, cols)
    }

    /// A slice of rows that begin `ld` elements apart.
    ///
    /// # Errors
    ///
    /// [`Error::Extent`] where `ld` is below `cols`, or the slice too short.
    pub fn with_ld(elements: &'a mut [T], rows: usize, cols: usize, ld: usize) -> Result<MatMut<'a, T>> {
        MatMut::of_parts(elements.as_mut_ptr(), elements.len(), rows, cols, ld, Place::Host)
    }

    /// Elements at an address, in whatever memory.
    ///
    /// # Safety
    ///
    /// As of [`MatRef::from_raw`], and nothing else reads or writes the memory until the product has ended.
    pub unsafe fn from_raw(address: *mut T, rows: usize, cols: usize, ld: usize) -> MatMut<'a, T> {
        MatMut {
            address,
            rows,
            cols,
            ld,
            order: Order::RowMajor,
            place: Place::Unknown,
            memory: PhantomData,
        }
    }

    /// The caller answers for the address: `len` elements that live for `'a` and nothing else uses.
    pub(crate) fn of_parts(
        address: *mut T,
        len: usize,
        rows: usize,
        cols: usize,
        ld: usize,
        place: Place,
    ) -> Result<MatMut<'a, T>> {
        fits(len, rows, cols, ld)?;
        Ok(MatMut {
            address,
            rows,
            cols,
            ld,
            order: Order::RowMajor,
            place,
            memory: PhantomData,
        })
    }

    /// As [`MatRef::transpose`].
    #[must_use]
    pub fn transpose(self) -> Self {
        let MatMut { rows, cols, order, .. } = self;
        MatMut {
            rows: cols,
            cols: rows,
            order: order.other(),
            ..self
        }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols
    }
}

fn whole(len: usize, rows: usize, cols: usize) -> Result<()> {
    if rows.checked_mul(cols) == Some(len) {
        return Ok(());
    }
    Err(Error::Extent(format!(
        "a slice of {len} elements is no matrix of {rows} x {cols}"
    )))
}

fn fits(len: usize, rows: usize, cols: usize, ld: usize) -> Result<()> {
    let needed = match rows {
        0 => Some(0),
        _ => (rows - 1).checked_mul(ld).and_then(|before| before.checked_add(cols)),
    };
    match needed {
        Some(needed) if ld >= cols && needed <= len => Ok(()),
        _ => Err(Error::Extent(format!(
            "a matrix of {rows} x {cols} with rows {ld} elements apart does not fit into {len} elements"
        ))),
    }
}

/// Elements without a shape that are read: the values of blocks, or a bias. Made of slices, vectors and [`Buffer`]s by
/// `into`.
#[derive(Clone, Copy, Debug)]
pub struct VecRef<'a, T> {
    pub(crate) address: *const T,
    pub(crate) len: usize,
    pub(crate) place: Place,
    memory: PhantomData<&'a [T]>,
}

// SAFETY: it is a borrow of elements, as a slice is.
unsafe impl<T: Sync> Send for VecRef<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for VecRef<'_, T> {}

impl<T> VecRef<'_, T> {
    /// Elements at an address, in whatever memory.
    ///
    /// # Safety
    ///
    /// As of [`MatRef::from_raw`], for `len` elements.
    pub unsafe fn from_raw(address: *const T, len: usize) -> Self {
        VecRef {
            address,
            len,
            place: Place::Unknown,
            memory: PhantomData,
        }
    }
}

impl<'a, T> From<&'a [T]> for VecRef<'a, T> {
    fn from(elements: &'a [T]) -> Self {
        VecRef {
            address: elements.as_ptr(),
            len: elements.len(),
            place: Place::Host,
            memory: PhantomData,
        }
    }
}

impl<'a, T> From<&'a Vec<T>> for VecRef<'a, T> {
    fn from(elements: &'a Vec<T>) -> Self {
        elements.as_slice().into()
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for VecRef<'a, T> {
    fn from(elements: &'a [T; N]) -> Self {
        elements.as_slice().into()
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for VecRef<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        VecRef {
            address: buffer.as_ptr(),
            len: buffer.len(),
            place: buffer.place(),
            memory: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_checked() {
        let mut elements = [0f32; 10];
        assert!(MatRef::new(&elements, 2, 5).is_ok());
        for (rows, cols) in [(2, 4), (3, 4), (0, 5), (usize::MAX, 2), (usize::MAX, usize::MAX)] {
            let error = MatRef::new(&elements, rows, cols).unwrap_err();
            assert_eq!(error, MatMut::new(&mut elements, rows, cols).unwrap_err());
            assert!(error.to_string().contains("10 elements"), "{error}");
        }
        for (rows, cols, ld, good) in [
            (2, 4, 6, true),
            (2, 5, 6, false),
            (2, 5, 4, false),
            (3, 2, 4, true),
            (0, 4, 4, true),
            (0, 4, 3, false),
            (10, 0, 1, true),
            (11, 0, 1, true),
            (12, 0, 1, false),
            (1, 10, usize::MAX, true),
            (3, 1, usize::MAX, false),
            (usize::MAX, 1, 2, false),
        ] {
            assert_eq!(
                MatRef::with_ld(&elements, rows, cols, ld).is_ok(),
                good,
                "{rows} x {cols}, {ld}"
            );
            assert_eq!(
                MatMut::with_ld(&mut elements, rows, cols, ld).is_ok(),
                good,
                "{rows} x {cols}, {ld}"
            );
        }
    }
}
