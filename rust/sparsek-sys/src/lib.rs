// SPDX-License-Identifier: Apache-2.0

//! The C interface of libsparsek, as it is. What each name means is in the library's header, `sparsek.h`, which all of
//! [`bindings`] is generated from. Crate `sparsek` is the safe interface.
//!
//! Nothing is linked: [`load`] opens the library at run time and returns its table of functions.
//!
//! Each struct implements `Default`: all members are zero but `abi_size`, which is the struct's size.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let api = sparsek_sys::load("/usr/local/lib/libsparsek.so".as_ref())?;
//! let mut info = sparsek_sys::sparsek_build_info::default();
//! // SAFETY: info is a struct of the header's, with its size.
//! assert_eq!(unsafe { (api.build_info)(&mut info) }, sparsek_sys::SPARSEK_OK);
//! # Ok(())
//! # }
//! ```

use core::marker::{PhantomData, PhantomPinned};

/// What is generated: constants, structs and the table of functions.
#[allow(non_camel_case_types, missing_docs)]
#[rustfmt::skip]
pub mod bindings;
#[cfg(test)]
mod layout;
mod load;

pub use bindings::*;
pub use load::{LoadError, load};

/// The inside of a type that only the library knows: of no size, at one address, and not for other threads unless
/// whoever wraps it says so.
#[repr(C)]
#[derive(Debug)]
struct Opaque {
    _bytes: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `Default` of a struct whose first member is its own size.
macro_rules! versioned {
    ($name:ident) => {
        impl Default for $name {
            #[inline]
            fn default() -> Self {
                // SAFETY: numbers, addresses, arrays of them and functions in an Option may all be zero.
                let mut all_zero: Self = unsafe { core::mem::zeroed() };
                all_zero.abi_size = core::mem::size_of::<Self>();
                all_zero
            }
        }
    };
}
use versioned;
