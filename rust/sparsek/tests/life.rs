// SPDX-License-Identifier: Apache-2.0

//! Threads, the order in which handles are dropped, and errors.

mod common;

use std::process::Command;
use std::thread;

use common::{Case, Random, assert_close, context};
use sparsek::half::bf16;
use sparsek::{
    Backend, Bias, Bsr, Buffer, Context, ContextOptions, Error, MatMut, MatRef, Matrix, Pattern, Plan, PlanOptions,
    Product, Status, Stream, VecRef, library_path,
};

const fn is_send_and_sync<T: Send + Sync>() {}
const _: () = {
    is_send_and_sync::<Context>();
    is_send_and_sync::<Pattern<bf16>>();
    is_send_and_sync::<Plan<bf16, f32>>();
    is_send_and_sync::<Matrix<f64>>();
    is_send_and_sync::<Buffer<f32>>();
    is_send_and_sync::<Stream>();
    is_send_and_sync::<Error>();
    is_send_and_sync::<MatRef<'static, f32>>();
    is_send_and_sync::<MatMut<'static, f32>>();
    is_send_and_sync::<VecRef<'static, f32>>();
    is_send_and_sync::<Product<'static, f32>>();
};

#[test]
fn one_plan_serves_many_threads() {
    let Some(context) = context() else { return };
    let case = Case::<f32>::new(1, 64, 64, (8, 8), 0.3);
    let plan = Pattern::new(&context, &case.bsr())
        .unwrap()
        .plan(&PlanOptions::new(8))
        .unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let (plan, case) = (&plan, &case);
            scope.spawn(move || {
                for round in 0..50 {
                    let n = 1 + (thread + round) as usize % 8;
                    let b: Vec<f32> = Random(thread * 1000 + round).vector(64 * n);
                    // Each thread has values of its own: twice, three times those of the case.
                    let values: Vec<f32> = case.values.iter().map(|value| value * (thread + 1) as f32).collect();
                    let mut c = vec![0f32; 64 * n];
                    let (dense, result) = (MatRef::new(&b, 64, n).unwrap(), MatMut::new(&mut c, 64, n).unwrap());
                    plan.multiply(&values, dense, result).unwrap();
                    for (at, got) in c.iter().enumerate() {
                        let (exact, size) = case.product(&b, n, at / n, at % n);
                        let factor = (thread + 1) as f64;
                        assert_close::<f32, f32>(*got, factor * exact, factor * size, 66, (at / n, at % n));
                    }
                    // An error is the thread's own.
                    let error = Pattern::<f32>::new(
                        &plan.pattern().context().clone(),
                        &Bsr::new(1, 1, (1, 1), &[0, 1], &[thread as i32 + 1]),
                    );
                    assert!(error.unwrap_err().to_string().contains(&format!("= {} ", thread + 1)));
                }
            });
        }
    });
}

#[test]
fn handles_may_be_dropped_in_any_order() {
    let Some(context) = context() else { return };
    let case = Case::<f32>::new(2, 16, 16, (4, 4), 0.5);
    let pattern = Pattern::new(&context, &case.bsr()).unwrap();
    let (plan, other) = (
        pattern.plan(&PlanOptions::new(1)).unwrap(),
        pattern.plan(&PlanOptions::new(2)).unwrap(),
    );
    let (buffer, stream) = (
        Buffer::of(&context, &[1f32; 16]).unwrap(),
        Stream::new(&context).unwrap(),
    );
    drop(pattern.clone());
    drop(context);
    drop(pattern);
    drop(other);
    let mut c = [0f32; 16];
    plan.multiply(
        &case.values,
        buffer.matrix(16, 1).unwrap(),
        MatMut::new(&mut c, 16, 1).unwrap(),
    )
    .unwrap();
    let (exact, size) = case.product(&[1f32; 16], 1, 7, 0);
    assert_close::<f32, f32>(c[7], exact, size, 16, (7, 0));
    drop(plan);
    stream.synchronize().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [1.0; 16]);
    drop(buffer);
    drop(stream);
}

#[test]
fn a_faulty_index_is_an_error_that_names_the_place() {
    let Some(context) = context() else { return };
    let fault = |bsr: &Bsr<'_, i32>| Pattern::<f32>::new(&context, bsr).unwrap_err();
    for (row_ptr, col_idx, status, says) in [
        ([0, 1, 2], [0, 2], Status::ColIdxRange, "col_idx[1] = 2"),
        ([0, 2, 2], [1, 0], Status::ColIdxUnsorted, "col_idx"),
        ([0, 2, 2], [1, 1], Status::ColIdxRepeated, "col_idx"),
        ([1, 1, 2], [0, 1], Status::RowPtrStart, "row_ptr[0]"),
        ([0, 2, 1], [0, 1], Status::RowPtrNotMonotone, "row_ptr"),
        ([0, 1, 1], [0, 1], Status::RowPtrEnd, "row_ptr"),
    ] {
        let error = fault(&Bsr::new(4, 4, (2, 2), &row_ptr, &col_idx));
        assert_eq!(error.status(), Some(status), "{error}");
        let text = error.to_string();
        assert!(text.contains(says) && text.contains(&status.to_string()), "{text}");
    }
    for (bsr, says) in [
        (Bsr::new(4, 4, (2, 2), &[0, 0], &[]), "row_ptr has 2 elements"),
        (Bsr::new(4, 4, (0, 2), &[0], &[]), "blocks of 0 x 2"),
        (
            Bsr::new(4, 4, (2, 2), &[0, 1, 1], &[0]).block_idx(&[]),
            "block_idx has 0",
        ),
        (Bsr::new(2, 2, (2, usize::MAX), &[0, 1], &[0]), "more than memory"),
        (
            Bsr::new(usize::MAX, 2, (1, 1), &[], &[]),
            "in blocks of 1 take one more than",
        ),
    ] {
        let error = fault(&bsr);
        assert!(
            matches!(error, Error::Extent(_)) && error.to_string().contains(says),
            "{error}"
        );
        assert_eq!(error.status(), None);
    }
}

