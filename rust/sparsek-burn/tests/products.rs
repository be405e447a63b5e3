// SPDX-License-Identifier: Apache-2.0

//! Products and gradients against Burn's dense ones.

use std::time::Duration;

use burn::tensor::{DType, Device, Distribution, Tensor, Tolerance};
use burn_sparse::{BsrGemm, BsrGemmConfig, BsrPattern, BsrTensor};

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

fn random<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(shape, Distribution::Uniform(-1.0, 1.0), device)
}

/// Blocks at half of the places, with an empty block row and an empty block column.
fn pattern() -> BsrPattern {
    let mask = [
        true, false, true, true, false, false, false, false, true, false, true, true,
    ];
    BsrPattern::of_mask(24, 32, [8, 8], &mask)
}

/// The types of tensors, and how far elements of products of them may be off.
const TYPES: [(DType, f64); 4] = [
    (DType::F32, 1e-5),
    (DType::F64, 1e-6),
    (DType::F16, 2e-2),
    (DType::BF16, 2e-1),
];

fn close<const D: usize>(got: Tensor<D>, want: Tensor<D>, tolerance: f64) {
    got.into_data()
        .convert::<f32>()
        .assert_approx_eq::<f32>(&want.into_data().convert::<f32>(), Tolerance::absolute(tolerance));
}

#[test]
fn a_product_of_each_type() {
    if !library() {
        return;
    }
    for (dtype, tolerance) in TYPES {
        let device = Device::flex();
        let values = random([6, 8, 8], &device).cast(dtype);
        let b = random([32, 5], &device).cast(dtype);
        let a = BsrTensor::new(pattern(), values);
        let (got, want) = (a.matmul(b.clone()), a.to_dense().matmul(b));
        assert_eq!((got.dtype(), got.dims()), (dtype, [24, 5]));
        close(got, want, tolerance);
    }
}

#[test]
fn gradients_of_each_type() {
    if !library() {
        return;
    }
    for (dtype, tolerance) in TYPES {
        let device = Device::flex().autodiff();
        let values = random([6, 8, 8], &device).cast(dtype).require_grad();
        let b = random([32, 7], &device).cast(dtype).require_grad();
        let (left, right) = (
            random([24, 7], &device).cast(dtype),
            random([7, 24], &device).cast(dtype),
        );
        let a = BsrTensor::new(pattern(), values.clone());
        let dense = a.to_dense().detach().require_grad();
        for (ours, theirs) in [
            (
                a.matmul(b.clone()) * left.clone(),
                dense.clone().matmul(b.clone()) * left,
            ),
            (
                a.linear(b.clone().transpose()) * right.clone(),
                b.clone().transpose().matmul(dense.clone().transpose()) * right,
            ),
        ] {
            let (ours, theirs) = (ours.sum().backward(), theirs.sum().backward());
            let (values_grad, b_grad) = (values.grad(&ours).unwrap(), b.grad(&ours).unwrap());
            assert_eq!((values_grad.dtype(), b_grad.dtype()), (dtype, dtype));
            let wanted = BsrTensor::at_pattern(dense.grad(&theirs).unwrap(), pattern());
            close(values_grad, wanted.values().clone(), tolerance);
            close(b_grad, b.grad(&theirs).unwrap(), tolerance);
        }
    }
}

#[test]
fn gradients_are_those_of_the_dense_product() {
    if !library() {
        return;
    }
    let device = Device::flex().autodiff();
    let values = random([6, 8, 8], &device).require_grad();
    let b = random([32, 7], &device).require_grad();
    let weights = random([24, 7], &device);
    let a = BsrTensor::new(pattern(), values.clone());
    let ours = (a.matmul(b.clone()).tanh() * weights.clone()).sum().backward();
    let (values_grad, b_grad) = (values.grad(&ours).unwrap(), b.grad(&ours).unwrap());

    let dense = a.to_dense().detach().require_grad();
    let theirs = (dense.clone().matmul(b.clone()).tanh() * weights.clone())
        .sum()
        .backward();
    let wanted = BsrTensor::at_pattern(dense.grad(&theirs).unwrap(), pattern());
    close(values_grad, wanted.values().clone(), 1e-5);
    close(b_grad, b.grad(&theirs).unwrap(), 1e-5);

    // Where one operand has no gradient, the other one's is the same.
    for (with_values, with_b) in [(true, false), (false, true)] {
        let values = random([6, 8, 8], &device).set_require_grad(with_values);
        let b = random([32, 7], &device).set_require_grad(with_b);
        let dense = BsrTensor::new(pattern(), values.clone())
            .to_dense()
            .detach()
            .set_require_grad(with_values);
        let ours = BsrTensor::new(pattern(), values.clone())
            .matmul(b.clone())
            .tanh()
            .sum()
            .backward();
        let theirs = dense.clone().matmul(b.clone()).tanh().sum().backward();
        assert_eq!(
            (values.grad(&ours).is_some(), b.grad(&ours).is_some()),
            (with_values, with_b)
        );
        if with_b {
            close(b.grad(&ours).unwrap(), b.grad(&theirs).unwrap(), 1e-5);
        } else {
            let wanted = BsrTensor::at_pattern(dense.grad(&theirs).unwrap(), pattern());
            close(values.grad(&ours).unwrap(), wanted.values().clone(), 1e-5);
        }
    }
}

