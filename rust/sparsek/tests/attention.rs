// SPDX-License-Identifier: Apache-2.0

//! Attention and its gradients against softmax in f64, on each back-end that there is.

mod common;

use common::{Number, Random, contexts};
use sparsek::half::{bf16, f16};
use sparsek::{
    Attention, AttentionBackward, AttentionForward, AttentionOptions, Bsr, Buffer, Context, Error, HeadsMut, HeadsRef,
    Status,
};

/// A shape, its layout and its rules.
#[derive(Clone, Copy)]
struct Shape {
    batch: usize,
    heads: usize,
    heads_k: usize,
    seq: usize,
    seq_k: usize,
    size: usize,
    size_v: usize,
    block: usize,
    layout_heads: usize,
    causal: bool,
    window: Option<i64>,
    density: f64,
}

const SHAPE: Shape = Shape {
    batch: 2,
    heads: 4,
    heads_k: 2,
    seq: 70,
    seq_k: 90,
    size: 24,
    size_v: 40,
    block: 16,
    layout_heads: 2,
    causal: false,
    window: None,
    density: 0.5,
};

/// What the GPU has a kernel for.
const ON_GPU: Shape = Shape {
    batch: 1,
    seq: 140,
    seq_k: 200,
    size: 64,
    size_v: 64,
    block: 64,
    causal: true,
    ..SHAPE
};

impl Shape {
    fn options(&self) -> AttentionOptions {
        let options = AttentionOptions::new(self.batch, self.heads, self.seq, self.size)
            .heads_k(self.heads_k)
            .seq_k(self.seq_k)
            .head_size_v(self.size_v)
            .layouts(1, self.layout_heads);
        let options = if self.causal { options.causal() } else { options };
        match self.window {
            Some(keys) => options.window_left(keys),
            None => options,
        }
    }

    /// (layout head, block row, block column)
    fn layout(&self, random: &mut Random) -> Vec<bool> {
        let blocks = self.layout_heads * self.seq.div_ceil(self.block) * self.seq_k.div_ceil(self.block);
        (0..blocks).map(|_| random.uniform() < self.density).collect()
    }

    fn sees(&self, layout: &[bool], head: usize, query: usize, key: usize) -> bool {
        let (rows, cols) = (self.seq.div_ceil(self.block), self.seq_k.div_ceil(self.block));
        let row = head * self.layout_heads / self.heads * rows + query / self.block;
        let distance = query as i64 - key as i64;
        layout[row * cols + key / self.block]
            && (!self.causal || distance >= 0)
            && self.window.is_none_or(|keys| distance <= keys)
    }
}

/// Softmax attention and its gradients in f64, from what is given: O, LSE, and the gradients of Q, K and V.
struct Reference {
    o: Vec<f64>,
    lse: Vec<f64>,
    grads: [Vec<f64>; 3],
}

fn reference<T: Number>(s: &Shape, layout: &[bool], [q, k, v, g]: [&[T]; 4]) -> Reference {
    let at = |x: &[T], size: usize, row: usize, d: usize| x[row * size + d].value();
    let scale = 1.0 / (s.size as f64).sqrt();
    let mut r = Reference {
        o: vec![0.0; s.batch * s.heads * s.seq * s.size_v],
        lse: vec![f64::NEG_INFINITY; s.batch * s.heads * s.seq],
        grads: [vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]],
    };
    for row in 0..s.batch * s.heads * s.seq {
        let (bh, query) = (row / s.seq, row % s.seq);
        let (batch, head) = (bh / s.heads, bh % s.heads);
        let first = (batch * s.heads_k + head * s.heads_k / s.heads) * s.seq_k;
        let keys: Vec<usize> = (0..s.seq_k).filter(|key| s.sees(layout, head, query, *key)).collect();
        let dot = |x: &[T], y: &[T], size: usize, key: usize| -> f64 {
            (0..size)
                .map(|d| at(x, size, row, d) * at(y, size, first + key, d))
                .sum()
        };
        let scores: Vec<f64> = keys.iter().map(|key| scale * dot(q, k, s.size, *key)).collect();
        let sum: f64 = scores.iter().map(|score| score.exp()).sum();
        if keys.is_empty() {
            continue;
        }
        r.lse[row] = sum.ln();
        let weights: Vec<f64> = scores.iter().map(|score| score.exp() / sum).collect();
        let of_weights: Vec<f64> = keys.iter().map(|key| dot(g, v, s.size_v, *key)).collect();
        let mean: f64 = weights.iter().zip(&of_weights).map(|(w, d)| w * d).sum();
        for ((key, weight), of_weight) in keys.iter().zip(&weights).zip(&of_weights) {
            let there = first + key;
            for d in 0..s.size_v {
                r.o[row * s.size_v + d] += weight * at(v, s.size_v, there, d);
                r.grads[2][there * s.size_v + d] += weight * at(g, s.size_v, row, d);
            }
            let of_score = scale * weight * (of_weight - mean);
            for d in 0..s.size {
                r.grads[0][row * s.size + d] += of_score * at(k, s.size, there, d);
                r.grads[1][there * s.size + d] += of_score * at(q, s.size, row, d);
            }
        }
    }
    r
}