#[test]
fn operands_that_do_not_fit_are_errors() {
    let Some(context) = context() else { return };
    let case = Case::<f32>::new(3, 8, 12, (4, 4), 0.5);
    let pattern = Pattern::new(&context, &case.bsr()).unwrap();
    let (plan, biased) = (
        pattern.plan(&PlanOptions::new(3)).unwrap(),
        pattern.plan(&PlanOptions::new(3).bias(Bias::Row)).unwrap(),
    );
    let (ones, mut c) = ([1f32; 64], [0f32; 64]);
    let few = &case.values[1..];
    let mut wrong =
        |plan: &Plan<f32>, values: &[f32], b: (usize, usize), c_extents: (usize, usize), bias: Option<usize>| {
            let result = MatMut::with_ld(&mut c, c_extents.0, c_extents.1, c_extents.1).unwrap();
            let mut product = Product::new(values, MatRef::with_ld(&ones, b.0, b.1, b.1).unwrap(), result);
            if let Some(len) = bias {
                product = product.bias(&ones[..len]);
            }
            plan.run(product).map_err(|error| {
                assert!(matches!(error, Error::Extent(_)), "{error}");
                error.to_string()
            })
        };
    wrong(&plan, &case.values, (12, 3), (8, 3), None).unwrap();
    wrong(&biased, &case.values, (12, 3), (8, 3), Some(8)).unwrap();
    assert!(
        wrong(&plan, few, (12, 3), (8, 3), None)
            .unwrap_err()
            .contains("does not serve")
    );
    assert!(
        wrong(&plan, &case.values, (11, 3), (8, 3), None)
            .unwrap_err()
            .contains("B 11 x 3")
    );
    assert!(
        wrong(&plan, &case.values, (12, 3), (7, 3), None)
            .unwrap_err()
            .contains("C 7 x 3")
    );
    assert!(
        wrong(&plan, &case.values, (12, 2), (8, 3), None)
            .unwrap_err()
            .contains("B 12 x 2")
    );
    assert!(
        wrong(&plan, &case.values, (12, 4), (8, 4), None)
            .unwrap_err()
            .contains("n at most 3")
    );
    assert!(
        wrong(&plan, &case.values, (12, 3), (8, 3), Some(8))
            .unwrap_err()
            .contains("a bias of 8")
    );
    assert!(
        wrong(&biased, &case.values, (12, 3), (8, 3), None)
            .unwrap_err()
            .contains("a bias of rows")
    );
    assert!(
        wrong(&biased, &case.values, (12, 3), (8, 3), Some(7))
            .unwrap_err()
            .contains("a bias of 7")
    );

    let (mut c, c_in) = ([0f32; 24], [0f32; 16]);
    let (dense, result) = (
        MatRef::new(&ones[..36], 12, 3).unwrap(),
        MatMut::new(&mut c, 8, 3).unwrap(),
    );
    let product = Product::new(&case.values, dense, result).c_in(MatRef::new(&c_in, 8, 2).unwrap());
    assert!(plan.run(product).unwrap_err().to_string().contains("c_in 8 x 2"));

    let error = pattern.plan(&PlanOptions::new(1 << 62)).unwrap_err();
    assert_eq!(error.status(), Some(Status::BadSize), "{error}");
    let error = pattern.plan(&PlanOptions::new(3).kernel("no_such_kernel")).unwrap_err();
    assert_eq!(error.status(), Some(Status::NoSuchKernel), "{error}");
    assert!(pattern.plan(&PlanOptions::new(3).kernel("a\0b")).is_err());
    assert!(pattern.plan(&PlanOptions::new(3).alignment(usize::MAX)).is_err());
}

#[test]
fn a_context_says_what_it_is() {
    let Some(context) = context() else { return };
    let info = context.info();
    assert_eq!(info.backend, Backend::Cpu);
    assert!(
        info.threads > 0 && !info.reason.is_empty() && !info.isa.is_empty(),
        "{info:?}"
    );
    let one = Context::new(&ContextOptions {
        backend: Backend::Cpu,
        threads: 1,
        ..Default::default()
    })
    .unwrap();
    assert_eq!(one.info().threads, 1);
    let bad = ContextOptions {
        backend: Backend::Cuda,
        device: 1 << 20,
        ..Default::default()
    };
    assert_eq!(Context::new(&bad).unwrap_err().status(), Some(Status::NoDevice));
    assert!(library_path().unwrap().ends_with("libsparsek.so"));
}

/// Run by the test below, in a process of its own.
#[test]
fn without_a_library() {
    if std::env::var_os("SPARSEK_TEST_WITHOUT_LIBRARY").is_some() {
        for _ in 0..2 {
            let error = Context::cpu().unwrap_err();
            assert!(
                matches!(error, Error::Library(_)) && error.to_string().contains("/no/such/folder"),
                "{error}"
            );
            assert_eq!(library_path().unwrap_err(), error);
        }
    }
}

#[test]
fn a_missing_library_is_an_error() {
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "without_a_library"])
        .env("SPARSEK_LIBRARY", "/no/such/folder")
        .env("SPARSEK_TEST_WITHOUT_LIBRARY", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && text.contains("1 passed"), "{text}");
}
