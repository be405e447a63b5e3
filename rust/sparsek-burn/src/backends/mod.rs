// SPDX-License-Identifier: Apache-2.0

//! The operations on each backend.

mod attention;
mod autodiff;
#[cfg(feature = "cuda")]
mod cuda;
mod host;