#[test]
fn gradients_of_a_linear_product() {
    if !library() {
        return;
    }
    let device = Device::flex().autodiff();
    let values = random([6, 8, 8], &device).require_grad();
    let x = random([7, 32], &device).require_grad();
    let a = BsrTensor::new(pattern(), values.clone());
    let y = a.linear(x.clone());
    let dense = a.to_dense().detach().require_grad();
    let wanted = x.clone().matmul(dense.clone().transpose());
    close(y.clone(), wanted.clone(), 1e-5);

    let ours = y.tanh().sum().backward();
    let theirs = wanted.tanh().sum().backward();
    close(x.grad(&ours).unwrap(), x.grad(&theirs).unwrap(), 1e-5);
    let wanted = BsrTensor::at_pattern(dense.grad(&theirs).unwrap(), pattern());
    close(values.grad(&ours).unwrap(), wanted.values().clone(), 1e-5);
}

#[test]
fn blocks_of_a_dense_product_and_their_gradients() {
    if !library() {
        return;
    }
    for (dtype, tolerance) in TYPES {
        let device = Device::flex().autodiff();
        let x = random([24, 7], &device).cast(dtype).require_grad();
        let y = random([32, 7], &device).cast(dtype).require_grad();
        let weights = random([6, 8, 8], &device).cast(dtype);
        let ours = BsrTensor::sample(x.clone(), y.clone(), pattern());
        let dense = x.clone().matmul(y.clone().transpose());
        let theirs = BsrTensor::at_pattern(dense, pattern());
        close(ours.values().clone(), theirs.values().clone(), tolerance);
        let (ours, theirs) = [ours, theirs]
            .map(|blocks| (blocks.values().clone() * weights.clone()).sum().backward())
            .into();
        close(x.grad(&ours).unwrap(), x.grad(&theirs).unwrap(), tolerance);
        close(y.grad(&ours).unwrap(), y.grad(&theirs).unwrap(), tolerance);
    }
}

#[cfg(feature = "ndarray")]
#[test]
#[expect(deprecated, reason = "Burn calls its backend of ndarray so")]
fn products_and_gradients_of_burns_backend_of_ndarray() {
    if !library() {
        return;
    }
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-12)] {
        let device = Device::ndarray().autodiff();
        let values = random([6, 8, 8], &device).cast(dtype).require_grad();
        let b = random([7, 32], &device).cast(dtype).require_grad();
        let a = BsrTensor::new(pattern(), values.clone());
        let dense = a.to_dense().detach().require_grad();
        let transposed = || b.clone().transpose(); // a view
        let (ours, theirs) = (a.matmul(transposed()), dense.clone().matmul(transposed()));
        close(ours.clone(), theirs.clone(), tolerance);
        let (ours, theirs) = (ours.tanh().sum().backward(), theirs.tanh().sum().backward());
        let wanted = BsrTensor::at_pattern(dense.grad(&theirs).unwrap(), pattern());
        close(values.grad(&ours).unwrap(), wanted.values().clone(), tolerance);
        close(b.grad(&ours).unwrap(), b.grad(&theirs).unwrap(), tolerance);
    }
}

#[test]
fn an_operand_may_be_a_view() {
    if !library() {
        return;
    }
    let device = Device::flex();
    let a = BsrTensor::new(pattern(), random([6, 8, 8], &device).swap_dims(1, 2));
    let wide = random([9, 64], &device);
    let view = wide.slice([2..6, 16..48]).transpose();
    close(a.matmul(view.clone()), a.to_dense().matmul(view), 1e-5);
}

