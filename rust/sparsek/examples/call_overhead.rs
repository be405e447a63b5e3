// SPDX-License-Identifier: Apache-2.0

//! What a product costs above the library's function, which is called in turn with it: `cargo run --release --example
//! call_overhead`. Both compute 8 x 8 x 8 in one block, by one thread.

use std::hint::black_box;
use std::ptr;
use std::time::Instant;

use sparsek::{Backend, Bsr, Context, ContextOptions, MatMut, MatRef, Pattern, PlanOptions};
use sparsek_sys as sys;

const ROUNDS: usize = 201;
const CALLS: u32 = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = Context::new(&ContextOptions {
        backend: Backend::Cpu,
        threads: 1,
        ..Default::default()
    })?;
    let pattern = Pattern::<f32>::new(&context, &Bsr::new(8, 8, (8, 8), &[0, 1], &[0]))?;
    let plan = pattern.plan(&PlanOptions::new(8))?;
    let (values, b, mut c) = ([1f32; 64], [1f32; 64], [0f32; 64]);

    let api = sys::load(sparsek::library_path()?.as_os_str())?;
    let raw = RawPlan::new(api, &values);
    let args = sys::sparsek_multiply_args {
        alpha: 1.0,
        b: b.as_ptr().cast(),
        c: c.as_mut_ptr().cast(),
        values: values.as_ptr().cast(),
        ..Default::default()
    };
    let (mut by_crate, mut by_library) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        for _ in 0..CALLS {
            plan.multiply(
                &values,
                MatRef::new(black_box(&b), 8, 8)?,
                MatMut::new(black_box(&mut c), 8, 8)?,
            )?;
        }
        by_crate.push(begin.elapsed() / CALLS);
        let begin = Instant::now();
        for _ in 0..CALLS {
            // SAFETY: the plan and the operands live, and have 8 x 8 elements.
            assert_eq!(unsafe { (api.multiply)(raw.plan, black_box(&args)) }, sys::SPARSEK_OK);
        }
        by_library.push(begin.elapsed() / CALLS);
    }
    by_crate.sort();
    by_library.sort();
    let (crates, library) = (by_crate[ROUNDS / 2], by_library[ROUNDS / 2]);
    println!(
        "crate {crates:?}, library {library:?}, {:?} more",
        crates.saturating_sub(library)
    );
    Ok(())
}

/// The same plan, made without the crate.
struct RawPlan {
    plan: *mut sys::sparsek_plan,
}

impl RawPlan {
    fn new(api: &sys::sparsek_api, values: &[f32]) -> RawPlan {
        let (row_ptr, col_idx) = ([0i32, 1], [0i32]);
        let options = sys::sparsek_context_options {
            backend: sys::SPARSEK_CPU,
            threads: 1,
            ..Default::default()
        };
        let bsr = sys::sparsek_bsr {
            rows: 8,
            cols: 8,
            block_m: 8,
            block_k: 8,
            nnzb: 1,
            dtype: sys::SPARSEK_FP32,
            index_type: sys::SPARSEK_INT32,
            memory: sys::SPARSEK_HOST,
            row_ptr: row_ptr.as_ptr().cast(),
            col_idx: col_idx.as_ptr().cast(),
            values: values.as_ptr().cast(),
            ..Default::default()
        };
        let of_plan = sys::sparsek_plan_options {
            n: 8,
            alignment: 4,
            ..Default::default()
        };
        let (mut context, mut matrix, mut plan) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: all arrays have the lengths that the extents say. The handles live as long as the process.
        unsafe {
            assert_eq!((api.context_create)(&options, &mut context), sys::SPARSEK_OK);
            assert_eq!((api.matrix_create)(context, &bsr, &mut matrix), sys::SPARSEK_OK);
            assert_eq!((api.plan_create)(matrix, &of_plan, &mut plan), sys::SPARSEK_OK);
        }
        RawPlan { plan }
    }
}
