// SPDX-License-Identifier: Apache-2.0

//! Products of block-sparse and dense matrices, on NVIDIA Hopper GPUs and on CPUs.
//!
//! ```text
//! C = act(alpha * A * B + beta * C + bias)        A: M x K in BSR (block compressed sparse row),  B, C: dense
//! ```
//!
//! The work is done by libsparsek, which is opened at run time: see [`library_path`]. Where there is no Hopper GPU, the
//! same calls run on the CPU.
//!
//! ```
//! use sparsek::{Bsr, Context, MatMut, MatRef, Pattern, PlanOptions};
//!
//! # if std::env::var_os("SPARSEK_LIBRARY").is_none() { return Ok(()); }
//! let context = Context::cpu()?;
//! // Two block rows of 2 x 2 blocks: one block in the first, at block column 1, and one in the second, at 0.
//! let pattern = Pattern::<f32>::new(&context, &Bsr::new(4, 4, (2, 2), &[0, 1, 2], &[1, 0]))?;
//! let plan = pattern.plan(&PlanOptions::new(3))?; // for products of 3 columns and fewer
//!
//! let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]; // (nnzb, 2, 2)
//! let b = [1.0; 4 * 3];
//! let mut c = [0.0; 4 * 3];
//! plan.multiply(&values, MatRef::new(&b, 4, 3)?, MatMut::new(&mut c, 4, 3)?)?;
//! assert_eq!(c, [3.0, 3.0, 3.0, 7.0, 7.0, 7.0, 11.0, 11.0, 11.0, 15.0, 15.0, 15.0]);
//! # Ok::<(), sparsek::Error>(())
//! ```
//!
//! # Handles
//!
//! A [`Context`] is a back-end and its device. A [`Pattern`] is where a matrix has blocks, without their values. A
//! [`Plan`] is how products by a pattern are computed, for an extent of the dense operands and types. Values come with
//! each product, so one plan serves any number of threads and of matrices of one pattern. A [`Matrix`] is a pattern with
//! values, for programs that need no more. [`Attention`] is how attention over one layout of blocks is computed. All of them may be dropped in any order, and used by several threads at once.
//!
//! # Memory
//!
//! Operands are slices, or on a GPU [`Buffer`]s of the context's memory. Extents are checked before the library gets an
//! address. Safe calls return when the result is there; [`Plan::enqueue`] does not wait, and takes addresses of other
//! libraries.
//!
//! # Features
//!
//! `ndarray`: views of `ndarray` as operands, in either order, and [`Matrix::dot`]. `faer`: those of `faer`, in either
//! order.

mod attention;
mod attention_options;
mod blocks;
mod buffer;
mod context;
mod element;
mod error;
mod heads;
mod library;
mod matrix;
mod operand;
mod pattern;
mod plan;
mod plan_options;
mod product;
mod stream;

#[cfg(feature = "ndarray")]
mod arrays;
#[cfg(feature = "faer")]
mod faer;
#[cfg(any(feature = "faer", feature = "ndarray"))]
mod strides;

pub use attention::{Attention, AttentionBackward, AttentionForward, AttentionInfo};
pub use attention_options::AttentionOptions;
pub use buffer::Buffer;
pub use context::{Backend, Context, ContextInfo, ContextOptions};
pub use element::{Element, Index};
pub use error::{Error, Result, Status};
pub use half;
pub use heads::{HeadsMut, HeadsRef};
pub use library::library_path;
pub use matrix::Matrix;
pub use operand::{MatMut, MatRef, Order, VecRef};
pub use pattern::{Bsr, Pattern};
pub use plan::{Plan, PlanInfo};
pub use plan_options::{Activation, Bias, Op, PlanOptions};
pub use product::Product;
pub use stream::Stream;

/// The example of the README, to be compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