#[test]
fn blocks_of_a_dense_matrix() {
    let device = Device::flex();
    let dense = random([24, 32], &device);
    let all = BsrTensor::from_dense(dense.clone(), [8, 4], 1.0);
    assert_eq!(all.pattern().blocks(), 24);
    close(all.to_dense(), dense.clone(), 0.0);
    assert_eq!(BsrTensor::from_dense(dense.clone(), [8, 4], 0.0).pattern().blocks(), 0);
    assert_eq!(
        BsrTensor::from_dense(dense.clone(), [8, 4], 0.0)
            .to_dense()
            .abs()
            .sum()
            .into_scalar::<f32>(),
        0.0
    );
    // The largest blocks stay.
    let mut scale = Tensor::<2>::ones([24, 32], &device) * 1e-3;
    scale = scale.slice_assign([8..16, 4..12], Tensor::ones([8, 8], &device));
    let two = BsrTensor::from_dense(dense * scale, [8, 4], 2.0 / 24.0);
    assert_eq!(
        (two.pattern().row_ptr(), two.pattern().col_idx()),
        (&[0, 0, 2, 2][..], &[1, 2][..])
    );
}

/// Squares of 20 and of 1e-4 are beyond F16 when they are summed up, and BF16 does not tell sums apart that are near.
#[test]
fn the_largest_blocks_of_each_type() {
    let device = Device::flex();
    for (dtype, low, high) in [
        (DType::F16, 20.0, 20.5),
        (DType::F16, 1e-4, 1.1e-4),
        (DType::BF16, 1.0, 1.0078125),
        (DType::F32, 1e25, 1.1e25),
        (DType::F32, 1e-25, 1.1e-25),
        (DType::F64, 1.0, 1.0 + 1e-12),
    ] {
        for largest in 0..4 {
            let mut dense = Tensor::<2>::full([16, 64], low, (&device, DType::F64));
            // One element for BF16, whose sums must be exact to tell.
            let end = if dtype == DType::BF16 { 1 } else { 16 };
            let part = Tensor::<2>::full([end, end], high, (&device, DType::F64));
            dense = dense.slice_assign([0..end, 16 * largest..16 * largest + end], part);
            let a = BsrTensor::from_dense(dense.cast(dtype), [16, 16], 0.25);
            assert_eq!(a.pattern().col_idx(), [largest], "{dtype:?}, {low} and {high}");
            assert_eq!(a.values().dtype(), dtype);
        }
    }
}

#[test]
fn gemm_by_kernels_that_were_measured() {
    if !library() {
        return;
    }
    let device = Device::flex();
    let a = BsrTensor::from_dense(random([64, 96], &device), [16, 16], 0.3);
    let b = random([96, 8], &device);
    let want = a.to_dense().matmul(b.clone());
    let config = BsrGemmConfig::new().with_tuning(Duration::from_millis(2));
    close(
        BsrGemm::auto_tuned(a.clone(), b.clone(), config.clone()),
        want.clone(),
        1e-4,
    );
    close(BsrGemm::new(config).forward(&a, b.clone()), want.clone(), 1e-4);
    close(BsrGemm::default().forward(&a, b), want, 1e-4);
}

#[test]
fn many_column_counts_and_threads() {
    if !library() {
        return;
    }
    let device = Device::flex();
    let a = BsrTensor::from_dense(random([32, 32], &device), [4, 4], 0.4);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (a, device) = (a.clone(), device.clone());
            scope.spawn(move || {
                for n in 1..40 {
                    let b = random([32, 1 + (n + 7 * thread) % 40], &device);
                    close(a.matmul(b.clone()), a.to_dense().matmul(b), 1e-4);
                }
            });
        }
    });
}

fn panics(what: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(what).unwrap_err();
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn misuse_says_what_is_wrong() {
    let new =
        |row_ptr: Vec<i32>, col_idx: Vec<i32>| panics(move || drop(BsrPattern::new(8, 8, [4, 4], row_ptr, col_idx)));
    assert!(new(vec![0, 1], vec![0]).contains("row_ptr"));
    assert!(new(vec![0, 2, 1], vec![0]).contains("row_ptr"));
    assert!(new(vec![0, 2, 2], vec![1, 0]).contains("increase"));
    assert!(new(vec![0, 1, 2], vec![0, 2]).contains("not below 2"));
    assert!(panics(|| drop(BsrPattern::new(8, 9, [4, 4], vec![0], vec![]))).contains("no multiple"));
    assert!(panics(|| drop(BsrPattern::of_mask(8, 8, [4, 4], &[true]))).contains("a mask of 1"));
    let device = Device::flex();
    let a = BsrTensor::from_dense(random([8, 8], &device), [4, 4], 1.0);
    let b = random([9, 2], &device);
    assert!(panics(std::panic::AssertUnwindSafe(|| drop(a.matmul(b)))).contains("a product of 8 x 8"));
}