fn close<T: Number>(what: &str, got: &[T], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let error = (got.value() - want).abs();
        let right = error <= tolerance * (1.0 + want.abs()) || got.value() == *want;
        assert!(right, "{what}[{i}]: {} in place of {want}", got.value());
    }
}

/// Forward and backward by a shape; T::Sum is f32, or f64 for f64.
fn attention<T: Number>(context: &Context, s: Shape, tolerance: f64)
where
    T::Sum: Number,
{
    let mut random = Random(7);
    let layout = s.layout(&mut random);
    let (rows, cols) = (layout.len() / s.seq_k.div_ceil(s.block), s.seq_k.div_ceil(s.block));
    let col_idx: Vec<i32> = (0..layout.len())
        .filter(|i| layout[*i])
        .map(|i| (i % cols) as i32)
        .collect();
    let row_ptr: Vec<i32> = (0..=rows)
        .map(|row| layout[..row * cols].iter().filter(|there| **there).count() as i32)
        .collect();
    let bsr = Bsr::new(rows * s.block, s.seq_k, (s.block, s.block), &row_ptr, &col_idx);
    let attention = Attention::<T>::new(context, &bsr, &s.options()).unwrap();
    let info = attention.info().unwrap();
    assert!(!info.kernel.is_empty() && info.blocks > 0, "{info:?}");

    let q: Vec<T> = random.vector(s.batch * s.heads * s.seq * s.size);
    let k: Vec<T> = random.vector(s.batch * s.heads_k * s.seq_k * s.size);
    let v: Vec<T> = random.vector(s.batch * s.heads_k * s.seq_k * s.size_v);
    let g: Vec<T> = random.vector(s.batch * s.heads * s.seq * s.size_v);
    let want = reference(&s, &layout, [&q, &k, &v, &g]);

    let [on_q, on_k, on_v, on_g] = [&q, &k, &v, &g].map(|x| Buffer::of(context, x).unwrap());
    let mut o = Buffer::<T>::new(context, g.len()).unwrap();
    let mut lse = Buffer::<T::Sum>::new(context, want.lse.len()).unwrap();
    let call = AttentionForward {
        q: (&on_q).into(),
        k: (&on_k).into(),
        v: (&on_v).into(),
        o: (&mut o).into(),
        lse: Some((&mut lse).into()),
        lengths: [None, None],
    };
    attention.forward(call).unwrap();
    close("O", &o.to_vec().unwrap(), &want.o, tolerance);
    close("LSE", &lse.to_vec().unwrap(), &want.lse, tolerance.min(1e-4));

    if info.backward.is_empty() {
        return;
    }
    let mut grads = [&q, &k, &v].map(|x| Buffer::<T>::new(context, x.len()).unwrap());
    let [grad_q, grad_k, grad_v] = &mut grads;
    let call = AttentionBackward {
        q: (&on_q).into(),
        k: (&on_k).into(),
        v: (&on_v).into(),
        o: (&o).into(),
        lse: (&lse).into(),
        lengths: [None, None],
        grad_o: (&on_g).into(),
        grad_q: Some(grad_q.into()),
        grad_k: Some(grad_k.into()),
        grad_v: Some(grad_v.into()),
    };
    attention.backward(call).unwrap();
    for ((what, got), want) in ["dQ", "dK", "dV"].iter().zip(&grads).zip(&want.grads) {
        close(what, &got.to_vec().unwrap(), want, 2.0 * tolerance);
    }
}

