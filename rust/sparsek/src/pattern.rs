// SPDX-License-Identifier: Apache-2.0

use std::any::Any;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

use sparsek_sys as sys;

use crate::{Context, Element, Error, Index, Plan, PlanOptions, Result};

/// Where a matrix of `rows` x `cols` has blocks, in block compressed sparse row form (BSR). Where the extents are no
/// multiples of the block's, the last blocks extend beyond the matrix: their values beyond its last column must be 0, and
/// for products with the transpose those beyond its last row too.
#[derive(Clone, Copy, Debug)]
pub struct Bsr<'a, I> {
    rows: usize,
    cols: usize,
    block: (usize, usize),
    row_ptr: &'a [I],
    col_idx: &'a [I],
    block_idx: Option<&'a [I]>,
    sort: bool,
}

impl<'a, I: Index> Bsr<'a, I> {
    /// Blocks of `block.0` x `block.1`. `row_ptr` has an element for each block row, and one more: the blocks of block
    /// row i are `row_ptr[i]..row_ptr[i + 1]`, and `col_idx` has their block columns, increasing within a block row.
    pub fn new(rows: usize, cols: usize, block: (usize, usize), row_ptr: &'a [I], col_idx: &'a [I]) -> Bsr<'a, I> {
        Bsr {
            rows,
            cols,
            block,
            row_ptr,
            col_idx,
            block_idx: None,
            sort: false,
        }
    }

    /// Which block of the values each element of `col_idx` names, in place of 0, 1, 2 and so on.
    #[must_use]
    pub fn block_idx(mut self, block_idx: &'a [I]) -> Self {
        self.block_idx = Some(block_idx);
        self
    }

    /// The columns of a block row need not be sorted. The values stay in the order that they have.
    #[must_use]
    pub fn sort(mut self) -> Self {
        self.sort = true;
        self
    }

    /// The index as the library takes it, whose arrays are borrowed, where they have the lengths that the extents ask for.
    pub(crate) fn checked(&self, dtype: sys::sparsek_dtype) -> Result<sys::sparsek_bsr> {
        let (bm, bk) = self.block;
        if bm == 0 || bk == 0 {
            return Err(Error::Extent(format!("blocks of {bm} x {bk} have no elements")));
        }
        let block_rows = self.rows.div_ceil(bm);
        if self.row_ptr.len().checked_sub(1) != Some(block_rows) {
            return Err(Error::Extent(format!(
                "row_ptr has {} elements: {} rows in blocks of {bm} take one more than {block_rows}",
                self.row_ptr.len(),
                self.rows,
            )));
        }
        let blocks = self.col_idx.len();
        if let Some(block_idx) = self.block_idx.filter(|block_idx| block_idx.len() != blocks) {
            return Err(Error::Extent(format!(
                "block_idx has {} elements, and col_idx {blocks}",
                block_idx.len()
            )));
        }
        if bm.checked_mul(bk).and_then(|area| area.checked_mul(blocks)).is_none() {
            return Err(Error::Extent(format!(
                "{blocks} blocks of {bm} x {bk} are more than memory can hold"
            )));
        }
        Ok(sys::sparsek_bsr {
            rows: extent(self.rows)?,
            cols: extent(self.cols)?,
            block_m: extent(bm)?,
            block_k: extent(bk)?,
            nnzb: extent(blocks)?,
            dtype,
            index_type: I::TYPE,
            memory: sys::SPARSEK_HOST,
            row_ptr: self.row_ptr.as_ptr().cast(),
            col_idx: self.col_idx.as_ptr().cast(),
            block_idx: self
                .block_idx
                .map_or(ptr::null(), |block_idx| block_idx.as_ptr().cast::<c_void>()),
            flags: if self.sort { sys::SPARSEK_BSR_SORT } else { 0 },
            ..Default::default()
        })
    }
}

/// A pattern of blocks, whose values have type T, checked and in the library. A clone is the same pattern.
#[derive(Debug)]
pub struct Pattern<T: Element> {
    pub(crate) inner: Arc<Inner>,
    values: PhantomData<fn(T)>,
}

impl<T: Element> Clone for Pattern<T> {
    fn clone(&self) -> Self {
        Pattern {
            inner: self.inner.clone(),
            values: PhantomData,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) context: Context,
    handle: NonNull<sys::sparsek_matrix>,
    rows: usize,
    cols: usize,
    block: (usize, usize),
    blocks: usize,
    /// Values that kernels are measured with. The library refers to them on the CPU, so they stay as long as the handle.
    measured: Mutex<Option<Box<dyn Any + Send + Sync>>>,
}

// SAFETY: the library's handles may be used from several threads at once, and no reference outlives the last of them.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once; plans of it keep a clone of the pattern.
        unsafe { (self.context.api().matrix_destroy)(self.handle.as_ptr()) }
    }
}

