// SPDX-License-Identifier: Apache-2.0

use std::ffi::CString;
use std::ptr;

use sparsek_sys as sys;

use crate::pattern::extent;
use crate::{Error, Result};

/// What attention is made for: its extents, and which keys a query sees.
///
/// Query i sees key j where the layout has their block, both are within the lengths of their sequences, and the rules let it:
/// with p = i, or with [`AttentionOptions::align_ends`] p = i + length of keys - length of queries, j <= p + window_right and
/// j >= p - window_left.
#[derive(Clone, Debug, Default)]
pub struct AttentionOptions {
    pub(crate) batch: usize,
    pub(crate) heads: [usize; 2],
    pub(crate) seq: [usize; 2],
    pub(crate) size: [usize; 2],
    layout_batch: usize,
    layout_heads: usize,
    window_left: Option<i64>,
    window_right: Option<i64>,
    align_ends: bool,
    any_order: bool,
    scale: f64,
    soft_cap: f64,
    kernel: Option<String>,
    workers: i32,
}

impl AttentionOptions {
    /// Of `batch` sequences, with `heads` heads of `head_size` in Q, K and V, `seq` queries and as many keys.
    pub fn new(batch: usize, heads: usize, seq: usize, head_size: usize) -> AttentionOptions {
        AttentionOptions {
            batch,
            heads: [heads; 2],
            seq: [seq; 2],
            size: [head_size; 2],
            ..Default::default()
        }
    }

    /// Heads of K and V, a divisor of Q's: query head h has key head h / (heads / heads_k).
    #[must_use]
    pub fn heads_k(mut self, heads: usize) -> Self {
        self.heads[1] = heads;
        self
    }

    /// How many keys there are.
    #[must_use]
    pub fn seq_k(mut self, seq: usize) -> Self {
        self.seq[1] = seq;
        self
    }

    /// The size of a head of V and O.
    #[must_use]
    pub fn head_size_v(mut self, size: usize) -> Self {
        self.size[1] = size;
        self
    }

    /// For how many batches and heads the layout has block rows, one after the other: batches 1 or all, heads a divisor of
    /// Q's, of which consecutive ones share a layout. (1, 1) otherwise.
    #[must_use]
    pub fn layouts(mut self, batch: usize, heads: usize) -> Self {
        (self.layout_batch, self.layout_heads) = (batch, heads);
        self
    }

    /// No key behind the query's place: a `window_right` of 0.
    #[must_use]
    pub fn causal(self) -> Self {
        self.window_right(0)
    }

    /// The last key that query p sees is p + `keys`.
    #[must_use]
    pub fn window_right(mut self, keys: i64) -> Self {
        self.window_right = Some(keys);
        self
    }

    /// The first key that query p sees is p - `keys`.
    #[must_use]
    pub fn window_left(mut self, keys: i64) -> Self {
        self.window_left = Some(keys);
        self
    }

    /// The last query is at the last key.
    #[must_use]
    pub fn align_ends(mut self) -> Self {
        self.align_ends = true;
        self
    }

    /// The backward pass may add the parts of the gradient of Q in any order: faster on a GPU, with more workspace. The last
    /// bits of that gradient then differ from call to call.
    #[must_use]
    pub fn any_order(mut self) -> Self {
        self.any_order = true;
        self
    }

    /// The factor of Q K^T, 1 / sqrt(head_size) otherwise.
    #[must_use]
    pub fn scale(mut self, scale: f64) -> Self {
        self.scale = scale;
        self
    }

    /// S = cap tanh(scale Q K^T / cap).
    #[must_use]
    pub fn soft_cap(mut self, cap: f64) -> Self {
        self.soft_cap = cap;
        self
    }

    /// A kernel by its name. Otherwise the library chooses.
    #[must_use]
    pub fn kernel(mut self, name: impl Into<String>) -> Self {
        self.kernel = Some(name.into());
        self
    }

    /// The most CTAs, or threads on the CPU, of a call. All otherwise.
    #[must_use]
    pub fn workers(mut self, workers: i32) -> Self {
        self.workers = workers;
        self
    }

    /// Calls a function with the options as the library takes them, without type and layout.
    pub(crate) fn with_raw<R>(&self, call: impl FnOnce(sys::sparsek_attention_options) -> Result<R>) -> Result<R> {
        let name = self.kernel.as_deref().map(CString::new).transpose();
        let name = name.map_err(|_| Error::Extent(format!("{:?} is no kernel's name", self.kernel)))?;
        let flag = |set: bool, bit: i32| if set { bit } else { 0 };
        call(sys::sparsek_attention_options {
            batch: extent(self.batch)?,
            heads_q: extent(self.heads[0])?,
            heads_k: extent(self.heads[1])?,
            seq_q: extent(self.seq[0])?,
            seq_k: extent(self.seq[1])?,
            head_size: extent(self.size[0])?,
            head_size_v: extent(self.size[1])?,
            layout_batch: extent(self.layout_batch)?,
            layout_heads: extent(self.layout_heads)?,
            window_left: self.window_left.unwrap_or(0),
            window_right: self.window_right.unwrap_or(0),
            scale: self.scale,
            soft_cap: self.soft_cap,
            flags: flag(self.window_right.is_some(), sys::SPARSEK_ATTENTION_RIGHT)
                | flag(self.window_left.is_some(), sys::SPARSEK_ATTENTION_LEFT)
                | flag(self.align_ends, sys::SPARSEK_ATTENTION_ALIGN_ENDS)
                | flag(self.any_order, sys::SPARSEK_ATTENTION_ANY_ORDER),
            kernel: name.as_ref().map_or(ptr::null(), |name| name.as_ptr()),
            workers: self.workers,
            ..Default::default()
        })
    }
}