#[test]
fn attention_is_that_of_softmax() {
    for context in contexts() {
        if context.info().backend == sparsek::Backend::Cpu {
            attention::<f64>(&context, SHAPE, 1e-12);
            attention::<f32>(&context, SHAPE, 1e-5);
            let rules = Shape {
                causal: true,
                window: Some(40),
                density: 1.0,
                ..SHAPE
            };
            attention::<f32>(&context, rules, 1e-5);
        }
        attention::<bf16>(&context, ON_GPU, 2e-2);
        attention::<f16>(&context, ON_GPU, 3e-3);
    }
}

#[test]
fn strides_and_lengths() {
    let Some(context) = common::context() else { return };
    let (batch, heads, seq, size) = (2, 3, 20, 8);
    let attention = Attention::<f64>::dense(&context, &AttentionOptions::new(batch, heads, seq, size)).unwrap();
    let mut random = Random(3);
    let x: Vec<f64> = random.vector(3 * batch * heads * seq * size);
    // (batch, seq, 3, heads, size), as one product for Q, K and V gives.
    let part =
        |i: usize| HeadsRef::from(&x[i * heads * size..]).strides([seq * 3 * heads * size, size, 3 * heads * size]);
    let lengths = [20, 7];
    let mut o = vec![1.0; batch * heads * seq * size];
    let call = AttentionForward {
        q: part(0),
        k: part(1),
        v: part(2),
        o: HeadsMut::from(&mut o).strides([seq * heads * size, size, heads * size]),
        lse: None,
        lengths: [Some((&lengths).into()), Some((&lengths).into())],
    };
    attention.forward(call).unwrap();
    let at =
        |part: usize, b: usize, s: usize, h: usize, d: usize| x[(((b * seq + s) * 3 + part) * heads + h) * size + d];
    for (b, i, h) in (0..batch).flat_map(|b| (0..seq).flat_map(move |i| (0..heads).map(move |h| (b, i, h)))) {
        let length = lengths[b] as usize;
        let score =
            |j: usize| (0..size).map(|d| at(0, b, i, h, d) * at(1, b, j, h, d)).sum::<f64>() / (size as f64).sqrt();
        let weights: Vec<f64> = (0..length).map(|j| score(j).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let want: Vec<f64> = (0..size)
            .map(|d| {
                if i < length {
                    (0..length).map(|j| weights[j] / sum * at(2, b, j, h, d)).sum()
                } else {
                    0.0
                }
            })
            .collect();
        close("O", &o[((b * seq + i) * heads + h) * size..][..size], &want, 1e-12);
    }
}

#[test]
fn misfits_are_refused_by_name() {
    let Some(context) = common::context() else { return };
    let attention = Attention::<f32>::dense(&context, &AttentionOptions::new(1, 2, 4, 8)).unwrap();
    let (right, short) = (vec![0f32; 64], vec![0f32; 63]);
    let forward = |k: &[f32], o: usize, lengths: &[i32]| {
        let mut to = vec![0f32; o];
        attention.forward(AttentionForward {
            q: (&right).into(),
            k: k.into(),
            v: (&right).into(),
            o: (&mut to).into(),
            lse: None,
            lengths: [None, Some(lengths.into())],
        })
    };
    forward(&right, 64, &[4]).unwrap();
    for (error, text) in [
        (forward(&short, 64, &[4]), "K is"),
        (forward(&right, 65, &[4]), "O is"),
        (forward(&right, 64, &[4, 4]), "2 lengths of keys"),
    ] {
        assert!(
            matches!(&error, Err(Error::Extent(what)) if what.contains(text)),
            "{error:?}"
        );
    }
    let error = Attention::<f32>::dense(&context, &AttentionOptions::new(1, 3, 4, 8).heads_k(2)).unwrap_err();
    assert!(
        matches!(error.status(), Some(Status::BadSize | Status::BadArgument)),
        "{error}"
    );
}