impl<T: Element> Pattern<T> {
    /// Checks an index and copies it into the library.
    ///
    /// # Errors
    ///
    /// [`Error::Extent`] where the slices do not have the lengths that the extents ask for; the library's, such as
    /// [`crate::Status::ColIdxUnsorted`], with the place.
    pub fn new<I: Index>(context: &Context, bsr: &Bsr<'_, I>) -> Result<Pattern<T>> {
        let asked = bsr.checked(T::DTYPE)?;
        let (api, mut handle) = (context.api(), ptr::null_mut());
        // SAFETY: the arrays have the lengths that their extents say; they are copied.
        let status = unsafe { (api.matrix_create)(context.handle(), &asked, &mut handle) };
        let Some(handle) = NonNull::new(handle).filter(|_| status == sys::SPARSEK_OK) else {
            return Err(Error::of_call(api, "matrix_create", status));
        };
        let (block, blocks) = (bsr.block, bsr.col_idx.len());
        let inner = Inner {
            context: context.clone(),
            handle,
            rows: bsr.rows,
            cols: bsr.cols,
            block,
            blocks,
            measured: Mutex::new(None),
        };
        Ok(Pattern {
            inner: Arc::new(inner),
            values: PhantomData,
        })
    }

    /// A plan for products by this pattern, with a C of type T.
    ///
    /// # Errors
    ///
    /// The library's, such as [`crate::Status::NoSuchKernel`].
    pub fn plan(&self, options: &PlanOptions) -> Result<Plan<T>> {
        Plan::new(self, options)
    }

    /// A plan for products with a C and a bias of another type.
    ///
    /// # Errors
    ///
    /// As [`Pattern::plan`].
    pub fn plan_into<U: Element>(&self, options: &PlanOptions) -> Result<Plan<T, U>> {
        Plan::new(self, options)
    }

    /// A plan for A B with a B of a wider type than A's, and a C of another: B of `f32` for A of 16 bits, of `f64` for any
    /// other. A's elements are multiplied as they are, and summed in B's type; C may have B's type, or for a B of `f32` any
    /// that is narrower.
    ///
    /// # Errors
    ///
    /// As [`Pattern::plan`], and [`crate::Status::UnsupportedDtype`].
    pub fn plan_mixed<V: Element, U: Element>(&self, options: &PlanOptions) -> Result<Plan<T, U, V>> {
        Plan::new(self, options)
    }

    /// The context that it was made in.
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.inner.rows
    }

    /// Columns of the matrix.
    pub fn cols(&self) -> usize {
        self.inner.cols
    }

    /// Rows and columns of a block.
    pub fn block(&self) -> (usize, usize) {
        self.inner.block
    }

    /// How many blocks it has.
    pub fn blocks(&self) -> usize {
        self.inner.blocks
    }

    /// How many values its blocks have together: (blocks, block.0, block.1), each block row-major.
    pub fn values_len(&self) -> usize {
        self.inner.blocks * self.inner.block.0 * self.inner.block.1
    }

    /// Gives the library values to measure kernels with, once.
    pub(crate) fn give_values_to_measure(&self) -> Result<()> {
        let mut kept = self.inner.measured.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_some() {
            return Ok(());
        }
        // Any sequence does that is neither constant nor all of one sign: these are the high bits of a Weyl sequence.
        let noise = |i: u32| i.wrapping_mul(0x9e37_79b9) as i32 as f32 / i32::MAX as f32;
        let values: Vec<T> = (0..self.values_len())
            .map(|i| T::from_f32(noise(i as u32 | 1)))
            .collect();
        let address = values.as_ptr().cast();
        // SAFETY: as many values as the pattern has. Where the library takes them, they live as long as it: they stay
        // where they are when the vector is moved.
        let status = unsafe {
            (self.context().api().matrix_set_values)(self.handle(), address, sys::SPARSEK_HOST, ptr::null_mut())
        };
        self.context().check("matrix_set_values", status)?;
        *kept = Some(Box::new(values));
        Ok(())
    }

    pub(crate) fn handle(&self) -> *mut sys::sparsek_matrix {
        self.inner.handle.as_ptr()
    }
}

/// An extent as the library takes it.
pub(crate) fn extent(value: usize) -> Result<i64> {
    value
        .try_into()
        .map_err(|_| Error::Extent(format!("an extent of {value} is larger than memory can be")))
}
