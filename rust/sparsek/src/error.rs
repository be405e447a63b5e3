// SPDX-License-Identifier: Apache-2.0

use std::ffi::CStr;
use std::fmt;

use sparsek_sys as sys;

/// What calls of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// libsparsek was not found, or is none that this crate can use. The text says where it was searched for.
    Library(String),
    /// The extents of the operands do not fit the product, or each other.
    Extent(String),
    /// An operand is in memory that the context's back-end does not use: host memory for a GPU, or a [`crate::Buffer`]
    /// of another device.
    Memory(String),
    /// The library refused the call, or failed.
    Call {
        /// The function of the library.
        function: &'static str,
        /// What happened.
        status: Status,
        /// The library's text, which names the place.
        message: String,
    },
}

impl Error {
    /// What the library returned, where it was the library that failed.
    pub fn status(&self) -> Option<Status> {
        match self {
            Error::Call { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// What the library left for this thread.
    #[cold]
    pub(crate) fn of_call(api: &sys::sparsek_api, function: &'static str, status: sys::sparsek_status) -> Error {
        // SAFETY: the text is valid until this thread's next call.
        let message = unsafe { CStr::from_ptr((api.last_error)()) }
            .to_string_lossy()
            .into_owned();
        Error::Call {
            function,
            status: Status::of(status),
            message,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Library(text) | Error::Extent(text) | Error::Memory(text) => f.write_str(text),
            Error::Call {
                function,
                status,
                message,
            } => write!(f, "{function}: {message} ({status})"),
        }
    }
}

impl std::error::Error for Error {}

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $code:ident),* $(,)?) => {
        /// What a call of the library returned. Its names are those of `sparsek.h`, which says more.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Status {
            $($(#[$doc])* $name,)*
            /// One that this version of the crate does not know, by its number.
            Other(i32),
        }

        impl Status {
            #[cfg(test)]
            const ALL: &[Status] = &[$(Status::$name),*];

            fn of(code: sys::sparsek_status) -> Status {
                match code {
                    $(sys::$code => Status::$name,)*
                    other => Status::Other(other),
                }
            }

            /// The status as a number of `sparsek.h`.
            pub fn code(self) -> i32 {
                match self {
                    $(Status::$name => sys::$code,)*
                    Status::Other(code) => code,
                }
            }
        }

        impl fmt::Display for Status {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Status::$name => f.write_str(stringify!($code)),)*
                    Status::Other(code) => write!(f, "status {code}"),
                }
            }
        }
    };
}

statuses! {
    /// An address that must not be null is.
    NullPointer = SPARSEK_NULL_POINTER,
    /// The library does not know a struct of this size: it is older than this crate.
    BadAbiSize = SPARSEK_BAD_ABI_SIZE,
    /// An extent that the call does not allow, or that is too large.
    BadSize = SPARSEK_BAD_SIZE,
    /// A value or combination that does not exist.
    BadArgument = SPARSEK_BAD_ARGUMENT,
    /// A leading dimension that is too small, or not what the plan's kernel takes.
    BadLeadingDimension = SPARSEK_BAD_LEADING_DIMENSION,
    /// An address below the alignment that the plan was made for.
    Misaligned = SPARSEK_MISALIGNED,
    /// Host memory given as device memory, or the other way round.
    WrongMemory = SPARSEK_WRONG_MEMORY,
    /// The index does not begin with 0.
    RowPtrStart = SPARSEK_ROW_PTR_START,
    /// The index of block rows decreases.
    RowPtrNotMonotone = SPARSEK_ROW_PTR_NOT_MONOTONE,
    /// The index of block rows does not end with the number of blocks.
    RowPtrEnd = SPARSEK_ROW_PTR_END,
    /// A block column that the matrix does not have.
    ColIdxRange = SPARSEK_COL_IDX_RANGE,
    /// The columns of a block row decrease: see [`crate::Bsr::sort`].
    ColIdxUnsorted = SPARSEK_COL_IDX_UNSORTED,
    /// A block row has a column twice.
    ColIdxRepeated = SPARSEK_COL_IDX_REPEATED,
    /// A block of values that does not exist.
    BlockIdxRange = SPARSEK_BLOCK_IDX_RANGE,
    /// An index that is made has more blocks than there is room for.
    OverCapacity = SPARSEK_OVER_CAPACITY,
    /// A type, or combination of types, that is not served.
    UnsupportedDtype = SPARSEK_UNSUPPORTED_DTYPE,
    /// A size of blocks that is not served.
    UnsupportedBlock = SPARSEK_UNSUPPORTED_BLOCK,
    /// The named kernel does not exist, or does not serve the product.
    NoSuchKernel = SPARSEK_NO_SUCH_KERNEL,
    /// There is no driver, no GPU, or none that is served.
    NoDevice = SPARSEK_NO_DEVICE,
    /// A library of NVIDIA's that is opened at run time was not found.
    NoLibrary = SPARSEK_NO_LIBRARY,
    /// Host or device memory is exhausted.
    OutOfMemory = SPARSEK_OUT_OF_MEMORY,
    /// A call of CUDA failed.
    CudaError = SPARSEK_CUDA_ERROR,
    /// A fault of the library.
    Internal = SPARSEK_INTERNAL,
    /// A file cannot be read or written.
    IoError = SPARSEK_IO_ERROR,
    /// A result is beyond its bound.
    CheckFailed = SPARSEK_CHECK_FAILED,
    /// Not known yet.
    NotReady = SPARSEK_NOT_READY,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "calls libsparsek")]
    fn a_status_keeps_its_number_and_name() {
        for status in Status::ALL {
            assert_eq!(Status::of(status.code()), *status);
        }
        assert_eq!(Status::of(77), Status::Other(77));
        assert_eq!(Status::Other(77).to_string(), "status 77");
        let Ok(api) = crate::library::api() else { return };
        for code in 1..100 {
            // SAFETY: any number may be asked for, and names live as long as the library.
            let name = unsafe { CStr::from_ptr((api.status_name)(code)) }.to_str().unwrap();
            let known = !matches!(Status::of(code), Status::Other(_));
            assert_eq!(known, name == Status::of(code).to_string(), "{code} is {name}");
            assert!(
                known || !name.starts_with("SPARSEK_") || name.contains("UNKNOWN"),
                "{name} is missing"
            );
        }
    }
}
