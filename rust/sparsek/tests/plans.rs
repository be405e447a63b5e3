// SPDX-License-Identifier: Apache-2.0

//! What plans say, and what their options do.

mod common;

use std::process::Command;
use std::time::Duration;

use common::{Case, assert_close, context};
use sparsek::{Bsr, MatMut, MatRef, Op, Pattern, PlanOptions};

#[test]
fn a_plan_says_what_it_is_and_may_be_measured() {
    let Some(context) = context() else { return };
    let case = Case::<f32>::new(12, 64, 64, (16, 16), 0.5);
    let pattern = Pattern::new(&context, &case.bsr()).unwrap();
    let options = PlanOptions::new(16).tuning(Duration::from_millis(2));
    let (measured, again) = (pattern.plan(&options).unwrap(), pattern.plan(&options).unwrap());
    let info = measured.info().unwrap();
    assert!(
        info.kernel.starts_with("cpu") && !info.reason.is_empty() && info.unit_roundoff > 0.0,
        "{info:?}"
    );
    assert!(info.measured_seconds > 0.0, "{info:?}");
    assert_eq!(again.info().unwrap().kernel, info.kernel);
    let named = pattern
        .plan(&PlanOptions::new(16).kernel(&info.kernel).batch_invariant())
        .unwrap();
    assert_eq!(named.info().unwrap().kernel, info.kernel);
    let (b, mut c) = (vec![1f32; 64 * 16], vec![0f32; 64 * 16]);
    let (dense, result) = (MatRef::new(&b, 64, 16).unwrap(), MatMut::new(&mut c, 64, 16).unwrap());
    measured.multiply(&case.values, dense, result).unwrap();
    let (exact, size) = case.product(&b, 16, 3, 5);
    assert_close::<f32, f32>(c[3 * 16 + 5], exact, size, 64, (3, 5));
}

/// Measures, in the process of the test below.
#[test]
fn with_a_file_of_measurements() {
    let Some(kept) = std::env::var_os("SPARSEK_TEST_KEEPS_MEASUREMENTS") else {
        return;
    };
    let Some(context) = context() else { return };
    let case = Case::<f32>::new(12, 64, 64, (16, 16), 0.5);
    let mut options = PlanOptions::new(16).tuning(Duration::from_millis(2));
    if kept == "no" {
        options = options.no_user_cache();
    }
    let pattern = Pattern::<f32>::new(&context, &case.bsr()).unwrap();
    let plan = pattern.plan(&options).unwrap();
    assert!(plan.info().unwrap().measured_seconds > 0.0);
}

#[test]
fn the_file_of_measurements_may_be_left_alone() {
    if context().is_none() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("sparsek-measured-{}", std::process::id()));
    for (keeps, exists) in [("no", false), ("yes", true)] {
        let file = folder.join("measured.json");
        let out = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "with_a_file_of_measurements"])
            .env("SPARSEK_TUNING_CACHE", &file)
            .env("SPARSEK_TEST_KEEPS_MEASUREMENTS", keeps)
            .output()
            .unwrap();
        let (text, there) = (String::from_utf8_lossy(&out.stdout), folder.exists());
        let _ = std::fs::remove_dir_all(&folder);
        assert!(out.status.success() && text.contains("1 passed"), "{text}");
        assert_eq!(there, exists, "{keeps}");
    }
}

#[test]
fn options_reach_the_library() {
    let Some(context) = context() else { return };
    let bsr = Bsr::new(1, 1, (1, 1), &[0i32, 1], &[0]);
    let (single, double) = (
        Pattern::<f32>::new(&context, &bsr).unwrap(),
        Pattern::<f64>::new(&context, &bsr).unwrap(),
    );
    let options = PlanOptions::new(1);
    for options in [
        options.clone().own_kernels().allow_dense().values_static().workers(1),
        options.clone().tf32(),
    ] {
        let (plan, mut c) = (single.plan(&options).unwrap(), [0.0]);
        plan.multiply(
            &[3.0],
            MatRef::new(&[5.0], 1, 1).unwrap(),
            MatMut::new(&mut c, 1, 1).unwrap(),
        )
        .unwrap();
        assert_eq!((c, plan.info().unwrap().product_roundoff), ([15.0], 0.0));
    }
    assert!(single.plan(&options.clone().workers(-1)).is_err());
    assert!(double.plan(&options.clone().tf32()).is_err());
    let wide = PlanOptions::new(4);
    for (options, good) in [
        (wide.clone().ldb(4).ldc(7), true),
        (wide.clone().ldb(3), false),
        (wide.clone().ldc(3), false),
        (wide.clone().op(Op::Sdd).ldx(4).ldb(2), true),
        (wide.clone().op(Op::Sdd).ldx(3), false),
        (wide.clone().op(Op::Sdd).ldc(1), false),
        (wide.ldb(usize::MAX), false),
    ] {
        assert_eq!(single.plan(&options).is_ok(), good, "{options:?}");
    }
    // Measuring is what this flag forbids.
    assert!(
        single
            .plan(&options.batch_invariant().tuning(Duration::from_millis(1)))
            .is_err()
    );
}
