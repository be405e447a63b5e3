// SPDX-License-Identifier: Apache-2.0

use std::ffi::c_void;
use std::ptr;

use sparsek_sys as sys;

use crate::{Context, Result};

/// An order of work on a GPU: what is put into a stream runs after what was put into it before. On the CPU it is
/// nothing.
#[derive(Debug)]
pub struct Stream {
    context: Context,
    handle: sys::sparsek_stream,
    owned: bool,
}

// SAFETY: streams may be used from several threads at once.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// Makes a stream.
    ///
    /// # Errors
    ///
    /// Those of CUDA.
    pub fn new(context: &Context) -> Result<Stream> {
        let mut handle = ptr::null_mut();
        // SAFETY: the context lives, and the address is valid for the call.
        let status = unsafe { (context.api().stream_create)(context.handle(), &mut handle) };
        context.check("stream_create", status)?;
        Ok(Stream {
            context: context.clone(),
            handle,
            owned: true,
        })
    }

    /// A stream of another library: a `cudaStream_t`, or null for the default stream. Dropping it does not destroy that.
    ///
    /// # Safety
    ///
    /// It is a stream of the context's device, and exists as long as this.
    pub unsafe fn from_raw(context: &Context, stream: *mut c_void) -> Stream {
        Stream {
            context: context.clone(),
            handle: stream,
            owned: false,
        }
    }

    /// The `cudaStream_t`, for other libraries. It exists as long as this.
    pub fn as_raw(&self) -> *mut c_void {
        self.handle
    }

    /// Waits for all that was put into the stream.
    ///
    /// # Errors
    ///
    /// Those of CUDA, of earlier work too.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: both live.
        let status = unsafe { (self.context.api().stream_synchronize)(self.context.handle(), self.handle) };
        self.context.check("stream_synchronize", status)
    }

    /// Whether all that was put into the stream has ended.
    ///
    /// # Errors
    ///
    /// Those of CUDA, of earlier work too.
    pub fn is_idle(&self) -> Result<bool> {
        let mut done = 0;
        // SAFETY: both live, and the address is valid for the call.
        let status = unsafe { (self.context.api().stream_query)(self.context.handle(), self.handle, &mut done) };
        self.context.check("stream_query", status)?;
        Ok(done != 0)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: it was made by stream_create, and is destroyed once. What it still does goes on.
            unsafe { (self.context.api().stream_destroy)(self.context.handle(), self.handle) };
        }
    }
}
