// SPDX-License-Identifier: Apache-2.0

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use burn::backend::Dispatch;
use burn::tensor::Tensor;
use sparsek::{Attention, AttentionBackward, AttentionForward, AttentionOptions, Bsr, Element, Error};

use crate::pattern::{Place, context};
use crate::{BsrAttentionOps, BsrPattern};

/// Which keys a query of a [`BsrAttention`] sees within the blocks of its layout, and the factor of its scores.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BsrAttentionConfig {
    causal: bool,
    window: Option<usize>,
    scale: Option<f64>,
}

impl BsrAttentionConfig {
    /// All keys of the blocks, and scores of Q K^T / sqrt(head size).
    pub fn new() -> BsrAttentionConfig {
        BsrAttentionConfig::default()
    }

    /// Query i sees key j where j <= i.
    #[must_use]
    pub fn with_causal(mut self) -> BsrAttentionConfig {
        self.causal = true;
        self
    }

    /// Query i sees key j where j >= i - `keys`.
    #[must_use]
    pub fn with_window(mut self, keys: usize) -> BsrAttentionConfig {
        self.window = Some(keys);
        self
    }

    /// The factor of Q K^T.
    #[must_use]
    pub fn with_scale(mut self, scale: f64) -> BsrAttentionConfig {
        self.scale = Some(scale);
        self
    }
}

/// Attention over a layout of blocks: softmax(scale Q K^T) V for each batch and head, over the keys that a query sees. A
/// query that sees none has 0. A clone is the same attention.
#[derive(Clone)]
pub struct BsrAttention {
    inner: Arc<Inner>,
}

struct Inner {
    layout: BsrPattern,
    heads: usize,
    config: BsrAttentionConfig,
    /// What the library has of it for types and extents, the one that was used last at the end.
    recent: Mutex<Vec<(Key, Arc<dyn Any + Send + Sync>)>>,
}

/// The type, the batch, the heads of Q and of K, and the sizes of a head of K and of V.
type Key = (TypeId, [usize; 5]);

/// For how many types and extents an attention is kept.
const MOST: usize = 8;

impl fmt::Debug for BsrAttention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            layout, heads, config, ..
        } = &*self.inner;
        write!(f, "BsrAttention({layout:?} for {heads} heads, {config:?})")
    }
}

impl BsrAttention {
    /// Attention of the layouts of `heads` heads, whose block rows are one after the other in `layout`, each with a row for
    /// each query; its columns are keys. With 1, all heads share a layout. Otherwise Q has as many heads, or a multiple, of
    /// which consecutive ones share a layout.
    ///
    /// # Panics
    ///
    /// Where the rows of `layout` are not those of so many heads, in whole blocks.
    pub fn new(layout: BsrPattern, heads: usize, config: BsrAttentionConfig) -> BsrAttention {
        let ([rows, _], [bm, _]) = (layout.shape(), layout.block());
        assert!(
            heads > 0 && rows.is_multiple_of(heads * bm),
            "{layout:?} does not have the rows of {heads} heads in whole blocks"
        );
        let recent = Mutex::default();
        let inner = Inner {
            layout,
            heads,
            config,
            recent,
        };
        BsrAttention { inner: Arc::new(inner) }
    }

    /// The attention of Q (batch, heads, queries, size) to K (batch, heads of K, keys, size) and V (batch, heads of K, keys,
    /// size of V): (batch, heads, queries, size of V). The heads of K divide those of Q. Gradients go to all three.
    ///
    /// # Panics
    ///
    /// Where the extents or types do not fit, and where the library is missing. On backends other than Flex, and Autodiff
    /// of it.
    pub fn forward(&self, q: Tensor<4>, k: Tensor<4>, v: Tensor<4>) -> Tensor<4> {
        let (of_q, of_k, of_v) = (q.dims(), k.dims(), v.dims());
        let [rows, keys] = self.inner.layout.shape();
        let queries = rows / self.inner.heads;
        let fits = of_q[2] == queries
            && of_k == [of_q[0], of_k[1], keys, of_q[3]]
            && of_v[..3] == of_k[..3]
            && of_k[1] > 0
            && of_q[1].is_multiple_of(of_k[1])
            && of_q[1].is_multiple_of(self.inner.heads);
        assert!(fits, "{self:?} of Q {of_q:?}, K {of_k:?} and V {of_v:?}");
        let (q, k, v) = (q.into_dispatch(), k.into_dispatch(), v.into_dispatch());
        Tensor::from_dispatch(Dispatch::bsr_attention(q, k, v, self.clone()).0)
    }

