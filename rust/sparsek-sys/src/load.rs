// SPDX-License-Identifier: Apache-2.0

use core::error::Error as _;
use core::fmt;
use std::ffi::{OsStr, OsString};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::{SPARSEK_ABI_VERSION, sparsek_api};

/// Why a file is no library that these bindings can use.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The loader does not load it, or it does not export `sparsek_get_api`.
    Loader {
        /// The file.
        path: OsString,
        /// What the loader says.
        reason: String,
    },
    /// Its interface is of another version, or has fewer functions.
    Version {
        /// The file.
        path: OsString,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Loader { path, reason } => write!(f, "{} cannot be loaded: {reason}", path.display()),
            LoadError::Version { path } => write!(
                f,
                "{} does not have version {SPARSEK_ABI_VERSION} of the ABI, or is older than this crate: take the library of \
                 this crate's version",
                path.display()
            ),
        }
    }
}

impl std::error::Error for LoadError {}

/// Opens libsparsek, for good: what it holds on to, CUDA's runtime among it, cannot be unloaded. A path without a slash
/// is left to the loader's own search.
///
/// # Errors
///
/// Where the loader fails, or the library does not have this version of the interface.
pub fn load(path: &OsStr) -> Result<&'static sparsek_api, LoadError> {
    let failed = |error: libloading::Error| {
        let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        LoadError::Loader {
            path: path.to_owned(),
            reason,
        }
    };
    // SAFETY: the library's initialisation has no conditions.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(failed)?;
    // SAFETY: the header declares the function so.
    let get_api = unsafe { library.get::<unsafe extern "C" fn(i32) -> *const sparsek_api>(b"sparsek_get_api\0") };
    let get_api = *get_api.map_err(failed)?;
    // SAFETY: any version may be asked for.
    let api = unsafe { get_api(SPARSEK_ABI_VERSION) };
    // SAFETY: a table that is not null begins with its size. It lives as long as the library, which stays below.
    if api.is_null() || unsafe { (*api).abi_size } < size_of::<sparsek_api>() {
        return Err(LoadError::Version { path: path.to_owned() });
    }
    std::mem::forget(library);
    // SAFETY: it is as large as this struct, and nothing changes it.
    Ok(unsafe { &*api })
}
