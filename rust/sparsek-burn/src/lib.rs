// SPDX-License-Identifier: Apache-2.0

//! Block-sparse matrix products, layers and attention for Burn, with gradients.
//!
//! ```
//! use burn::tensor::{Device, Distribution, Tensor};
//! use burn_sparse::{BsrGemm, BsrGemmConfig, BsrTensor};
//!
//! # if std::env::var_os("SPARSEK_LIBRARY").is_none() { return; }
//! let device = Device::default();
//! let dense = Tensor::<2>::random([64, 96], Distribution::Default, &device);
//! // The quarter of the blocks of 16 x 16 whose values are the largest.
//! let a = BsrTensor::from_dense(dense, [16, 16], 0.25);
//! let b = Tensor::<2>::random([96, 8], Distribution::Default, &device);
//!
//! let config = BsrGemmConfig::new();
//! let output = BsrGemm::auto_tuned(a, b, config);
//! assert_eq!(output.dims(), [64, 8]);
//! ```
//!
//! The work is done by libsparsek, which crate `sparsek` opens at run time. As Burn's own operations do, those of this
//! crate panic where they are misused: where extents do not fit, and where there is no library. [`check`] says the latter
//! without a panic.
//!
//! # Features
//!
//! Burn's backend Flex has the products always. `ndarray`: Burn's backend of that name has them too. `cuda`: Burn's backend
//! for CUDA does, on a Hopper GPU, with Burn's fusion; building Burn's compiler for it fetches LLVM. `safetensors`:
//! [`BsrLinear`] and [`BsrTensor`] are read from what the Python package has written.

mod attention;
mod backends;
mod form;
mod gemm;
mod linear;
#[cfg_attr(
    feature = "ndarray",
    expect(deprecated, reason = "Burn calls its backend of ndarray so")
)]
mod ops;
mod pattern;
mod products;
#[cfg(feature = "safetensors")]
mod safetensors;
mod tensor;

pub use attention::{BsrAttention, BsrAttentionConfig};
pub use form::{BsrForm, BsrSide};
pub use gemm::{BsrGemm, BsrGemmConfig};
pub use linear::{BsrLinear, BsrLinearConfig};
pub use ops::{BsrAttentionOps, BsrOps};
pub use pattern::{BsrPattern, check};
#[cfg(feature = "safetensors")]
pub use safetensors::SafetensorsError;
pub use tensor::BsrTensor;

/// The example of the README, to be compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