    /// O and LSE, for slices of these extents.
    pub(crate) fn forward_slices<T: Element>(&self, [q, k, v]: [(&[T], [usize; 4]); 3]) -> (Vec<T>, Vec<T::Sum>) {
        let [batch, heads, queries, _] = q.1;
        let mut o = vec![T::default(); batch * heads * queries * v.1[3]];
        let mut lse = vec![T::Sum::default(); batch * heads * queries];
        let call = AttentionForward {
            q: q.0.into(),
            k: k.0.into(),
            v: v.0.into(),
            o: (&mut o).into(),
            lse: Some((&mut lse).into()),
            lengths: [None, None],
        };
        let run = || self.of_library::<T>([q.1, k.1, v.1])?.forward(call);
        run().unwrap_or_else(|error| panic!("{self:?}: {error}"));
        (o, lse)
    }

    /// The gradients of Q, K and V, for slices of these extents.
    pub(crate) fn backward_slices<T: Element>(
        &self,
        [q, k, v]: [(&[T], [usize; 4]); 3],
        (o, lse, grad_o): (&[T], &[T::Sum], &[T]),
    ) -> [Vec<T>; 3] {
        let mut grads = [q, k, v].map(|of| vec![T::default(); of.0.len()]);
        let [grad_q, grad_k, grad_v] = &mut grads;
        let call = AttentionBackward {
            q: q.0.into(),
            k: k.0.into(),
            v: v.0.into(),
            o: o.into(),
            lse: lse.into(),
            lengths: [None, None],
            grad_o: grad_o.into(),
            grad_q: Some(grad_q.into()),
            grad_k: Some(grad_k.into()),
            grad_v: Some(grad_v.into()),
        };
        let run = || self.of_library::<T>([q.1, k.1, v.1])?.backward(call);
        run().unwrap_or_else(|error| panic!("{self:?}: {error}"));
        grads
    }

    /// What the library has for a type and extents.
    fn of_library<T: Element>(&self, [q, k, v]: [[usize; 4]; 3]) -> Result<Arc<Attention<T>>, Error> {
        let Inner {
            layout,
            heads,
            config,
            recent,
        } = &*self.inner;
        let key = (TypeId::of::<T>(), [q[0], q[1], k[1], q[3], v[3]]);
        let mut recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = recent.iter().position(|(of, _)| *of == key) {
            recent[at..].rotate_left(1);
            let (_, kept) = recent.last().expect("it was found");
            return Ok(kept.clone().downcast().expect("the key has the type"));
        }
        let mut options = AttentionOptions::new(q[0], q[1], q[2], q[3])
            .heads_k(k[1])
            .seq_k(k[2])
            .head_size_v(v[3])
            .layouts(1, *heads);
        if config.causal {
            options = options.causal();
        }
        if let Some(keys) = config.window {
            options = options.window_left(keys.try_into().unwrap_or(i64::MAX));
        }
        if let Some(scale) = config.scale {
            options = options.scale(scale);
        }
        let ([rows, cols], [bm, bk]) = (layout.shape(), layout.block());
        let index = Bsr::new(rows, cols, (bm, bk), layout.row_ptr(), layout.col_idx());
        let made = Arc::new(Attention::<T>::new(&context(Place::Host)?, &index, &options)?);
        if recent.len() == MOST {
            recent.remove(0);
        }
        recent.push((key, made.clone()));
        Ok(made)
    }
}
