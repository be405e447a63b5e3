// SPDX-License-Identifier: Apache-2.0

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use crate::operand::Place;
use crate::{Context, Element, Error, MatMut, MatRef, Result};

/// Memory of a context's back-end: of the GPU, or on the CPU host memory.
#[derive(Debug)]
pub struct Buffer<T: Element> {
    context: Context,
    memory: NonNull<T>,
    len: usize,
    elements: PhantomData<T>,
}

// SAFETY: the memory is this buffer's alone, and elements are plain numbers.
unsafe impl<T: Element> Send for Buffer<T> {}
// SAFETY: as above; it is written through &mut alone.
unsafe impl<T: Element> Sync for Buffer<T> {}

impl<T: Element> Buffer<T> {
    /// Makes a buffer of `len` elements, all 0.
    ///
    /// # Errors
    ///
    /// [`crate::Status::OutOfMemory`].
    pub fn new(context: &Context, len: usize) -> Result<Buffer<T>> {
        let bytes = len
            .checked_mul(size_of::<T>())
            .ok_or_else(|| Error::Extent(format!("a buffer of {len} elements is larger than memory can be")))?;
        let (mut memory, size) = (ptr::null_mut(), bytes.max(size_of::<T>()));
        // SAFETY: the context lives, and the address is valid for the call.
        let status = unsafe { (context.api().buffer_create)(context.handle(), size, &mut memory) };
        context.check("buffer_create", status)?;
        let memory = NonNull::new(memory.cast()).expect("a buffer that was made has an address");
        let buffer = Buffer {
            context: context.clone(),
            memory,
            len,
            elements: PhantomData,
        };
        // SAFETY: the memory is the buffer's, with so many bytes.
        let status =
            unsafe { (context.api().buffer_fill)(context.handle(), buffer.address(), 0, size, ptr::null_mut()) };
        context.check("buffer_fill", status)?;
        context.wait()?;
        Ok(buffer)
    }

    /// Makes a buffer with a copy of the elements.
    ///
    /// # Errors
    ///
    /// As [`Buffer::new`].
    pub fn of(context: &Context, elements: &[T]) -> Result<Buffer<T>> {
        let mut buffer = Buffer::new(context, elements.len())?;
        buffer.write(elements)?;
        Ok(buffer)
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies all elements into the buffer, and waits for that.
    ///
    /// # Errors
    ///
    /// [`Error::Extent`] where the lengths differ.
    pub fn write(&mut self, elements: &[T]) -> Result<()> {
        self.same_len("written", elements.len())?;
        let (api, handle) = (self.context.api(), self.context.handle());
        let (from, bytes) = (elements.as_ptr().cast(), size_of_val(elements));
        // SAFETY: both have so many bytes, and are borrowed until the copy has ended.
        let status = unsafe { (api.buffer_write)(handle, self.address(), from, bytes, ptr::null_mut()) };
        self.context.check("buffer_write", status)?;
        self.context.wait()
    }

    /// Copies all elements out of the buffer, and waits for that.
    ///
    /// # Errors
    ///
    /// [`Error::Extent`] where the lengths differ.
    pub fn read(&self, elements: &mut [T]) -> Result<()> {
        self.same_len("read", elements.len())?;
        let (api, handle) = (self.context.api(), self.context.handle());
        let (to, bytes) = (elements.as_mut_ptr().cast(), size_of_val(elements));
        // SAFETY: both have so many bytes, and are borrowed until the copy has ended.
        let status = unsafe { (api.buffer_read)(handle, to, self.address(), bytes, ptr::null_mut()) };
        self.context.check("buffer_read", status)?;
        self.context.wait()
    }

    /// A copy of all elements.
    ///
    /// # Errors
    ///
    /// Those of CUDA.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut elements = vec![T::default(); self.len];
        self.read(&mut elements)?;
        Ok(elements)
    }

    /// The elements as a row-major matrix without gaps.
    ///
    /// # Errors
    ///
    /// [`Error::Extent`] where the buffer has fewer or more.
    pub fn matrix(&self, rows: usize, cols: usize) -> Result<MatRef<'_, T>> {
        self.same_len("taken as a matrix", rows.saturating_mul(cols))?;
        MatRef::of_parts(self.memory.as_ptr(), self.len, rows, cols, cols, self.place())
    }

    /// As [`Buffer::matrix`], to be written.
    ///
    /// # Errors
    ///
    /// As [`Buffer::matrix`].
    pub fn matrix_mut(&mut self, rows: usize, cols: usize) -> Result<MatMut<'_, T>> {
        self.same_len("taken as a matrix", rows.saturating_mul(cols))?;
        MatMut::of_parts(self.memory.as_ptr(), self.len, rows, cols, cols, self.place())
    }

    /// The address of the first element, for other libraries. It is valid until the buffer is dropped.
    pub fn as_ptr(&self) -> *const T {
        self.memory.as_ptr()
    }

    pub(crate) fn place(&self) -> Place {
        self.context.place()
    }

    fn address(&self) -> *mut c_void {
        self.memory.as_ptr().cast()
    }

    fn same_len(&self, what: &str, len: usize) -> Result<()> {
        if len == self.len {
            return Ok(());
        }
        Err(Error::Extent(format!(
            "{len} elements are {what}, of a buffer of {}",
            self.len
        )))
    }
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: it was made by buffer_create, and is destroyed once. Safe calls that use it have ended.
        unsafe { (self.context.api().buffer_destroy)(self.context.handle(), self.address()) };
    }
}
