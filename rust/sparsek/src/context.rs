// SPDX-License-Identifier: Apache-2.0

use std::ffi::{CStr, c_char};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use sparsek_sys as sys;

use crate::operand::Place;
use crate::{Error, Result, library};

/// Where products are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// A Hopper GPU where there is one, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU of compute capability 9.0.
    Cuda,
}

/// What a context is made of.
#[derive(Clone, Debug, Default)]
pub struct ContextOptions {
    /// The back-end.
    pub backend: Backend,
    /// The number of the CUDA device.
    pub device: i32,
    /// Threads of a product on the CPU; 0: one for each core that this process may use.
    pub threads: i32,
}

/// What a context is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContextInfo {
    /// [`Backend::Cpu`] or [`Backend::Cuda`].
    pub backend: Backend,
    /// The number of the CUDA device.
    pub device: i32,
    /// Threads of a product on the CPU.
    pub threads: i32,
    /// Whether [`Backend::Auto`] gave the CPU although there is a driver of NVIDIA's; `reason` says what is wrong.
    pub gpu_fault: bool,
    /// Why this back-end.
    pub reason: String,
    /// The vector instructions in use on the CPU.
    pub isa: String,
}

/// A back-end and its device. A clone is the same context.
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(self.info()).finish()
    }
}

struct Inner {
    api: &'static sys::sparsek_api,
    handle: NonNull<sys::sparsek_context>,
    info: ContextInfo,
}

// SAFETY: the library's handles may be used from several threads at once, and no reference outlives the last of them.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once; what was made of it keeps a clone of the context.
        unsafe { (self.api.context_destroy)(self.handle.as_ptr()) }
    }
}

impl Context {
    /// Makes a context.
    ///
    /// # Errors
    ///
    /// [`Error::Library`] where there is no library, [`crate::Status::NoDevice`] where there is no such GPU.
    pub fn new(options: &ContextOptions) -> Result<Context> {
        let api = library::api()?;
        let asked = sys::sparsek_context_options {
            backend: match options.backend {
                Backend::Auto => sys::SPARSEK_AUTO,
                Backend::Cpu => sys::SPARSEK_CPU,
                Backend::Cuda => sys::SPARSEK_CUDA,
            },
            device: options.device,
            threads: options.threads,
            ..Default::default()
        };
        let mut handle = ptr::null_mut();
        // SAFETY: both are valid for the call.
        let status = unsafe { (api.context_create)(&asked, &mut handle) };
        let Some(handle) = NonNull::new(handle).filter(|_| status == sys::SPARSEK_OK) else {
            return Err(Error::of_call(api, "context_create", status));
        };
        let mut info = sys::sparsek_context_info::default();
        // SAFETY: the handle is one, and texts live as long as it.
        let (status, info) = unsafe {
            let status = (api.context_info)(handle.as_ptr(), &mut info);
            (status, describe(&info))
        };
        let inner = Inner { api, handle, info };
        if status != sys::SPARSEK_OK {
            return Err(Error::of_call(api, "context_info", status));
        }
        Ok(Context { inner: Arc::new(inner) })
    }

    /// Makes a context on the CPU, with a thread for each core.
    ///
    /// # Errors
    ///
    /// As [`Context::new`].
    pub fn cpu() -> Result<Context> {
        Context::new(&ContextOptions {
            backend: Backend::Cpu,
            ..Default::default()
        })
    }

    /// What this context is.
    pub fn info(&self) -> &ContextInfo {
        &self.inner.info
    }

    pub(crate) fn is_cpu(&self) -> bool {
        self.inner.info.backend == Backend::Cpu
    }

    pub(crate) fn api(&self) -> &'static sys::sparsek_api {
        self.inner.api
    }

    pub(crate) fn handle(&self) -> *mut sys::sparsek_context {
        self.inner.handle.as_ptr()
    }

    /// Where its operands are.
    pub(crate) fn place(&self) -> Place {
        match self.is_cpu() {
            true => Place::Host,
            false => Place::Device(self.info().device),
        }
    }

    /// Waits for the default stream. On the CPU there is nothing to wait for.
    pub(crate) fn wait(&self) -> Result<()> {
        if self.is_cpu() {
            return Ok(());
        }
        // SAFETY: the context lives.
        let status = unsafe { (self.api().stream_synchronize)(self.handle(), ptr::null_mut()) };
        self.check("stream_synchronize", status)
    }

    /// The error of a call that returned this status, if it is one.
    #[inline]
    pub(crate) fn check(&self, function: &'static str, status: sys::sparsek_status) -> Result<()> {
        if status == sys::SPARSEK_OK {
            Ok(())
        } else {
            Err(Error::of_call(self.api(), function, status))
        }
    }
}

/// # Safety
///
/// Its texts are null or live.
unsafe fn describe(info: &sys::sparsek_context_info) -> ContextInfo {
    ContextInfo {
        backend: if info.backend == sys::SPARSEK_CUDA {
            Backend::Cuda
        } else {
            Backend::Cpu
        },
        device: info.device,
        threads: info.threads,
        gpu_fault: info.gpu_fault != 0,
        // SAFETY: of the caller.
        reason: unsafe { text(info.reason) },
        // SAFETY: of the caller.
        isa: unsafe { text(info.isa) },
    }
}

/// A copy of a text of the library's; null is "".
///
/// # Safety
///
/// It is null or a text that lives.
pub(crate) unsafe fn text(address: *const c_char) -> String {
    if address.is_null() {
        return String::new();
    }
    // SAFETY: of the caller.
    unsafe { CStr::from_ptr(address) }.to_string_lossy().into_owned()
}
