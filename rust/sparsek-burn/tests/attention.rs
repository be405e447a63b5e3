// SPDX-License-Identifier: Apache-2.0

//! Attention and its gradients against Burn's softmax.

use burn::tensor::activation::softmax;
use burn::tensor::{DType, Device, Distribution, Tensor, Tolerance};
use burn_sparse::{BsrAttention, BsrAttentionConfig, BsrPattern};

/// Whether there is a library. One that is named has to be there.
fn library() -> bool {
    match burn_sparse::check() {
        Ok(()) => true,
        Err(error) => {
            assert!(std::env::var_os("SPARSEK_LIBRARY").is_none(), "{error}");
            eprintln!("skipped: {error}");
            false
        }
    }
}

const BATCH: usize = 2;
const HEADS: usize = 4;
const BLOCK: usize = 8;
const QUERIES: usize = 24;
const KEYS: usize = 32;

/// The layouts of two heads, each of (3, 4) blocks. Block row 1 of the second head has none.
const MASK: [bool; 24] = [
    true, false, true, true, false, true, false, false, true, true, false, true, //
    true, true, false, false, false, false, false, false, false, false, true, true,
];

fn random<const D: usize>(shape: [usize; D], dtype: DType, device: &Device) -> Tensor<D> {
    Tensor::<D>::random(shape, Distribution::Uniform(-1.0, 1.0), device).cast(dtype)
}

/// By dense products, a mask and softmax. Heads 0 and 1 have the first layout, 2 and 3 the second.
fn dense(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>, causal: bool, scale: f64) -> Tensor<4> {
    let (device, dtype) = (q.device(), q.dtype());
    let repeat = |x: Tensor<4>| {
        let [batch, heads, rows, size] = x.dims();
        let group = HEADS / heads;
        x.reshape([batch, heads, 1, rows * size])
            .repeat_dim(2, group)
            .reshape([batch, HEADS, rows, size])
    };
    let (k, v) = (repeat(k), repeat(v));
    let mut added = vec![0.0f32; HEADS * QUERIES * KEYS];
    let mut sees = vec![0.0f32; HEADS * QUERIES];
    for (i, place) in added.iter_mut().enumerate() {
        let (head, query, key) = (i / (QUERIES * KEYS), i / KEYS % QUERIES, i % KEYS);
        let block = (head / 2 * (QUERIES / BLOCK) + query / BLOCK) * (KEYS / BLOCK) + key / BLOCK;
        if MASK[block] && (!causal || key <= query) {
            sees[head * QUERIES + query] = 1.0;
        } else {
            *place = -1e4;
        }
    }
    let added = Tensor::<1>::from_floats(&added[..], &device).cast(dtype);
    let sees = Tensor::<1>::from_floats(&sees[..], &device).cast(dtype);
    let scores = q.matmul(k.swap_dims(2, 3)).mul_scalar(scale) + added.reshape([1, HEADS, QUERIES, KEYS]);
    softmax(scores, 3).matmul(v) * sees.reshape([1, HEADS, QUERIES, 1])
}

fn close(got: Tensor<4>, want: Tensor<4>, tolerance: f64) {
    got.into_data()
        .convert::<f32>()
        .assert_approx_eq::<f32>(&want.into_data().convert::<f32>(), Tolerance::absolute(tolerance));
}

#[test]
fn attention_and_gradients_of_each_type() {
    if !library() {
        return;
    }
    let layout = BsrPattern::of_mask(2 * QUERIES, KEYS, [BLOCK, BLOCK], &MASK);
    for (dtype, tolerance) in [
        (DType::F32, 1e-5),
        (DType::F64, 1e-6),
        (DType::F16, 1e-2),
        (DType::BF16, 6e-2),
    ] {
        for (causal, scale) in [(false, None), (true, Some(0.7))] {
            let device = Device::flex().autodiff();
            let mut config = BsrAttentionConfig::new();
            config = if causal { config.with_causal() } else { config };
            config = scale.map_or(config.clone(), |scale| config.with_scale(scale));
            let attention = BsrAttention::new(layout.clone(), 2, config);
            let q = random([BATCH, HEADS, QUERIES, 16], dtype, &device).require_grad();
            // Not contiguous: (batch, keys, heads, size) in memory.
            let k = random([BATCH, KEYS, 2, 16], dtype, &device)
                .swap_dims(1, 2)
                .detach()
                .require_grad();
            let v = random([BATCH, 2, KEYS, 12], dtype, &device).require_grad();
            let weight = random([BATCH, HEADS, QUERIES, 12], dtype, &device);

            let got = attention.forward(q.clone(), k.clone(), v.clone());
            let want = dense(q.clone(), k.clone(), v.clone(), causal, scale.unwrap_or(0.25));
            assert_eq!((got.dtype(), got.dims()), (dtype, [BATCH, HEADS, QUERIES, 12]));
            close(got.clone(), want.clone(), tolerance);
            let (ours, theirs) = (got * weight.clone(), want * weight);
            let (ours, theirs) = (ours.sum().backward(), theirs.sum().backward());
            for tensor in [&q, &k, &v] {
                close(
                    tensor.grad(&ours).unwrap(),
                    tensor.grad(&theirs).unwrap(),
                    2.0 * tolerance,
                );
            }
        }
    }
}

#[test]
fn only_what_is_tracked_has_a_gradient() {
    if !library() {
        return;
    }
    let device = Device::flex().autodiff();
    let layout = BsrPattern::of_mask(16, 16, [8, 8], &[true, false, true, true]);
    let attention = BsrAttention::new(layout, 1, BsrAttentionConfig::new().with_window(9));
    let [q, k] = [0, 1].map(|_| random([1, 2, 16, 8], DType::F32, &device));
    let v = random([1, 1, 16, 8], DType::F32, &device).require_grad();
    let k_of_one_head = k.slice([0..1, 0..1, 0..16, 0..8]);
    let grads = attention.forward(q.clone(), k_of_one_head, v.clone()).sum().backward();
    assert!(v.grad(&grads).is_some() && q.grad(&grads).is_none());
}

#[test]
#[should_panic(expected = "of Q [1, 2, 16, 8], K [1, 2, 16, 4]")]
fn misfits_panic() {
    let device = Device::flex();
    let layout = BsrPattern::of_mask(16, 16, [8, 8], &[true; 4]);
    let attention = BsrAttention::new(layout, 1, BsrAttentionConfig::new());
    let [q, k] = [8, 4].map(|size| random([1, 2, 16, size], DType::F32, &device));
    attention.forward(q.clone(), k, q);
}
